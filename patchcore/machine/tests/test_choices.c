/* SPDX-License-Identifier: MIT */
/* Wishes and starts, thousands of them: nothing is kept of one that comes to the same. */
#define _GNU_SOURCE /* memfd_create() */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/tests/start.h"

static size_t used_bytes(void)
{
	return mallinfo2().uordblks;
}

static void start(const void *has_conf)
{
	struct machine_conf conf = conf_here();

	if (CHILD_ASAN || CHILD_TSAN)
		child_skip("a sanitizer has its own malloc()");
	if (!conf.identity.tsc_invariant && has_conf)
		child_skip("this machine has no invariant TSC");
	if (has_conf)
		conf_use(&conf);
	else
		conf_use_none();
	MUST(pc_init() == 0);
}

/* From 1 down to 1e-16. */
static void accept_all(unsigned count)
{
	struct pc_status status;

	for (unsigned i = 0; i < count; i++) {
		double p = pow(10, -16.0 * i / (count - 1));

		MUST(pc_set_accept_p(p) == 0);
		MUST(pc_get_status(&status) == 0 && status.accept_p == p);
	}
}

static void accepted(const void *has_conf)
{
	size_t had;

	start(has_conf);
	accept_all(200);
	had = used_bytes();
	accept_all(10000);
	MUST(used_bytes() == had);
}

static void started(const void *has_conf)
{
	size_t had = 0;

	start(has_conf);
	for (unsigned i = 0; i < 1000; i++) {
		if (i == 16)
			had = used_bytes();
		MUST(pc_fini() == 0 && pc_init() == 0);
		MUST(pc_set_policy(PC_POLICY_AUTO) == 0);
	}
	MUST(used_bytes() == had);
}

/* A refusal leaves all as it was, its reason too. */
static void refused(const void *arg)
{
	struct pc_status before, after;

	(void)arg;
	start(NULL);
	MUST(pc_get_status(&before) == 0);
	MUST(pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	MUST(pc_get_status(&after) == 0 && memcmp(&before, &after, sizeof(before)) == 0);
}

/* No SIGTRAP to be had: nothing has begun, and nothing says that it has. */
static void no_trap(const void *arg)
{
	uint8_t byte = 0x90;

	(void)arg;
	conf_use_none();
	child_filter(SYS_rt_sigaction, 0, SIGTRAP, SECCOMP_RET_ERRNO | EACCES);
	for (int i = 0; i < 2; i++) {
		MUST(pc_init() == -EACCES);
		MUST(pc_patch(&byte, &byte, 1) == -ESHUTDOWN);
	}
	MUST(pc_fini() == 0);
}

static const struct CMUnitTest tests[] = {
	child_unit_case("accepted, no config", accepted, NULL),
	child_unit_case("accepted", accepted, "conf"),
	child_unit_case("started, no config", started, NULL),
	child_unit_case("started", started, "conf"),
	child_unit_test(refused),
	child_unit_test(no_trap),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
