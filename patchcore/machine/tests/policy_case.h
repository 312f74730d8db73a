/* SPDX-License-Identifier: MIT */
/* For tests of the policy: this machine with a clock that is trusted, or another, by --wrap. */
#ifndef PATCHCORE_MACHINE_TESTS_POLICY_CASE_H
#define PATCHCORE_MACHINE_TESTS_POLICY_CASE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define NONE  PC_POLICY_AUTO
#define WAIT  PC_POLICY_WAIT
#define MB    PC_POLICY_MEMBARRIER
#define OTHER 7 /* no such policy */

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

int __real_identity_read(struct identity *id);
int __wrap_identity_read(struct identity *id);

static enum {
	AS_IT_IS,
	NO_INVARIANT_TSC,
	FAMILY_26, /* of AMD */
	UNREADABLE
} here;

int __wrap_identity_read(struct identity *id)
{
	int ret = __real_identity_read(id);

	id->tsc_invariant = here != NO_INVARIANT_TSC;
	if (here == FAMILY_26) {
		snprintf(id->vendor, sizeof(id->vendor), "AuthenticAMD");
		id->family = 26;
		id->model = 2;
	}
	return here == UNREADABLE ? -ENODATA : ret;
}

const char *__wrap_tsc_problem(char *text, size_t size);

static const char *distrust; /* of the kernel, for the clock of this machine */

const char *__wrap_tsc_problem(char *text, size_t size)
{
	if (!distrust)
		return NULL;
	snprintf(text, size, "%s", distrust);
	return text;
}

static inline struct pc_status status_now(void)
{
	struct pc_status status;

	MUST(pc_init() == 0 && pc_get_status(&status) == 0);
	MUST(status.reason[0] && !strchr(status.reason, '\n'));
	return status;
}

static inline void must_use(enum pc_policy asked, enum pc_policy in_use)
{
	struct pc_status status = status_now();

	MUST(status.asked == asked && status.in_use == in_use);
	MUST(status.first_wait == (in_use == WAIT ? 600 : 0));
	MUST(status.second_wait == (in_use == WAIT ? 700 : 0));
	MUST(status.stretch == (in_use == WAIT ? 4 : 0));
}

static inline bool have_membarrier(void)
{
	return membarrier_register() == 0;
}

static inline void use_conf(double upper_p, unsigned window)
{
	struct machine_conf conf = conf_here();

	conf.level[0].line.upper_p = conf.level[0].page.upper_p = upper_p;
	conf.window = window;
	conf.window_p = 1e-6;
	conf.window_runs = 30;
	conf_use(&conf);
}

#endif
