/* SPDX-License-Identifier: MIT */
/*
 * A library is put into a process in these steps:
 *
 *  1. Choose a thread: one that sleeps in a system call that can be resumed, else one that runs.
 *     Seize and interrupt it, and look where it is (target_safe()). If it cannot be used there, let
 *     it run and try again.
 *  2. Write code that makes a system call into a cave: the unused end of a page of code. Have the
 *     thread map memory by that, with its signals blocked.
 *  3. Write the stub's code (stub.c) and the letter to that memory, and let the thread run the stub
 *     on a stack that is there as well: the thread's own stack, red zone and all, stays untouched.
 *  4. Restore the thread's registers and signals, and let it go.
 *  5. Read the answer when the new thread has written it.
 *
 * A system call that was interrupted is resumed: the kernel sees the registers that it left,
 * orig_rax among them, and does what it had meant to do. Where that was to return EINTR, rax
 * becomes -ERESTARTNOHAND: EINTR if a signal handler runs, else the call starts again.
 *
 * This process may be killed at any time. The kernel then lets the thread run from where it is:
 *
 *	killed in	the thread is	and
 *	1		where it was	its call may end with EINTR, as after SIGSTOP
 *	2		in the cave	goes on behind the system call to cave_back, which gives
 *					it back signals and registers
 *	3		in the stub	finishes that, waits for a fifth of a second, and gives
 *					itself back registers, the rest by the cave
 *	4		in the stub	the same; behind the registers, which are last, as it was
 *	5		free		the agent is there
 *
 * Stub and letter stay in the process then: the new thread cannot know whether the stopped one has
 * left them. Nothing else ever runs the cave.
 */
#include "agent/launch/inject.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/counts/base.h"
#include "agent/launch/steps.h"
#include "base/clock.h"
#include "base/command_line.h"

#define PATIENCE_MOMENT 5.0  /* seconds */
#define PATIENCE_CALL	10.0 /* it may have to wait for a CPU, and for threads that hold locks */
#define VECTORS_MAX	16384
#define PAGE		4096
#define STACK		(64u << 10)
#define LENGTH		(2 * PAGE + VECTORS_MAX + STACK) /* code, letter, vectors, stack */
#define CALL_STOP	(SIGTRAP | 0x80)
#define GIVE_UP		200000000 /* ns: until a thread goes on without the tracer */

/* A stopped thread, and its state before. */
struct stopped {
	const struct target *target;
	pid_t thread;
	struct user_regs_struct regs;
	uint64_t mask;
	uint64_t cave;
	bool changed; /* it does not have its registers */
};

/* Resumes a stop that was not asked for; 0, or an error after a signal of a fault. */
static int resume_stop(struct stopped *at, int how, int stop)
{
	if (stop >> 8 == PTRACE_EVENT_STOP)
		return ptrace(how, at->thread, 0, 0) < 0 ? -EIO : 0;
	return say_why(at->target, -EIO, "the call of its C library failed by a signal");
}

/* Run until a system call begins or ends. */
static int run_to_system_call(struct stopped *at)
{
	int stop, ret = ptrace(PTRACE_SYSCALL, at->thread, 0, 0) < 0 ? -EIO : 0;

	while (!ret && (stop = wait_stop(at->thread, PATIENCE_CALL)) != CALL_STOP)
		ret = stop < 0 ? -EIO : resume_stop(at, PTRACE_SYSCALL, stop);
	return ret;
}

/* --- Calls in the thread ---------------------------------------------------------------------- */

static bool put_cave(struct stopped *at, const struct user_regs_struct *regs)
{
	uint8_t code[CAVE_SIZE] = { 0 };
	const struct cave_state state = {
		.mask = at->mask,
		.rax = regs->rax,
		.rdi = regs->rdi,
		.rsi = regs->rsi,
		.rdx = regs->rdx,
		.rcx = regs->rcx,
		.r8 = regs->r8,
		.r9 = regs->r9,
		.r10 = regs->r10,
		.r11 = regs->r11,
		.rip = regs->rip,
	};

	memcpy(code, cave_start, (size_t)(cave_end - cave_start));
	memcpy(code + CAVE_MASK, &state, sizeof(state));
	return target_write(at->target, at->cave, code, sizeof(code));
}

static long system_call(struct stopped *at, long number, uint64_t a, uint64_t b, uint64_t c,
			uint64_t d)
{
	/* But SIGTRAP: if a blocked one is forced, the kernel resets its handler. */
	static const uint64_t all = ~(UINT64_C(1) << (SIGTRAP - 1));
	struct user_regs_struct regs = at->regs;

	regs.orig_rax = UINT64_MAX;
	regs.rip = at->cave;
	regs.rax = (uint64_t)number;
	regs.rdi = a;
	regs.rsi = b;
	regs.rdx = c;
	regs.r10 = d;
	regs.r8 = UINT64_MAX;
	regs.r9 = 0;
	at->changed = true;
	/* In this order: the cave restores the mask, but only in a thread that has got there. */
	if (ptrace(PTRACE_SETREGS, at->thread, 0, &regs) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, at->thread, sizeof(all), &all) < 0 ||
	    run_to_system_call(at) < 0 || run_to_system_call(at) < 0 ||
	    ptrace(PTRACE_GETREGS, at->thread, 0, &regs) < 0)
		return -EIO;
	return (long)regs.rax;
}

/*
 * The address of the mapping, or 0. Each system call takes two context switches, and waits for a
 * CPU on a busy machine: so the stub itself makes its data writable.
 */
static uint64_t prepare_stub(struct stopped *at, const struct user_regs_struct *regs,
			     struct letter *letter)
{
	long place = system_call(at, SYS_mmap, 0, LENGTH, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS);

	if (place == -EIO)
		return 0;
	if (place < 0 && place > -PAGE) {
		say_why(at->target, 0,
			place == -EACCES || place == -EPERM
				? "it is not allowed to have new code (SELinux, a policy)"
				: "it cannot map memory");
		return 0;
	}
	letter->start = (uint64_t)place;
	letter->length = LENGTH;
	letter->back = (struct letter_back){
		.flags = regs->eflags,
		.rbx = regs->rbx,
		.rsp = regs->rsp,
		.cave = at->cave + (uint64_t)(cave_back - cave_start),
	};
	if (target_write(at->target, letter->start, stub_start, (size_t)(stub_end - stub_start)) &&
	    target_write(at->target, letter->start + PAGE, letter, sizeof(*letter)))
		return letter->start;
	say_why(at->target, 0, "its memory cannot be written to");
	system_call(at, SYS_munmap, letter->start, LENGTH, 0, 0);
	return 0;
}

/* Waits until the stub has called the C library, and stops the thread there. */
static int wait_for_call(struct stopped *at, struct letter *letter)
{
	double until = seconds_now() + PATIENCE_CALL;
	int stop, ret = 0;

	while (!ret && seconds_now() < until) {
		if (!target_read(at->target, letter->start + PAGE, letter, sizeof(*letter)))
			return -ESRCH;
		if (letter->called)
			return interrupt_thread(at->thread) ? 0 : -EIO;
		stop = wait_stop(at->thread, 0);
		if (stop >= 0)
			ret = resume_stop(at, PTRACE_CONT, stop);
		else
			pause_us(20);
	}
	if (ret)
		return ret;
	/* The thread is somewhere in the C library, and is left alone. */
	at->changed = false;
	return say_why(at->target, -ETIMEDOUT, "its C library did not return within ten seconds");
}

static int create_thread(struct stopped *at, uint64_t place, struct letter *letter)
{
	struct user_regs_struct regs = at->regs;

	regs.orig_rax = UINT64_MAX;
	regs.rip = place + (uint64_t)(stub_call - stub_start);
	regs.rbx = place + PAGE;
	regs.rsp = place + LENGTH;
	regs.eflags &= ~UINT64_C(0x400); /* the direction, as functions expect it */
	if (ptrace(PTRACE_SETREGS, at->thread, 0, &regs) < 0 ||
	    ptrace(PTRACE_CONT, at->thread, 0, 0) < 0 || wait_for_call(at, letter) < 0)
		return -EIO;
	if (!letter->created)
		return 0;
	system_call(at, SYS_munmap, place, LENGTH, 0, 0);
	return say_why(at->target, -letter->created, "its C library cannot make a thread");
}

/* The thread may have restored itself. */
static void restore_thread(struct stopped *at, uint64_t place)
{
	static const uint8_t unused[CAVE_SIZE];
	struct user_regs_struct regs;

	/* Where it still runs, it may need the cave. */
	if (ptrace(PTRACE_GETREGS, at->thread, 0, &regs) < 0)
		return;
	if (regs.rip - place < LENGTH || regs.rip - at->cave < CAVE_SIZE) {
		ptrace(PTRACE_SETSIGMASK, at->thread, sizeof(at->mask), &at->mask);
		ptrace(PTRACE_SETREGS, at->thread, 0, &at->regs);
	}
	target_write(at->target, at->cave, unused, sizeof(unused));
}

static int call_library(struct stopped *at, struct letter *letter)
{
	struct user_regs_struct regs;
	uint64_t place;
	int ret = -EIO;

	at->cave = target_cave(at->target, CAVE_SIZE);
	if (!at->cave)
		return say_why(at->target, -EIO, "no page of its code has room for a system call");
	resume_call(&at->regs);
	regs = at->regs;
	restart_call(&regs);
	if (ptrace(PTRACE_GETSIGMASK, at->thread, sizeof(at->mask), &at->mask) < 0 ||
	    !put_cave(at, &regs))
		return say_why(at->target, -EIO,
			       "its registers cannot be read, or its memory not be written to");
	place = prepare_stub(at, &regs, letter);
	if (place)
		ret = create_thread(at, place, letter);
	if (at->changed)
		restore_thread(at, place);
	return ret;
}

/* --- Which thread, and when ------------------------------------------------------------------- */

/* A thread with the best rank of target_sleeps(); 0: there is none. */
static pid_t choose_thread(const struct target *target)
{
	struct threads all = list_threads(target);
	int least = INT_MAX;
	pid_t best = 0;

	for (size_t i = 0; i < all.n && least; i++) {
		int kind = target_sleeps(target, all.id[i]);

		if (kind < 0 || kind >= least)
			continue;
		least = kind;
		best = all.id[i];
	}
	free(all.id);
	return best;
}

/* 0, a negative errno, or 1: not at this moment. */
static int try_thread(struct inject *inject, struct target *target, pid_t thread,
		      struct letter *letter)
{
	struct stopped at = { .target = target, .thread = thread };
	const char *why = "its registers cannot be read";
	double began;
	int ret;

	if (ptrace(PTRACE_SEIZE, thread, 0, PTRACE_O_TRACESYSGOOD) < 0)
		return errno == EPERM ? target_denied(target) : 1;
	began = seconds_now();
	if (!interrupt_thread(thread)) {
		/* Only a stopped thread can be detached; else the kernel does so at our end. */
		return say_why(target, -ETIMEDOUT,
			       "a thread of it does not stop: it is stopped by a signal, ends, or "
			       "sleeps without end in the kernel, as in vfork()");
	}
	inject->attempts++;
	if (!ptrace(PTRACE_GETREGS, thread, 0, &at.regs))
		why = target_safe(target, &at.regs, false);
	if (why) {
		release_thread(thread);
		ret = say_why(target, 1, "%s", why);
	} else {
		say_why(target, 0, "its thread ended, or was killed, while it was stopped");
		ret = call_library(&at, letter);
		ptrace(PTRACE_DETACH, thread, 0, 0);
	}
	inject->stopped += seconds_now() - began;
	return ret;
}

static int find_moment(struct inject *inject, struct target *target, struct letter *letter)
{
	double until = seconds_now() + PATIENCE_MOMENT;
	int ret = 1;

	say_why(target, 0,
		"its threads are all in system calls that they had better not be stopped in");
	for (unsigned round = 0; ret > 0 && seconds_now() < until; round++) {
		pid_t thread = choose_thread(target);

		if (thread)
			ret = try_thread(inject, target, thread, letter);
		if (ret > 0)
			pause_us(500 + 100 * (round % 17));
	}
	return ret > 0 ? -EAGAIN : ret;
}

/* --- All of it -------------------------------------------------------------------------------- */

static int trace_target(struct inject *inject)
{
	struct letter letter = { .pause = { 0, 1000000 }, .give_up = { 0, GIVE_UP } };
	struct target target;
	int ret;

	ret = target_look(&target, inject->pid, inject->library, inject->why);
	if (!ret && (strlen(inject->library) >= sizeof(letter.library) ||
		     strlen(inject->entry) >= sizeof(letter.entry) ||
		     strlen(inject->text) >= sizeof(letter.text)))
		ret = say_why(&target, -ENAMETOOLONG,
			      "the library's path, or what it is told, is too long");
	if (!ret) {
		strcpy(letter.library, inject->library);
		strcpy(letter.text, inject->text);
		strcpy(letter.entry, inject->entry);
		letter.call = target.call;
		ret = find_moment(inject, &target, &letter);
	}
	if (!ret)
		ret = read_answer(inject, &target, &letter);
	target_free(&target);
	return ret;
}

/* With signals blocked: Ctrl-C does not leave it half done. */
int inject_library(struct inject *inject)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = trace_target(inject);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int inject_complain(const struct inject *inject, int ret, const char *what)
{
	return complain(1, 0, "cannot %s process %d: %s", what, (int)inject->pid,
			ret < 0 ? inject->why : error_cause(inject->result));
}
