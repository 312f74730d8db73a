/* SPDX-License-Identifier: MIT */
/* The library starts, ends and starts again: handlers, configs, and what is in flight. */
#define _GNU_SOURCE /* memfd_create() */
#include <signal.h>

#include "patchcore/machine/tests/policy_case.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/word/word.h"

/* --- Starting and ending -------------------------------------------------------------- */

static void plain_handler(int signal)
{
	(void)signal;
}

static void info_handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

static bool same_action(const struct sigaction *a, const struct sigaction *b)
{
	const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_NOCLDSTOP;

	for (int i = 1; i < SIGRTMAX; i++)
		if (sigismember(&a->sa_mask, i) != sigismember(&b->sa_mask, i))
			return false;
	return a->sa_handler == b->sa_handler && (a->sa_flags & flags) == (b->sa_flags & flags);
}

static void must_give_back(const struct sigaction *own)
{
	struct sigaction before, after;

	MUST(sigaction(SIGTRAP, own, NULL) == 0 && sigaction(SIGTRAP, NULL, &before) == 0);
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(pc_fini() == 0 && !trap_is_ours());
	MUST(sigaction(SIGTRAP, NULL, &after) == 0 && same_action(&before, &after));
	MUST(pc_fini() == 0);
	MUST(sigaction(SIGTRAP, NULL, &after) == 0 && same_action(&before, &after));
}

static void cycles(const void *arg)
{
	struct sigaction own[] = {
		{ .sa_handler = SIG_DFL },
		{ .sa_handler = plain_handler, .sa_flags = SA_RESTART | SA_NODEFER },
		{ .sa_handler = SIG_IGN },
		{ .sa_sigaction = info_handler, .sa_flags = SA_SIGINFO | SA_ONSTACK },
	};

	(void)arg;
	sigaddset(&own[3].sa_mask, SIGUSR1);
	conf_use_none();
	MUST(pc_fini() == 0);
	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < LENGTH(own); k++)
			must_give_back(&own[k]);
}

/* What was read before pc_fini() does not count after the next pc_init(). */
static void conf_is_read_again(const void *arg)
{
	(void)arg;
	use_conf(1e-12, 8);
	MUST(pc_init() == 0);
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	MUST(pc_fini() == 0);
	conf_use_none();
	MUST(pc_init() == 0);
	must_use(PC_POLICY_WAIT, NONE);
	MUST(!status_now().conf_valid);
	MUST(pc_fini() == 0);
	use_conf(1e-11, 16);
	must_use(PC_POLICY_WAIT, WAIT);
	MUST(status_now().upper_p == 1e-11 && status_now().atomic_window == 16);
}

static void busy_fini(const void *arg)
{
	uint8_t *page = code_map(1, RWX), *site = code_straddler(page), bytes[CODE_LEN];
	struct sigaction other = { .sa_handler = plain_handler }, ours, now;
	struct change change = change_in_place(site, bytes, sizeof(bytes));
	struct sync sync = { .window = 8 };
	struct word *word;

	(void)arg;
	conf_use_none();
	code_put(site, CODE_OLD);
	code_load(bytes, CODE_NEW);
	MUST(pc_init() == 0);
	MUST(word_hold(&word, &change, &sync) == 0);
	MUST(pc_fini() == -EBUSY && trap_is_ours());
	word_release(word);
	sigaction(SIGTRAP, &other, &ours);
	MUST(pc_fini() == -EBUSY);
	sigaction(SIGTRAP, &ours, &now);
	MUST(now.sa_handler == plain_handler);
	MUST(pc_fini() == 0 && !trap_is_ours());
}

/* Had by name, and by AUTO only for a caller that accepts 1; also after a new start. */
static void assumed_waits(const void *unused)
{
	struct pc_status status;

	(void)unused;
	setenv("PATCHCORE_MACHINE_CONF", "/nonexistent/machine.conf", 1);
	MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_WAIT) == -ENOTSUP);
	MUST(pc_fini() == 0);
	policy_assume_waits(1234, 567, 3);
	for (int i = 0; i < 2; i++) {
		MUST(pc_init() == 0 && pc_set_policy(PC_POLICY_AUTO) == 0);
		MUST(pc_get_status(&status) == 0 && status.in_use == PC_POLICY_MEMBARRIER);
		MUST(status.upper_p == 1);
		MUST(pc_set_policy(PC_POLICY_WAIT) == 0 && pc_get_status(&status) == 0);
		MUST(status.in_use == PC_POLICY_WAIT && status.stretch == 3);
		MUST(status.first_wait == 1234 && status.second_wait == 567);
		MUST(status.atomic_window == 8);
		MUST(pc_fini() == 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(cycles),
		child_unit_test(conf_is_read_again),
		child_unit_test(busy_fini),
		child_unit_test(assumed_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
