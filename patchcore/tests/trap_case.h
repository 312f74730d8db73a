/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the trap handler have in common: a straddler, a handler that
 * was there before the library's, and an executor that runs into an INT3.
 */
#ifndef PATCHCORE_TESTS_TRAP_CASE_H
#define PATCHCORE_TESTS_TRAP_CASE_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "patchcore/patchcore.h"
#include "patchcore/sigtrap/trap.h"
#include "patchcore/site/site.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"
#include "patchcore/word/word.h"

static uint8_t *page, *site;
static uint8_t __attribute__((unused)) old_code[CODE_LEN], new_code[CODE_LEN];

/* A straddler that the library knows, with the old code. */
static inline void start(void)
{
	page = code_map(1, RWX);
	site = code_straddler(page);
	code_load(old_code, CODE_OLD);
	code_load(new_code, CODE_NEW);
	code_put(site, CODE_OLD);
	MUST(pc_init() == 0 && trap_is_ours());
	MUST(site_get((uintptr_t)site));
}

static inline void start_without_conf(void)
{
	conf_use_none();
	start();
}

/* How often an executor met an INT3 of the library so far. */
static inline uint64_t trap_count(void)
{
	return sites_count().traps;
}

/* --- The owner of SIGTRAP before -------------------------------------------------------- */

static volatile struct {
	int count;
	int code;  /* si_code */
	int value; /* what sigqueue() sent */
	uintptr_t rip;
	bool usr1_held; /* SIGUSR1 was blocked meanwhile */
	bool trap_held;
} earlier;

static inline void note_mask(void)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	earlier.usr1_held = sigismember(&mask, SIGUSR1);
	earlier.trap_held = sigismember(&mask, SIGTRAP);
	earlier.count++;
	errno = EILSEQ;
}

static inline void earlier_plain(int signal)
{
	MUST(signal == SIGTRAP);
	note_mask();
}

static inline void earlier_info(int signal, siginfo_t *info, void *context)
{
	MUST(signal == SIGTRAP && info->si_signo == SIGTRAP);
	earlier.code = info->si_code;
	earlier.value = info->si_value.sival_int;
	earlier.rip = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	note_mask();
}

static inline void set_earlier(void (*plain)(int))
{
	struct sigaction action = { .sa_handler = plain };

	sigaddset(&action.sa_mask, SIGUSR1);
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static inline void set_earlier_info(void)
{
	struct sigaction action = { .sa_sigaction = earlier_info, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

/* nop; int3; mov eax, CODE_OLD; ret */
static inline uint8_t *foreign_trap(void)
{
	uint8_t *at = page + 64;

	at[1] = CODE_INT3;
	code_put(at + 2, CODE_OLD);
	return at;
}

/* --- Executors ---------------------------------------------------------------- */

static atomic_uint result; /* of the executor, 0 before */

static inline void *execute(void *at)
{
	errno = ENOTTY;
	result = code_run(at);
	MUST(errno == ENOTTY);
	return NULL;
}

static inline struct word *put_int3(void)
{
	static const struct sync sync = { .window = 8 };
	struct change change = change_in_place(site, new_code, CODE_LEN);
	struct word *word;

	MUST(word_begin(&word, &change, &sync) == 0);
	return word;
}

static inline void put_rest(struct word *word)
{
	word_put_back(word);
	word_put_front(word);
	word_release(word);
}

/* Until an executor has met the INT3, again and again, and still has nothing to show. */
static inline void wait_for_traps(uint64_t count)
{
	while (trap_count() < count)
		sched_yield();
	MUST(result == 0);
}

#endif
