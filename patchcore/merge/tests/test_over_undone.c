/* SPDX-License-Identifier: MIT */
/*
 * Several instructions are to be replaced by others, and it does not go well: a thread does not
 * come out, the process forks past the handlers, membarrier fails. All or nothing is changed.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/machine/sync.h"
#include "patchcore/merge/merge.h"
#include "patchcore/merge/tests/over.h"
#include "patchcore/pages/text.h"
#include "patchcore/tests/asleep.h"

static void prepare(unsigned split)
{
	over_begin();
	over_put_site(over_place(split));
}

/* --- A thread that does not come out ---------------------------------------------------------- */

static void must_be_undone(int ret, int expected)
{
	MUST(ret == expected && site_is(adds) && !sites_count().held);
	MUST(run_site() == GOT_OLD);
}

/* A handler that has interrupted the code inside, and does not return for long. */
static void handler_stays(const void *arg)
{
	pthread_t thread;
	pid_t tracer;

	(void)arg;
	prepare(2);
	signal(SIGUSR1, stay_in_handler);
	tracer = over_stand(&thread, run_until_other, site - 2, site, 2, true);
	must_be_undone(over_at(site, mov), -ETIMEDOUT);
	MUST(stand_end(tracer) == STAND_SAW_SIGNAL);
	must_be_undone(over_at(site, mov), -ETIMEDOUT);
	leave = true;
	MUST(over_at(site, mov) == 0);
	MUST(pthread_join(thread, NULL) == 0 && got_last == GOT_NEW);
}

/*
 * Code with a system call inside: read() of a byte from a pipe, which returns 1. Before two
 * additions, or before one and behind an xor al, 0, by `first`.
 */
#define GOT_FIRST  0x51u
#define GOT_SECOND 0x41u

static int ends[2];

static void put_read(bool first)
{
	static const uint8_t call_first[LEN] = { 0x0f, 0x05, 0x04, 0x10, 0x04 };
	static const uint8_t call_second[LEN] = { 0x34, 0x00, 0x0f, 0x05, 0x04 };
	static char byte;
	uint8_t *at = site - 24;
	uint64_t buffer = (uintptr_t)&byte;
	int32_t from = ends[0];

	/* mov edi, from; movabs rsi, buffer; mov edx, 1; nop (2 bytes); xor eax, eax */
	*at++ = 0xbf;
	memcpy(at, &from, 4);
	memcpy(at + 4, "\x48\xbe", 2);
	memcpy(at + 6, &buffer, 8);
	memcpy(at + 14, "\xba\x01\0\0\0\x66\x90", 7);
	memcpy(at + 21, "\x31\xc0", 2);
	memcpy(site, first ? call_first : call_second, LEN);
	site[LEN] = 0x40;
}

struct sleeper {
	bool first;  /* the system call is the first instruction */
	bool blocks; /* all signals */
};

static void *read_once(void *arg)
{
	const struct sleeper *sleeper = arg;
	sigset_t all;

	sigfillset(&all);
	if (sleeper->blocks)
		MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
	stander = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	got_last = code_run(site - 24);
	return NULL;
}

static void *write_later(void *arg)
{
	usleep(200000);
	MUST(write(ends[1], "", 1) == 1);
	return arg;
}

static void asleep(const void *arg)
{
	struct sleeper sleeper = *(const struct sleeper *)arg;
	pthread_t thread, writer;
	uint8_t before[LEN];

	prepare(2);
	MUST(pipe(ends) == 0);
	put_read(sleeper.first);
	memcpy(before, site, LEN);
	MUST(pthread_create(&thread, NULL, read_once, &sleeper) == 0 && sem_wait(&ready) == 0);
	await_asleep(stander, SYS_read);
	/* A call that is restarted is not inside: it has not begun. */
	if (sleeper.first && !sleeper.blocks) {
		MUST(over_at(site, mov) == 0);
		MUST(pthread_join(thread, NULL) == 0 && got_last == GOT_NEW);
		return;
	}
	MUST(over_at(site, mov) == -ETIMEDOUT);
	MUST(site_is(before) && !sites_count().held);
	MUST(pthread_create(&writer, NULL, write_later, NULL) == 0);
	MUST(over_at(site, mov) == 0 && site_is(mov));
	MUST(pthread_join(thread, NULL) == 0 && pthread_join(writer, NULL) == 0);
	MUST(got_last == (sleeper.first ? GOT_FIRST : GOT_SECOND));
	MUST(code_run(site - 24) == GOT_NEW);
}

static void test_asleep(void **state)
{
	static const struct sleeper first = { .first = true }, second = { .first = false };
	static const struct sleeper first_blocks = { true, true }, second_blocks = { false, true };

	(void)state;
	child_must_pass(asleep, &first);
	child_must_pass(asleep, &second);
	child_must_pass(asleep, &first_blocks);
	child_must_pass(asleep, &second_blocks);
}

/*
 * The system call is the last instruction that is replaced. The thread sleeps behind all of them,
 * but would begin the call anew, should it be stopped and go on.
 */
static void asleep_at_end(const void *arg)
{
	static const uint8_t nop[4] = { 0x0f, 0x1f, 0x40, 0x00 };
	struct sleeper sleeper = *(const struct sleeper *)arg;
	pthread_t thread;

	prepare(2);
	MUST(pipe(ends) == 0);
	put_read(false);
	MUST(pthread_create(&thread, NULL, read_once, &sleeper) == 0 && sem_wait(&ready) == 0);
	await_asleep(stander, SYS_read);
	MUST(pc_patch_over(site, nop, 4, 5, 1, PC_CHECK_THREADS) == -ETIMEDOUT);
	MUST(write(ends[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
	MUST(got_last == GOT_SECOND);
	MUST(pc_patch_over(site, nop, 4, 5, 1, PC_CHECK_THREADS) == 0);
}

static void test_asleep_at_end(void **state)
{
	static const struct sleeper takes = { false, false }, blocks = { false, true };

	(void)state;
	child_must_pass(asleep_at_end, &takes);
	child_must_pass(asleep_at_end, &blocks);
}

/* --- A fork that goes past the handlers ------------------------------------------------------- */

/*
 * The child has the code as it stands at that moment, and not the thread that changes it. `two` has
 * a second start that is kept, so a second INT3.
 */
static const uint8_t two[LEN] = { 0x0f, 0x1f, 0x00, 0x90, 0x04 };
#define TWO_STARTS 0x19u
#define GOT_TWO	   0x40u

/* And it can change it. */
static void see_in_child(uint32_t expected)
{
	MUST(run_site() == expected);
	MUST(pc_patch_over(site, mov, LEN, 1, 1, PC_STARTS_KEPT) == 0 && run_site() == GOT_NEW);
	MUST(!sites_count().held);
	syscall(SYS_exit_group, 0);
}

static void *fork_raw(void *expected)
{
	pid_t pid = (pid_t)syscall(SYS_fork);
	int status;

	if (pid == 0)
		see_in_child(*(const uint32_t *)expected);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	return expected;
}

static void must_fork_to(uint32_t expected)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, fork_raw, &expected) == 0);
	MUST(pthread_join(thread, NULL) == 0);
}

static void forked(const void *arg)
{
	struct merge merge = { .bytes = two, .old_starts = STARTS, .new_starts = TWO_STARTS };

	prepare(*(const unsigned *)arg);
	MUST(text_begin(&merge.span, site, LEN) == 0);
	MUST(merge_find(&merge) == 0 && merge_hold(&merge) == 0);
	must_fork_to(GOT_OLD);
	merge_put_int3(&merge);
	must_fork_to(GOT_OLD);
	merge_put_rest(&merge);
	must_fork_to(GOT_TWO);
	merge_put_doors(&merge);
	must_fork_to(GOT_TWO);
	merge_release(&merge);
	text_end(&merge.span);
	MUST(site_is(two) && run_site() == GOT_TWO);
}

static void test_forked(void **state)
{
	static const unsigned inside = 0, split = 2;

	(void)state;
	child_must_pass(forked, &inside);
	child_must_pass(forked, &split);
}

/* --- Membarrier that fails -------------------------------------------------------------------- */

/* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, registering is another. */
static void forbid(void)
{
	child_filter(SYS_membarrier, 0, 1 << 5, SECCOMP_RET_ERRNO | EPERM);
}

static void fails_at_first(const void *arg)
{
	(void)arg;
	prepare(2);
	forbid();
	must_be_undone(over_at(site, mov), -EPERM);
}

/* For all threads: the sandbox is closed while the change waits for one inside. */
static void *forbid_and_write(void *arg)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	while (*(const volatile uint8_t *)site != CODE_INT3)
		usleep(100);
	/* The INT3 stands; now the first membarrier is over, too. */
	usleep(100000);
	MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
	     0);
	MUST(write(ends[1], "", 1) == 1);
	return arg;
}

static void fails_later(const void *arg)
{
	struct sleeper sleeper = { .first = true, .blocks = true };
	pthread_t thread, other;

	(void)arg;
	prepare(2);
	MUST(pipe(ends) == 0);
	put_read(true);
	MUST(pthread_create(&thread, NULL, read_once, &sleeper) == 0 && sem_wait(&ready) == 0);
	await_asleep(stander, SYS_read);
	MUST(pthread_create(&other, NULL, forbid_and_write, NULL) == 0);
	MUST(over_at(site, mov) == 0 && site_is(mov) && !sites_count().held);
	MUST(pthread_join(thread, NULL) == 0 && pthread_join(other, NULL) == 0);
	MUST(membarrier_sync() == -EPERM && got_last == GOT_FIRST);
	MUST(code_run(site - 24) == GOT_NEW);
}

static void test_sync_fails(void **state)
{
	(void)state;
	child_must_pass(fails_at_first, NULL);
	child_must_pass(fails_later, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(handler_stays),	      cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_asleep_at_end), cmocka_unit_test(test_forked),
		cmocka_unit_test(test_sync_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
