/* `ridge run`: one inference, outputs to .npy files, nothing recorded. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "models/npy.h"
#include "models/text.h"
#include "session/prepare.h"

static double element(const struct rg_tensor *t, int64_t i)
{
	const void *p = t->data;

	switch (t->dtype) {
	case RG_F32: return (double)((const float *)p)[i];
	case RG_F64: return ((const double *)p)[i];
	case RG_F16: return (double)rg_f16_to_f32(((const uint16_t *)p)[i]);
	case RG_BF16: return (double)rg_bf16_to_f32(((const uint16_t *)p)[i]);
	case RG_I8: return ((const int8_t *)p)[i];
	case RG_I16: return ((const int16_t *)p)[i];
	case RG_I32: return ((const int32_t *)p)[i];
	case RG_I64: return (double)((const int64_t *)p)[i];
	case RG_U8: return ((const uint8_t *)p)[i];
	case RG_U16: return ((const uint16_t *)p)[i];
	case RG_U32: return ((const uint32_t *)p)[i];
	case RG_U64: return (double)((const uint64_t *)p)[i];
	case RG_BOOL: return ((const uint8_t *)p)[i];
	default: return NAN;
	}
}

static bool has_numbers(enum rg_dtype t)
{
	return t != RG_STRING && rg_dtype_bytes(t) > 0 && rg_dtype_bytes(t) <= 8 && t != RG_C64;
}

/* Outputs, a sequence counted by its elements. */
static int count_outputs(struct rg_prepared *p)
{
	int n = 0;

	for (int i = 0; i < p->model->graph->n_outputs; i++) {
		const struct rg_item *item = rg_exec_output_item(p->exec, i);

		n += item && item->kind == RG_ITEM_SEQUENCE ? item->n : 1;
	}
	return n;
}

/* Smallest, largest and mean of what is not NaN; NAN where there is none. */
static void summarise(const struct rg_tensor *t, struct rg_run_output *o)
{
	int64_t n = rg_shape_count(&t->shape), used = 0;
	double sum = 0;

	o->nan_count = 0;
	for (int64_t i = 0; i < n; i++) {
		double v = element(t, i);

		if (isnan(v)) {
			o->nan_count++;
			continue;
		}
		if (used == 0 || v < o->min)
			o->min = v;
		if (used == 0 || v > o->max)
			o->max = v;
		sum += v;
		used++;
	}
	if (used)
		o->mean = sum / (double)used;
}

/* NAME.npy, or .txt, with everything that is no good in a file name replaced; names that
 * become equal get their index. */
static char *output_path(const char *dir, const char *name, const char *suffix, int index,
			 const struct rg_run_result *r)
{
	char *safe = rg_strndup(name, 150), *path = NULL;

	if (!safe)
		return NULL;
	for (char *c = safe; *c; c++) {
		bool good = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			    *c == '_' || *c == '-' || (*c == '.' && c != safe);

		if (!good)
			*c = '_';
	}
	path = rg_asprintf("%s/%s.%s", dir, safe[0] ? safe : "output", suffix);
	for (int i = 0; path && i < index; i++) {
		if (r->outputs[i].path && strcmp(r->outputs[i].path, path) == 0) {
			rg_free(path);
			path = rg_asprintf("%s/%s.%d.%s", dir, safe, index, suffix);
			break;
		}
	}
	rg_free(safe);
	return path;
}

/* Adds a line about an output; its figures are unknown so far. */
static int describe_output(const char *name, const char *dtype, const char *shape, struct rg_run_result *r,
			   struct rg_error *err)
{
	struct rg_run_output *o = &r->outputs[r->n_outputs++];

	o->min = o->max = o->mean = NAN;
	o->nan_count = -1;
	o->name = rg_strdup(name);
	o->dtype = rg_strdup(dtype);
	o->shape = rg_strdup(shape);
	return o->name && o->dtype && o->shape ? 0 : rg_error_nomem(err, 200);
}

static int write_output(const char *name, const struct rg_tensor *t, const char *dir, struct rg_run_result *r,
			struct rg_error *err)
{
	struct rg_run_output *o = &r->outputs[r->n_outputs];
	char shape[160];

	if (describe_output(name, rg_dtype_name(t->dtype), rg_shape_text(shape, &t->shape), r, err))
		return err->code;
	if (has_numbers(t->dtype))
		summarise(t, o);
	if (!dir)
		return 0;
	o->path = output_path(dir, o->name, t->dtype == RG_STRING ? "txt" : "npy", r->n_outputs - 1, r);
	if (!o->path)
		return rg_error_nomem(err, 200);
	if (t->dtype == RG_STRING) /* NumPy keeps strings as Python objects */
		return rg_text_write(o->path, t, err);
	return rg_npy_write(o->path, t, err);
}

static int write_outputs(struct rg_prepared *p, const char *dir, struct rg_run_result *r, struct rg_error *err)
{
	const struct rg_graph *g = p->model->graph;
	int rc = 0;

	r->outputs = rg_calloc((size_t)count_outputs(p) + 1, sizeof(*r->outputs));
	if (!r->outputs)
		return rg_error_nomem(err, sizeof(*r->outputs));
	if (dir && mkdir(dir, 0777) != 0 && errno != EEXIST) {
		rc = rg_error_set(err, -errno, "cannot make the folder: %s", strerror(errno));
		rg_error_hint(err, "give another folder with --output-dir");
		return rg_error_at(err, "%s", dir);
	}
	for (int i = 0; i < g->n_outputs && !rc; i++) {
		const char *name = g->values[g->outputs[i]].name;
		const struct rg_item *item = rg_exec_output_item(p->exec, i);
		struct rg_tensor t = rg_exec_output(p->exec, i);

		if (!item || item->kind == RG_ITEM_TENSOR)
			rc = write_output(name, &t, dir, r, err);
		else if (item->kind == RG_ITEM_NONE)
			rc = describe_output(name, "empty optional", "", r, err);
		for (int k = 0; item && item->kind == RG_ITEM_SEQUENCE && k < item->n && !rc; k++) {
			char *element = rg_asprintf("%s[%d]", name, k);

			rc = element ? write_output(element, &item->v[k]->t, dir, r, err) : rg_error_nomem(err, 64);
			rg_free(element);
		}
	}
	return rc;
}

int rg_session_run(const struct rg_session_options *o, const char *output_dir, struct rg_run_result **out,
		   struct rg_error *err)
{
	struct rg_run_result *r = rg_calloc(1, sizeof(*r));
	struct rg_prepared p;
	uint64_t start;
	int rc;

	if (!r)
		return rg_error_nomem(err, sizeof(*r));
	rc = rg_prepare(o, &p, err);
	if (rc) {
		rg_free(r);
		return rc;
	}
	start = rg_clock_now_ns();
	if (!rc && !rg_session_interrupted())
		rc = rg_exec_run(p.exec, err);
	r->time_ns = rg_clock_now_ns() - start;
	if ((!rc || rc == RG_EINTERRUPTED) && rg_session_interrupted())
		rc = rg_error_set(err, RG_EINTERRUPTED, "interrupted; no output was written");
	if (!rc)
		rc = rg_prepared_hash_outputs(&p, r->outputs_sha256, err);
	if (!rc)
		rc = write_outputs(&p, output_dir, r, err);
	rg_prepared_free(&p);
	if (rc) {
		rg_run_result_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void rg_run_result_free(struct rg_run_result *r)
{
	if (!r)
		return;
	for (int i = 0; i < r->n_outputs; i++) {
		rg_free(r->outputs[i].name);
		rg_free(r->outputs[i].path);
		rg_free(r->outputs[i].dtype);
		rg_free(r->outputs[i].shape);
	}
	rg_free(r->outputs);
	rg_free(r);
}
