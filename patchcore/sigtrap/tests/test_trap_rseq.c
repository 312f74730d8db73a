/* SPDX-License-Identifier: MIT */
/*
 * An INT3 inside a restartable sequence: the kernel moves the thread to the abort handler before
 * it sends SIGTRAP, so no site lies in front of where the thread stands.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/tests/barrier.h"
#include "patchcore/tests/scale.h"
#include "patchcore/tests/trap_case.h"

#define SIGNATURE 0x53053053u
#define ABORTED	  0x5e5e5e5eu
#define TOGGLES	  20000u
#define BEFORE	  16 /* bytes of the sequence in front of the straddler */

static struct rseq_cs sequence __attribute__((aligned(32)));
static atomic_ulong aborts, runs;
static atomic_bool stop;

/* --- A sequence around the straddler ---------------------------------------------------------- */

static void put_signature(uint8_t *handler)
{
	const uint32_t signature = SIGNATURE;

	memcpy(handler - sizeof(signature), &signature, sizeof(signature));
	code_put(handler, ABORTED);
}

/* From some instructions before the site to the one behind it. */
static void make_sequence(uint8_t *handler)
{
	if (!__rseq_size)
		child_skip("the C library has registered no restartable sequences");
	put_signature(handler);
	sequence = (struct rseq_cs){
		.start_ip = (uintptr_t)site - BEFORE,
		.post_commit_offset = BEFORE + CODE_LEN,
		.abort_ip = (uintptr_t)handler,
	};
}

/* The kernel forgets the sequence with each abort. */
static uint32_t run_sequence(void)
{
	volatile uint64_t *now = (void *)((char *)__builtin_thread_pointer() + __rseq_offset +
					  offsetof(struct rseq, rseq_cs));
	uint32_t number;

	*now = (uintptr_t)&sequence;
	number = code_run(site - BEFORE);
	*now = 0;
	return number;
}

static void *run_often(void *unused)
{
	while (!stop) {
		uint32_t number = run_sequence();

		MUST(number == CODE_OLD || number == CODE_NEW || number == ABORTED);
		if (number == ABORTED)
			aborts++;
		else
			runs++;
	}
	return unused;
}

static uint32_t run_to_end(void)
{
	uint32_t number;

	do {
		number = run_sequence();
	} while (number == ABORTED);
	return number;
}

/* --- Changes that end ------------------------------------------------------------------------ */

/* The two threads run into most of them. */
static void toggle(void)
{
	unsigned toggles = (unsigned)(TOGGLES * test_scale());
	pthread_t threads[2];

	make_sequence(page + 64);
	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, run_often, NULL) == 0);
	for (unsigned i = 0; i < toggles || aborts < 1000; i++)
		MUST(pc_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	dprintf(2, "%lu aborts, %lu runs\n", aborts, runs);
	MUST(runs > 0 && pc_fini() == 0);
}

static void toggled_by_membarrier(const void *arg)
{
	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	toggle();
}

static void toggled_by_wait(const void *arg)
{
	(void)arg;
	flights_use_wait(3000, 3000);
	start();
	MUST(pc_set_policy(PC_POLICY_WAIT) == 0);
	toggle();
}

/* --- Changes without an owner ----------------------------------------------------------------- */

static void in_flight(const void *arg)
{
	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	make_sequence(page + 64);
	for (unsigned i = 0; i < 100; i++) {
		MUST(pc_start_patch(site, i % 2 ? old_code : new_code, CODE_LEN) == 0);
		MUST(run_to_end() == (i % 2 ? CODE_OLD : CODE_NEW));
	}
	MUST(pc_fini() == 0);
}

static pthread_t patcher;

static int end_there(void)
{
	if (pthread_self() == patcher)
		syscall(SYS_exit, 0);
	return 0;
}

static void *patch_and_end(void *unused)
{
	patcher = pthread_self();
	pc_patch(site, new_code, CODE_LEN);
	return unused;
}

static void left_by_owner(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_without_conf();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	make_sequence(page + 64);
	barrier_play(end_there);
	MUST(pthread_create(&thread, NULL, patch_and_end, NULL) == 0);
	pthread_join(thread, NULL);
	MUST(*(volatile uint8_t *)site == CODE_INT3);
	alarm(20);
	MUST(run_to_end() == CODE_NEW);
}

/* --- A change that is over when the handler comes to look ------------------------------------- */

static __thread bool is_executor;
static atomic_bool is_trapped, is_put;

/* The linker hands these calls to us: see local.mk. */
void __real_others_keep_off(uint64_t blocked);
void __wrap_others_keep_off(uint64_t blocked);

void __wrap_others_keep_off(uint64_t blocked)
{
	__real_others_keep_off(blocked);
	is_trapped = is_executor;
	while (is_executor && !is_put)
		;
}

static void *execute_late(void *unused)
{
	is_executor = true;
	result = run_to_end();
	return unused;
}

static void late(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	start_without_conf();
	make_sequence(page + 64);
	/* It knows that nothing is under way. */
	MUST(run_to_end() == CODE_OLD);
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute_late, NULL) == 0);
	while (!is_trapped)
		sched_yield();
	put_rest(word);
	is_put = true;
	pthread_join(thread, NULL);
	MUST(result == CODE_NEW);
}

/* --- The program's own INT3 ------------------------------------------------------------------- */

static void foreign(const void *arg)
{
	unsigned tries = 0;

	(void)arg;
	set_earlier_info();
	start_without_conf();
	make_sequence(page + 64);
	site[-BEFORE] = CODE_INT3;
	while (!earlier.count) {
		MUST(run_sequence() == ABORTED);
		tries++;
	}
	/* The first may have been ours, a moment ago. */
	MUST(tries <= 2 && earlier.code == SI_KERNEL && earlier.rip == (uintptr_t)page + 64);
	MUST(run_sequence() == ABORTED && earlier.count == 2);
	site[-BEFORE] = CODE_NOP;
	MUST(run_to_end() == CODE_OLD);
}

/* --- Where the signature lies ----------------------------------------------------------------- */

static void at_page_start(const void *arg)
{
	uint8_t *two;

	(void)arg;
	set_earlier_info();
	start_without_conf();
	two = code_map(2, RWX);
	make_sequence(two + CODE_PAGE);
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("the kernel has no membarrier SYNC_CORE");
	MUST(pc_start_patch(site, new_code, CODE_LEN) == 0);
	MUST(run_to_end() == CODE_NEW && earlier.count == 0);
	/* An INT3 of the program's, with nothing in front of it. */
	MUST(mprotect(two, CODE_PAGE, PROT_NONE) == 0);
	two[CODE_PAGE] = CODE_INT3;
	code_put(two + CODE_PAGE + 1, CODE_OLD);
	MUST(code_run(two + CODE_PAGE) == CODE_OLD && earlier.count == 1);
	/* A signature that is none: data of a function behind an INT3. */
	two[CODE_PAGE + 64] = CODE_INT3;
	put_signature(two + CODE_PAGE + 64 + 1);
	two[CODE_PAGE + 64] = CODE_INT3;
	MUST(code_run(two + CODE_PAGE + 64) == ABORTED && earlier.count == 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(toggled_by_membarrier),
		child_unit_test(toggled_by_wait),
		child_unit_test(in_flight),
		child_unit_test(left_by_owner),
		child_unit_test(late),
		child_unit_test(foreign),
		child_unit_test(at_page_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
