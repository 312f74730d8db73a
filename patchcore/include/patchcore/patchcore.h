/* SPDX-License-Identifier: MIT */
/*
 * patchcore: change instructions while other threads run them.
 *
 * An executor runs the old instruction or the new one, never a mix. How that
 * is kept depends on where the change lies:
 *
 *   - inside the machine's atomic window, one locked store is enough
 *     (AMD APM vol. 2, 7.6.1, for 8 bytes; larger windows only by calibration);
 *   - across it (a straddler), the word protocol is used: INT3 on the first
 *     byte, sync, back part, sync, front part ("Living on the Edge", sec. 5).
 *
 * A sync is either a wait longer than the machine's T_max, which only a
 * calibration of this very machine can know (machine.conf, written by
 * "tmax calibrate"), or the kernel's membarrier(SYNC_CORE).
 *
 * Every function returns 0 or a negative errno unless its comment says
 * otherwise. All are thread-safe. None is async-signal-safe unless it says so.
 * Nothing in the library prints, exits or asserts.
 *
 * While another thread forks, every function that changes something waits until the fork
 * is over. If the forking thread sleeps for two seconds it returns -EAGAIN, and nothing has
 * changed: the fork may be waiting for a lock that the calling thread holds, as where a
 * signal handler patches that has interrupted malloc(). What is not async-signal-safe
 * waits for a minute. A thread's first call may also return -ENOMEM.
 */
#ifndef PATCHCORE_PATCHCORE_H
#define PATCHCORE_PATCHCORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

#include <patchcore/mapping.h>

__BEGIN_DECLS

#define PC_VERSION_MAJOR 0
#define PC_VERSION_MINOR 1
#define PC_VERSION_PATCH 0

/* The longest change, in bytes, that one pc_patch() makes. */
#define PC_PATCH_MAX 8

/* The tear probability per toggle that PC_POLICY_AUTO accepts by default. */
#define PC_ACCEPT_P_DEFAULT 1e-9

/* The same per store inside a cache line, of a window wider than 8 bytes. */
#define PC_ACCEPT_WINDOW_P_DEFAULT 1e-7

/* How a straddler's three writes are kept apart. */
enum pc_policy {
	/*
	 * Safe first: wait by the cheapest level of machine.conf, if that is valid here,
	 * that bounds the tear probability by what the caller accepts (pc_set_accept_p), or
	 * membarrier where that has cost less of late; else membarrier; else -ENOTSUP.
	 * Chosen for sites inside one page and for those that cross pages, each by its own bound.
	 */
	PC_POLICY_AUTO = 0,
	/*
	 * Wait by machine.conf. Any valid config will do: the cheapest level that keeps what
	 * the caller accepts, and where none does the level with the lowest bound. A caller
	 * that asks for this by name owns the risk that the config states.
	 */
	PC_POLICY_WAIT = 1,
	/* membarrier(PRIVATE_EXPEDITED_SYNC_CORE), Linux 4.16 and later. */
	PC_POLICY_MEMBARRIER = 2,
	/*
	 * As WAIT, and no other CPU is interrupted: for threads on isolated CPUs (isolcpus,
	 * nohz_full). See pc_set_policy().
	 */
	PC_POLICY_QUIET = 3,
};

/* The most changes of a batch under PC_POLICY_QUIET. */
#define PC_QUIET_BATCH 64

/* What the library decided on this machine, and why. */
struct pc_status {
	enum pc_policy asked;	/* what the caller chose */
	enum pc_policy in_use;	/* across pages: WAIT or MEMBARRIER; AUTO when none is safe */
	uint64_t first_wait;	/* ticks between INT3 and the back part; 0 unless WAIT */
	uint64_t second_wait;	/* ticks between back and front part; 0 unless WAIT */
	uint64_t stretch;	/* both are at least so many times the latency of the stores */
	unsigned atomic_window; /* bytes that one store changes at once, in use */
	int conf_valid;		/* a config was found, is well formed, usable and of this machine */
	double upper_p;		/* bound on tears per toggle, see pc_get_status(); 1 without one */
	double accept_p;	/* bound that AUTO asks for */
	uint64_t traps;		/* times that executors met an INT3 of the library */
	uint64_t changes;	/* of straddlers, made so far */
	uint64_t undone;	/* of straddlers, started and then taken back: see async.h */
	char conf_path[256];	/* the config found, "" if none */
	char reason[256];	/* one line: why this policy, or what is wrong */
	unsigned level;		/* of the config, from 1, in use across pages; 0 unless WAIT */
	unsigned line_level;	/* the same for sites inside one page */
	double page_p;		/* bound on tears per toggle of each; 0 unless WAIT */
	double line_p;
	int long_run;	   /* the config rests on more than its last run */
	uint64_t runs;	   /* behind the config; 0 without one */
	uint64_t measured; /* the latest of them: seconds since the epoch, 0: unknown */
	/*
	 * What pc_start_patch() and the like wait across pages where in_use is MEMBARRIER: ticks,
	 * and the bound on tears per toggle. 0: they use membarrier, too. The same in one page.
	 */
	uint64_t later_wait;
	double later_p;
	uint64_t line_later_wait;
	double line_later_p;
	int fleet; /* the config was counted on other machines of this kind, not here */
	double accept_window_p; /* bound that a window wider than 8 bytes has to keep */
	double window_p;	/* that it keeps: by many runs of this machine or of its kind */
	double accept_rate;	/* tears an hour, by their bounds; INFINITY: any */
	uint64_t rest;		/* ticks that level wants a site unchanged before; 0: none */
	uint64_t line_rest;	/* the same of line_level */
};

/*
 * pc_init - find the machine config, choose the policy, take SIGTRAP.
 *
 * Before it, and after pc_fini(), all functions but these two return -ESHUTDOWN. Idempotent. Looks
 * for machine.conf in $PATCHCORE_MACHINE_CONF, $XDG_CONFIG_HOME/tmax/ (or ~/.config/tmax/),
 * sysconfdir/tmax/, localstatedir/lib/tmax/; the first that exists decides, also when it is
 * refused. kinds.tsv is looked for where the library is installed, or at $PATCHCORE_KINDS. The
 * environment is ignored in set-user-ID programs.
 *
 * Returns 0 also when no policy is safe here: changes inside the atomic window
 * work on every machine. Else what sigaction(2) failed with, or -ENOMEM: nothing has begun, and it
 * may be tried again. Or:
 *   -EEXIST  another copy of this library (one is linked statically, say, and a plugin brings the
 *            shared one) is in use in this process and has SIGTRAP: nothing is done. Two would
 *            take each other's changes of pages for the program's
 */
int pc_init(void);

/*
 * pc_fini - give SIGTRAP back the disposition that it had before.
 *
 * No patch may be running or be started meanwhile. What was started before is
 * finished (pc_drain()), and pages that are open or aliased are closed; if one of them cannot get
 * its protection back, what pc_text_close() says of it is returned, and all else is done. No thread
 * may be inside a site that was ever patched across the window: an INT3 that it fetched before may
 * still trap. -EBUSY (and nothing done): a patch is in flight, or another SIGTRAP handler was
 * installed on top of ours and may chain to it. 0 also before pc_init() and after pc_fini().
 */
int pc_fini(void);

/*
 * pc_patch - replace len bytes of code at addr while other threads run it.
 * @addr:  first byte to change. When the change crosses the atomic window this
 *         must be the start of an instruction, and the len bytes must be (part
 *         of) that one instruction: INT3 stands on this byte meanwhile. An operand that begins
 *         with CC (INT3: -EAGAIN, -EINVAL) or 90 90 (NOPs: -EILSEQ) is changed from its opcode on.
 * @bytes: the new code
 * @len:   1 to 8 bytes
 *
 * Layout equivalence is the caller's duty: no thread may be able to stand at an
 * address that is an instruction start in the old code and not in the new (APM
 * vol. 2, 7.6.1; a run of 1-byte NOPs turned into one CALL breaks it).
 *
 * An instruction that crosses the window must always be patched whole. Of two
 * patches of its parts an executor could see the second without the first.
 *
 * Synchronous: on return the new bytes are in memory. Executors that fetched
 * before may still run the old instruction for up to T_max.
 *
 * Where the policy waits by a level that was measured at sites at rest, and this library has just
 * changed one of the site's lines, the rest that is missing is waited first (before an INT3
 * stands): at most the level's `rest`, some 8 microseconds, and twice that if another patcher
 * changes the line meanwhile; or membarrier is used, if it costs less. pc_patch_batch() waits so
 * once for all, pc_start_patch() before it returns. Code that the program itself wrote is not
 * known.
 *
 * Two patchers with disjoint bytes, also in the same 8 bytes, never lose each
 * other's update. Bytes outside [addr, addr + len) are never changed.
 *
 * The page may be read-only: then it is made writable for the change and gets
 * its protection back. pc_text_open() avoids that cost.
 *
 * Async-signal-safe where the pages are held open or have an alias, and, for a
 * straddler, the site was patched before.
 *
 * Returns 0, or with the code unchanged:
 *   -EAGAIN   another patcher holds the site (its first byte is INT3), or forks; or an
 *             executor that came to help with the change before is preempted there; or the
 *             page has an alias, and a child of a fork is starved or stopped and still runs it
 *   -EINVAL   len is 0 or above 8, bytes is NULL, or the new code starts with
 *             INT3, which could not be told from a held site
 *   -EFAULT   addr is not mapped, or in the page of vsyscalls, or behind the end of its file; the
 *             latter is a SIGBUS where the page is open or may only be run
 *   -EACCES   the page cannot be made writable
 *   -EPERM    the page is of a shared mapping: see pc_text_open_shared()
 *   -ENOTSUP  a straddler, and no policy is safe on this machine: see
 *             pc_get_status(); or the policy is QUIET, and the code has no alias
 *   -EBUSY    a straddler, and SIGTRAP no longer comes to this library (who
 *             has it is looked up at most once in a million ticks)
 *   -ENOMEM   or else what membarrier(2) fails with, under that policy: -EPERM, where a
 *             filter of system calls says so
 *   -EILSEQ   two or more 1-byte NOPs stand at addr, and the new code has no
 *             instruction start at one of them: see pc_patch_merge()
 *   -EPERM    the code is this library's own, which runs while an INT3 stands
 *   -ECANCELED no sync could be had while a signal handler of the calling thread ran the site, so
 *             the handler took the change back
 *   -ESHUTDOWN the library is not initialised
 * Paper: section 5, figure 4.
 */
int pc_patch(void *addr, const void *bytes, size_t len);

/*
 * pc_patch_starts - pc_patch() for bytes that hold several instructions.
 * @starts: bit i: an instruction starts at addr + i, in the old code and in the
 *          new; bit 0 is set, none beyond len
 *
 * A straddler gets an INT3 on every start before the boundary. What executors may see is what a
 * change of one instruction after the other would show: an executor that has run the first old one
 * may go on with the second new one. Errors as pc_patch(); -EINVAL also for starts, or for an INT3
 * on one of them. Paper: section 4, footnote 1.
 */
int pc_patch_starts(void *addr, const void *bytes, size_t len, unsigned starts);

/* Flags of pc_how. */
enum {
	/* As pc_start_patch(): begin the change now, and let it be finished later. */
	PC_LATER = 1,
	/*
	 * The caller promises that no thread runs these bytes, or will before the caller has
	 * told it to: code that is being made. Stores only: no INT3, no sync, wherever the bytes
	 * lie. A thread that ran what stood there before needs what it needs with any JIT: a
	 * membarrier(2), or a serialising instruction, between the two.
	 */
	PC_UNSEEN = 2,
};

/* How one change is made. All zeros: as pc_patch() does. */
struct pc_how {
	const void *expected; /* len bytes; NULL: any will do */
	unsigned starts;      /* as for pc_patch_starts(); 0: one instruction */
	unsigned flags;	      /* PC_LATER or PC_UNSEEN */
};

/*
 * pc_patch_how - pc_patch() with the caller's own wishes.
 *
 * With expected bytes, the change is made only if these are the ones that it replaces: the
 * comparison and the change are one step for every other patcher of this library, and inside
 * the atomic window for every other store. Of a straddler, executors may wait at an INT3 meanwhile.
 *
 * Errors as pc_patch() and pc_patch_starts(), or pc_start_patch() with PC_LATER;
 * -ESTALE: other bytes stand there, and still do. -EINVAL also: how is NULL, or its flags are
 * unknown or exclude each other.
 */
int pc_patch_how(void *addr, const void *bytes, size_t len, const struct pc_how *how);

/*
 * pc_set_policy - choose how straddlers are patched from now on, in the whole process.
 *
 * -ENOTSUP: not possible on this machine, the policy stays as it was.
 * -EINVAL: no such policy. -ENOMEM. -ESHUTDOWN.
 *
 * Under PC_POLICY_QUIET, from the return of this function on, no change makes the kernel interrupt
 * a CPU that its thread does not run on: there is no membarrier, no signal, no change of a mapping
 * whose old entries other TLBs may hold, and no memory is given back. What would need one of these
 * fails, with -ENOTSUP where nothing else is said, and the code is as it was:
 *
 *   - a change of code without an alias, kept writable or not, as the first store to a private
 *     page of a file has the kernel copy it: pc_text_alias() the code first
 *   - pc_text_open(), pc_text_open_shared(), pc_text_alias(), pc_text_close(): before or after
 *   - pc_patch_merge(), pc_patch_over() with a look at threads; pc_patch_over_batch()
 *   - pc_patch_batch() of more than PC_QUIET_BATCH changes
 *   - -ENOSPC: a stub for a call, where that takes new memory
 *   - a straddler, without a valid config. The policy is set nevertheless: all else is possible
 *
 * First it waits for what other threads have begun under another policy, and finishes what is in
 * flight. -ETIMEDOUT, -EAGAIN, -ENOMEM, as pc_text_close(): the policy is set, but some of that is
 * not over.
 *
 * This is no promise about pc_init() and pc_fini(), the other setters, pc_forget() and the first
 * change after dlclose(3), and fork(2); about threads that change code at the same time, of which
 * one may have to wake the other; nor about what the kernel does on its own. Executors that run
 * into an INT3 take a trap of their own.
 */
int pc_set_policy(enum pc_policy policy);

/*
 * pc_set_accept_p - the tear probability per toggle that AUTO may accept.
 * @p: above 0, at most 1. -EINVAL otherwise. -ENOMEM. -ESHUTDOWN.
 */
int pc_set_accept_p(double p);

/*
 * pc_set_accept_window_p - the tear probability per store inside the atomic window.
 * @p: above 0, at most 1. -EINVAL otherwise. -ENOMEM. -ESHUTDOWN.
 *
 * The window is wider than 8 bytes where the calibration of this machine saw no store tear inside
 * it, and a bound is at most p: of 30 runs of this machine, each in another hour, or of 30 runs in
 * 10 different hours of its kind (vendor, family, model), by the installed kinds.tsv. With fewer
 * runs the bound is 1: a caller that accepts 1, or WAIT, takes what the calibration saw.
 */
int pc_set_accept_window_p(double p);

/*
 * pc_set_accept_rate - how many tears an hour AUTO may risk, in this process.
 * @tears: above 0; INFINITY, as at first: any. -EINVAL otherwise. -ENOMEM. -ESHUTDOWN.
 *
 * Each change by a wait counts its bound (line_p, page_p, later_p); where those of an hour would be
 * more than that, changes take membarrier. A tenth of an hour's tears may come at once, after a
 * time without changes, so an hour has 1.1 times as many at most. It limits what pc_set_accept_p()
 * allows, and allows nothing itself: both are set. Single stores do not count: for these there is
 * pc_set_accept_window_p(). Without membarrier, no straddler waits. Of WAIT by name nothing is
 * counted. No lock is taken for it.
 *
 * It is a price, not safety. With a wait of 2 us for a membarrier of 35, a bound of 1e-9 is a tear
 * for 9 hours of CPU that were saved, one of 1e-4 is three for each second saved. Waiting is for
 * programs that must not interrupt their executors, or for whom a tear is a bad sample. Where a
 * tear is a crash: membarrier, or calls that are turned on and off.
 */
int pc_set_accept_rate(double tears);

/*
 * pc_get_status - what is in use and why.
 *
 * upper_p is the worse bound of the two levels in use if WAIT is in use across pages; else the
 * bound of the surest level of the config, which AUTO would have to be let accept.
 * -EINVAL: status is NULL. -ESHUTDOWN.
 */
int pc_get_status(struct pc_status *status);

/*
 * pc_forget - the code of [addr, addr + len) is being unmapped.
 *
 * For callers that unmap code that was patched: a JIT before munmap(), a program
 * before dlclose(). What is in flight there is given up, calls are under a pc_call no more, and
 * code that is mapped there later is not confused with it. Pages that are held open are let go if
 * all of the page is named, since other code may be on it: name whole pages, huge ones too, when
 * they are to be unmapped. No thread may run that code any more. -EINVAL: len is 0 or the range
 * wraps. -EBUSY: a patcher is at work there. -ESHUTDOWN.
 */
int pc_forget(void *addr, size_t len);

/*
 * pc_strerror - what an error of this library means, in one line.
 * @ret: what a function has returned: a negative errno, or 0
 *
 * Never NULL. Async-signal-safe, and also before pc_init().
 */
const char *pc_strerror(int ret);

__END_DECLS
#endif
