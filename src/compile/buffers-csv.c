/*
 * The reader of planner instances. The text is copied once and cut in place.
 */
#include "compile/buffers-csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

#define MAX_BYTES ((size_t)256 << 20)

enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = { "id", "lower", "upper", "size", "alignment" };

/* The next line of *text, ended by NUL, or NULL. A CR at its end goes too. */
static char *next_line(char **text, char *end)
{
	char *line = *text, *stop;
	size_t len;

	if (line >= end)
		return NULL;
	stop = memchr(line, '\n', (size_t)(end - line));
	if (!stop)
		stop = end;
	*text = stop + 1;
	*stop = '\0';
	len = (size_t)(stop - line);
	if (len > 0 && line[len - 1] == '\r')
		line[len - 1] = '\0';
	return line;
}

/* The next field of *line, without blanks around it, or NULL. */
static char *next_field(char **line)
{
	char *field = *line, *end;

	if (!field)
		return NULL;
	end = field + strcspn(field, ",");
	*line = *end ? end + 1 : NULL;
	*end = '\0';
	field += strspn(field, " \t");
	while (end > field && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return field;
}

/* at[column]: its position, or -1. */
static int read_header(char *line, int *at, struct rg_error *err)
{
	char *field;
	int i, k;

	for (k = 0; k < N_COLUMNS; k++)
		at[k] = -1;
	for (i = 0; (field = next_field(&line)); i++) {
		for (k = 0; k < N_COLUMNS; k++) {
			if (strcmp(field, column_names[k]) != 0)
				continue;
			if (at[k] >= 0)
				return rg_error_set(err, -EINVAL, "line 1 names the column '%s' twice",
						    column_names[k]);
			at[k] = i;
		}
	}
	for (k = 0; k < ALIGNMENT; k++) {
		if (at[k] < 0) {
			rg_error_set(err, -EINVAL, "the first line names no column '%s'", column_names[k]);
			return rg_error_hint(err, "it must be  id,lower,upper,size  and may end in  ,alignment");
		}
	}
	return 0;
}

static int read_row(char *line, int number, const int *at, const char **id, struct rg_buffer *b,
		    struct rg_error *err)
{
	char *fields[N_COLUMNS] = { 0 }, *field;
	int64_t v[N_COLUMNS] = { 0 };
	int i, k;

	for (i = 0; (field = next_field(&line)); i++)
		for (k = 0; k < N_COLUMNS; k++)
			if (at[k] == i)
				fields[k] = field;
	for (k = 0; k < N_COLUMNS; k++) {
		if (at[k] < 0)
			continue;
		if (!fields[k] || !*fields[k])
			return rg_error_set(err, -EINVAL, "line %d has no '%s'", number, column_names[k]);
		if (k != ID && !rg_parse_i64(fields[k], INT64_MIN, INT64_MAX, &v[k]))
			return rg_error_set(err, -EINVAL, "line %d: '%.40s' is no whole number for '%s'", number,
					    fields[k], column_names[k]);
	}
	if (v[LOWER] >= v[UPPER])
		return rg_error_set(err, -EINVAL, "line %d: 'upper' must be above 'lower', which is %lld", number,
				    (long long)v[LOWER]);
	if (v[SIZE] < 0)
		return rg_error_set(err, -EINVAL, "line %d: 'size' is negative", number);
	if (at[ALIGNMENT] >= 0 && v[ALIGNMENT] < 1)
		return rg_error_set(err, -EINVAL, "line %d: 'alignment' must be at least 1", number);
	*id = fields[ID];
	*b = (struct rg_buffer){ v[LOWER], v[UPPER], v[SIZE], at[ALIGNMENT] >= 0 ? v[ALIGNMENT] : 1, -1 };
	return 0;
}

static int by_text(const void *pa, const void *pb)
{
	return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

static int refuse_twice(const struct rg_buffer_table *t, struct rg_error *err)
{
	const char **sorted = rg_calloc((size_t)t->n + 1, sizeof(*sorted));
	int i, rc = 0;

	if (!sorted)
		return rg_error_nomem(err, ((unsigned long)t->n + 1) * sizeof(*sorted));
	memcpy(sorted, t->ids, (size_t)t->n * sizeof(*sorted));
	qsort(sorted, (size_t)t->n, sizeof(*sorted), by_text);
	for (i = 1; i < t->n && !rc; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			rc = rg_error_set(err, -EINVAL, "two lines have the id '%.60s'", sorted[i]);
	rg_free(sorted);
	return rc;
}

/* Cuts t->text, of `len` bytes and a NUL. */
static int parse(struct rg_buffer_table *t, size_t len, struct rg_error *err)
{
	char *text = t->text, *end = t->text + len, *line;
	size_t n_lines = 2, i;
	int at[N_COLUMNS], number = 1, rc;

	if (memchr(text, '\0', len))
		return rg_error_set(err, -EINVAL, "this is no text: it has a zero byte");
	for (i = 0; i < len; i++)
		n_lines += text[i] == '\n';
	t->buffers = rg_calloc(n_lines, sizeof(*t->buffers));
	t->ids = rg_calloc(n_lines, sizeof(*t->ids));
	if (!t->buffers || !t->ids)
		return rg_error_nomem(err, n_lines * sizeof(*t->buffers));
	line = next_line(&text, end);
	rc = read_header(line ? line : text, at, err);
	while (!rc && (line = next_line(&text, end))) {
		number++;
		if (line[strspn(line, " \t")] == '\0')
			continue;
		rc = read_row(line, number, at, &t->ids[t->n], &t->buffers[t->n], err);
		t->n += !rc;
	}
	if (!rc)
		rc = refuse_twice(t, err);
	return rc ? rc : rg_buffers_validate(t->buffers, t->n, NULL, err);
}

static int finish(struct rg_buffer_table *t, size_t len, struct rg_error *err)
{
	int rc = parse(t, len, err);

	if (rc)
		rg_buffers_csv_free(t);
	return rc;
}

int rg_buffers_csv_parse(const char *text, size_t len, struct rg_buffer_table *t, struct rg_error *err)
{
	*t = (struct rg_buffer_table){ 0 };
	if (len > MAX_BYTES)
		return rg_error_set(err, -EFBIG, "more than 256 MiB is no planner instance");
	t->text = rg_alloc(len + 1);
	if (!t->text)
		return rg_error_nomem(err, len + 1);
	if (len > 0)
		memcpy(t->text, text, len);
	t->text[len] = '\0';
	return finish(t, len, err);
}

/* The whole file into t->text; its length is not known before, it may be a pipe. */
static int slurp(FILE *f, struct rg_buffer_table *t, size_t *len, struct rg_error *err)
{
	size_t cap = 0, got;

	*len = 0;
	do {
		char *more = rg_grow(t->text, &cap, *len + 65536, 1);

		if (!more)
			return rg_error_nomem(err, *len + 65536);
		t->text = more;
		got = fread(t->text + *len, 1, cap - *len - 1, f);
		*len += got;
		if (*len > MAX_BYTES)
			return rg_error_set(err, -EFBIG, "more than 256 MiB is no planner instance");
	} while (got > 0);
	if (ferror(f))
		return rg_error_set(err, -EIO, "cannot be read: %s", strerror(errno));
	t->text[*len] = '\0';
	return 0;
}

int rg_buffers_csv_load(const char *path, struct rg_buffer_table *t, struct rg_error *err)
{
	FILE *f = fopen(path, "re");
	size_t len;
	int rc;

	*t = (struct rg_buffer_table){ 0 };
	if (!f) {
		rc = -errno;
		rg_error_set(err, rc, "cannot be opened: %s", strerror(errno));
		rg_error_hint(err, "give a CSV file with the columns id,lower,upper,size");
		rg_error_at(err, "%s", path);
		return rc;
	}
	rc = slurp(f, t, &len, err);
	fclose(f);
	if (rc)
		rg_buffers_csv_free(t);
	else
		rc = finish(t, len, err);
	if (rc && rc != -ENOMEM && !err->hint[0])
		rg_error_hint(err, "give a CSV file: below the line id,lower,upper,size such as  b1,0,3,4096 , alive from "
			      "0 up to 3");
	if (rc)
		rg_error_at(err, "%s", path);
	return rc;
}

void rg_buffers_csv_free(struct rg_buffer_table *t)
{
	rg_free(t->buffers);
	rg_free(t->ids);
	rg_free(t->text);
	*t = (struct rg_buffer_table){ 0 };
}
