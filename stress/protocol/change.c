/* SPDX-License-Identifier: MIT */
/*
 * The engine: one change of a site by the steps of a protocol. The patcher does what the file says
 * and nothing else; each store is one instruction.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "patchcore/machine/wait.h"
#include "patchcore/word/word.h"
#include "stress/protocol/protocol.h"
#include "stress/protocol/trap.h"

#define LINE	     64u
#define SETTLE_TICKS 1000000 /* far beyond any gap between two fetches that was seen */

/* A change under way. */
struct run {
	const struct protocol_site *site;
	const uint8_t *code[2]; /* by enum byte_source */
	const struct sync *sync;
	struct word_trace *trace; /* never NULL */
	struct moment last;	  /* when the last store was made, or visible */
	uint64_t latency;	  /* of the slowest locked store */
	unsigned waits;
	bool instructions; /* there may be a thread between two of them */
};

/* --- Stores ----------------------------------------------------------------------------------- */

static unsigned most_bytes(enum store_form form)
{
	return form == STORE_PLAIN ? 16 : 8;
}

/* How many bytes one instruction stores that stores so many. */
static unsigned width_of(unsigned length, enum store_form form)
{
	unsigned width = form == STORE_NONTEMPORAL ? 4 : 1;

	while (width < length)
		width *= 2;
	return width;
}

static void store_plain(uint8_t *at, const uint8_t *bytes, uint64_t value, unsigned width)
{
	if (width == 1)
		__asm__ volatile("movb %b0, (%1)" : : "q"(value), "r"(at) : "memory");
	else if (width == 2)
		__asm__ volatile("movw %w0, (%1)" : : "r"(value), "r"(at) : "memory");
	else if (width == 4)
		__asm__ volatile("movl %k0, (%1)" : : "r"(value), "r"(at) : "memory");
	else if (width == 8)
		__asm__ volatile("movq %0, (%1)" : : "r"(value), "r"(at) : "memory");
	else
		__asm__ volatile("movdqu (%0), %%xmm0\n\tmovdqu %%xmm0, (%1)"
				 :
				 : "r"(bytes), "r"(at)
				 : "xmm0", "memory");
}

static void store_locked(uint8_t *at, uint64_t value, unsigned width)
{
	if (width == 1)
		__asm__ volatile("xchgb %b0, (%1)" : "+q"(value) : "r"(at) : "memory");
	else if (width == 2)
		__asm__ volatile("xchgw %w0, (%1)" : "+r"(value) : "r"(at) : "memory");
	else if (width == 4)
		__asm__ volatile("xchgl %k0, (%1)" : "+r"(value) : "r"(at) : "memory");
	else
		__asm__ volatile("xchgq %0, (%1)" : "+r"(value) : "r"(at) : "memory");
}

static void store_nontemporal(uint8_t *at, uint64_t value, unsigned width)
{
	if (width == 4)
		__asm__ volatile("movntil %k0, (%1)" : : "r"(value), "r"(at) : "memory");
	else
		__asm__ volatile("movntiq %0, (%1)" : : "r"(value), "r"(at) : "memory");
}

/*
 * Store so many bytes. Where no instruction stores that many, it stores neighbours as they are: in
 * the same line, if the bytes themselves are in one.
 */
static void store_bytes(uint8_t *at, const uint8_t *bytes, unsigned length, enum store_form form)
{
	unsigned width = width_of(length, form), in_line = (uintptr_t)at % LINE, before = 0;
	uint8_t word[16] = { 0 };
	uint64_t value;

	if (in_line + length <= LINE && in_line + width > LINE)
		before = in_line + width - LINE;
	at -= before;
	memcpy(word, at, width);
	memcpy(word + before, bytes, length);
	memcpy(&value, word, sizeof(value));
	if (form == STORE_PLAIN)
		store_plain(at, word, value, width);
	else if (form == STORE_LOCKED)
		store_locked(at, value, width);
	else
		store_nontemporal(at, value, width);
}

static void resolve_span(const struct byte_span *span, const struct protocol_site *site,
			 unsigned *at, unsigned *length)
{
	*at = span->kind == SPAN_FIXED	? span->at
	      : span->kind == SPAN_BACK ? site->split
	      : span->kind == SPAN_TAIL ? 1
					: 0;
	*length = span->kind == SPAN_FIXED   ? span->length
		  : span->kind == SPAN_FRONT ? site->split
					     : site->length - *at;
}

/* When it was visible everywhere is known of a locked store alone. */
static void run_store(struct run *run, const struct protocol_step *step)
{
	const struct protocol_site *site = run->site;
	struct moment asked = moment_now();
	const uint8_t *bytes = step->bytes;
	unsigned at, length;
	enum word_part part;

	resolve_span(&step->span, site, &at, &length);
	if (step->source != BYTES_GIVEN)
		bytes = run->code[step->source] + at;
	store_bytes(site->at + at, bytes, length, (enum store_form)step->form);
	part = step->kind == STEP_GUARD ? WORD_PART_INT3 : at ? WORD_PART_BACK : WORD_PART_FRONT;
	run->last = step->form == STORE_LOCKED ? moment_visible(asked) : moment_now();
	run->trace->visible[part] = run->last.ticks;
	if (step->form != STORE_LOCKED || !moment_known(asked, run->last))
		return;
	run->trace->latency[part] = run->last.ticks - asked.ticks;
	if (run->trace->latency[part] > run->latency)
		run->latency = run->trace->latency[part];
}

/* --- Other steps ------------------------------------------------------------------------------ */

static void run_fence(enum fence_kind kind)
{
	if (kind == FENCE_MFENCE)
		_mm_mfence();
	else if (kind == FENCE_SFENCE)
		_mm_sfence();
	else
		_mm_lfence();
}

static void flush_line(const uint8_t *at, enum flush_kind kind)
{
	if (kind == FLUSH_CLFLUSH)
		__asm__ volatile("clflush (%0)" : : "r"(at) : "memory");
	else if (kind == FLUSH_CLFLUSHOPT)
		__asm__ volatile("clflushopt (%0)" : : "r"(at) : "memory");
	else
		__asm__ volatile("clwb (%0)" : : "r"(at) : "memory");
}

static void run_flush(const struct run *run, const struct protocol_step *step)
{
	unsigned at, length;

	resolve_span(&step->span, run->site, &at, &length);
	flush_line(run->site->at + at, (enum flush_kind)step->form);
	if (((uintptr_t)(run->site->at + at) ^ (uintptr_t)(run->site->at + at + length - 1)) / LINE)
		flush_line(run->site->at + at + length - 1, (enum flush_kind)step->form);
}

/* From the last store on. */
static void run_wait(struct run *run, const struct protocol_step *step)
{
	const struct waits *waits = &run->sync->waits;
	uint64_t ticks = step->form == WAIT_FIRST    ? waits->first
			 : step->form == WAIT_SECOND ? waits->second
						     : step->ticks;
	uint64_t stretch = step->form == WAIT_TICKS ? step->stretch : waits->stretch;
	uint64_t start = run->last.ticks, longest;

	if (stretch * run->latency > ticks)
		ticks = stretch * run->latency;
	longest = ticks_wait_since(run->last, ticks);
	run->last = moment_now();
	if (run->waits < 2) {
		run->trace->step[run->waits] = longest;
		run->trace->waited[run->waits++] = run->last.ticks - start;
	}
}

static int run_membarrier(enum barrier_kind kind)
{
	int command = kind == BARRIER_EXPEDITED ? MEMBARRIER_CMD_PRIVATE_EXPEDITED
						: MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE;

	return syscall(SYS_membarrier, command, 0, 0) < 0 ? -errno : 0;
}

static int run_step(struct run *run, const struct protocol_step *step);

static int run_steps(struct run *run, const struct protocol_step *steps, unsigned count)
{
	int ret = 0;

	for (unsigned i = 0; i < count && ret == 0; i++)
		ret = run_step(run, &steps[i]);
	return ret;
}

#define COUNT(of) (sizeof(of) / sizeof((of)[0]))
#define INT3                                                                                       \
	{                                                                                          \
		.kind = STEP_GUARD, .span = { SPAN_FIXED, 0, 1 }, .source = BYTES_GIVEN,           \
		.bytes = {                                                                         \
			0xcc                                                                       \
		}                                                                                  \
	}
#define TAIL                                                                                       \
	{                                                                                          \
		.kind = STEP_STORE, .span = { .kind = SPAN_TAIL }, .source = BYTES_NEW             \
	}
#define FIRST                                                                                      \
	{                                                                                          \
		.kind = STEP_STORE, .span = { SPAN_FIXED, 0, 1 }, .source = BYTES_NEW              \
	}
#define LEAVE                                                                                      \
	{                                                                                          \
		.kind = STEP_LEAVE                                                                 \
	}
#define SYNC                                                                                       \
	{                                                                                          \
		.kind = STEP_MEMBARRIER, .form = BARRIER_SYNC_CORE                                 \
	}
#define PAUSE                                                                                      \
	{                                                                                          \
		.kind = STEP_WAIT, .form = WAIT_TICKS, .ticks = SETTLE_TICKS                       \
	}

static const struct protocol_step restore[] = { INT3, SYNC, LEAVE, TAIL, SYNC, FIRST, SYNC };
/* Where membarrier may be missing, and once in a cell. */
static const struct protocol_step settle[] = { INT3, PAUSE, LEAVE, TAIL, PAUSE, FIRST };

/* Behind an INT3 no thread enters: until the last one has left. */
static int run_leave(const struct run *run)
{
	int ret;

	if (!run->instructions)
		return 0;
	do
		ret = signal_threads();
	while (ret > 0);
	return ret;
}

static int run_step(struct run *run, const struct protocol_step *step)
{
	int ret;

	switch (step->kind) {
	case STEP_STORE:
	case STEP_GUARD:
		run_store(run, step);
		return 0;
	case STEP_FENCE:
		run_fence((enum fence_kind)step->form);
		return 0;
	case STEP_FLUSH:
		run_flush(run, step);
		return 0;
	case STEP_WAIT:
		run_wait(run, step);
		return 0;
	case STEP_MEMBARRIER:
		return run_membarrier((enum barrier_kind)step->form);
	case STEP_SIGNAL:
		ret = signal_threads();
		return ret < 0 ? ret : 0;
	case STEP_RESTORE:
		return run_steps(run, restore, COUNT(restore));
	case STEP_LEAVE:
		return run_leave(run);
	}
	return -EINVAL;
}

static struct run begin_run(const struct protocol_file *p, const struct protocol_site *site)
{
	return (struct run){
		.site = site,
		.code = { [BYTES_OLD] = site->old, [BYTES_NEW] = site->new },
		.last = moment_now(),
		.instructions = p->pairs & 1u << PAIR_OWN,
	};
}

int protocol_change(const struct protocol_file *p, bool back, const struct protocol_site *site,
		    const struct sync *sync)
{
	struct word_trace unseen = { 0 };
	struct run run;

	if (sync->trace && sync->trace->prepared)
		sync->trace->prepared(sync->trace->arg);
	run = begin_run(p, site);
	run.sync = sync;
	run.trace = sync->trace ? sync->trace : &unseen;
	/* Without a guard the site is open from now on. */
	run.trace->visible[WORD_PART_INT3] = run.last.ticks;
	return run_steps(&run, p->step[back], p->steps[back]);
}

void protocol_settle(const struct protocol_file *p, const struct protocol_site *site)
{
	const struct sync sync = { .policy = PC_POLICY_WAIT };
	struct word_trace unseen = { 0 };
	struct run run = begin_run(p, site);

	run.sync = &sync;
	run.trace = &unseen;
	run_steps(&run, settle, COUNT(settle));
}

/* Why a step cannot be made of such a site; NULL: it can. */
static const char *refuse_step(const struct protocol_step *step, const struct protocol_site *site,
			       enum crossing crossing)
{
	unsigned at, length;

	if (step->kind != STEP_STORE && step->kind != STEP_GUARD)
		return NULL;
	resolve_span(&step->span, site, &at, &length);
	if (length > most_bytes((enum store_form)step->form))
		return "no instruction stores so many bytes that way";
	if (step->form == STORE_LOCKED && crossing >= CROSSING_LINE && at < site->split &&
	    at + length > site->split)
		return "a locked store across a line locks the bus: it is not run";
	return NULL;
}

int protocol_check(const struct protocol_file *p, enum crossing crossing, unsigned split, char *why,
		   size_t size)
{
	const struct protocol_site site = { .length = p->length, .split = split };

	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < p->steps[way]; i++) {
			const char *reason = refuse_step(&p->step[way][i], &site, crossing);

			if (!reason)
				continue;
			snprintf(why, size, "line %u of protocol %s: %s", p->step[way][i].line,
				 p->name, reason);
			return -EINVAL;
		}
	return 0;
}
