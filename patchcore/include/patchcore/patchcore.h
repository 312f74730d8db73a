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
 */
#ifndef PATCHCORE_PATCHCORE_H
#define PATCHCORE_PATCHCORE_H

#include <stddef.h>
#include <stdint.h>

#include <patchcore/mapping.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PC_VERSION_MAJOR 0
#define PC_VERSION_MINOR 1
#define PC_VERSION_PATCH 0

/* The longest change, in bytes, that one pc_patch() makes. */
#define PC_PATCH_MAX 8

/* The tear probability per toggle that PC_POLICY_AUTO accepts by default. */
#define PC_ACCEPT_P_DEFAULT 1e-9

/* How a straddler's three writes are kept apart. */
enum pc_policy {
	/*
	 * Safe first: wait if machine.conf is valid here and bounds the tear
	 * probability by what the caller accepts (pc_set_accept_p), else
	 * membarrier, else -ENOTSUP.
	 */
	PC_POLICY_AUTO = 0,
	/*
	 * Wait the ticks of machine.conf. Any valid config will do: whoever
	 * asks for this by name owns the risk that the config states.
	 */
	PC_POLICY_WAIT = 1,
	/* membarrier(PRIVATE_EXPEDITED_SYNC_CORE), Linux 4.16 and later. */
	PC_POLICY_MEMBARRIER = 2,
};

/* What the library decided on this machine, and why. */
struct pc_status {
	enum pc_policy asked;	/* what the caller chose */
	enum pc_policy in_use;	/* WAIT or MEMBARRIER; AUTO when none is safe */
	uint64_t first_wait;	/* ticks between INT3 and the back part; 0 unless WAIT */
	uint64_t second_wait;	/* ticks between back and front part; 0 unless WAIT */
	uint64_t stretch;	/* both are at least so many times the latency of the stores */
	unsigned atomic_window; /* bytes that one store changes at once, in use */
	int conf_valid;		/* a config was found, is well formed, usable and of this machine */
	double upper_p;		/* its bound on tears per toggle; 1 without one */
	double accept_p;	/* bound that AUTO asks for */
	char conf_path[256];	/* the config found, "" if none */
	char reason[256];	/* one line: why this policy, or what is wrong */
};

/*
 * pc_init - find the machine config, choose the policy, take SIGTRAP.
 *
 * Before it, and after pc_fini(), all other functions return -ESHUTDOWN.
 * Idempotent. Looks for
 * machine.conf in $PATCHCORE_MACHINE_CONF, $XDG_CONFIG_HOME/tmax/ (or
 * ~/.config/tmax/), sysconfdir/tmax/, localstatedir/lib/tmax/; the first that
 * exists decides, also when it is refused. The environment is ignored in
 * set-user-ID programs.
 *
 * Returns 0 also when no policy is safe here: changes inside the atomic window
 * work on every machine. Else what sigaction(2) failed with.
 */
int pc_init(void);

/*
 * pc_fini - give SIGTRAP back to whoever had it before.
 *
 * No patch may be running or be started meanwhile. What was started before is
 * finished (pc_drain()), the finisher ended, and pages that are open or aliased
 * are closed; if one of them cannot get its protection back, what pc_text_close()
 * says of it is returned, and all else is done.
 * No thread may be inside a site that was ever patched across the window: an
 * INT3 that it fetched before may still trap.
 * -EBUSY (and nothing done): a patch is in flight, or another SIGTRAP handler
 * was installed on top of ours and may chain to it.
 */
int pc_fini(void);

/*
 * pc_patch - replace len bytes of code at addr while other threads run it.
 * @addr:  first byte to change. When the change crosses the atomic window this
 *         must be the start of an instruction, and the len bytes must be (part
 *         of) that one instruction: INT3 stands on this byte meanwhile.
 * @bytes: the new code
 * @len:   1 to 8 bytes
 *
 * Layout equivalence is the caller's duty: no thread may be able to stand at an
 * address that is an instruction start in the old code and not in the new (APM
 * vol. 2, 7.6.1; a run of 1-byte NOPs turned into one CALL breaks it).
 *
 * An instruction that crosses the window must always be patched whole. Of two
 * patches of its parts somebody could see the second without the first.
 *
 * Synchronous: on return the new bytes are in memory. Executors that fetched
 * before may still run the old instruction for up to T_max.
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
 *   -EAGAIN   another patcher holds the site (its first byte is INT3)
 *   -EINVAL   len is 0 or above 8, bytes is NULL, or the new code starts with
 *             INT3, which could not be told from a held site
 *   -EFAULT   addr is not mapped
 *   -EACCES   the page cannot be made writable
 *   -ENOTSUP  a straddler, and no policy is safe on this machine: see
 *             pc_get_status()
 *   -EBUSY    a straddler, and SIGTRAP no longer comes to this library (who
 *             has it is looked up at most once in a million ticks)
 *   -ENOMEM   also what membarrier(2) fails with, under that policy
 *   -EILSEQ   two or more 1-byte NOPs stand at addr, and the new code has no
 *             instruction start at one of them: see pc_patch_merge()
 *   -ESHUTDOWN the library is not initialised
 * Paper: section 5, figure 4.
 */
int pc_patch(void *addr, const void *bytes, size_t len);

/*
 * pc_patch_starts - pc_patch() for bytes that hold several instructions.
 * @starts: bit i: an instruction starts at addr + i, in the old code and in the
 *          new; bit 0 is set, none beyond len
 *
 * A straddler gets an INT3 on every start before the boundary. What executors
 * may see is what a change of one instruction after the other would show: who
 * has run the first old one may go on with the second new one. Errors as
 * pc_patch(); -EINVAL also for starts, or for an INT3 on one of them.
 * Paper: section 4, footnote 1.
 */
int pc_patch_starts(void *addr, const void *bytes, size_t len, unsigned starts);

/*
 * pc_set_policy - choose how straddlers are patched from now on.
 *
 * -ENOTSUP: not possible on this machine, the policy stays as it was.
 * -EINVAL: no such policy. -ESHUTDOWN.
 */
int pc_set_policy(enum pc_policy policy);

/*
 * pc_set_accept_p - the tear probability per toggle that AUTO may accept.
 * @p: above 0, at most 1. -EINVAL otherwise.
 */
int pc_set_accept_p(double p);

/*
 * pc_get_status - what is in use and why. -EINVAL: status is NULL. -ESHUTDOWN.
 */
int pc_get_status(struct pc_status *status);

/*
 * pc_forget - the code of [addr, addr + len) is being unmapped.
 *
 * For whoever unmaps code that was patched: a JIT before munmap(), a program
 * before dlclose(). What is in flight there is given up, pages held open are
 * let go, and whatever is mapped there later is not confused with it. No thread
 * may run that code any more. -EINVAL: len is 0 or the range wraps. -EBUSY: a
 * patcher is at work there. -ESHUTDOWN.
 */
int pc_forget(void *addr, size_t len);

#ifdef __cplusplus
}
#endif
#endif
