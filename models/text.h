/*
 * Text files as string tensors: one string a line, UTF-8; a carriage return
 * before the end of a line is no part of it. What holds a line break, or a NUL
 * byte, cannot be told this way and is an error.
 */
#ifndef RG_MODELS_TEXT_H
#define RG_MODELS_TEXT_H

#include "base/error.h"
#include "graph/tensor.h"

/* A list of as many strings as there are lines. t->data comes from
 * rg_alloc_aligned(64, ...), holds the characters too, and is the caller's to
 * rg_free; it is NULL for an empty file. */
int rg_text_read(const char *path, struct rg_tensor *t, struct rg_error *err);
int rg_text_write(const char *path, const struct rg_tensor *t, struct rg_error *err);

#endif
