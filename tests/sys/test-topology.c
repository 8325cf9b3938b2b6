/*
 * Topology against recorded machines, and cgroup limits against trees written
 * here, since no recorded one holds a quota.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/topology.h"
#include "tests/sys/machines.h"

#define KIB 1024LL

static bool load(const char *archive, const char *folder, struct rg_topology *t)
{
	char root[4096];

	if (!machine_unpack(archive, root, sizeof(root)))
		return false;
	strncat(root, "/", sizeof(root) - strlen(root) - 1);
	strncat(root, folder, sizeof(root) - strlen(root) - 1);
	assert_int_equal(access(root, R_OK), 0);
	rg_topology_read(root, t);
	return true;
}

static void check_cache(const struct rg_topology *t, int i, int level, int64_t size, int ways, int shared)
{
	assert_true(i < t->n_caches);
	assert_int_equal(t->caches[i].level, level);
	assert_int_equal(t->caches[i].size_bytes, size);
	assert_int_equal(t->caches[i].ways, ways);
	assert_int_equal(t->caches[i].shared_by_cpus, shared);
}

static void test_hybrid(void **state)
{
	struct rg_topology t;

	if (!load("hwloc__linux_20em64t-hybrid-1p6c2t_2ca4co1t", "20em64t-hybrid-1p6c2t+2ca4co1t", &t))
		skip();
	assert_int_equal(t.online_cpus, 20);
	assert_int_equal(t.n_allowed, 20);
	assert_int_equal(t.cores, 14); /* 6 with two threads, 8 with one */
	assert_true(t.smt);
	assert_int_equal(t.core_of[1], 0);
	assert_int_equal(t.core_of[19], 19);
	assert_int_equal(t.n_caches, 3);
	check_cache(&t, 0, 1, 48 * KIB, 12, 2);
	check_cache(&t, 1, 2, 1280 * KIB, 10, 2);
	check_cache(&t, 2, 3, 24576 * KIB, 12, 20);
	assert_int_equal(t.caches[0].line_bytes, 64);
	assert_int_equal(t.memory_bytes, 32489496 * KIB);
	assert_string_equal(t.governor, "powersave");
	assert_true(isnan(t.quota_cpus));
	assert_int_equal(rg_topology_default_threads(&t), 14);
}

/* Kernels of 2011: no "online" list, no CPU lists, only masks; 4 of 16 CPUs off. */
static void test_offline_old_kernel(void **state)
{
	struct rg_topology t;
	int i;

	if (!load("hwloc__linux_16em64t-4s2c2t-offlines", "16em64t-4s2c2t-offlines", &t))
		skip();
	assert_int_equal(t.online_cpus, 12);
	assert_int_equal(t.n_allowed, 12);
	assert_int_equal(t.n_caches, 3);
	assert_int_equal(t.caches[0].size_bytes, 16 * KIB);
	assert_true(t.cores > 0 && t.cores <= 12);
	for (i = 1; i < t.n_allowed; i++)
		assert_true(t.allowed[i] > t.allowed[i - 1]);
}

static void test_cpu0_offline(void **state)
{
	struct rg_topology t;

	if (!load("hwloc__linux_offline-cpu0-node0", "offline-cpu0-node0", &t))
		skip();
	assert_int_equal(t.online_cpus, 17);
	assert_int_equal(t.allowed[0], 4);
	assert_false(t.smt);
	assert_int_equal(t.cores, 17);
	assert_int_equal(t.n_caches, 3);
	assert_int_equal(t.caches[2].size_bytes, 30720 * KIB);
}

static void test_arm(void **state)
{
	struct rg_topology t;

	if (!load("hwloc__linux_2arm-2c", "2arm-2c", &t))
		skip();
	assert_int_equal(t.online_cpus, 2);
	assert_int_equal(t.cores, 2);
	assert_int_equal(t.n_caches, 0); /* that kernel exports none: unknown, not zero-sized */
	assert_string_equal(t.governor, "ondemand");
	if (!load("hwloc__linux_nvidia-dgx-gb10", "nvidia-dgx-gb10", &t))
		skip();
	assert_int_equal(t.cores, 20);
	assert_false(t.smt);
	assert_string_equal(t.governor, "performance");
	if (!load("hwloc__linux_128arm-2pa2n8cluster4co", "128arm-2pa2n8cluster4co", &t))
		skip();
	assert_int_equal(t.online_cpus, 128);
	assert_int_equal(t.cores, 128);
}

static void test_memory_side_cache(void **state)
{
	struct rg_topology t;

	if (!load("hwloc__linux_memorysidecaches", "memorysidecaches", &t))
		skip();
	assert_int_equal(t.online_cpus, 80);
	assert_int_equal(t.cores, 40);
	assert_int_equal(t.n_caches, 3);
	check_cache(&t, 1, 2, 1024 * KIB, 16, 2);
}

static void make_root(char *root, size_t cap)
{
	machine_scratch(root, cap);
	machine_write(root, "sys/devices/system/cpu/online", "0-7\n");
	machine_write(root, "proc/meminfo", "MemTotal:       16777216 kB\n");
}

static void test_cgroup_v2(void **state)
{
	struct rg_topology t;
	char root[256];

	make_root(root, sizeof(root));
	machine_write(root, "proc/mounts",
		      "tmpfs /tmp tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	machine_write(root, "proc/self/cgroup", "0::/a.slice/b.scope\n");
	machine_write(root, "sys/fs/cgroup/a.slice/cpu.max", "250000 100000\n");
	machine_write(root, "sys/fs/cgroup/a.slice/b.scope/cpu.max", "max 100000\n");
	machine_write(root, "sys/fs/cgroup/a.slice/b.scope/memory.max", "1073741824\n");
	machine_write(root, "sys/fs/cgroup/a.slice/memory.max", "max\n");
	rg_topology_read(root, &t);
	assert_float_equal(t.quota_cpus, 2.5, 1e-12); /* the parent's binds */
	assert_int_equal(t.memory_bytes, 1073741824);
	assert_int_equal(t.n_allowed, 8);
	assert_int_equal(rg_topology_default_threads(&t), 2);
	/* a tighter one below */
	machine_write(root, "sys/fs/cgroup/a.slice/b.scope/cpu.max", "50000 100000\n");
	rg_topology_read(root, &t);
	assert_float_equal(t.quota_cpus, 0.5, 1e-12);
	assert_int_equal(rg_topology_default_threads(&t), 1);
}

/* Inside a container the path of the host does not exist below the mount. */
static void test_cgroup_v2_container(void **state)
{
	char root[256];

	make_root(root, sizeof(root));
	machine_write(root, "proc/mounts", "cgroup /sys/fs/cgroup cgroup2 rw 0 0\n");
	machine_write(root, "proc/self/cgroup", "0::/docker/0123456789abcdef\n");
	machine_write(root, "sys/fs/cgroup/cpu.max", "400000 100000\n");
	assert_float_equal(rg_cgroup_quota_cpus(root), 4.0, 1e-12);
}

static void test_cgroup_v1(void **state)
{
	struct rg_topology t;
	char root[256];

	make_root(root, sizeof(root));
	machine_write(root, "proc/mounts",
		      "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
		      "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n");
	machine_write(root, "proc/self/cgroup", "5:memory:/job/7\n4:cpuacct,cpu:/job/7\n1:name=systemd:/x\n");
	machine_write(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
	machine_write(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	machine_write(root, "sys/fs/cgroup/cpu,cpuacct/job/7/cpu.cfs_quota_us", "300000\n");
	machine_write(root, "sys/fs/cgroup/cpu,cpuacct/job/7/cpu.cfs_period_us", "100000\n");
	machine_write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	machine_write(root, "sys/fs/cgroup/memory/job/7/memory.limit_in_bytes", "9223372036854771712\n");
	rg_topology_read(root, &t);
	assert_float_equal(t.quota_cpus, 3.0, 1e-12);
	assert_int_equal(t.memory_bytes, 16777216 * KIB); /* no limit: all of it */
	machine_write(root, "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
	rg_topology_read(root, &t);
	assert_int_equal(t.memory_bytes, 2147483648LL);
}

static void test_hostile_files(void **state)
{
	static const char *const lists[] = { "", "\n", "5-2", "-3", "0-", "0-99999999999999999999", "abc",
					    "0,,1" };
	struct rg_topology t;
	char root[256];
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		machine_scratch(root, sizeof(root));
		machine_write(root, "sys/devices/system/cpu/online", lists[i]);
		machine_write(root, "sys/devices/system/cpu/cpu3/topology/core_cpus_list", lists[i]);
		machine_write(root, "sys/devices/system/cpu/cpu3/cache/index0/type", "Data\n");
		machine_write(root, "sys/devices/system/cpu/cpu3/cache/index0/level", "99999999999\n");
		machine_write(root, "sys/devices/system/cpu/cpu3/cache/index0/size",
			      "9223372036854775807M\n");
		machine_write(root, "proc/meminfo", "MemTotal: 99999999999999999 kB\n");
		machine_write(root, "proc/self/cgroup", "0::/../../..\n");
		machine_write(root, "proc/mounts", "x\ncgroup2 / cgroup2\n");
		rg_topology_read(root, &t);
		/* not a list: the folder cpu3 is what is there */
		assert_int_equal(t.online_cpus, 1);
		assert_int_equal(t.allowed[0], 3);
		assert_int_equal(t.core_of[0], 3);
		assert_int_equal(t.n_caches, 0);
		assert_int_equal(t.memory_bytes, 0);
		assert_int_equal(rg_topology_default_threads(&t), 1);
	}
	machine_write(root, "sys/devices/system/cpu/online", "0-5000");
	rg_topology_read(root, &t);
	assert_int_equal(t.n_allowed, RG_MAX_CPUS);
}

static void test_nothing_there(void **state)
{
	struct rg_topology t;

	rg_topology_read("/nonexistent", &t);
	assert_int_equal(t.online_cpus, -1);
	assert_int_equal(t.cores, -1);
	assert_int_equal(t.n_allowed, 0);
	assert_int_equal(t.memory_bytes, 0);
	assert_true(isnan(t.quota_cpus));
	assert_string_equal(t.governor, "");
	assert_int_equal(rg_topology_default_threads(&t), 1);
}

/* One lane a core before any core gets a second one, each CPU once. */
static void test_pin_order(void **state)
{
	static struct rg_topology t;
	static const int core[] = { 0, 0, 1, 1, 2, 0 }, want[] = { 10, 12, 14, 11, 13, 15 };
	int cpus[6];

	t.n_allowed = 6;
	for (int i = 0; i < 6; i++) {
		t.allowed[i] = 10 + i;
		t.core_of[i] = core[i];
	}
	rg_topology_pin_order(&t, cpus);
	for (int i = 0; i < 6; i++)
		assert_int_equal(cpus[i], want[i]);
}

static void test_this_machine(void **state)
{
	struct rg_topology t;
	struct rg_error err = RG_ERROR_INIT;
	cpu_set_t before, after;

	rg_topology_read("", &t);
	assert_int_equal(t.n_allowed, (int)sysconf(_SC_NPROCESSORS_ONLN) < t.n_allowed ? -1 : t.n_allowed);
	assert_true(t.n_allowed >= 1 && t.cores >= 1 && t.cores <= t.n_allowed);
	assert_true(t.memory_bytes > 0);
	assert_true(t.kernel[0] != '\0');
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(rg_thread_pin(t.allowed[t.n_allowed - 1], &err), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_int_equal(CPU_COUNT(&after), 1);
	assert_true(CPU_ISSET(t.allowed[t.n_allowed - 1], &after));
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_true(rg_thread_pin(-1, &err) < 0);
	assert_true(rg_thread_pin(CPU_SETSIZE - 1, &err) < 0);
	assert_true(err.message[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_offline_old_kernel),
		cmocka_unit_test(test_cpu0_offline),
		cmocka_unit_test(test_arm),
		cmocka_unit_test(test_memory_side_cache),
		cmocka_unit_test(test_cgroup_v2),
		cmocka_unit_test(test_cgroup_v2_container),
		cmocka_unit_test(test_cgroup_v1),
		cmocka_unit_test(test_hostile_files),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_pin_order),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, machine_cleanup);
}
