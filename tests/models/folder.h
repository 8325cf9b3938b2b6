/* A folder of its own for each test, removed afterwards. */
#ifndef RG_TESTS_MODELS_FOLDER_H
#define RG_TESTS_MODELS_FOLDER_H

#include <stddef.h>

/* cmocka setup and teardown; the state is unused. */
int folder_setup(void **state);
int folder_teardown(void **state);
/* Path of a name in it; one of eight static buffers in turn. */
const char *folder_path(const char *name);
/* Writes a file there and returns its path. */
const char *folder_write(const char *name, const void *data, size_t n);

#endif
