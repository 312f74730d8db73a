/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <libcpuid/libcpuid.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "patchcore/machine/kinds.h"
#include "patchcore/tests/recorded.h"

static int try_read(struct machine *m, struct identity *id)
{
	struct identity_source src = { .root = m->root, .cpuid = recorded_cpuid, .arg = m };

	return identity_read_from(id, &src);
}

static struct identity read_machine(struct machine *m)
{
	struct identity id;

	memset(&id, 0xa5, sizeof(id));
	assert_int_equal(try_read(m, &id), 0);
	return id;
}

static struct identity read_fixture(const char *name)
{
	struct machine m;

	load(&m, name);
	assert_true(m.records > 0 || strncmp(name, "synthetic", 9) == 0);
	return read_machine(&m);
}

static void assert_no_files(const struct identity *id)
{
	assert_string_equal(id->microcode, "unknown");
	assert_string_equal(id->caches, "unknown");
	assert_string_equal(id->kernel, "unknown");
	assert_int_equal(id->tsc_khz, 0);
	assert_int_equal(id->sockets, 0);
	assert_int_equal(id->cores, 0);
	assert_int_equal(id->cpus, 0);
}

static void assert_signature(const struct identity *id, unsigned family, unsigned model,
			     unsigned stepping)
{
	assert_int_equal(id->family, family);
	assert_int_equal(id->model, model);
	assert_int_equal(id->stepping, stepping);
	assert_int_equal(id->cache_line, 64);
}

static void epyc_is_decoded(void **state)
{
	struct identity id = read_fixture(EPYC);

	(void)state;
	assert_string_equal(id.vendor, "AuthenticAMD");
	assert_signature(&id, 25, 17, 1);
	assert_string_equal(id.brand, "AMD EPYC");
	assert_string_equal(id.microcode, "0x1000065");
	assert_string_equal(id.hypervisor, "KVMKVMKVM");
	assert_string_equal(id.caches, "L1d 32K L1i 32K L2 1024K L3 32768K");
	assert_int_equal(id.features, 0x244ece17f4957fac);
	assert_true(id.tsc_invariant);
	assert_int_equal(id.tsc_khz, 2596140);
	assert_int_equal(id.sockets, 1);
	assert_int_equal(id.cores, 2);
	assert_int_equal(id.cpus, 2);
	assert_string_equal(id.kernel, "6.18.44-fc-v595");
}

/* No calibration of the machines of a kind counts beyond what one of them has broken. */
static void kinds_that_tear_across_32_bytes_are_known(void **state)
{
	struct identity older = read_fixture(EPYC), newer = read_fixture("amd-epyc-26-kvm");
	struct identity intel = read_fixture("intel-sandy-bridge-ep");

	(void)state;
	assert_signature(&newer, 26, 2, 1);
	assert_int_equal(kind_read(&newer).widest, 32);
	assert_int_equal(kind_read(&older).widest, 64);
	assert_int_equal(kind_read(&intel).widest, 64);
}

static void few_leaves_are_read(void **state)
{
	struct machine m;

	(void)state;
	load(&m, EPYC);
	read_machine(&m);
	assert_int_equal(m.asked, 10);
	for (unsigned i = 0; i < m.records; i++)
		assert_int_equal(m.record[i].asked, 1);
}

static void sandy_bridge_is_decoded(void **state)
{
	struct identity id = read_fixture("intel-sandy-bridge-ep");

	(void)state;
	assert_string_equal(id.vendor, "GenuineIntel");
	assert_signature(&id, 6, 45, 7);
	assert_string_equal(id.brand, "Intel(R) Xeon(R) CPU E5-2687W 0 @ 3.10GHz");
	assert_string_equal(id.hypervisor, "none");
	assert_true(id.tsc_invariant);
	assert_no_files(&id);
}

static void magny_cours_is_decoded(void **state)
{
	struct identity id = read_fixture("amd-magny-cours");

	(void)state;
	assert_string_equal(id.vendor, "AuthenticAMD");
	assert_signature(&id, 16, 9, 1);
	assert_string_equal(id.brand, "AMD Opteron(tm) Processor 6168");
	assert_string_equal(id.hypervisor, "none");
	assert_true(id.tsc_invariant);
	assert_no_files(&id);
}

/* Whichever core of a hybrid part reads, it is the same machine. */
static void alder_lake_is_one_machine(void **state)
{
	struct identity p = read_fixture("intel-alder-lake-p");
	struct identity e = read_fixture("intel-alder-lake-e");

	(void)state;
	assert_signature(&p, 6, 151, 2);
	assert_string_equal(p.brand, "12th Gen Intel(R) Core(TM) i9-12900K");
	assert_null(identity_differs(&p, &e));
}

static void leaves_behind_the_highest_are_not_read(void **state)
{
	struct identity id;
	struct machine m;

	(void)state;
	load(&m, "intel-prescott");
	id = read_machine(&m);
	assert_signature(&id, 15, 3, 4);
	assert_string_equal(id.brand, "Intel(R) Pentium(R) 4 CPU 3.20GHz");
	assert_false(id.tsc_invariant);
	assert_int_equal(find(&m, 7, 0)->asked, 0);

	load(&m, EPYC);
	find(&m, 0x80000000, 0)->regs[0] = 0x80000001;
	id = read_machine(&m);
	assert_string_equal(id.brand, "unknown");
	assert_false(id.tsc_invariant);
	assert_int_equal(find(&m, 0x80000002, 0)->asked, 0);
	assert_int_equal(find(&m, 0x80000007, 0)->asked, 0);

	find(&m, 0x80000000, 0)->regs[0] = 0;
	find(&m, 0x80000001, 0)->asked = 0;
	read_machine(&m);
	assert_int_equal(find(&m, 0x80000001, 0)->asked, 0);
}

static void bits_that_change_at_run_time_do_not_count(void **state)
{
	static const struct {
		uint32_t leaf;
		unsigned reg, bit;
		bool counts;
	} bits[] = {
		{ 1, 2, 3, false },	     { 1, 2, 27, false },	  { 1, 3, 9, false },
		{ 7, 1, 4, false },	     { 7, 1, 11, false },	  { 7, 2, 4, false },
		{ 0x80000001, 3, 9, false }, { 1, 2, 0, true },		  { 1, 3, 31, true },
		{ 7, 1, 0, true },	     { 7, 2, 31, true },	  { 7, 3, 4, true },
		{ 0x80000001, 2, 6, true },  { 0x80000001, 3, 29, true }, { 1, 1, 24, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		struct identity before, after;
		struct machine m;

		load(&m, EPYC);
		before = read_machine(&m);
		find(&m, bits[i].leaf, 0)->regs[bits[i].reg] ^= 1u << bits[i].bit;
		after = read_machine(&m);
		assert_int_equal(before.features != after.features, bits[i].counts);
	}
}

static void hypervisor_is_named(void **state)
{
	struct identity id;
	struct machine m;

	(void)state;
	load(&m, EPYC);
	find(&m, 1, 0)->regs[2] &= ~(1u << 31);
	id = read_machine(&m);
	assert_string_equal(id.hypervisor, "none");
	assert_int_equal(find(&m, 0x40000000, 0)->asked, 0);

	find(&m, 1, 0)->regs[2] |= 1u << 31;
	memset(find(&m, 0x40000000, 0)->regs, 0, sizeof(uint32_t[4]));
	id = read_machine(&m);
	assert_string_equal(id.hypervisor, "unknown");
}

/* The config is an INI file: odd text must come back out of it as it went in. */
static void odd_text_is_made_plain(void **state)
{
	struct identity id, back = { 0 };
	struct machine m;

	(void)state;
	load(&m, EPYC);
	memcpy(find(&m, 0x80000002, 0)->regs, "  a\t \tb ;#\x01\xff.", 14);
	id = read_machine(&m);
	assert_string_equal(id.brand, "a b ?#??.");
	assert_int_equal(identity_set(&back, "brand", id.brand), 0);
	assert_string_equal(back.brand, id.brand);
}

static void packages_and_cores_are_counted(void **state)
{
	static const struct {
		const char *name;
		unsigned sockets, cores, cpus;
	} machines[] = {
		{ "synthetic-200-cpus", 2, 100, 200 },
		{ "synthetic-smt", 1, 4, 8 },
		{ "synthetic-hybrid", 1, 16, 24 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct identity id = read_fixture(machines[i].name);

		assert_int_equal(id.sockets, machines[i].sockets);
		assert_int_equal(id.cores, machines[i].cores);
		assert_int_equal(id.cpus, machines[i].cpus);
	}
}

static void smt_switched_off_shows(void **state)
{
	struct identity on, off;
	struct machine m;

	(void)state;
	make_machine(&m);
	put(&m, CPU "present", "0-7\n");
	put(&m, CPU "cpu0/topology/package_cpus_list", "0-7\n");
	put(&m, CPU "cpu0/topology/core_cpus_list", "0-1\n");
	on = read_machine(&m);
	put(&m, CPU "cpu0/topology/package_cpus_list", "0,2,4,6\n");
	put(&m, CPU "cpu0/topology/core_cpus_list", "0\n");
	off = read_machine(&m);
	assert_string_equal(identity_differs(&on, &off), "sockets");
	remove_machine(&m);
}

static void odd_lists_are_unknown(void **state)
{
	static const char *const lists[] = { "",     "x",    "-1",	   "3-1",     "0-",
					     "+1",   "0- 1", "0--1",	   "0,65536", "0-3x",
					     "0-3,", "0,,2", "0-99999999", "0 1" };
	struct identity id;
	struct machine m;

	(void)state;
	make_machine(&m);
	put(&m, CPU "cpu0/topology/package_cpus_list", "0-1\n");
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		put(&m, CPU "present", lists[i]);
		id = read_machine(&m);
		assert_int_equal(id.cpus, 0);
		assert_int_equal(id.sockets, 0);
		assert_int_equal(id.cores, 0);
	}
	put(&m, CPU "present", "0-1,4,6-7\n");
	id = read_machine(&m);
	assert_int_equal(id.cpus, 5);
	assert_int_equal(id.sockets, 3);
	remove_machine(&m);
}

static void core_count_must_make_sense(void **state)
{
	static const char *const counts[] = { "0", "-1", "9", "x", "99999999999" };
	struct machine m;

	(void)state;
	make_machine(&m);
	put(&m, CPU "present", "0-7\n");
	put(&m, CPU "cpu0/topology/package_cpus_list", "0-7\n");
	put(&m, CPU "cpu0/topology/core_cpus_list", "0-1\n");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "cpu cores\t: %s\n\n", counts[i]);
		put(&m, "/proc/cpuinfo", text);
		assert_int_equal(read_machine(&m).cores, 4);
	}
	remove_machine(&m);
}

static void cpuinfo_is_the_first_block(void **state)
{
	struct identity id;
	struct machine m;

	(void)state;
	make_machine(&m);
	put(&m, "/proc/cpuinfo",
	    "processor\t: 0\nbogomips_x\t: 1.00\n\nprocessor\t: 1\nmicrocode\t: 0x1\n"
	    "bogomips\t: 5000.00\n\n");
	id = read_machine(&m);
	assert_string_equal(id.microcode, "unknown");
	assert_int_equal(id.tsc_khz, 0);

	put(&m, "/proc/cpuinfo", "microcode: 7\nbogomips : 4800.05\n");
	id = read_machine(&m);
	assert_string_equal(id.microcode, "7");
	assert_int_equal(id.tsc_khz, 2400025);

	put(&m, "/proc/cpuinfo", "microcode\nbogomips\t: fast\n\n");
	id = read_machine(&m);
	assert_string_equal(id.microcode, "unknown");
	assert_int_equal(id.tsc_khz, 0);
	remove_machine(&m);
}

/* A value that was cut off where the buffer ended is no value. */
static void cut_cpuinfo_is_unknown(void **state)
{
	static char text[9000];
	struct machine m;
	int n;

	(void)state;
	make_machine(&m);
	n = snprintf(text, sizeof(text), "microcode\t: 0x7\nflags\t\t: ");
	memset(text + n, 'f', 8160 - (size_t)n);
	snprintf(text + 8160, sizeof(text) - 8160, "\nbogomips\t: 5192.281111111111111\n\n");
	put(&m, "/proc/cpuinfo", text);
	assert_int_equal(read_machine(&m).tsc_khz, 0);
	assert_string_equal(read_machine(&m).microcode, "0x7");

	memmove(text + 100, text + 400, strlen(text + 400) + 1);
	put(&m, "/proc/cpuinfo", text);
	assert_int_equal(read_machine(&m).tsc_khz, 2596140);
	remove_machine(&m);
}

static void odd_caches_are_told(void **state)
{
	struct identity id;
	struct machine m;

	(void)state;
	make_machine(&m);
	put(&m, CPU "cpu0/cache/index0/level", "1\n");
	put(&m, CPU "cpu0/cache/index0/type", "Instruction\n");
	put(&m, CPU "cpu0/cache/index0/size", "64K\n");
	put(&m, CPU "cpu0/cache/index1/level", "2\n");
	put(&m, CPU "cpu0/cache/index3/level", "3\n");
	id = read_machine(&m);
	assert_string_equal(id.caches, "L1i 64K L2 ?");
	remove_machine(&m);
}

static void nothing_at_all_is_an_error(void **state)
{
	struct identity id;
	struct machine m;

	(void)state;
	load(&m, "no-such-machine");
	assert_int_equal(try_read(&m, &id), -ENODATA);
}

static void recorded_machines_make_the_round_trip(void **state)
{
	static const char *const names[] = { EPYC, "intel-prescott", "synthetic-200-cpus" };
	char value[128];
	const char *name;

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct identity id = read_fixture(names[n]), back = { 0 };

		for (unsigned i = 0; identity_field(&id, i, &name, value, sizeof(value)); i++)
			assert_int_equal(identity_set(&back, name, value), 0);
		assert_null(identity_differs(&id, &back));
		assert_string_equal(id.kernel, back.kernel);
	}
}

static void libcpuid_agrees(void **state)
{
	struct cpu_raw_data_t raw;
	struct cpu_id_t data;
	struct identity id;

	(void)state;
	if (!cpuid_present())
		skip();
	assert_int_equal(cpuid_get_raw_data(&raw), 0);
	assert_int_equal(cpu_identify(&raw, &data), 0);
	assert_int_equal(identity_read(&id), 0);
	assert_string_equal(id.vendor, data.vendor_str);
	assert_int_equal(id.family, data.ext_family);
	assert_int_equal(id.model, data.ext_model);
	assert_int_equal(id.stepping, data.stepping);
	assert_int_equal(id.cache_line, data.l1_data_cacheline);
}

static void this_machine_is_itself(void **state)
{
	struct identity a, b;

	(void)state;
	assert_int_equal(identity_read(&a), 0);
	assert_int_equal(identity_read(&b), 0);
	assert_null(identity_differs(&a, &b));
	assert_true(a.tsc_khz > 0);
}

/* A child without /proc and /sys; its exit status names the first thing wrong. */
static int look_from_a_bare_root(const char *root, const struct identity *outside)
{
	struct identity id;

	if ((geteuid() != 0 && unshare(CLONE_NEWUSER) < 0) || chroot(root) < 0 || chdir("/") < 0)
		return 77;
	if (identity_read(&id) != 0)
		return 1;
	if (strcmp(id.brand, outside->brand) != 0 || id.features != outside->features)
		return 2;
	if (strcmp(id.caches, "unknown") != 0 || strcmp(id.kernel, "unknown") != 0 || id.cpus)
		return 3;
	return id.tsc_khz == 0 ? 0 : 4;
}

static void a_bare_container_has_an_identity(void **state)
{
	struct identity outside;
	struct machine m;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(identity_read(&outside), 0);
	make_machine(&m);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(look_from_a_bare_root(m.root, &outside));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_machine(&m);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epyc_is_decoded),
		cmocka_unit_test(kinds_that_tear_across_32_bytes_are_known),
		cmocka_unit_test(few_leaves_are_read),
		cmocka_unit_test(sandy_bridge_is_decoded),
		cmocka_unit_test(magny_cours_is_decoded),
		cmocka_unit_test(alder_lake_is_one_machine),
		cmocka_unit_test(leaves_behind_the_highest_are_not_read),
		cmocka_unit_test(bits_that_change_at_run_time_do_not_count),
		cmocka_unit_test(hypervisor_is_named),
		cmocka_unit_test(odd_text_is_made_plain),
		cmocka_unit_test(packages_and_cores_are_counted),
		cmocka_unit_test(smt_switched_off_shows),
		cmocka_unit_test(odd_lists_are_unknown),
		cmocka_unit_test(core_count_must_make_sense),
		cmocka_unit_test(cpuinfo_is_the_first_block),
		cmocka_unit_test(cut_cpuinfo_is_unknown),
		cmocka_unit_test(odd_caches_are_told),
		cmocka_unit_test(nothing_at_all_is_an_error),
		cmocka_unit_test(recorded_machines_make_the_round_trip),
		cmocka_unit_test(libcpuid_agrees),
		cmocka_unit_test(this_machine_is_itself),
		cmocka_unit_test(a_bare_container_has_an_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
