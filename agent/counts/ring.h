/* SPDX-License-Identifier: MIT */
/*
 * The ring buffer of a traced thread: a file in a folder of the command's, which both map. The
 * thread alone writes events to it, and "fastinst trace" alone reads them, so there is no lock. An
 * event without room is lost, and counted. Events outlive the program; but it may have written
 * anything there: the reader believes nothing.
 *
 * In the folder:
 *	PID.TID.XXXXXX	rings
 *	socket		where a program that turns probes on tells of each, in a line of tabs and
 *			escaped names (base/text.h):
 *			ID KIND ADDRESS-IN-FILE PROVIDER FUNCTION OBJECT
 *			The answer is "table N", and which arguments to record, of some: ID HOW
 */
#ifndef AGENT_COUNTS_RING_H
#define AGENT_COUNTS_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RING_MAGIC   UINT64_C(0x32676e6972696600)
#define RING_SIZE    (UINT64_C(1) << 20) /* of the data, bytes */
#define RING_STRING  64			 /* of a string, its first so many bytes */
#define RING_VALUES  14
#define RING_MEMORY  32 /* words of eight bytes */
#define RING_FIRST   6	/* of the values may be strings, */
#define RING_POINTED 8	/* and of the words */
#define RING_STRINGS (RING_FIRST + RING_POINTED)

/* What is recorded of an event: the word that fi_set_data() gives the probe, with a table in it. */
#define RING_HOW_VALUES	 0xfu /* so many registers for integers, or operands */
#define RING_HOW_VECTORS 4    /* four bits: so many vector registers, their lower 64 bits */
#define RING_HOW_STRINGS 8    /* six bits: these of the values are strings */
#define RING_HOW_RESULT	 (1u << 16)
#define RING_HOW_MARKER	 (1u << 17)
#define RING_HOW_COMPARE (1u << 18)
#define RING_HOW_MEMORY	 20 /* six bits: so many words, of arguments, or of what rax points at */
#define RING_HOW_TABLE	 32 /* 16 bits */
#define RING_HOW_POINTED 48 /* eight bits: these of the words are strings */

/* ring_memory - words of memory. ring_strings - a bit for each string, those of words last. */
static inline unsigned ring_memory(uint64_t how)
{
	unsigned words = how >> RING_HOW_MEMORY & 0x3f;

	return words < RING_MEMORY ? words : RING_MEMORY;
}

static inline unsigned ring_strings(uint64_t how)
{
	return (how >> RING_HOW_STRINGS & ((1u << RING_FIRST) - 1)) |
	       (how >> RING_HOW_POINTED & ((1u << RING_POINTED) - 1)) << RING_FIRST;
}

struct event_ring {
	_Atomic uint64_t magic; /* written when the ring is ready for its first event */
	int32_t pid;
	int32_t tid;
	_Alignas(64) _Atomic uint64_t written; /* bytes, ever; the thread's */
	_Atomic uint64_t lost;
	_Atomic uint32_t ended;		    /* nothing more will come */
	_Alignas(64) _Atomic uint64_t read; /* bytes, ever; the reader's */
	_Atomic uint32_t closed;	    /* the reader wants no more */
	_Alignas(64) uint8_t data[RING_SIZE];
};

/*
 * Behind it lie the values, those of vectors last; if words of memory are recorded, their number
 * and the words; then each string: a byte with its length, and the bytes.
 */
struct ring_event {
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint32_t id;
	uint16_t table;
	uint8_t values; /* the lower four bits; the upper ones: of vectors */
	uint8_t words;	/* length of all of it, in 8 bytes */
};

#define RING_UNREADABLE 255 /* in place of a string's length */
#define RING_EVENT_MAX                                                                             \
	((sizeof(struct ring_event) + 8 * (RING_VALUES + 1 + RING_MEMORY) +                        \
	  RING_STRINGS * (1 + RING_STRING) + 7) /                                                  \
	 8 * 8)

static inline void ring_copy_in(struct event_ring *ring, uint64_t at, const void *from, size_t len)
{
	size_t start = at % RING_SIZE;
	size_t first = len < RING_SIZE - start ? len : RING_SIZE - start;

	memcpy(ring->data + start, from, first);
	memcpy(ring->data, (const char *)from + first, len - first);
}

/* ring_put - len: a multiple of 8. Async-signal-safe, but one event at a time. */
static inline void ring_put(struct event_ring *ring, const void *event, size_t len)
{
	uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);

	/* Pairs with the reader's release: what it has read may be overwritten. */
	if (written + len - atomic_load_explicit(&ring->read, memory_order_acquire) > RING_SIZE) {
		atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
		return;
	}
	ring_copy_in(ring, written, event, len);
	/* Pairs with the reader's acquire: the event is visible before its length. */
	atomic_store_explicit(&ring->written, written + len, memory_order_release);
}

/* One event, as read. Strings end with 0; NULL: could not be read, or the value is no string. */
struct trace_event {
	uint64_t time;
	uint32_t id;
	unsigned table;
	unsigned values, vectors;
	uint64_t value[RING_VALUES]; /* behind the others those of vectors */
	unsigned words;
	uint64_t memory[RING_MEMORY];
	const char *string[RING_STRINGS]; /* of values, then of words */
	bool cut[RING_STRINGS];		  /* the string goes on */
	char text[RING_STRINGS * (RING_STRING + 1)];
};

/*
 * ring_get - the next event: 1, or 0: there is none. @how: RING_HOW_* of an event's table and id.
 * -EBADMSG: the bytes there are no event, and the ring must not be read any more.
 */
int ring_get(struct event_ring *ring, uint64_t (*how)(unsigned table, uint32_t id, void *arg),
	     void *arg, struct trace_event *event);

#endif
