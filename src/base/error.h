/*
 * Errors for people: what happened, where, and what to do about it.
 *
 * Convention of the whole project: a function that can fail returns 0 or a
 * negative errno value and takes a `struct rg_error *err` as its last
 * argument. The error is filled once, where the cause is known; callers pass
 * it up untouched, or add a place with rg_error_at(). `err` is never NULL.
 * Nothing below src/cmd and tui prints or exits.
 *
 * Thread rule: one struct rg_error belongs to one thread at a time.
 */
#ifndef RG_BASE_ERROR_H
#define RG_BASE_ERROR_H

#include <errno.h>

struct rg_error {
	int code;          /* negative errno, 0 when nothing happened */
	char where[256];   /* file, node, field: where it happened; may be "" */
	char message[512]; /* one line: what happened */
	char hint[384];    /* one line: what to do; "" when nothing can be said */
};

/* Extra code beyond errno, kept negative and outside errno's range. */
#define RG_ENOTSUP_MODEL (-4001) /* the model uses something we do not support */
#define RG_ENEED_VALUE (-4002)   /* a shape depends on a value that is not known */
#define RG_ECANT_MEASURE (-4003) /* this machine cannot measure that: exit code 3 */
#define RG_EUSAGE (-4004)        /* wrong options: exit code 2 */
#define RG_EINTERRUPTED (-4005)  /* stopped by a person: exit code 130 */

/* An error that has not happened. */
#define RG_ERROR_INIT { 0, "", "", "" }

/*
 * Fills `err` with `code` and a formatted message, clears where and hint, and
 * returns `code`, so that a caller can write `return rg_error_set(...)`.
 * Control characters in the message are replaced by '?', since names from
 * files end in it.
 */
int rg_error_set(struct rg_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds what to do. Returns err->code. */
int rg_error_hint(struct rg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Puts a place in front of the ones already there ("a.onnx" then "node 'x'"
 * called from inside out give "a.onnx: node 'x'"). Returns err->code. */
int rg_error_at(struct rg_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Out of memory, with the number of bytes that were asked for. */
int rg_error_nomem(struct rg_error *err, unsigned long size_bytes);

/* Forgets the error, so that the struct can be used again. */
void rg_error_clear(struct rg_error *err);

#endif
