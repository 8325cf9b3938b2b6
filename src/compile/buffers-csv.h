/*
 * Buffers from a CSV file, the form in which public instances of the memory
 * planner's problem come:
 *
 *   id,lower,upper,size[,alignment]
 *   b1,0,3,4
 *
 * The first line names the columns, in any order; others are passed over. The
 * interval is half-open, sizes and alignments are bytes, an id is any text without a comma
 * and stands for one buffer only. Blank lines and CR before the end of a line do not
 * matter; there is no quoting.
 */
#ifndef RG_COMPILE_BUFFERS_CSV_H
#define RG_COMPILE_BUFFERS_CSV_H

#include <stddef.h>

#include "base/error.h"
#include "compile/buffers.h"

struct rg_buffer_table {
	int n;
	struct rg_buffer *buffers; /* not placed */
	const char **ids;          /* of each, in `text` */
	char *text;
};

/*
 * Reads a file, or `len` bytes of text. Errors name the line: -EINVAL for what is not such
 * a file, -EOVERFLOW, the errno of the file, -EFBIG above 256 MiB, -ENOMEM. *t is
 * empty after one; rg_buffers_csv_free in any case.
 */
int rg_buffers_csv_load(const char *path, struct rg_buffer_table *t, struct rg_error *err);
int rg_buffers_csv_parse(const char *text, size_t len, struct rg_buffer_table *t, struct rg_error *err);
void rg_buffers_csv_free(struct rg_buffer_table *t);

#endif
