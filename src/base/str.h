/*
 * Strings: a growing buffer, and numbers written for people.
 */
#ifndef RG_BASE_STR_H
#define RG_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing buffer. Zero-initialise it. After a failed allocation `failed` is
 * set, everything later is ignored, and the text so far stays valid. */
struct rg_str {
	char *text; /* NUL-terminated, or NULL when empty */
	size_t len, cap;
	bool failed;
};

void rg_str_add(struct rg_str *s, const char *text);
void rg_str_addn(struct rg_str *s, const char *text, size_t n);
void rg_str_printf(struct rg_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One word for a POSIX shell, in single quotes when it needs them. */
void rg_str_shell(struct rg_str *s, const char *word);
const char *rg_str_text(const struct rg_str *s); /* "" when empty */
void rg_str_free(struct rg_str *s);

/*
 * Numbers for people, into out (at least 32 bytes), returning out. NAN gives
 * "-". Three significant digits: "4.11 G", "812 M", "1.20 ms", "97.5 MiB".
 */
char *rg_fmt_si(char *out, double v, const char *unit);    /* powers of 1000 */
char *rg_fmt_bytes(char *out, double bytes);               /* KiB, MiB, GiB */
char *rg_fmt_ns(char *out, double ns);                     /* ns, us, ms, s */
char *rg_fmt_count(char *out, int64_t v);                  /* 25,557,032 */

/* Whole-string parses; false when the text is not wholly a number in range. */
bool rg_parse_i64(const char *text, int64_t lo, int64_t hi, int64_t *out);
bool rg_parse_f64(const char *text, double *out);
/* "5s", "200ms", "2m", "3" (seconds) to nanoseconds. */
bool rg_parse_duration_ns(const char *text, uint64_t *out);

#endif
