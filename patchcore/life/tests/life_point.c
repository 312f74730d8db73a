/* SPDX-License-Identifier: MIT */
/*
 * To a chosen step of an operation: at full speed to the last system call before it, and from
 * there one instruction at a time.
 *
 * That call is caught by syscall user dispatch (Linux 5.11): SIGSYS for each call of the thread,
 * unless a byte of memory says otherwise. The trap flag does the rest, see step.h. Both signals
 * must get through, so where the library blocks all signals these two are left out.
 */
#define _GNU_SOURCE
#include "patchcore/life/tests/life.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "patchcore/tests/step.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define DISPATCH_ON    1
#define DISPATCH_ALLOW 0
#define DISPATCH_BLOCK 1

#define SA_OWN_RESTORER 0x04000000

#define LET_THROUGH (UINT64_C(1) << (SIGTRAP - 1) | UINT64_C(1) << (SIGSYS - 1))
#define SENT	    (UINT64_C(1) << (SIGUSR2 - 1)) /* stands for all signals that are sent */

static struct {
	struct point point;
	point_fn *at; /* NULL: a survey */
	struct survey *survey;
	uint64_t (*state)(void);
	uint64_t last;
	unsigned calls;
	int steps, most;
	uintptr_t left_at;   /* stack pointer with which the library has called others, 0: not */
	bool armed;	     /* the point is still to come */
	bool raised_blocked; /* LET_THROUGH as well, as the library would have it */
	bool blocked;	     /* what is sent */
} now;

static volatile char selector = DISPATCH_ALLOW;

/*
 * The way back from the handler of SIGSYS: the only system call that is not caught, wherever it
 * comes from. The byte behind it is where the kernel says that it is. The one before it belongs to
 * no function: there the unwinder of a thread that ends looks for how to go on, and finds its end.
 */
__asm__(".text\n"
	"	nop\n"
	".globl point_return\n"
	"point_return:\n"
	"	mov $15, %eax\n"
	"	syscall\n"
	"	nop\n"
	"	nop\n");
extern const char point_return[];

/* --- Where it is ----------------------------------------------------------------------------- */

static bool is_own(uintptr_t at)
{
	extern const char __executable_start, etext;

	return at >= (uintptr_t)&__executable_start && at < (uintptr_t)&etext;
}

static bool is_call(const uint8_t *at)
{
	return at[0] == 0x0f && at[1] == 0x05;
}

/* Code that libc calls back with a lock held does not count as the library's own. */
static void follow_calls(const greg_t *gregs)
{
	uintptr_t sp = (uintptr_t)gregs[REG_RSP];
	bool own = is_own((uintptr_t)gregs[REG_RIP]);

	if (now.left_at && own && sp > now.left_at)
		now.left_at = 0;
	else if (!now.left_at && !own && is_own(*(const uintptr_t *)sp))
		now.left_at = sp;
}

/* libc's function for one system call counts as own: it was called from here, and holds no lock. */
static bool is_in_own(const greg_t *gregs, bool at_call)
{
	if (is_own((uintptr_t)gregs[REG_RIP]))
		return !now.left_at;
	return at_call && is_own(*(const uintptr_t *)gregs[REG_RSP]);
}

static void note_state(const greg_t *gregs, bool at_call, int step)
{
	struct survey *survey = now.survey;
	uint64_t state = now.state();

	/* A first step is one in any case: behind the call. */
	if (state == now.last && step > 1 && !at_call)
		return;
	now.last = state;
	if (survey->count < POINTS_MAX)
		survey->point[survey->count++] = (struct point){
			.call = now.calls,
			.step = step,
			.own = is_in_own(gregs, at_call || step == 1),
			.blocked = now.blocked,
			.state = state,
		};
}

static bool may_arrive(const greg_t *gregs, bool at_call)
{
	return now.armed && now.steps >= now.point.step &&
	       (!now.point.only_unblocked || !now.blocked) &&
	       (!now.point.only_own || is_in_own(gregs, at_call));
}

static void arrive(void)
{
	now.armed = false;
	step_allow_traps(true);
	now.at();
	step_allow_traps(false);
}

/* --- The mask
 * -------------------------------------------------------------------------------------- */

/* rt_sigprocmask() for the thread that the signal has interrupted. */
static long set_mask(ucontext_t *context, int how, const uint64_t *set, uint64_t *old)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	if (now.raised_blocked)
		mask |= LET_THROUGH;
	if (old)
		memcpy(old, &mask, sizeof(mask));
	if (!set)
		return 0;
	if (how == SIG_BLOCK)
		mask |= *set;
	else if (how == SIG_UNBLOCK)
		mask &= ~*set;
	else
		mask = *set;
	now.raised_blocked = mask & LET_THROUGH;
	now.blocked = mask & SENT;
	mask &= ~LET_THROUGH;
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	return 0;
}

static bool play_mask(ucontext_t *context, long number)
{
	greg_t *gregs = context->uc_mcontext.gregs;

	if (number != SYS_rt_sigprocmask)
		return false;
	gregs[REG_RAX] = set_mask(context, (int)gregs[REG_RDI], (const uint64_t *)gregs[REG_RSI],
				  (uint64_t *)gregs[REG_RDX]);
	return true;
}

/* --- System calls
 * ---------------------------------------------------------------------------------- */

static long make_call(const greg_t *gregs, long number)
{
	register long r10 __asm__("r10") = gregs[REG_R10];
	register long r8 __asm__("r8") = gregs[REG_R8];
	register long r9 __asm__("r9") = gregs[REG_R9];
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(gregs[REG_RDI]), "S"(gregs[REG_RSI]),
			   "d"(gregs[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Let it be made where it is. */
static void make_later(greg_t *gregs, long number)
{
	gregs[REG_RIP] -= 2;
	gregs[REG_RAX] = number;
}

/* This is the one: look, and go on in steps. */
static void reach_point(ucontext_t *context, long number)
{
	greg_t *gregs = context->uc_mcontext.gregs;

	if (!now.survey && now.point.step == 0 && may_arrive(gregs, true))
		arrive();
	if (now.survey || now.armed)
		gregs[REG_EFL] |= STEP_FLAG;
	if (!play_mask(context, number))
		make_later(gregs, number);
}

static void on_call(int signal, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
	long number = info->si_syscall;
	int saved = errno;

	(void)signal;
	selector = DISPATCH_ALLOW;
	if (number == SYS_rt_sigreturn) {
		gregs[REG_RIP] = (greg_t)point_return;
		selector = DISPATCH_BLOCK;
		return;
	}
	now.calls++;
	if (now.survey && now.point.call == CALLS_MAX && now.calls < CALLS_MAX) {
		note_state(gregs, true, 0);
		now.survey->state[now.calls] = now.last;
		now.survey->number[now.calls] = number;
	}
	if (now.calls == now.point.call) {
		reach_point(context, number);
		errno = saved;
		return;
	}
	if (!play_mask(context, number))
		gregs[REG_RAX] = make_call(gregs, number);
	errno = saved;
	selector = DISPATCH_BLOCK;
}

/* --- Steps
 * ------------------------------------------------------------------------------------------- */

/* In steps there may be calls that there are not at full speed, as time passes. */
static bool is_next_call(const greg_t *gregs)
{
	unsigned next = now.point.call + 1;

	return next <= now.survey->calls && now.survey->number[next] == gregs[REG_RAX];
}

static bool look_at_step(ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	bool at_call = is_call((const uint8_t *)gregs[REG_RIP]);

	now.steps++;
	follow_calls(gregs);
	if (now.survey) {
		note_state(gregs, at_call, now.steps);
		now.survey->steps[now.point.call] = now.steps;
		/* Steps behind the next call are seen when that call has its turn. */
		if (now.steps >= now.most || (at_call && is_next_call(gregs)))
			return false;
	} else if (may_arrive(gregs, at_call || now.steps == 1)) {
		arrive();
	}
	/* A mask with SIGTRAP would be the end of the steps. */
	if (now.armed && at_call && play_mask(context, gregs[REG_RAX]))
		gregs[REG_RIP] += 2;
	return now.armed;
}

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;

	MUST(signal == SIGTRAP && step_is(info));
	if (!look_at_step(context))
		gregs[REG_EFL] &= ~STEP_FLAG;
}

/* --- The interface
 * ------------------------------------------------------------------------------------ */

void point_install(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		const char *restorer;
		uint64_t mask;
	} on_sys = { on_call, SA_SIGINFO | SA_NODEFER | SA_OWN_RESTORER, point_return, 0 };
	struct sigaction on_trap = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	MUST(syscall(SYS_rt_sigaction, SIGSYS, &on_sys, NULL, sizeof(on_sys.mask)) == 0);
	MUST(sigaction(SIGTRAP, &on_trap, NULL) == 0);
}

static void begin(void)
{
	now.armed = true;
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_ON, point_return, 16L, &selector) < 0)
		child_skip("the kernel has no syscall user dispatch");
	if (now.point.call) {
		selector = DISPATCH_BLOCK;
		return;
	}
	__asm__ volatile("" : : : "memory");
	__writeeflags(__readeflags() | STEP_FLAG);
}

void point_arm(const struct point *point, point_fn *at)
{
	memset(&now, 0, sizeof(now));
	now.point = *point;
	now.at = at;
	begin();
}

void point_survey(struct survey *survey, unsigned call, int steps, uint64_t (*state)(void))
{
	memset(&now, 0, sizeof(now));
	now.survey = survey;
	now.point.call = call;
	now.most = steps;
	now.state = state;
	if (call == CALLS_MAX)
		survey->state[0] = state();
	begin();
}

void point_disarm(void)
{
	__writeeflags(__readeflags() & ~(unsigned long long)STEP_FLAG);
	selector = DISPATCH_ALLOW;
	now.armed = false;
	if (!now.survey || now.point.call < CALLS_MAX)
		return;
	now.survey->calls = now.calls;
	if (now.calls < CALLS_MAX)
		now.survey->state[now.calls + 1] = now.state();
}

bool point_is_installed(void)
{
	struct sigaction on_trap;

	MUST(sigaction(SIGTRAP, NULL, &on_trap) == 0);
	return (on_trap.sa_flags & SA_SIGINFO) && on_trap.sa_sigaction == on_step;
}
