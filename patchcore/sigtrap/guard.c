/* SPDX-License-Identifier: MIT */
/*
 * libpatchcore_guard: for programs that block SIGTRAP, or take it after pc_init().
 *
 * Wraps the functions that set handlers and masks. The kernel never gets to see SIGTRAP in a mask,
 * and no other handler for it; the program reads back what it set. pc_signals(3) lists where a
 * program can notice the difference.
 *
 * A child of vfork() shares this memory and soon runs another program. It is served as if there
 * were no guard: then that program starts with the signals that this one meant it to have.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "patchcore/sigtrap/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_BIT (UINT64_C(1) << (SIGTRAP - 1))

/* They are newer than some C libraries, or not for programs to call by name. */
int epoll_pwait2(int epoll, struct epoll_event *events, int count, const struct timespec *timeout,
		 const sigset_t *set);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *set, size_t size);

#define WRAPPED(X)                                                                                 \
	X(sigaction)                                                                               \
	X(sigprocmask)                                                                             \
	X(pthread_sigmask)                                                                         \
	X(pthread_attr_setsigmask_np)                                                              \
	X(sigpending)                                                                              \
	X(sigsuspend)                                                                              \
	X(sigtimedwait)                                                                            \
	X(ppoll)                                                                                   \
	X(__ppoll_chk)                                                                             \
	X(pselect)                                                                                 \
	X(epoll_pwait)                                                                             \
	X(epoll_pwait2)

/* What libc has under these names; found at load time, or before if need be. */
#define DECLARE(name) void *name;
static struct {
	WRAPPED(DECLARE)
} real;

/* How the calling thread believes to stand with SIGTRAP. */
static __thread struct {
	volatile sig_atomic_t blocked;
	volatile sig_atomic_t pending; /* one came meanwhile: info */
	volatile sig_atomic_t waiting; /* in sigwait() for it */
	siginfo_t info;
} here __attribute__((tls_model("initial-exec")));

static _Atomic(uint64_t) masked; /* bit n - 1: the program put SIGTRAP in the sa_mask of signal n */
static _Atomic(guard_chain_fn *) chain; /* NULL: the library has not got SIGTRAP */
static _Atomic(int) process;		/* that this memory is of */

#define REAL(name) ((__typeof__(name) *)find_libc_function(&real.name, #name))

static void *find_libc_function(void **slot, const char *name)
{
	if (!*slot)
		*slot = dlsym(RTLD_NEXT, name);
	return *slot;
}

static void note_process(void)
{
	atomic_store(&process, getpid());
}

static bool is_vforked(void)
{
	return atomic_load(&process) != getpid();
}

static bool has_trap(const sigset_t *set)
{
	return sigismember(set, SIGTRAP) == 1;
}

/* The same without SIGTRAP, in *room; NULL stays NULL. */
static const sigset_t *without_trap(const sigset_t *set, sigset_t *room)
{
	if (!set)
		return NULL;
	*room = *set;
	sigdelset(room, SIGTRAP);
	return room;
}

#define BARE(set) without_trap(set, &(sigset_t){ 0 })

static void send_to_self(const siginfo_t *info)
{
	syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGTRAP, info);
}

/* --- Masks ----------------------------------------------------------------------- */

/* set_mask: sigprocmask() or pthread_sigmask(), which differ in how they fail. */
static int mask_without_trap(int (*set_mask)(int, const sigset_t *, sigset_t *), int how,
			     const sigset_t *set, sigset_t *old)
{
	bool before = here.blocked, after = before;
	siginfo_t info;
	int ret;

	if (set && (how == SIG_SETMASK || has_trap(set)))
		after = how == SIG_BLOCK || (how == SIG_SETMASK && has_trap(set));
	if (before != after && is_vforked())
		return set_mask(how, set, old);
	ret = set_mask(how, how == SIG_UNBLOCK ? set : BARE(set), old);
	if (ret != 0)
		return ret;
	if (old)
		(before ? sigaddset : sigdelset)(old, SIGTRAP);
	here.blocked = after;
	/* The one that was kept, to this thread, as it came. */
	if (!after && here.pending) {
		info = here.info;
		here.pending = 0;
		send_to_self(&info);
	}
	return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_without_trap(REAL(sigprocmask), how, set, old);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return mask_without_trap(REAL(pthread_sigmask), how, set, old);
}

int sigpending(sigset_t *set)
{
	int ret = REAL(sigpending)(set);

	if (ret == 0 && here.pending)
		sigaddset(set, SIGTRAP);
	return ret;
}

/* --- Calls that set a mask while they wait ------------------------------------------ */

#define PASS_ON(name, parameters, ...)                                                             \
	int name parameters                                                                        \
	{                                                                                          \
		return REAL(name)(__VA_ARGS__);                                                    \
	}

/* clang-format off */
PASS_ON(sigsuspend, (const sigset_t *set), BARE(set))
PASS_ON(ppoll, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	const sigset_t *set), fds, count, timeout, BARE(set))
PASS_ON(__ppoll_chk, (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	const sigset_t *set, size_t size), fds, count, timeout, BARE(set), size)
PASS_ON(pselect, (int count, fd_set *in, fd_set *out, fd_set *except,
	const struct timespec *timeout, const sigset_t *set),
	count, in, out, except, timeout, BARE(set))
PASS_ON(epoll_pwait, (int epoll, struct epoll_event *events, int count, int timeout,
	const sigset_t *set), epoll, events, count, timeout, BARE(set))
PASS_ON(epoll_pwait2, (int epoll, struct epoll_event *events, int count,
	const struct timespec *timeout, const sigset_t *set),
	epoll, events, count, timeout, BARE(set))
/* A thread starts with it unblocked, in its own view too. */
PASS_ON(pthread_attr_setsigmask_np, (pthread_attr_t *attr, const sigset_t *set), attr, BARE(set))
/* clang-format on */

/* --- Waiting for the signal itself --------------------------------------------------- */

/*
 * One that comes from now on and does not find the thread in the kernel is sent
 * again, this time really blocked (holds() below), and so ends the wait.
 */
int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	const uint64_t trap = TRAP_BIT;
	int ret, error;

	if (!has_trap(set) || is_vforked())
		return REAL(sigtimedwait)(set, info, timeout);
	here.waiting = 1;
	if (here.pending) {
		here.waiting = here.pending = 0;
		if (info)
			*info = here.info;
		return SIGTRAP;
	}
	ret = REAL(sigtimedwait)(set, info, timeout);
	error = errno;
	here.waiting = 0;
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, NULL, sizeof(trap));
	errno = error;
	return ret;
}

int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

int sigwait(const sigset_t *set, int *signal)
{
	int ret;

	do {
		ret = sigtimedwait(set, NULL, NULL);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return errno;
	*signal = ret;
	return 0;
}

/* --- Handlers ------------------------------------------------------------------------ */

/* The others: SIGTRAP is taken out of sa_mask, and remembered. */
static int set_other(int signal, const struct sigaction *now, struct sigaction *old)
{
	uint64_t bit = signal >= 1 && signal <= 64 ? UINT64_C(1) << (signal - 1) : 0, before;
	struct sigaction kept;
	int ret;

	if (now) {
		kept = *now;
		sigdelset(&kept.sa_mask, SIGTRAP);
	}
	ret = REAL(sigaction)(signal, now ? &kept : NULL, old);
	if (ret < 0)
		return ret;
	if (!now)
		before = atomic_load(&masked);
	else if (has_trap(&now->sa_mask))
		before = atomic_fetch_or(&masked, bit);
	else
		before = atomic_fetch_and(&masked, ~bit);
	if (old)
		(before & bit ? sigaddset : sigdelset)(&old->sa_mask, SIGTRAP);
	return 0;
}

int sigaction(int signal, const struct sigaction *now, struct sigaction *old)
{
	guard_chain_fn *set = atomic_load(&chain);

	if (is_vforked())
		return REAL(sigaction)(signal, now, old);
	if (signal != SIGTRAP)
		return set_other(signal, now, old);
	/* The library may be giving SIGTRAP back just now; then it refuses. */
	return set && set(now, old) == 0 ? 0 : REAL(sigaction)(SIGTRAP, now, old);
}

static void (*set_handler(int signal, void (*handler)(int), unsigned flags))(int)
{
	struct sigaction now = { .sa_handler = handler, .sa_flags = (int)flags }, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&now.sa_mask, signal);
	return sigaction(signal, &now, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* The masks of these hold no other signal than their own; but the record must be kept. */
void (*signal(int signal, void (*handler)(int)))(int)
{
	return set_handler(signal, handler, SA_RESTART);
}

#define ALIAS(name) __attribute__((nothrow, leaf, alias(name)))
void (*bsd_signal(int signal, void (*handler)(int)))(int) ALIAS("signal");
void (*ssignal(int signal, void (*handler)(int)))(int) ALIAS("signal");
int __sigaction(int signal, const struct sigaction *now, struct sigaction *old) ALIAS("sigaction");

void (*__sysv_signal(int signal, void (*handler)(int)))(int)
{
	return set_handler(signal, handler, SA_RESETHAND | SA_NODEFER);
}

void (*sysv_signal(int signal, void (*handler)(int)))(int) __attribute__((alias("__sysv_signal")));

/* --- For the library ------------------------------------------------------------------ */

static int sigaction_without(int signal, const struct sigaction *now, struct sigaction *old)
{
	return REAL(sigaction)(signal, now, old);
}

static void attach_chain(guard_chain_fn *set)
{
	atomic_store(&chain, set);
}

/* POSIX: of a signal that is sent again while it is pending, one may be lost. */
static bool is_held(const siginfo_t *info, void *context)
{
	if (here.waiting) {
		/* Back to the wait with SIGTRAP blocked, where it is found pending. */
		sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGTRAP);
		send_to_self(info);
		return true;
	}
	if (!here.blocked)
		return false;
	if (!here.pending)
		here.info = *info;
	here.pending = 1;
	return true;
}

extern const struct guard GUARD_OBJECT __attribute__((visibility("default")));
const struct guard GUARD_OBJECT = {
	.sigaction = sigaction_without,
	.attach = attach_chain,
	.holds = is_held,
};

#define FIND(name) REAL(name);

/* A mask is inherited: SIGTRAP may be blocked from the start. */
__attribute__((constructor)) static void start(void)
{
	const uint64_t trap = TRAP_BIT;
	uint64_t before = 0;

	WRAPPED(FIND)
	note_process();
	pthread_atfork(NULL, NULL, note_process);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &trap, &before, sizeof(trap));
	here.blocked = (before & trap) != 0;
}
