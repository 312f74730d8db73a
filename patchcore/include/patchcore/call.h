/* SPDX-License-Identifier: MIT */
/*
 * Turning calls on and off, and elsewhere, while other threads run them.
 *
 * pc_patch() needs INT3 and two syncs for a call that crosses the atomic window. To turn a call on
 * and off needs neither, wherever it lies: one locked store into one naturally aligned 8-byte word
 * does it (AMD APM vol. 2, 7.6.1). Which one depends on the split, the number of the call's bytes
 * before an 8-byte boundary that it crosses, 0 if it crosses none:
 *
 *	form		code		splits	 way		   off
 *	call		E8 rel32	0, 1	 DISPLACEMENT	   rel32 of a ret
 *					2, 3, 4	 FRONT		   EB 03, a jump over it
 *	call, addr32	67 E8 rel32	0, 1, 2	 DISPLACEMENT	   rel32 of a ret
 *					3, 4, 5	 FRONT		   EB 04
 *	call *slot	FF 15 rel32	0, 1, 2	 DISPLACEMENT	   rel32 of a slot that
 *								   holds a ret's address
 *					3, 4, 5	 FRONT		   EB 04
 *	tail call	E9 rel32	all	 TAIL		   C3, a ret
 *	tail *slot	FF 25 rel32	all	 TAIL		   C3
 *
 * The split is counted from 8 bytes also where the atomic window in use is larger: every split has
 * a way by 8 bytes, that costs no more, and a way that never changes stays safe when the window in
 * use gets smaller.
 *
 * Another target for a call that is on or off:
 *
 *   - DISPLACEMENT: the same one store. A target further than 2 GiB away, and any target of the
 *     slot form, goes through a stub "jmp *slot" and its slot, which is data.
 *   - FRONT and TAIL: the whole instruction is patched as pc_patch() does it, to go through a stub.
 *
 * The first such target is that of a stub which all calls to it share. For the next other one (the
 * original one, too, by FRONT and TAIL) the call gets a stub of its own. Then and ever after the
 * target is data, and changing it is wait-free.
 *
 * Every function returns 0 or a negative errno, and is thread-safe, but for pc_call_fini() also
 * for the same call. No other code may change the code of a call that is under a pc_call.
 * Paper: "Living on the Edge", section 6.
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
 * Remembers where it goes. Also takes what may stand in place of a call that is off: a 5-byte NOP
 * 0F 1F 44 00 00 (or 08, as clang has it), a 6-byte NOP 66 0F 1F 44 00 00, EB 03, EB 04, or a call
 * that this library turned off by its displacement. Those are patched, as by pc_patch(), into the
 * off form of the way, and have no target until they are activated with one. Not taken are a C3,
 * which could be any ret, and five 1-byte NOPs, which a thread may be inside of (APM vol. 2,
 * 7.6.1). A call that is on is only read, and its pages keep their protection.
 *
 * There is one pc_call at a place: it has it until pc_call_fini(), until pc_forget() of that code,
 * or until this library finds that dlclose() took that code away, which it does not if the same
 * file is at the same place again. Code that is unmapped otherwise still counts as under its
 * pc_call.
 *
 * The first call in some region maps three pages within 2 GiB of it, which hold stubs, serve all
 * calls in reach and stay for good; more are mapped when all are had. If there is no room, or the
 * system allows no new code, two bytes of front do where one word holds them.
 *
 * -EINVAL: an argument is NULL. -EBUSY: the call is under a pc_call, or shares bytes with one that
 * is, or just gets ready. -ENOENT: there is no call at addr, nor what may stand for one. -ENOSPC:
 * none of the above is to be had. -ESHUTDOWN: before pc_init() or after pc_fini(). Else as
 * pc_patch(). After an error the code is as it was, and the pc_call must not be used. Not
 * async-signal-safe.
 */
int pc_call_init(struct pc_call *call, void *addr);

/*
 * pc_call_fini - give the place up.
 *
 * The code stays as it is, on or off. No thread may use the pc_call meanwhile or later, but for
 * another pc_call_init(). Executors are not concerned: what they may still be in stays. The same
 * place may be had again, and then goes on with its stubs, which pc_forget() gives back.
 *
 * -EINVAL: call is NULL, or was given up before. -ENOENT: its code was forgotten, or unloaded.
 * -ESHUTDOWN. Not async-signal-safe.
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
 * target; the call is on if the last to store was one of them, and not a deactivation.
 *
 * -EINVAL: no target is known, or pc_call_fini() had the call. -EAGAIN: the first byte is an INT3,
 * or another thread is just leading the call through a stub. -ENOENT: there is something else now,
 * or the code was forgotten. -ENOSPC: no room for a stub in reach. -ESHUTDOWN. Else as pc_patch().
 * After an error the call is as it was.
 */
int pc_activate_call(struct pc_call *call, void *target);

/*
 * pc_deactivate_call - turn it off. Wait-free, without INT3, and async-signal-safe where the
 * call's pages are open. Errors as above, but for -ENOSPC.
 */
int pc_deactivate_call(struct pc_call *call);

/*
 * pc_call_get - what the call is and does now. Async-signal-safe, also where it has interrupted an
 * activation. -EINVAL, -EAGAIN, -ENOENT, -ESHUTDOWN as above: in particular -EAGAIN while the call
 * is led through a stub by INT3. For execute-only code also -EACCES, -EFAULT, as pc_patch().
 */
int pc_call_get(const struct pc_call *call, struct pc_call_info *info);

__END_DECLS
#endif
