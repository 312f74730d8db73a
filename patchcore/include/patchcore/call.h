/* SPDX-License-Identifier: MIT */
/*
 * Turning calls on and off, and elsewhere, while other threads run them.
 *
 * pc_patch() needs INT3 and two syncs for a call that crosses the atomic window. To turn a call on
 * and off needs neither, wherever it lies: one locked store into one naturally aligned 8-byte word
 * does it (AMD APM vol. 2, 7.6.1). Which one depends on how many of the call's bytes lie before an
 * 8-byte boundary: pc_call(3) has the table. Calls and tail calls may be turned, by displacement
 * (E8, 67 E8, E9) and by slot (FF 15, FF 25).
 *
 * Another target for a call is one store, too, by DISPLACEMENT and in reach. Else the call is led
 * through a stub "jmp *slot", twice at most: first through one that all calls to that target share,
 * then through one of its own, whose target is data. FRONT and TAIL need a pc_patch() for that.
 *
 * Every function returns 0 or a negative errno, and is thread-safe, but for pc_call_fini() also
 * for the same call. No other code may change the code of a call that is under a pc_call. See
 * pc_call(3). Paper: "Living on the Edge", section 6.
 */
#ifndef PATCHCORE_CALL_H
#define PATCHCORE_CALL_H

#include <stdint.h>
#include <sys/cdefs.h>

__BEGIN_DECLS

/* What changes when a call is turned on or off. */
enum pc_call_way {
	PC_CALL_DISPLACEMENT = 0, /* its last four bytes */
	PC_CALL_FRONT = 1,	  /* its first two bytes */
	PC_CALL_TAIL = 2,	  /* its first byte */
};

/* One call. The caller's memory; the fields are the library's. */
struct pc_call {
	unsigned char *addr; /* NULL after pc_call_fini() */
	void *original;	     /* target, or its slot; NULL until one is known */
	void *own;	     /* stub of its own, once there is one */
	void *shared;	     /* stub of its first other target, shared by calls */
	int32_t off;	     /* DISPLACEMENT: of the ret */
	uint16_t on;	     /* FRONT, TAIL: the first bytes, lowest first */
	uint8_t form;
	uint8_t way;
	uint64_t moving; /* thread that leads it through a stub, or 0 */
	uint64_t number; /* no other has, or had */
	uint32_t moved;	 /* the instruction goes through shared: 1, own: 2 */
	uint32_t hidden; /* loads from the code may fault */
};

struct pc_call_info {
	unsigned len;	      /* bytes of the instruction: 5 or 6 */
	unsigned split;	      /* of them before an 8-byte boundary; 0: none is crossed */
	enum pc_call_way way; /* how it is turned on and off */
	int active;
	void *target; /* NULL if not active */
};

/*
 * pc_call_init - get a call ready. Once per call, before the other functions.
 * @addr: its first byte, without an ENDBR64 that may precede it
 *
 * Remembers where it goes. Also takes what may stand in place of a call that is off: a NOP of 5 or
 * 6 bytes, EB 03, EB 04, or a call that this library turned off by its displacement; pc_patch()
 * makes of it what the way has for off. A call that is on is only read.
 *
 * There is one pc_call at a place: it has it until pc_call_fini(), until pc_forget() of that code,
 * or until this library finds that dlclose() took that code away. The first call in some region
 * maps three pages within 2 GiB of it, for stubs, which stay for good.
 *
 * -ENOENT: there is no call at addr, nor what may stand for one. -EBUSY: it is under a pc_call, or
 * shares bytes with one that is. -ENOSPC: no room for stubs in reach. Else as pc_patch(); then the
 * pc_call must not be used. Not async-signal-safe.
 */
int pc_call_init(struct pc_call *call, void *addr);

/*
 * pc_call_fini - give the place up. The code stays as it is, on or off, and the same place may be
 * had again. No thread may use the pc_call meanwhile or later. -ENOENT: its code was forgotten, or
 * unloaded. Not async-signal-safe.
 */
int pc_call_fini(struct pc_call *call);

/*
 * pc_activate_call - turn it on, with that target.
 * @target: NULL: the one it had at pc_call_init(), or if it had none, the first that it was given
 *
 * Wait-free, without INT3, and async-signal-safe where pc_text_open() has the call's pages open;
 * except for a target for which the call gets a stub (see above: that may map pages, and FRONT and
 * TAIL patch as pc_patch() does).
 *
 * Executors run the call to the old target, or none if it was off, or to the new one, never
 * anything else. Of activations at the same time, the one that stores its target last gives the
 * target.
 *
 * -EINVAL: no target is known. -EAGAIN: the first byte is an INT3, or another thread is just
 * leading the call through a stub. -ENOENT: there is something else now, or the code was forgotten.
 * -ENOSPC: no room for a stub in reach. Else as pc_patch().
 */
int pc_activate_call(struct pc_call *call, void *target);

/*
 * pc_deactivate_call - turn it off. Wait-free, without INT3, and async-signal-safe where the
 * call's pages are open. Errors as above, but for -ENOSPC.
 */
int pc_deactivate_call(struct pc_call *call);

/*
 * pc_call_get - what the call is and does now. Async-signal-safe. -EAGAIN: the call is just being
 * led through a stub by INT3.
 */
int pc_call_get(const struct pc_call *call, struct pc_call_info *info);

__END_DECLS
#endif
