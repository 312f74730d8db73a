/* SPDX-License-Identifier: MIT */
/*
 * patchcore: change instructions while other threads run them.
 *
 * An executor runs the old instruction or the new one, never a mix: by one locked store where the
 * change lies inside the machine's atomic window, and by INT3, sync, back part, sync, front part
 * where it crosses that (a straddler). patchcore(7) says how, and what callers must see to. Each
 * function's page says when each of its errors comes, and pc_strerror() what it means.
 *
 * Every function returns 0 or a negative errno unless its comment says otherwise; after an error
 * the code is as it was. All are thread-safe. None is async-signal-safe unless it says so. Nothing
 * in the library prints, exits or asserts.
 *
 * While another thread forks, every function that changes something waits until that is over. If
 * the forking thread sleeps for two seconds, a minute for what is not async-signal-safe, it returns
 * -EAGAIN: the fork may wait for a lock that the caller holds. A thread's first call may also
 * return -ENOMEM.
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

/* How a straddler's three writes are kept apart. */
enum pc_policy {
	/* A wait or membarrier, whichever is safe and cheaper; else -ENOTSUP. */
	PC_POLICY_AUTO = 0,
	/* Wait by any valid machine.conf. The caller owns the risk that it states. */
	PC_POLICY_WAIT = 1,
	/* membarrier(PRIVATE_EXPEDITED_SYNC_CORE), Linux 4.16 and later. */
	PC_POLICY_MEMBARRIER = 2,
};

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
	int long_run;	     /* the config rests on more than its last run */
	uint64_t runs;	     /* behind the config; 0 without one */
	uint64_t measured;   /* the latest of them: seconds since the epoch, 0: unknown */
	uint64_t later_wait; /* ticks of started changes where in_use is MEMBARRIER; 0: that, too */
	double later_p;	     /* bound of that wait */
	uint64_t line_later_wait; /* the same for sites inside one page */
	double line_later_p;
	int fleet; /* the config was counted on other machines of this kind, not here */
};

/*
 * pc_init - find machine.conf(5), choose the policy, take SIGTRAP.
 *
 * Before it, and after pc_fini(), all functions but these two return -ESHUTDOWN. Idempotent. 0 also
 * where no policy is safe: changes inside the atomic window work on every machine. -EEXIST: another
 * copy of this library in this process has SIGTRAP. What sigaction(2) failed with, -ENOMEM.
 */
int pc_init(void);

/*
 * pc_fini - finish what was started, close pages, give SIGTRAP back to what had it before.
 *
 * No patch may be running, and no thread may be inside a site that was ever patched across the
 * window: an INT3 that it fetched before may still trap. -EBUSY (and nothing done): a patch is in
 * flight, or another handler was installed on top. What pc_text_close() fails with: all else is
 * done.
 */
int pc_fini(void);

/*
 * pc_patch - replace len bytes of code at addr while other threads run it.
 * @addr:  first byte to change. When the change crosses the atomic window this must be the start of
 *         an instruction, and the len bytes must be (part of) that one instruction, which must
 *         always be patched whole: INT3 stands on this byte meanwhile. An operand that begins with
 *         CC (INT3: -EAGAIN, -EINVAL) or 90 90 (NOPs: -EILSEQ) is changed from its opcode on.
 * @bytes: the new code
 * @len:   1 to 8 bytes
 *
 * Layout equivalence is the caller's duty: no thread may be able to stand at an address that is an
 * instruction start in the old code and not in the new (APM vol. 2, 7.6.1).
 *
 * On return the new bytes are in memory, and executors that fetched before may run the old
 * instruction for up to T_max. Bytes outside [addr, addr + len) are never changed, and patchers
 * with disjoint bytes never lose each other's update. A page that is not open (mapping.h) is made
 * writable for the change.
 *
 * Async-signal-safe where the pages are held open or have an alias, and, for a straddler, the site
 * was patched before.
 *
 * -EAGAIN: another patcher or a debugger has an INT3 there, or a late child of a fork still runs
 * the page. -EINVAL, -EFAULT, -EACCES, -EPERM, -ENOTSUP, -EBUSY, -ENOMEM, -EILSEQ, -ECANCELED: see
 * pc_patch(3). Paper: section 5, figure 4.
 */
int pc_patch(void *addr, const void *bytes, size_t len);

/*
 * pc_patch_starts - pc_patch() for bytes that hold several instructions.
 * @starts: bit i: an instruction starts at addr + i, in the old code and in the
 *          new; bit 0 is set, none beyond len
 *
 * An executor that has run the first old one may go on with the second new one, as if they had been
 * changed one after the other. Errors as pc_patch(). Paper: section 4, footnote 1.
 */
int pc_patch_starts(void *addr, const void *bytes, size_t len, unsigned starts);

/* Flags of pc_how. */
enum {
	/* As pc_start_patch(): begin the change now, and let it be finished later. */
	PC_LATER = 1,
	/* No thread runs these bytes, or will before the caller has told it to: stores only. */
	PC_UNSEEN = 2,
};

/* How one change is made. All zeros: as pc_patch() does. */
struct pc_how {
	const void *expected; /* len bytes; NULL: any will do */
	unsigned starts;      /* as for pc_patch_starts(); 0: one instruction */
	unsigned flags;	      /* PC_LATER or PC_UNSEEN */
};

/*
 * pc_patch_how - pc_patch() with the caller's own wishes. Errors as pc_patch(), and -ESTALE: other
 * bytes than the expected ones stand there. The comparison and the change are one step for every
 * other patcher of this library, and inside the atomic window for every other store.
 */
int pc_patch_how(void *addr, const void *bytes, size_t len, const struct pc_how *how);

/*
 * pc_set_policy - choose how straddlers are patched from now on, in the whole process. -ENOTSUP: it
 * is not possible on this machine, and the policy stays as it was.
 */
int pc_set_policy(enum pc_policy policy);

/* pc_set_accept_p - the tear probability per toggle that AUTO may accept: above 0, at most 1. */
int pc_set_accept_p(double p);

/*
 * pc_get_status - what is in use and why. upper_p is the worse bound of the two levels in use if
 * WAIT is in use across pages; else that of the surest level, which AUTO would have to accept.
 */
int pc_get_status(struct pc_status *status);

/*
 * pc_forget - the code of [addr, addr + len) is being unmapped: to be called before munmap() or
 * dlclose() of code that was patched. No thread may run it any more.
 *
 * What is in flight there is given up, calls are under a pc_call no more, and open pages are let go
 * if all of the page is named. -EBUSY: a patcher is at work there.
 */
int pc_forget(void *addr, size_t len);

/*
 * pc_strerror - what a return value of this library means, in one line, never NULL.
 * Async-signal-safe, and also before pc_init().
 */
const char *pc_strerror(int ret);

__END_DECLS
#endif
