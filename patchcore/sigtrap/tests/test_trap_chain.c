/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/signals.h"
#include "patchcore/tests/asleep.h"
#include "patchcore/tests/trap_case.h"

/* Ours, or a broken one in its place. */
typedef void trap_fn(int signal, siginfo_t *info, void *context);

static void start_variant(const void *broken)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	start_without_conf();
	if (!broken)
		return;
	action.sa_sigaction = *(trap_fn *const *)broken;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static void chained_info(const void *arg)
{
	const uint8_t *at;

	set_earlier_info();
	start_variant(arg);
	at = foreign_trap();
	MUST(code_run(at) == CODE_OLD);
	MUST(earlier.count == 1 && earlier.code == SI_KERNEL);
	MUST(earlier.rip == (uintptr_t)at + 2);
	MUST(trap_count() == 0);
}

static void chained_plain(const void *arg)
{
	set_earlier(earlier_plain);
	start_variant(arg);
	MUST(code_run(foreign_trap()) == CODE_OLD);
	MUST(earlier.count == 1);
}

/* Its mask holds while it runs, and no longer. */
static void chained_mask(const void *arg)
{
	sigset_t mask;

	set_earlier(earlier_plain);
	start_variant(arg);
	code_run(foreign_trap());
	MUST(earlier.usr1_held && earlier.trap_held);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	MUST(!sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGTRAP));
}

static void sent(const void *arg)
{
	(void)arg;
	set_earlier_info();
	start_without_conf();
	MUST(raise(SIGTRAP) == 0);
	MUST(earlier.count == 1 && earlier.code == SI_TKILL);
	MUST(kill(getpid(), SIGTRAP) == 0);
	MUST(earlier.count == 2 && earlier.code == SI_USER);
	MUST(sigqueue(getpid(), SIGTRAP, (union sigval){ .sival_int = 4711 }) == 0);
	MUST(earlier.count == 3 && earlier.code == SI_QUEUE && earlier.value == 4711);
	MUST(trap_count() == 0);
}

static void keeps_errno(const void *arg)
{
	(void)arg;
	set_earlier(earlier_plain);
	start_without_conf();
	errno = ENOTTY;
	code_run(foreign_trap());
	/* That of the earlier handler is its own business. */
	MUST(earlier.count == 1 && errno == EILSEQ);
}

/* --- No handler before ---------------------------------------------------------------------- */

static void run_foreign(const void *disposition)
{
	set_earlier(disposition ? SIG_IGN : SIG_DFL);
	start_without_conf();
	code_run(foreign_trap());
}

static void raise_by_default(const void *arg)
{
	(void)arg;
	set_earlier(SIG_DFL);
	start_without_conf();
	raise(SIGTRAP);
}

static void test_default_dies(void **state)
{
	(void)state;
	child_must_die_of(run_foreign, NULL, SIGTRAP);
	child_must_die_of(raise_by_default, NULL, SIGTRAP);
}

static void ignored(const void *arg)
{
	(void)arg;
	set_earlier(SIG_IGN);
	start_without_conf();
	MUST(raise(SIGTRAP) == 0);
	MUST(kill(getpid(), SIGTRAP) == 0);
	MUST(trap_is_ours());
}

/* What is sent can be ignored. What the program does itself cannot. */
static void test_ignored(void **state)
{
	(void)state;
	child_must_pass(ignored, NULL);
	child_must_die_of(run_foreign, "ignored", SIGTRAP);
}

/* --- Flags of the handler before ------------------------------------------------------- */

static void set_flags(int flags)
{
	struct sigaction action = { .sa_sigaction = earlier_info, .sa_flags = SA_SIGINFO | flags };

	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
}

static void nodefer(const void *arg)
{
	(void)arg;
	set_flags(SA_NODEFER);
	start_without_conf();
	code_run(foreign_trap());
	MUST(earlier.count == 1 && !earlier.trap_held && !earlier.usr1_held);
}

/* SIGTRAP in sa_mask is stronger than SA_NODEFER. */
static void nodefer_masked(const void *arg)
{
	struct sigaction action = { .sa_handler = earlier_plain, .sa_flags = SA_NODEFER };

	(void)arg;
	sigaddset(&action.sa_mask, SIGTRAP);
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_without_conf();
	code_run(foreign_trap());
	MUST(earlier.count == 1 && earlier.trap_held);
}

static void test_nodefer(void **state)
{
	(void)state;
	child_must_pass(nodefer, NULL);
	child_must_pass(nodefer_masked, NULL);
}

static void resethand_twice(const void *arg)
{
	(void)arg;
	set_flags((int)SA_RESETHAND);
	start_without_conf();
	code_run(foreign_trap());
	if (earlier.count != 1)
		_exit(1);
	code_run(foreign_trap());
}

/* The first gets the handler, the second what SIG_DFL does. */
static void test_resethand(void **state)
{
	(void)state;
	child_must_die_of(resethand_twice, NULL, SIGTRAP);
}

/* A straddler of ours is no reason to use the handler up. */
static void resethand_ours(const void *arg)
{
	pthread_t thread;
	struct word *word;

	(void)arg;
	set_flags((int)SA_RESETHAND);
	start_without_conf();
	word = put_int3();
	MUST(pthread_create(&thread, NULL, execute, site) == 0);
	wait_for_traps(1);
	put_rest(word);
	pthread_join(thread, NULL);
	MUST(earlier.count == 0);
	MUST(raise(SIGTRAP) == 0 && earlier.count == 1);
}

static sigjmp_buf jump;

static void leap(int signal)
{
	(void)signal;
	earlier.count++;
	siglongjmp(jump, 1);
}

static void longjmps(const void *arg)
{
	struct sigaction action = { .sa_handler = leap };
	volatile int leaps = 0;
	sigset_t mask;

	(void)arg;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_without_conf();
	while (sigsetjmp(jump, 1) && ++leaps < 3)
		;
	if (leaps < 3)
		code_run(foreign_trap());
	MUST(leaps == 3 && earlier.count == 3);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	MUST(!sigismember(&mask, SIGTRAP));
	MUST(trap_is_ours());
}

static uint8_t alternate[65536];
static volatile uintptr_t handler_stack;

static void note_stack(int signal, siginfo_t *info, void *context)
{
	earlier_info(signal, info, context);
	handler_stack = (uintptr_t)__builtin_frame_address(0);
}

static void on_alternate(const void *arg)
{
	struct sigaction action = { .sa_sigaction = note_stack,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	(void)arg;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_without_conf();
	MUST(sigaltstack(&stack, NULL) == 0);
	MUST(code_run(foreign_trap()) == CODE_OLD);
	MUST(earlier.count == 1);
	MUST(handler_stack - (uintptr_t)alternate < sizeof(alternate));
}

/* A single step of the program's own, over our site too. */
static unsigned steps;

static void on_step(int signal, siginfo_t *info, void *context)
{
	/* See step.h: a hypervisor may lose the cause. */
	MUST(signal == SIGTRAP);
	MUST(info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT);
	if (++steps == 10)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

static void stepped(const void *arg)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	(void)arg;
	MUST(sigaction(SIGTRAP, &action, NULL) == 0);
	start_without_conf();
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq\n"
			 "nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop"
			 :
			 :
			 : "memory", "cc");
	MUST(steps == 10 && trap_count() == 0);
}

/* --- SA_RESTART: a sent SIGTRAP breaks off what it did before, and no more ------------------ */

struct sender {
	pthread_t thread;
	pid_t tid;
	int fd;
};

static void *send_one(void *arg)
{
	const struct sender *sender = arg;

	await_asleep(sender->tid, SYS_read);
	MUST(pthread_kill(sender->thread, SIGTRAP) == 0);
	while (earlier.count == 0)
		usleep(1000);
	MUST(write(sender->fd, "x", 1) == 1);
	return NULL;
}

static ssize_t read_while_sent(void)
{
	struct sender sender = { .thread = pthread_self(), .tid = (pid_t)syscall(SYS_gettid) };
	pthread_t thread;
	int ends[2];
	ssize_t ret;
	char byte;

	MUST(pipe(ends) == 0);
	sender.fd = ends[1];
	MUST(pthread_create(&thread, NULL, send_one, &sender) == 0);
	ret = read(ends[0], &byte, 1);
	pthread_join(thread, NULL);
	return ret;
}

static void restarts(const void *flags)
{
	set_flags(*(const int *)flags);
	start_without_conf();
	MUST(read_while_sent() == (*(const int *)flags ? 1 : -1));
	MUST(earlier.count == 1);
}

/* The same when the handler changes later. */
static void restarts_later(const void *flags)
{
	struct sigaction action = { .sa_sigaction = earlier_info,
				    .sa_flags = SA_SIGINFO | *(const int *)flags };

	set_flags(*(const int *)flags ^ SA_RESTART);
	start_without_conf();
	MUST(pc_set_chained_trap(&action, NULL) == 0);
	MUST(read_while_sent() == (*(const int *)flags ? 1 : -1));
	MUST(earlier.count == 1);
}

static void test_restarts(void **state)
{
	(void)state;
	child_must_pass(restarts_later, &(int){ SA_RESTART });
	child_must_pass(restarts_later, &(int){ 0 });
	child_must_pass(restarts, &(int){ SA_RESTART });
	child_must_pass(restarts, &(int){ 0 });
}

/* --- Broken variants: the tests above must be able to fail --------------------------------- */

static void swallows(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
}

/* As if every INT3 were ours. */
static void takes_all(int signal, siginfo_t *info, void *context)
{
	static int turns;

	(void)signal;
	(void)info;
	if (++turns > 1000)
		_exit(1);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= 1;
}

/* Neither the siginfo of a handler that wants it, nor its mask. */
static void calls_barely(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	earlier_plain(signal);
}

static void must_be_caught(child_fn *check, trap_fn *broken)
{
	int status = child_run(check, &broken);

	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_broken(void **state)
{
	(void)state;
	must_be_caught(chained_plain, swallows);
	must_be_caught(chained_info, swallows);
	must_be_caught(chained_plain, takes_all);
	must_be_caught(chained_info, calls_barely);
	if (!CHILD_TSAN) /* It calls handlers with all signals blocked. */
		must_be_caught(chained_mask, calls_barely);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(chained_info),	  child_unit_test(chained_plain),
		child_unit_test(chained_mask),	  child_unit_test(sent),
		child_unit_test(keeps_errno),	  cmocka_unit_test(test_default_dies),
		cmocka_unit_test(test_ignored),	  cmocka_unit_test(test_nodefer),
		cmocka_unit_test(test_resethand), child_unit_test(resethand_ours),
		child_unit_test(longjmps),	  child_unit_test(on_alternate),
		child_unit_test(stepped),	  cmocka_unit_test(test_restarts),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
