/*
 * ridge export: a built-in model as an ONNX file, to run it elsewhere.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/verbs.h"
#include "models/model.h"
#include "models/onnx-write.h"

int rg_cmd_export(struct rg_args *a, struct rg_error *err)
{
	const char *name = a->positional[0];
	struct rg_model *m = NULL;
	int rc;

	if (strncmp(name, "builtin:", strlen("builtin:")) != 0) {
		rg_error_set(err, RG_EUSAGE, "'%s' is not a built-in model", name);
		rg_error_hint(err, "for example  ridge export builtin:resnet50 -o resnet50.onnx");
		return rg_cmd_exit_code(err);
	}
	if (!a->output || strcmp(a->output, "-") == 0) {
		rg_error_set(err, RG_EUSAGE, "export needs -o FILE.onnx%s",
			     a->output ? ": a model is not for the terminal" : "");
		rg_error_hint(err, "for example  ridge export %s -o %s.onnx", name, name + strlen("builtin:"));
		return rg_cmd_exit_code(err);
	}
	rc = rg_model_open(name, NULL, &m, err);
	if (!rc)
		rc = rg_onnx_write(m->graph, a->output, err);
	if (!rc && !a->quiet)
		fprintf(stderr, "wrote %s\n", a->output);
	rg_model_free(m);
	return rg_cmd_exit_code(err);
}
