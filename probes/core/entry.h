/* SPDX-License-Identifier: MIT */
/* The trampoline, and what it reads: a slot per probe, a block of counters per thread. */
#ifndef PROBES_CORE_ENTRY_H
#define PROBES_CORE_ENTRY_H

/* Offsets that entry.S uses; entry_setup.c asserts them. */
#define SLOT_SHIFT	5
#define SLOT_DATA	8
#define SLOT_SITE	16
#define SLOT_LOST	24
#define BLOCK_INSIDE	0
#define BLOCK_ROOM	8
#define BLOCK_ROOM_SIZE 16
#define BLOCK_COUNTS	64
#define ENTRY_COPY	832

/*
 * Bits of slot.function, which no address in user space has: the function keeps all vectors; or
 * their upper parts (CLOBBERS_LOWER_FLAGS), and with the third bit MXCSR, too (CLOBBERS_LOWER).
 */
#define SLOT_KEEPS_VECTORS 63
#define SLOT_KEEPS_UPPER   62
#define SLOT_KEEPS_FLAGS   61
#define SLOT_KEEPS	   0xc0 /* in the highest byte: the first or the second */
#define SLOT_LEAF	   60	/* it is the address of a copy: see leaf_word() */
#define SLOT_IS_LEAF	   0x10 /* in the highest byte */

#ifndef __ASSEMBLER__
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/include/fastinst.h"

#define STACK_SIZE (256 * 1024)
#define GUARD_PAGE 4096

/* The part of a probe that executors read. */
struct probe_slot {
	_Atomic(uintptr_t) function; /* 0: only count */
	_Atomic(void *) data;
	void *site;
	_Atomic uint64_t lost;
};

extern struct probe_slot probe_slots[FI_PROBES_MAX] __attribute__((visibility("hidden")));

/*
 * A thread's counters, and the stack on which its probe functions run where it is on none of its
 * own. Blocks are never unmapped: what a thread that has ended counted stays, and
 * the next thread that takes the block goes on from there.
 */
struct block {
	_Atomic uint64_t inside;   /* odd: the thread is in a probe function */
	uintptr_t room, room_size; /* the thread's own stack but for its end: see stack.c */
	bool is_looked_for;	   /* room and room_size have been looked for */
	_Atomic uint32_t taken;
	struct block *next;
	char pad[24];
	_Atomic uint64_t counts[FI_PROBES_MAX];
	char guard[2 * GUARD_PAGE - BLOCK_COUNTS]; /* its last page cannot be read or written */
	char stack[STACK_SIZE];
};

/* The trampoline; see near_entry() in provider.h. Not a C function. */
void probe_entry(void);

/* entry_start - find out which instructions save the vectors on this machine. */
void entry_start(void);

/* entry_copy - copy the fast part of the trampoline to where stubs are. */
void entry_copy(uint8_t to[ENTRY_COPY]);

/* entry_at - the offset in the copy that suits the function that the probe has now. */
size_t entry_at(uint32_t id);

/* block_offset - of the pointer to the block, from where FS points: the same in all threads. */
uintptr_t block_offset(void);

/* block_start - 0, or the negative error of pthread_key_create(3). block_list - all blocks. */
int block_start(void);
struct block *block_list(void);

/* The calling thread's, NULL: it has none yet. */
extern __thread struct block *block_of_thread
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/*
 * For the trampoline. block_make - the same, with one if there is any memory for it; uses no vector
 * and little stack. block_register - have the C library give it back when the thread ends.
 */
struct block *block_make(void) __attribute__((visibility("hidden")));
void block_register(void) __attribute__((visibility("hidden")));

/*
 * stack_choose - where a probe function is to run when the trampoline has come as far as @at. Uses
 * no vector and little stack.
 */
uintptr_t stack_choose(struct block *block, uintptr_t at) __attribute__((visibility("hidden")));

/* block_forked - in the child of a fork: one thread is left, and it has counted nothing. */
void block_forked(void);

#endif
#endif
