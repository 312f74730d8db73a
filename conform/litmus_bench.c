/* SPDX-License-Identifier: MIT */
/*
 * The code of a test, and its threads in step.
 *
 * There are INSTANCES copies of everything, each of its own lines: machine code for what each
 * thread does, sites, variables. A batch runs every copy once:
 *
 *  1. Thread 0 counts what the batch before has shown, and writes the initial code and values.
 *  2. All meet. Each serialises by CPUID: it fetches the initial code from here on.
 *  3. In most batches a thread runs the sites that it will fetch, so that they are in its caches.
 *  4. All meet before each copy; each waits a random while, and runs its code.
 */
#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/emit.h"
#include "base/random.h"
#include "conform/litmus.h"

#define INSTANCES   32u
#define LINE	    64u
#define APART	    (2 * LINE) /* no prefetcher brings a neighbour along */
#define CODE_BYTES  1024u      /* of a thread of an instance */
#define SLOT_BYTES  (2 * LITMUS_BOUNDARY)
#define CODES_BYTES (INSTANCES * LITMUS_THREADS * CODE_BYTES)
#define VIEW_BYTES  (CODES_BYTES + INSTANCES * LITMUS_SYMBOLS * SLOT_BYTES)
#define ALIGNED	    65536u
#define COLOUR	    (3 * LITMUS_BOUNDARY) /* bits 12 and 13 of an address differ */
#define SPINS	    2000		  /* before a thread that waits lets others run, */
#define SPINS_FEW   20			  /* and where threads share a CPU */
#define NOTICE	    400			  /* ticks until all know that the last thread came */
#define COLD_EVERY  4			  /* batches, in the mean, whose code is in no cache */

struct litmus_bench {
	const struct litmus *litmus;
	struct litmus_result *result;
	unsigned threads, spins;
	uint64_t seed;
	uint8_t *view[LITMUS_VIEWS];
	uint8_t *site[INSTANCES][LITMUS_SYMBOLS];
	struct instance {
		struct {
			uint32_t value;
		} __attribute__((aligned(APART))) var[LITMUS_SYMBOLS];
		struct {
			uint32_t reg[LITMUS_REGS];
		} __attribute__((aligned(APART))) of[LITMUS_THREADS];
	} instance[INSTANCES];
	struct {
		_Atomic(uint64_t) steps, when;
	} __attribute__((aligned(APART))) at[LITMUS_THREADS];
	_Atomic(bool) cold, over;
};

/* --- Code ------------------------------------------------------------------------------------- */

static uint8_t *code_of(const struct litmus_bench *b, unsigned k, unsigned thread)
{
	/* At all distances from a line's end: where an inline site stands follows from it. */
	return b->view[0] + (k * LITMUS_THREADS + thread) * CODE_BYTES + k * 5 % LINE;
}

/* Of an inline site that is not yet put it is no address, and the code is made once more. */
static const uint8_t *address_of(const struct litmus_bench *b, unsigned k,
				 const struct litmus_event *e)
{
	uintptr_t at = (uintptr_t)b->site[k][e->target];

	return (const uint8_t *)(at + e->offset + (uintptr_t)(b->view[e->view] - b->view[0]));
}

/* The operand of an instruction: a variable, RSI behind it, or code, relative to RIP. */
static void put_operand(struct emit *e, const struct litmus_bench *b, unsigned k,
			const struct litmus_event *event, unsigned reg)
{
	uint32_t at = event->target * (uint32_t)sizeof(b->instance[0].var[0]);

	if (b->litmus->symbol[event->target].kind == LITMUS_VAR) {
		PUT(e, (uint8_t)(0x86 | reg << 3));
		put(e, &at, sizeof(at));
	} else {
		PUT(e, (uint8_t)(0x05 | reg << 3));
		put_rel32(e, address_of(b, k, event), 0);
	}
}

/* mov rcx, value; then MOV, XCHG or MOVNTI of so many bytes of it */
static void put_store(struct emit *e, const struct litmus_bench *b, unsigned k,
		      const struct litmus_event *event)
{
	static const uint8_t opcode[] = {
		[LITMUS_STORE] = 0x89, [LITMUS_LOCKED] = 0x87, [LITMUS_NT] = 0xc3
	};

	PUT(e, 0x48, 0xb9);
	put(e, &event->value, sizeof(event->value));
	if (event->size == 2)
		PUT(e, 0x66);
	if (event->size == 8)
		PUT(e, 0x48);
	if (event->op == LITMUS_NT)
		PUT(e, 0x0f);
	PUT(e, (uint8_t)(opcode[event->op] - (event->size == 1)));
	put_operand(e, b, k, event, 1);
}

/* r0 to r3 are R12D to R15D. */
static void put_result(struct emit *e, unsigned reg)
{
	PUT(e, 0x41, 0x89, (uint8_t)(0xc4 + reg));
}

/* Where the code goes on, as an interrupted thread does: SS, RSP, RFLAGS, CS, RIP. */
static void put_iret(struct emit *e)
{
	PUT(e, 0x48, 0x89, 0xe1);		    /* mov rcx, rsp */
	PUT(e, 0x8c, 0xd0, 0x50);		    /* mov eax, ss; push rax */
	PUT(e, 0x51, 0x9c);			    /* push rcx; pushfq */
	PUT(e, 0x8c, 0xc8, 0x50);		    /* mov eax, cs; push rax */
	PUT(e, 0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50); /* lea rax, [rip + 3]; push rax */
	PUT(e, 0x48, 0xcf);
}

static void put_event(struct emit *e, struct litmus_bench *b, unsigned k,
		      const struct litmus_event *event)
{
	static const struct {
		uint8_t bytes[4], count;
	} plain[LITMUS_OPS] = {
		[LITMUS_JUMP] = { { 0xeb, 0x00 }, 2 },
		/* xor eax, eax; cpuid */
		[LITMUS_CPUID] = { { 0x31, 0xc0, 0x0f, 0xa2 }, 4 },
		[LITMUS_SERIALIZE] = { { 0x0f, 0x01, 0xe8 }, 3 },
		[LITMUS_MFENCE] = { { 0x0f, 0xae, 0xf0 }, 3 },
		[LITMUS_LFENCE] = { { 0x0f, 0xae, 0xe8 }, 3 },
		[LITMUS_SFENCE] = { { 0x0f, 0xae, 0xf8 }, 3 },
	};
	const struct litmus_symbol *s = &b->litmus->symbol[event->target];

	switch (event->op) {
	case LITMUS_STORE:
	case LITMUS_LOCKED:
	case LITMUS_NT:
		put_store(e, b, k, event);
		break;
	case LITMUS_LOAD:
		PUT(e, 0x44, 0x8b);
		put_operand(e, b, k, event, 4 + event->reg);
		break;
	case LITMUS_FETCH:
		PUT(e, 0x31, 0xc0, 0xe8); /* xor eax, eax; call */
		put_rel32(e, address_of(b, k, event), 0);
		put_result(e, event->reg);
		break;
	case LITMUS_RUN:
		b->site[k][event->target] = e->at;
		put(e, s->code, s->size);
		put_result(e, event->reg);
		break;
	case LITMUS_CLFLUSH:
		PUT(e, 0x0f, 0xae);
		put_operand(e, b, k, event, 7);
		break;
	case LITMUS_IRET:
		put_iret(e);
		break;
	default:
		put(e, plain[event->op].bytes, plain[event->op].count);
	}
}

/* void code(uint32_t reg[], struct instance *) */
static void put_thread(struct litmus_bench *b, unsigned k, unsigned thread)
{
	struct emit e = { .at = code_of(b, k, thread) };
	const struct litmus_thread *t = &b->litmus->thread[thread];

	PUT(&e, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57); /* push rbx, r12 to r15 */
	for (unsigned i = 0; i < t->events; i++)
		put_event(&e, b, k, &t->event[i]);
	for (uint8_t i = 0; i < LITMUS_REGS; i++)
		PUT(&e, 0x44, 0x89, (uint8_t)(0x67 + 8 * i), (uint8_t)(4 * i)); /* mov [rdi+4i] */
	PUT(&e, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3);
}

/* Sites lie on pages of their own: how often stale code shows differs from page to page. */
static void place_site(struct litmus_bench *b, unsigned k, unsigned number)
{
	const struct litmus_symbol *s = &b->litmus->symbol[number];
	unsigned slot = k * LITMUS_SYMBOLS + number;
	uint8_t *at = b->view[0] + CODES_BYTES + slot * SLOT_BYTES;

	if (s->behind >= 0) {
		b->site[k][number] = b->site[k][s->behind] + s->offset;
		return;
	}
	if (s->boundary < LITMUS_BOUNDARY)
		at += LITMUS_BOUNDARY / 4 + slot * 5 % 16 * APART;
	b->site[k][number] = at + s->boundary + s->offset;
}

static int map_views(struct litmus_bench *b)
{
	/* Views of one colour begin at multiples of 64 KiB. */
	const size_t size = (VIEW_BYTES + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
	uint8_t *all = mmap(NULL, LITMUS_VIEWS * size + 2 * ALIGNED, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("litmus", MFD_CLOEXEC), ret = 0;

	if (all == MAP_FAILED || fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -errno;
	all += -(uintptr_t)all % ALIGNED;
	for (unsigned v = 0; v < LITMUS_VIEWS; v++) {
		b->view[v] = all + v * size + (v == LITMUS_COLOUR ? COLOUR : 0);
		if (mmap(b->view[v], size, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			ret = -errno;
	}
	close(fd);
	return ret;
}

/* Is an instruction of the test missing here? */
static bool lacks_instruction(const struct litmus *l)
{
	unsigned eax, ebx, ecx, edx = 0;

	__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	for (unsigned t = 0; t < l->threads; t++)
		for (unsigned i = 0; i < l->thread[t].events; i++)
			if (l->thread[t].event[i].op == LITMUS_SERIALIZE && !(edx & 1u << 14))
				return true;
	return false;
}

int litmus_open(struct litmus_bench **bench, const struct litmus *l, unsigned threads, bool crowded,
		uint64_t seed, struct litmus_result *result)
{
	struct litmus_bench *b =
		mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (lacks_instruction(l))
		return -ENOTSUP;
	if (b == MAP_FAILED)
		return -errno;
	b->litmus = l;
	b->result = result;
	b->threads = threads;
	b->spins = crowded ? SPINS_FEW : SPINS;
	b->seed = seed;
	ret = map_views(b);
	if (ret < 0)
		return ret;
	for (unsigned k = 0; k < INSTANCES; k++)
		for (unsigned i = 0; i < l->symbols; i++)
			if (l->symbol[i].kind == LITMUS_SITE && !l->symbol[i].in_line)
				place_site(b, k, i);
	/* Again when all inline sites are known. */
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned k = 0; k < INSTANCES; k++)
			for (unsigned t = 0; t < threads; t++)
				put_thread(b, k, t);
	*bench = b;
	return 0;
}

/* --- Threads ---------------------------------------------------------------------------------- */

static uint64_t steps_of(struct litmus_bench *b, unsigned thread)
{
	/* Pairs with the release of a thread that is there. */
	return atomic_load_explicit(&b->at[thread].steps, memory_order_acquire);
}

/* Wait until all threads are here. Returns when the last of them came, by its TSC. */
static uint64_t meet(struct litmus_bench *b, unsigned me)
{
	uint64_t step = steps_of(b, me) + 1, last = 0;

	atomic_store_explicit(&b->at[me].when, __builtin_ia32_rdtsc(), memory_order_relaxed);
	atomic_store_explicit(&b->at[me].steps, step, memory_order_release);
	for (unsigned i = 0; i < b->threads; i++) {
		uint64_t when;

		for (unsigned spins = 0; steps_of(b, i) < step; spins++)
			if (spins < b->spins)
				__builtin_ia32_pause();
			else
				sched_yield();
		/* If that thread is at its next step already, this one is late anyway. */
		when = atomic_load_explicit(&b->at[i].when, memory_order_relaxed);
		last = when > last ? when : last;
	}
	return last;
}

static void count_batch(struct litmus_bench *b)
{
	const struct litmus *l = b->litmus;

	for (unsigned k = 0; k < INSTANCES; k++) {
		uint32_t value[LITMUS_COLUMNS];

		for (unsigned i = 0; i < l->columns; i++) {
			const struct litmus_column *c = &l->column[i];

			value[i] = c->thread == LITMUS_THREADS
					   ? b->instance[k].var[c->index].value
					   : b->instance[k].of[c->thread].reg[c->index];
		}
		litmus_count(l, b->result, value, 1);
	}
}

static void begin_batch(struct litmus_bench *b)
{
	const struct litmus *l = b->litmus;

	for (unsigned k = 0; k < INSTANCES; k++) {
		for (unsigned i = 0; i < l->symbols; i++) {
			const struct litmus_symbol *s = &l->symbol[i];

			if (s->kind == LITMUS_SITE)
				memcpy(b->site[k][i], s->code, s->size);
			b->instance[k].var[i].value = s->value;
		}
	}
}

/* Bring what a thread will fetch into its caches, or out of all. */
static void warm_sites(struct litmus_bench *b, unsigned me)
{
	const struct litmus_thread *t = &b->litmus->thread[me];
	bool cold = atomic_load_explicit(&b->cold, memory_order_relaxed);

	for (unsigned i = 0; i < t->events; i++) {
		for (unsigned k = 0; k < INSTANCES && t->event[i].op == LITMUS_FETCH; k++) {
			const uint8_t *at = address_of(b, k, &t->event[i]);
			void (*code)(void);

			memcpy(&code, &at, sizeof(code));
			if (!cold) {
				code();
				continue;
			}
			__builtin_ia32_clflush(at);
			__builtin_ia32_clflush(at + b->litmus->symbol[t->event[i].target].size - 1);
		}
	}
}

static void run_instances(struct litmus_bench *b, unsigned me, uint64_t *random)
{
	for (unsigned k = 0; k < INSTANCES; k++) {
		uint64_t drawn = random_next(random), start;
		uint8_t *at = code_of(b, k, me);
		void (*code)(uint32_t * reg, struct instance * i);

		memcpy(&code, &at, sizeof(code));
		/* Up to 1023 ticks, and as often below 2 as above 511. */
		start = meet(b, me) + NOTICE + ((drawn >> 8 & 1023) >> drawn % 11);
		/* CPUs whose TSCs differ begin as they come. */
		while (start - __builtin_ia32_rdtsc() < 2 * (NOTICE + 1024))
			;
		code(b->instance[k].of[me].reg, &b->instance[k]);
	}
}

void litmus_play(struct litmus_bench *b, unsigned me, litmus_goes_on *goes_on, void *arg)
{
	uint64_t random = random_at(b->seed, me);

	for (bool first = true;; first = false) {
		meet(b, me);
		if (me == 0) {
			if (!first)
				count_batch(b);
			atomic_store_explicit(&b->over, !goes_on(arg), memory_order_relaxed);
			atomic_store_explicit(&b->cold, random_next(&random) % COLD_EVERY == 0,
					      memory_order_relaxed);
			begin_batch(b);
		}
		meet(b, me);
		if (atomic_load_explicit(&b->over, memory_order_relaxed))
			return;
		serialize_core();
		warm_sites(b, me);
		run_instances(b, me, &random);
	}
}
