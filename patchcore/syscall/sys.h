/* SPDX-License-Identifier: MIT */
/*
 * System calls and time without libc, and the code that may not be patched. Private.
 *
 * A tracer patches libc, libc's syscall() included. From the first INT3 of a change to its
 * last store, and wherever SIGTRAP is blocked, a thread that meets an INT3 is lost: either it is
 * the patcher that has to take that INT3 away, or SIGTRAP is blocked and the kernel ends the
 * process. So there the library runs its own code only, and that code is NOPATCH.
 */
#ifndef PATCHCORE_SYSCALL_SYS_H
#define PATCHCORE_SYSCALL_SYS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

/*
 * NOPATCH - of a function that runs while an INT3 may stand or SIGTRAP is blocked. It calls only
 * others of its kind and inline functions. All lie in one section, whose addresses every way to
 * patch refuses (own_overlaps()), and test_own_code follows every branch that leaves it.
 */
#define NOPATCH __attribute__((section("patchcore_nopatch"))) NOPATCH_BARE

/* Nothing may be called there that a system's flags add to every function. */
#if __has_attribute(no_stack_protector)
#define NOPATCH_BARE                                                                               \
	__attribute__((no_stack_protector, no_instrument_function, patchable_function_entry(0)))
#else
#define NOPATCH_BARE __attribute__((no_instrument_function))
#endif

/*
 * NOPATCH_ENTRY - the same of one that other code in its file calls, and in which that region
 * begins: the compiler puts no part of it into its callers.
 */
#define NOPATCH_ENTRY NOPATCH __attribute__((noinline))

/* NOPATCH_INLINE - of an inline function for both kinds of callers: never a copy elsewhere. */
#define NOPATCH_INLINE static inline __attribute__((always_inline))

/* Atomic accesses by the order that they have. */
#define load_relaxed(at)	 atomic_load_explicit(at, memory_order_relaxed)
#define load_acquire(at)	 atomic_load_explicit(at, memory_order_acquire)
#define store_relaxed(at, value) atomic_store_explicit(at, value, memory_order_relaxed)
#define store_release(at, value) atomic_store_explicit(at, value, memory_order_release)

NOPATCH_INLINE long sys_six(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/*
 * sys_call - sys_call(SYS_name, up to six arguments). The kernel's answer: negative errno
 * on failure. errno is left alone. Async-signal-safe.
 */
#define sys_call(...) SYS_PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define SYS_PICK(number, a, b, c, d, e, f, ...)                                                    \
	sys_six((long)(number), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/*
 * sys_transfer - SYS_process_vm_readv or SYS_process_vm_writev between this process's memory at
 * some address and a local buffer: memory that is not mapped is an error and no fault.
 */
NOPATCH_INLINE long sys_transfer(long number, uintptr_t at, void *local, size_t size)
{
	struct iovec here = { local, size }, there = { (void *)at, size };

	return sys_call(number, sys_call(SYS_gettid), &here, 1, &there, 1, 0);
}

#define CLOCK_MS INT64_C(1000000) /* in ns */

/* clock_ns - nanoseconds of CLOCK_MONOTONIC. Async-signal-safe. */
NOPATCH_INLINE int64_t clock_ns(void)
{
	struct timespec now;

	sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* clock_sleep - for less than a second, or until a signal. Async-signal-safe. */
NOPATCH_INLINE void clock_sleep(int64_t ns)
{
	struct timespec time = { .tv_nsec = ns };

	sys_call(SYS_nanosleep, &time, 0);
}

/*
 * nap - leave the CPU to a thread that may need it, for some 50 microseconds. A yield is not
 * enough: that thread may have the lower priority. Async-signal-safe.
 */
NOPATCH_INLINE void nap(void)
{
	clock_sleep(CLOCK_MS / 20);
}

#endif
