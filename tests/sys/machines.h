/*
 * Recorded machines for tests: trees of /proc and /sys and CPUID dumps that
 * stand outside the repository (their README names sources and licences).
 * RIDGE_SHARED names the folder that holds data/machines; without it `shared`
 * beside the source tree is tried. Absent: the test skips, and says so.
 */
#ifndef RG_TESTS_SYS_MACHINES_H
#define RG_TESTS_SYS_MACHINES_H

#include <stdbool.h>
#include <stddef.h>

/* Unpacks <archive>.tar.bz2 into a temporary folder and writes its path to
 * out. false, with the reason on stderr: there is nothing to unpack. */
bool machine_unpack(const char *archive, char *out, size_t cap);
/* Writes the folder of recorded machines to out; false when there is none. */
bool machine_folder(char *out, size_t cap);
/* A fresh empty folder that machine_cleanup removes. */
void machine_scratch(char *out, size_t cap);
/* Makes folders and the file path under a root, with that content. */
void machine_write(const char *root, const char *path, const char *content);
/* Group teardown: removes what the two made. */
int machine_cleanup(void **state);

#endif
