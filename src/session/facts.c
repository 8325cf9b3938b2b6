/* Facts about the machine and the run, as rows for the store. */
#include "session/facts.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/blas/blas.h"
#include "sys/procfs.h"

static struct rg_fact *add(struct rg_facts *f, const char *key, const char *unit, enum rg_provenance p,
			   const char *method)
{
	struct rg_fact *v, fact = { 0 };

	if (!f->arena)
		f->arena = rg_arena_new();
	v = f->arena && !f->failed ? rg_grow(f->v, &f->cap, f->n + 1, sizeof(*f->v)) : NULL;
	if (!v) {
		f->failed = true;
		return NULL;
	}
	f->v = v;
	fact.key = rg_arena_strdup(f->arena, key);
	fact.unit = unit; /* callers give literals */
	fact.method = rg_arena_strdup(f->arena, method);
	fact.text = "";
	fact.integer = -1;
	fact.real = NAN;
	fact.provenance = p;
	if (!fact.key || !fact.method) {
		f->failed = true;
		return NULL;
	}
	v[f->n] = fact;
	return &v[f->n++];
}

static void make_unavailable(struct rg_fact *fact)
{
	fact->kind = 3;
	fact->text = fact->method;
	fact->provenance = RG_PROV_UNAVAILABLE;
}

void rg_facts_text(struct rg_facts *f, const char *key, const char *text, enum rg_provenance p, const char *method)
{
	struct rg_fact *fact = add(f, key, "", p, method);

	if (!fact)
		return;
	if (!text || !*text) {
		make_unavailable(fact);
		return;
	}
	fact->kind = 0;
	fact->text = rg_arena_strdup(f->arena, text);
	if (!fact->text)
		f->failed = true;
}

void rg_facts_integer(struct rg_facts *f, const char *key, int64_t v, const char *unit, enum rg_provenance p,
		      const char *method)
{
	struct rg_fact *fact = add(f, key, unit, p, method);

	if (!fact)
		return;
	fact->kind = 1;
	fact->integer = v;
	if (v < 0)
		make_unavailable(fact);
}

void rg_facts_real(struct rg_facts *f, const char *key, double v, const char *unit, enum rg_provenance p,
		   const char *method)
{
	struct rg_fact *fact = add(f, key, unit, p, method);

	if (!fact)
		return;
	fact->kind = 2;
	fact->real = v;
	if (isnan(v))
		make_unavailable(fact);
}

void rg_facts_free(struct rg_facts *f)
{
	rg_free(f->v);
	rg_arena_free(f->arena);
	memset(f, 0, sizeof(*f));
}

static int64_t cache_bytes(const struct rg_topology *t, int level)
{
	for (int i = 0; i < t->n_caches; i++)
		if (t->caches[i].level == level)
			return t->caches[i].size_bytes;
	return -1;
}

void rg_facts_machine(struct rg_facts *f, const struct rg_cpu *cpu, const struct rg_topology *t)
{
	const enum rg_provenance os = RG_PROV_DECLARED;

	rg_facts_text(f, "machine.cpu", cpu->model, os, "/proc/cpuinfo");
	rg_facts_text(f, "machine.vendor", cpu->vendor, os, "cpuid");
	rg_facts_text(f, "machine.microcode", cpu->microcode, os, "/proc/cpuinfo");
	rg_facts_text(f, "machine.isa", rg_isa_level_name(cpu->isa), os, "cpuid and XGETBV");
	rg_facts_text(f, "machine.hypervisor", cpu->hypervisor ? "yes" : "no", os, "cpuid");
	rg_facts_integer(f, "machine.cores", t->cores, "", os, "sysfs, within the affinity mask");
	rg_facts_text(f, "machine.smt", t->smt ? "yes" : "no", os, "sysfs, within the affinity mask");
	rg_facts_integer(f, "machine.threads_default", rg_topology_default_threads(t), "", os,
			 "affinity mask and cgroup quota, one a core");
	rg_facts_real(f, "machine.quota_cpus", t->quota_cpus, "", os, "no cgroup CPU quota is set");
	rg_facts_integer(f, "machine.l1d_bytes", cache_bytes(t, 1), "bytes", os, "sysfs");
	rg_facts_integer(f, "machine.l2_bytes", cache_bytes(t, 2), "bytes", os, "sysfs");
	rg_facts_integer(f, "machine.l3_bytes", cache_bytes(t, 3), "bytes", os, "sysfs");
	rg_facts_integer(f, "machine.memory_bytes", t->memory_bytes > 0 ? t->memory_bytes : -1, "bytes", os,
			 "MemTotal or the cgroup's limit");
	rg_facts_text(f, "machine.governor", t->governor, os, "no cpufreq in sysfs (usual in virtual machines)");
	rg_facts_text(f, "machine.huge_pages", t->thp, os, "sysfs");
	rg_facts_text(f, "machine.kernel", t->kernel, os, "uname");
	rg_facts_text(f, "machine.libc", gnu_get_libc_version(), os, "glibc");
	rg_facts_real(f, "machine.load1", rg_proc_load1(""), "", RG_PROV_MEASURED, "/proc/loadavg");
	rg_facts_text(f, "session.blas", rg_blas_describe(), os, "the library's own word");
}
