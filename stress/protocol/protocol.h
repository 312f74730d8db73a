/* SPDX-License-Identifier: MIT */
/*
 * A protocol as data: what a patcher does to change a site, step by step, and which sites it is
 * for. Read from text files, tmax-protocol(5); the steps are run by protocol_change().
 */
#ifndef STRESS_PROTOCOL_PROTOCOL_H
#define STRESS_PROTOCOL_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/words.h"
#include "patchcore/machine/sync.h"

/* --- The site --------------------------------------------------------------------------------- */

/* Boundary that the site straddles. */
enum crossing {
	CROSSING_NONE,	 /* inside one 8-byte word */
	CROSSING_8,	 /* 8-byte word boundary that is no multiple of 16 */
	CROSSING_16,	 /* multiple of 16, not of 32 */
	CROSSING_32,	 /* multiple of 32, not of 64 */
	CROSSING_INSIDE, /* three sites in one line, one across each of the three above */
	CROSSING_LINE,	 /* multiple of 64, not of 4096 */
	CROSSING_PAGE,	 /* multiple of 4096 */
	CROSSING_COUNT
};

/* What the site toggles between. Every byte of old and new differs. */
enum code_pair {
	PAIR_CALL_NOP,
	PAIR_CALL_CALL, /* three targets in rotation: every mix tells its kind */
	PAIR_JMP_NOP,
	PAIR_WORD, /* mov eax, imm32 with a generation in every byte */
	PAIR_COUNT,
	PAIR_OWN = PAIR_COUNT /* the old and new code of a protocol's file */
};

const char *crossing_name(enum crossing c);
const char *pair_name(enum code_pair p);
int crossing_parse(const char *name);
int pair_parse(const char *name);

/* crossing_bytes - 0, 8, 16, 32, 64, 4096. */
unsigned crossing_bytes(enum crossing c);

#define SITE_BYTES  16 /* of a site, at most */
#define PAIR_LENGTH 5  /* bytes of a site of the other pairs */

/* Code of PAIR_OWN. Where a branch is, code_build() fills in where it leads. */
enum code_branch {
	BRANCH_NONE,
	BRANCH_CALL,  /* e8 and 4 bytes */
	BRANCH_JUMP,  /* e9 and 4 bytes */
	BRANCH_TABLE, /* the 4 bytes of an address below 2 GiB that holds the target of a jump */
};

#define BRANCH_TABLE_ADDRESS 0x00061110u

struct site_code {
	uint8_t bytes[SITE_BYTES];
	enum code_branch branch;
	unsigned branch_at; /* offset of its first byte */
};

/* --- The steps -------------------------------------------------------------------------------- */

enum step_kind {
	STEP_STORE,
	STEP_GUARD, /* a store of one byte, whose trap is told what to do */
	STEP_FENCE,
	STEP_FLUSH,
	STEP_WAIT,
	STEP_MEMBARRIER,
	STEP_SIGNAL,  /* one to every other thread, until each has handled it */
	STEP_RESTORE, /* the whole change by INT3 and membarrier: what the harness does by itself */
	STEP_LEAVE,   /* until no thread is inside the site: part of the last one */
};

enum store_form {
	STORE_PLAIN,
	STORE_LOCKED,
	STORE_NONTEMPORAL
};

enum fence_kind {
	FENCE_MFENCE,
	FENCE_SFENCE,
	FENCE_LFENCE
};

enum flush_kind {
	FLUSH_CLFLUSH,
	FLUSH_CLFLUSHOPT,
	FLUSH_CLWB
};

enum barrier_kind {
	BARRIER_EXPEDITED,
	BARRIER_SYNC_CORE
};

enum wait_kind {
	WAIT_FIRST, /* of the cell's waits */
	WAIT_SECOND,
	WAIT_TICKS
};

/* Where a thread goes on that ran into a guard byte. */
enum trap_action {
	TRAP_RESTART, /* it runs the site again */
	TRAP_PASS     /* behind the site, as if that did nothing */
};

/* Which bytes of the site. */
enum span_kind {
	SPAN_FIXED, /* as many from there on */
	SPAN_FRONT, /* those before the boundary */
	SPAN_BACK,  /* those behind it */
	SPAN_TAIL,  /* all but the first */
	SPAN_ALL
};

struct byte_span {
	enum span_kind kind;
	unsigned at, length;
};

enum byte_source {
	BYTES_OLD,
	BYTES_NEW,
	BYTES_GIVEN
};

struct protocol_step {
	enum step_kind kind;
	unsigned line; /* of the file */
	/* One enum by the kind: store_form (of a guard, too), fence, flush, barrier or wait. */
	unsigned form;
	struct byte_span span; /* of a store, a guard and a flush */
	enum byte_source source;
	uint8_t bytes[SITE_BYTES];
	enum trap_action trap;
	uint64_t ticks, stretch; /* of a wait; the stretch of first and second is the cell's */
};

/* --- The protocol ----------------------------------------------------------------------------- */

#define PROTOCOL_NAME  64 /* bytes of each */
#define PROTOCOL_TEXT  512
#define PROTOCOL_STEPS 32 /* each way */

struct protocol_file {
	char name[PROTOCOL_NAME];
	char source[PROTOCOL_TEXT]; /* project, file and version that it was read from */
	char claims[PROTOCOL_TEXT]; /* in words; what it supports says more */
	bool broken;		    /* on purpose: it must tear */
	unsigned instructions;	    /* that are replaced */
	unsigned length;	    /* of the site, bytes */
	unsigned pairs;		    /* set of 1u << enum code_pair that it changes */
	struct site_code code[2];   /* of PAIR_OWN: old and new */
	/* Of each crossing but inside: the set of 1u << split for which it claims to hold. */
	uint32_t supports[CROSSING_COUNT];
	/* From old to new, and back: there the old code is what BYTES_NEW means. */
	struct protocol_step step[2][PROTOCOL_STEPS];
	unsigned steps[2];
};

/*
 * protocol_supports - does it claim to hold there? Of crossing none the split is the site's offset
 * in 8 bytes, plus 1.
 */
bool protocol_supports(const struct protocol_file *p, enum crossing crossing, unsigned split);

/*
 * protocol_read - a file. 0; -EINVAL with the reason in why, WORDS_WHY bytes, as
 * "FILE:LINE:COLUMN: expected X, found Y"; -EIO; -ENOMEM.
 */
int protocol_read(FILE *stream, const char *file, struct protocol_file *p, char *why);

/*
 * protocol_find - by the path of a file, if there is a slash in it, or by a name of the library,
 * with .protocol behind it or not. Read once, kept for ever. 0; an error of protocol_read() or of
 * opening it, with a reason in why.
 *
 * protocol_path - where that file is. 0 or -ENAMETOOLONG, or as data_file().
 */
int protocol_find(const char *name, const struct protocol_file **p, char *why);
int protocol_path(const char *name, char *path, size_t size);

/* --- change.c ----------------------------------------------------------------------------------
 */

/* A site, and what it is to change between. */
struct protocol_site {
	uint8_t *at;
	unsigned length, split;
	const uint8_t *old, *new; /* SITE_BYTES each */
};

/*
 * protocol_change - one change of the site by the steps there, or those back. Of the sync the waits
 * and the trace are used. 0, or a negative errno: of a membarrier, or -ENOTSUP.
 */
int protocol_change(const struct protocol_file *p, bool back, const struct protocol_site *site,
		    const struct sync *sync);

/*
 * protocol_settle - after the last change: put the new code there. The steps may have left a guard
 * or a loop, and a thread must not stay in it for ever.
 */
void protocol_settle(const struct protocol_file *p, const struct protocol_site *site);

/* protocol_check - can its steps change such a site, here? 0, or -ENOTSUP with the reason. */
int protocol_check(const struct protocol_file *p, enum crossing crossing, unsigned split, char *why,
		   size_t size);

/*
 * protocol_begin - in the child that runs it, once: handlers for the traps of its guards at these
 * sites and for its signals, membarrier registered. again: where a thread goes on that shall run
 * the site once more. 0 or a negative errno. protocol_traps - how many threads met a guard.
 */
int protocol_begin(const struct protocol_file *p, const uint8_t *const *sites, unsigned count,
		   const uint8_t *again);
uint64_t protocol_traps(void);

#endif
