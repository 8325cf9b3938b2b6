/*
 * The function of every verb (table.c points at them), and what they share.
 */
#ifndef RG_CMD_VERBS_H
#define RG_CMD_VERBS_H

#include "cmd/cmd.h"

int rg_cmd_bench(struct rg_args *a, struct rg_error *err);
int rg_cmd_check(struct rg_args *a, struct rg_error *err);
int rg_cmd_completion(struct rg_args *a, struct rg_error *err);
int rg_cmd_doctor(struct rg_args *a, struct rg_error *err);
int rg_cmd_export(struct rg_args *a, struct rg_error *err);
int rg_cmd_help(struct rg_args *a, struct rg_error *err);
int rg_cmd_ladder_once(struct rg_args *a, struct rg_error *err);
int rg_cmd_machine(struct rg_args *a, struct rg_error *err);
int rg_cmd_man(struct rg_args *a, struct rg_error *err);
int rg_cmd_optimize(struct rg_args *a, struct rg_error *err);
int rg_cmd_path(struct rg_args *a, struct rg_error *err);
int rg_cmd_plan_memory(struct rg_args *a, struct rg_error *err);
int rg_cmd_plot(struct rg_args *a, struct rg_error *err);
int rg_cmd_quantize(struct rg_args *a, struct rg_error *err);
int rg_cmd_record(struct rg_args *a, struct rg_error *err);
int rg_cmd_report(struct rg_args *a, struct rg_error *err);
int rg_cmd_run(struct rg_args *a, struct rg_error *err);
int rg_cmd_runs(struct rg_args *a, struct rg_error *err);
int rg_cmd_tui(struct rg_args *a, struct rg_error *err);
int rg_cmd_whatif(struct rg_args *a, struct rg_error *err);

#endif
