/* SPDX-License-Identifier: MIT */
/*
 * What a provider and the core know of each other.
 *
 * A provider finds sites in an object and adds a probe for each. It says what bytes stand there
 * when the probe is off and, at the latest before the first activation, what bytes turn it on. The
 * core has the ids, states, functions, counts, and changes the code.
 *
 * A new provider: a struct provider, its name below and in probes/providers/life.c.
 */
#ifndef PROBES_CORE_PROVIDER_H
#define PROBES_CORE_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <patchcore/call.h>

#include "probes/elf/elf.h"
#include "probes/include/fastinst.h"

#define SITE_MAX     8
#define SEGMENTS_MAX 8

struct probe;
struct source;

/* A program or library that is loaded. Never freed, so that what names it stays valid. */
struct object {
	const char *path; /* the program's own: its real path, by /proc/self/exe */
	uintptr_t base;	  /* what is added to the addresses in its file */
	uintptr_t start;  /* of its loaded segments, first to last byte */
	uintptr_t end;
	uint64_t identity; /* of the file's content */
	uint64_t name;	   /* hash of the loader's name for it */
	bool stays;	   /* the program */
	bool is_file; /* a copy of a file, which is only looked at; its code may be written to */
	bool gone;
	bool is_new;	/* no provider has looked at it since it was loaded */
	bool has_moved; /* it was loaded before, elsewhere */
	struct probe *probes, **last;
	struct probe *missing; /* found when it was loaded before, and not yet again */
	struct segment {
		uintptr_t start, end;
		uint32_t flags; /* PF_R and so on */
		/* Its sites that are to be changed, first to last byte: object_note() */
		size_t sites;
		uintptr_t from, to;
		bool is_open;
	} segment[SEGMENTS_MAX];
	bool surveyed;	       /* the provider of entries has looked at it */
	struct source *source; /* debug information, or NULL */
	bool source_asked;
	struct object *next;
};

struct provider {
	const char *name;
	/*
	 * A CALL across 8 bytes is a NOP whenever it is off, and takes the word protocol each time
	 * unless off and on differ in one byte. Else it is a jump, or a call of a RET, and changes
	 * by one store: dearer to come across, cheaper to change.
	 */
	bool off_is_nop;
	/*
	 * Add the probes of an object that was just loaded (probe_add()). The core's lock is held,
	 * and no object can be unloaded: see objects_hold().
	 * @elf: its file, mapped to be read
	 */
	int (*discover)(struct object *object, const struct elf *elf);
	/*
	 * Before its first activation: fill in probe->on, make what it needs. As for discover().
	 * NULL: probe->on was given to probe_add().
	 */
	int (*arm)(struct probe *probe);
	/*
	 * After it was turned on, or off, by a change of its code; may say what other bytes it is
	 * to be turned off by. As for discover(). NULL.
	 */
	void (*toggled)(struct probe *probe, bool on);
	/*
	 * Whether the object still has what the provider has written there, but by probes: else the
	 * same file was loaded anew to the same place. As for discover(). NULL: it writes nothing.
	 */
	bool (*stands)(const struct object *object);
	bool owns_extra; /* of its probes: memory to be freed */
};

extern const struct provider patchable_provider, marker_provider, branch_provider, blocks_provider,
	hooks_provider, entries_provider;

/* entries_take_request - has fi_take_entries() been called since? The core's lock is held. */
bool entries_take_request(void);

/* A probe. The members above the line are the provider's, which alone changes them. */
struct probe {
	const struct provider *provider;
	struct object *object;
	const char *name; /* of memory that stays */
	const char *file;
	unsigned line;
	enum fi_kind kind;
	uint8_t *site;
	uint8_t len;	/* 1 to SITE_MAX */
	uint8_t starts; /* bit i: an instruction starts there when it is off; 0: it is one */
	uint8_t off[SITE_MAX];
	uint8_t on[SITE_MAX];
	const char *args;   /* of a marker, as the file says; while discover() runs */
	const char *reason; /* why it is refused, or NULL */
	void *extra;	    /* the provider's own */
	/* --- the core's --- */
	uint32_t id;
	bool armed;    /* on is filled in */
	bool is_on;    /* of the code */
	bool has_call; /* toggled by call: a CALL across an 8-byte boundary */
	bool merge;    /* the site still has 1-byte NOPs */
	bool again;    /* it was on when its object was unloaded */
	struct pc_call call;
	const int *result; /* of its change in the batch that is being made, or NULL */
	void *stub;
	struct probe *sibling; /* of the same object */
};

/* site_is_nops - one-byte ones: so gcc leaves room for a call. */
static inline bool site_is_nops(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (code[i] != 0x90)
			return false;
	return true;
}

/* site_endbr - the length of the ENDBR64 that stands at the code, or 0. */
static inline size_t site_endbr(const uint8_t *code)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return memcmp(code, endbr64, sizeof(endbr64)) ? 0 : sizeof(endbr64);
}

/* The code would come to run with the breakpoint's byte in it, where the kernel knows of none. */
#define PROBE_BREAKPOINT "a debugger or a uprobe has a breakpoint on it"

/*
 * probe_add - copy *probe and give it an id; callbacks are told later. A probe that the object had
 * when it was loaded before keeps its id; one of a file has none. The core takes over the name, and
 * the provider's own memory. -ENOSPC, -ENOMEM.
 */
int probe_add(const struct probe *probe, uint32_t *id);

#define PROBE_CHUNK 1024
extern struct probe *_Atomic probe_chunks[FI_PROBES_MAX / PROBE_CHUNK]
	__attribute__((visibility("hidden")));
extern _Atomic uint32_t probe_number __attribute__((visibility("hidden")));

/* probe_get - by id; NULL: there is none. The probe stays where it is. */
static inline struct probe *probe_get(uint32_t id)
{
	if (id >= atomic_load_explicit(&probe_number, memory_order_acquire))
		return NULL;
	return &atomic_load_explicit(&probe_chunks[id / PROBE_CHUNK],
				     memory_order_relaxed)[id % PROBE_CHUNK];
}

/* Sites of one kind in an object that are not refused, by address. free() site. */
struct beside {
	struct beside_site {
		uintptr_t at;
	} * site;
	size_t n;
};

/* beside_find - sites that the providers before this one have found. -ENOMEM. */
int beside_find(struct beside *beside, const struct object *object, enum fi_kind kind);

/* beside_has - whether a site lies in [start, end). */
bool beside_has(const struct beside *beside, uintptr_t start, uintptr_t end);

/* object_segments - fill in where an object lies, by its program headers and its base. */
void object_segments(struct object *object, const Elf64_Phdr *headers, size_t n);

/* object_covers - whether the range lies in one segment of it with these flags (PF_X and so on). */
static inline bool object_covers(const struct object *object, uintptr_t addr, size_t len,
				 uint32_t flags)
{
	for (int i = 0; i < SEGMENTS_MAX; i++)
		if ((object->segment[i].flags & flags) == flags &&
		    addr >= object->segment[i].start && addr <= object->segment[i].end &&
		    len <= object->segment[i].end - addr)
			return true;
	return false;
}

/* object_is_own - whether the object is this library, or a program that it is linked into. */
bool object_is_own(const struct object *object);

/*
 * objects_hold - call what(data) while no object can be unloaded; objects that were unloaded since
 * the last look are marked gone before. Returns the result of what(), or -ENOMEM. The core's lock
 * is held, as a thread that has the loader's lock must not wait for it. what() loads and unloads
 * nothing.
 */
int objects_hold(int (*what)(void *data), void *data);

/* objects_lock_hold - the same for a caller without the core's lock. Also errors of core_lock(). */
int objects_lock_hold(int (*what)(void *data), void *data);

/*
 * near_alloc - size bytes (4096 at most) for code, within 2 GiB of all of the object, 16-byte
 * aligned. Never freed. Readable and executable; write to it by near_write(), before a thread runs
 * it. NULL: no room in reach, or the system allows no new code. The core's lock is held.
 */
void *near_alloc(const struct object *object, size_t size);

/*
 * near_stub - the same for a probe: one whose object was loaded before has its stub again, if that
 * is in reach.
 */
void *near_stub(struct probe *probe, size_t size);

/* near_write - put code there. Its pages are writable until near_seal(), which the core calls. */
int near_write(void *place, const void *code, size_t len);
void near_seal(void);

/*
 * near_entry - what the stub of a probe, in memory of near_alloc(), jumps to: the trampoline. It
 * has two beginnings, of which this one suits the probe's function best.
 *
 * It expects the stack as after "call stub; stub: push $id; jmp near_entry", preserves all
 * registers, drops the id and returns: see entry.S. Below the id the stack is written to: a stub
 * that is jumped to from the middle of a function steps over the red zone (128 bytes) first, and
 * calls one that pushes the id. fi_regs.rsp is then what it was there.
 */
void *near_entry(const void *place, uint32_t id);

struct pc_op;

/*
 * object_note - note a site that is to be changed. object_open - make the pages of noted sites
 * writable, by one call for each segment with at least so many; at other sites each change opens
 * its pages itself. object_close - close them, and pages that an earlier call could not close.
 * -EAGAIN, -ETIMEDOUT: some cannot be closed yet, see pc_text_close(); the next call tries again.
 * All under the core's lock.
 */
void object_note(struct object *object, const uint8_t *site, size_t len);
void object_open(size_t least);
int object_close(void);

/* object_is_kept - noted sites open their whole segment and stay so: fi_keep_writable(). */
bool object_is_kept(void);

/*
 * site_patch - as pc_patch_batch(), each with its result. -EBUSY: the change takes an INT3, and a
 * thread has SIGTRAP blocked.
 */
void site_patch(struct pc_op *ops, size_t n);

/* site_rel32 - OPCODE rel32, the five bytes that lead from @from to @to. -ERANGE: out of reach. */
int site_rel32(uint8_t *bytes, uint8_t opcode, const void *from, const void *to);

/*
 * site_entry - push $id; jmp near_entry: the bytes of a stub that are called to count for a probe.
 * site_arm - write a probe's stub (near_stub()), and fill in the jump or call that leads there.
 */
#define SITE_ENTRY 10
int site_entry(uint8_t bytes[SITE_ENTRY], const uint8_t *at, uint32_t id);
int site_arm(struct probe *probe, uint8_t opcode, const uint8_t *code, size_t len);

/* site_arm_call - an arm() for entries: probe->on becomes a CALL of a stub. */
int site_arm_call(struct probe *probe);

#endif
