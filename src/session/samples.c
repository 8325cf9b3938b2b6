/* See samples.h. */
#include "session/samples.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "models/npy.h"
#include "session/inputs.h"

/* More than anybody calibrates with; a folder of something else is noticed before it is read. */
enum { MOST_SAMPLES = 100000 };

struct names { char **v; size_t n, cap; };

static void names_free(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		rg_free(l->v[i]);
	rg_free(l->v);
	*l = (struct names){ 0 };
}

static int add_name(struct names *l, const char *name, struct rg_error *err)
{
	char **v = rg_grow(l->v, &l->cap, l->n + 1, sizeof(*v));

	if (!v)
		return rg_error_nomem(err, l->n * sizeof(*v));
	l->v = v;
	v[l->n] = rg_strdup(name);
	if (!v[l->n])
		return rg_error_nomem(err, strlen(name));
	l->n++;
	return 0;
}

/* "2" before "10". */
static int by_number(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static bool is_npy(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

/* The sub-folders of a folder, or its .npy files, sorted. What begins with a dot is not looked at. */
static int list(const char *folder, bool folders, struct names *out, struct rg_error *err)
{
	DIR *d = opendir(folder);
	int rc = 0;

	if (!d) {
		rg_error_set(err, RG_EUSAGE, "%s cannot be read: %s", folder, strerror(errno));
		return rg_error_hint(err, "name a folder of .npy files, or of one folder a sample");
	}
	for (struct dirent *e = readdir(d); e && !rc; e = readdir(d)) {
		char *path = rg_asprintf("%s/%s", folder, e->d_name);
		struct stat st;

		if (!path)
			rc = rg_error_nomem(err, strlen(folder));
		else if (e->d_name[0] != '.' && stat(path, &st) == 0 &&
			 (folders ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode) && is_npy(e->d_name)))
			rc = add_name(out, e->d_name, err);
		rg_free(path);
		if (!rc && out->n > MOST_SAMPLES)
			rc = rg_error_set(err, RG_EUSAGE, "%s holds more than %d samples", folder, MOST_SAMPLES);
	}
	closedir(d);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_number);
	return rc;
}

/* Whether `file` is the name of that input, as ridge run --output-dir would write it. */
static bool is_called(const char *file, const char *input)
{
	size_t n = strlen(input);

	if (strlen(file) != n + 4)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = input[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
			    c == '-' || (c == '.' && i);

		if (file[i] != (good ? c : '_'))
			return false;
	}
	return true;
}

static int name_inputs(const struct rg_graph *g, struct rg_error *err)
{
	char text[300] = "";
	size_t at = 0;

	for (int i = 0; i < g->n_inputs && at < sizeof(text) - 1; i++) {
		int n = snprintf(text + at, sizeof(text) - at, "%s%s.npy", i ? ", " : "",
				 g->values[g->inputs[i]].name);

		at += n > 0 ? (size_t)n : 0;
	}
	return rg_error_hint(err, "a sample is a folder with %s", text);
}

static int make_room(struct rg_samples *s, int n, const struct rg_graph *g, struct rg_error *err)
{
	s->n = n;
	s->n_inputs = g->n_inputs;
	s->path = rg_calloc((size_t)n * (size_t)g->n_inputs + 1, sizeof(*s->path));
	return s->path ? 0 : rg_error_nomem(err, (size_t)n * sizeof(*s->path));
}

/* Which file of a sample's folder is which input. */
static int match_files(struct rg_samples *s, int at, const char *folder, const struct rg_graph *g, struct rg_error *err)
{
	struct names files = { 0 };
	int rc = list(folder, false, &files, err);

	for (size_t i = 0; i < files.n && !rc; i++) {
		int input = -1;

		for (int k = 0; k < g->n_inputs && input < 0; k++)
			if (is_called(files.v[i], g->values[g->inputs[k]].name))
				input = k;
		if (input < 0) {
			rg_error_set(err, RG_EUSAGE, "%s/%s fits no input of the model", folder, files.v[i]);
			rc = name_inputs(g, err);
		} else {
			char **path = &s->path[at * s->n_inputs + input];

			rg_free(*path);
			*path = rg_asprintf("%s/%s", folder, files.v[i]);
			rc = *path ? 0 : rg_error_nomem(err, strlen(folder));
		}
	}
	for (int k = 0; k < g->n_inputs && !rc; k++) {
		const struct rg_value *v = &g->values[g->inputs[k]];

		if (s->path[at * s->n_inputs + k] || v->kind != RG_VALUE_TENSOR)
			continue;
		rg_error_set(err, RG_EUSAGE, "%s has no file for input '%s'", folder, v->name);
		rc = name_inputs(g, err);
	}
	names_free(&files);
	return rc;
}

static int find_folders(const char *folder, const struct names *subs, const struct rg_graph *g, struct rg_samples *s,
			struct rg_error *err)
{
	int rc = make_room(s, (int)subs->n, g, err);

	for (int i = 0; i < s->n && !rc; i++) {
		char *path = rg_asprintf("%s/%s", folder, subs->v[i]);

		rc = path ? match_files(s, i, path, g, err) : rg_error_nomem(err, strlen(folder));
		rg_free(path);
	}
	return rc;
}

static int find_files(const char *folder, const struct names *files, const struct rg_graph *g, struct rg_samples *s,
		      struct rg_error *err)
{
	int rc;

	if (!files->n) {
		rg_error_set(err, RG_EUSAGE, "%s holds no sample", folder);
		return rg_error_hint(err, "put one .npy file a sample there%s",
				     g->n_inputs > 1 ? ", in one folder a sample" : "");
	}
	if (g->n_inputs != 1) {
		rg_error_set(err, RG_EUSAGE, "%s holds files, but the model has %d inputs", folder, g->n_inputs);
		return name_inputs(g, err);
	}
	rc = make_room(s, (int)files->n, g, err);
	for (int i = 0; i < s->n && !rc; i++) {
		s->path[i] = rg_asprintf("%s/%s", folder, files->v[i]);
		rc = s->path[i] ? 0 : rg_error_nomem(err, strlen(folder));
	}
	return rc;
}

int rg_samples_find(const char *folder, const struct rg_graph *g, struct rg_samples *out, struct rg_error *err)
{
	struct names subs = { 0 }, files = { 0 };
	int rc = list(folder, true, &subs, err);

	*out = (struct rg_samples){ .folder = folder };
	if (!rc)
		rc = list(folder, false, &files, err);
	if (!rc && subs.n && files.n) {
		rg_error_set(err, RG_EUSAGE, "%s holds both files and folders", folder);
		rc = rg_error_hint(err, "a sample is either; take %s away", files.v[0]);
	}
	if (!rc)
		rc = subs.n ? find_folders(folder, &subs, g, out, err) : find_files(folder, &files, g, out, err);
	names_free(&subs);
	names_free(&files);
	return rc;
}

int rg_samples_seeded(int n, const struct rg_graph *g, struct rg_samples *out, struct rg_error *err)
{
	*out = (struct rg_samples){ 0 };
	return make_room(out, n, g, err);
}

void rg_samples_free(struct rg_samples *s)
{
	for (int i = 0; s->path && i < s->n * s->n_inputs; i++)
		rg_free(s->path[i]);
	rg_free(s->path);
	*s = (struct rg_samples){ 0 };
}

void rg_samples_drop(struct rg_tensor *t, int n)
{
	for (int i = 0; i < n; i++) {
		rg_free(t[i].data);
		t[i].data = NULL;
	}
}

static int check_fits(const struct rg_value *v, const struct rg_tensor *t, struct rg_error *err)
{
	if (v->declared_dtype != RG_UNDEFINED && t->dtype != v->declared_dtype &&
	    !(v->declared_dtype == RG_BF16 && t->dtype == RG_U16)) {
		rg_error_set(err, -EINVAL, "input '%s' is %s, the file holds %s", v->name,
			     rg_dtype_name(v->declared_dtype), rg_dtype_name(t->dtype));
		return rg_error_hint(err, "convert it: numpy.load(...).astype('%s')", rg_dtype_name(v->declared_dtype));
	}
	if (!rg_inputs_check_shape(v, t, err))
		return 0;
	return rg_error_hint(err, "give files of that shape");
}

static int check_finite(const struct rg_value *v, const struct rg_tensor *t, struct rg_error *err)
{
	int64_t n = rg_shape_count(&t->shape), bad = 0;

	for (int64_t i = 0; i < n; i++) {
		if (t->dtype == RG_F32)
			bad += !isfinite(((const float *)t->data)[i]);
		else if (t->dtype == RG_F64)
			bad += !isfinite(((const double *)t->data)[i]);
		else if (t->dtype == RG_F16)
			bad += !isfinite(rg_f16_to_f32(((const uint16_t *)t->data)[i]));
	}
	if (!bad)
		return 0;
	rg_error_set(err, -EINVAL, "input '%s': %lld of %lld values are NaN or infinite", v->name, (long long)bad,
		     (long long)n);
	return rg_error_hint(err, "a range cannot be found from those: take the sample away");
}

static int read_files(const struct rg_samples *s, int i, const struct rg_graph *g, struct rg_tensor *t,
		      struct rg_error *err)
{
	for (int k = 0; k < s->n_inputs; k++) {
		const struct rg_value *v = &g->values[g->inputs[k]];
		const char *path = s->path[i * s->n_inputs + k];
		int rc;

		if (!path)
			continue; /* no tensor: it is given empty */
		rc = rg_npy_read(path, &t[k], err);
		if (rc) {
			t[k].data = NULL;
			return rc; /* says where */
		}
		if (check_fits(v, &t[k], err) || check_finite(v, &t[k], err))
			return rg_error_at(err, "%s", path);
	}
	return 0;
}

int rg_samples_read(const struct rg_samples *s, int i, const struct rg_graph *g,
		    const struct rg_session_options *o, struct rg_tensor *t, struct rg_error *err)
{
	struct rg_session_options seeded = *o;
	struct rg_tensor *made = NULL;
	int rc;

	memset(t, 0, (size_t)s->n_inputs * sizeof(*t));
	if (s->folder) {
		rc = read_files(s, i, g, t, err);
		if (rc)
			rg_samples_drop(t, s->n_inputs);
		return rc;
	}
	seeded.seed = o->seed + (uint64_t)i;
	seeded.n_inputs = 0;
	rc = rg_inputs_make(g, &seeded, &made, NULL, err);
	for (int k = 0; k < s->n_inputs && !rc; k++)
		t[k] = made[k];
	rg_free(made);
	return rc;
}
