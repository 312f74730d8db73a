/* SPDX-License-Identifier: MIT */
#include "bench/method/sites.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/patchcore.h"
#include "stress/base/emit.h"
#include "stress/base/random.h"

#define PAGE	     4096u
#define ALIGN	     16u
#define TARGET_BYTES 64u
#define BODY_MEDIAN  80.0 /* bytes; most functions are short, some are very long */
#define BODY_MOST    4000.0
#define SAVED_MOST   6

static const uint8_t nop[SITES_LENGTH] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* --- One function ------------------------------------------------------------------------- */

static unsigned draw(uint64_t *random, unsigned below)
{
	return (unsigned)(random_next(random) % below);
}

static double draw_unit(uint64_t *random)
{
	return ((double)(random_next(random) >> 11) + 0.5) * 0x1p-53;
}

/* Log-normal, as function sizes are. */
static size_t draw_body(uint64_t *random)
{
	double u = draw_unit(random), v = draw_unit(random);
	double normal = sqrt(-2 * log(u)) * cos(2 * M_PI * v);

	return (size_t)fmin(BODY_MEDIAN * exp(normal), BODY_MOST);
}

/* Callee-saved registers in the order in which gcc runs out of them: last pushed first taken. */
static const struct {
	uint8_t push[2], pop[2], len;
} saved[SAVED_MOST] = {
	{ { 0x53 }, { 0x5b }, 1 },	       /* rbx */
	{ { 0x55 }, { 0x5d }, 1 },	       /* rbp */
	{ { 0x41, 0x54 }, { 0x41, 0x5c }, 2 }, /* r12 */
	{ { 0x41, 0x55 }, { 0x41, 0x5d }, 2 }, /* r13 */
	{ { 0x41, 0x56 }, { 0x41, 0x5e }, 2 }, /* r14 */
	{ { 0x41, 0x57 }, { 0x41, 0x5f }, 2 }, /* r15 */
};

/* What a compiler puts in front of a call; rdi and rax are not touched. */
static void put_filler(struct emit *e, uint64_t *random)
{
	switch (draw(random, 7)) {
	case 0:
		PUT(e, 0x48, 0x89, 0xf2); /* mov rdx, rsi */
		break;
	case 1:
		PUT(e, 0x31, 0xc9); /* xor ecx, ecx */
		break;
	case 2:
		PUT(e, 0xbe, 0x01, 0x00, 0x00, 0x00); /* mov esi, 1 */
		break;
	case 3:
		PUT(e, 0x48, 0x8d, 0x35, 0x40, 0x00, 0x00, 0x00); /* lea rsi, [rip + 64] */
		break;
	case 4:
		PUT(e, 0x48, 0x8b, 0x54, 0x24, 0x08); /* mov rdx, [rsp + 8] */
		break;
	case 5:
		PUT(e, 0x40, 0x0f, 0xb6, 0xce); /* movzx ecx, sil */
		break;
	default:
		PUT(e, 0x41, 0xb8, 0x02, 0x00, 0x00, 0x00); /* mov r8d, 2 */
	}
}

/* sub and add rsp; none, a small frame, or a large one. */
static void put_frame(struct emit *e, unsigned frame, bool open)
{
	uint8_t which = open ? 0xec : 0xc4;

	if (frame == 1)
		PUT(e, 0x48, 0x83, which, 0x18);
	else if (frame == 2)
		PUT(e, 0x48, 0x81, which, 0x88, 0x01, 0x00, 0x00);
}

static void put_prologue(struct emit *e, unsigned pushes, unsigned frame, uint64_t *random)
{
	if (draw(random, 2))
		PUT(e, 0xf3, 0x0f, 0x1e, 0xfa); /* endbr64 */
	for (unsigned i = pushes; i > 0; i--)
		put(e, saved[i - 1].push, saved[i - 1].len);
	put_frame(e, frame, true);
	PUT(e, 0x31, 0xc0); /* xor eax, eax */
	for (unsigned fillers = draw(random, 8); fillers > 0; fillers--)
		put_filler(e, random);
}

static void put_epilogue(struct emit *e, unsigned pushes, unsigned frame)
{
	put_frame(e, frame, false);
	for (unsigned i = 0; i < pushes; i++)
		put(e, saved[i].pop, saved[i].len);
	PUT(e, 0xc3);
}

/* Nobody runs it. */
static void put_body(struct emit *e, uint64_t *random)
{
	size_t len = draw_body(random);

	put_copies(e, 0x90, len + -(e->done + len) % ALIGN);
}

/* Returns where in it the site is. */
static size_t put_function(struct emit *e, const uint8_t *target, uint64_t *random)
{
	unsigned pushes = draw(random, SAVED_MOST + 1), frame = draw(random, 3);
	size_t site;

	put_prologue(e, pushes, frame, random);
	site = e->done;
	PUT(e, 0xe8);
	put_rel32(e, target, 0);
	put_epilogue(e, pushes, frame);
	put_body(e, random);
	return site;
}

/* inc qword [rdi]; mov eax, 1; ret */
static void put_target(struct emit *e)
{
	PUT(e, 0x48, 0xff, 0x07, 0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3);
	put_copies(e, 0x00, TARGET_BYTES - e->done);
}

/* --- All of them -------------------------------------------------------------------------- */

/* Without a base nothing is noted: the same draws, to see how long it gets. */
static size_t put_functions(struct sites *sites, unsigned long first, unsigned long end,
			    uint8_t *base, uint64_t *random)
{
	struct emit e = { .at = base };

	put_target(&e);
	for (unsigned long i = first; i < end; i++) {
		size_t start = e.done, site = put_function(&e, base, random);

		if (!base)
			continue;
		sites->run[i] = (sites_fn *)(uintptr_t)(base + start);
		sites->site[i] = base + site;
		sites->target[i] = base;
	}
	return e.done;
}

static int build_map(struct sites *sites, unsigned long first, unsigned long end, uint64_t *random)
{
	uint64_t again = *random;
	struct sites_map map = { .bytes = put_functions(sites, first, end, NULL, random) };

	map.bytes = (map.bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
	map.at = mmap(NULL, map.bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map.at == MAP_FAILED)
		return -errno;
	sites->map[sites->maps++] = map;
	put_functions(sites, first, end, map.at, &again);
	return pc_text_open(map.at, map.bytes);
}

static int build_maps(struct sites *sites, const struct sites_spec *spec)
{
	unsigned long per_map = spec->per_map ? spec->per_map : spec->count;
	uint64_t random = spec->seed;
	int ret = 0;

	for (unsigned long first = 0; first < spec->count && ret == 0; first += per_map) {
		unsigned long left = spec->count - first;

		ret = build_map(sites, first, first + (left < per_map ? left : per_map), &random);
	}
	return ret;
}

int sites_build(struct sites *sites, const struct sites_spec *spec)
{
	int ret;

	if (!spec->count)
		return -EINVAL;
	*sites = (struct sites){
		.count = spec->count,
		.run = calloc(spec->count, sizeof(*sites->run)),
		.site = calloc(spec->count, sizeof(*sites->site)),
		.target = calloc(spec->count, sizeof(*sites->target)),
		.map = calloc(spec->count, sizeof(*sites->map)),
	};
	ret = sites->run && sites->site && sites->target && sites->map ? build_maps(sites, spec)
								       : -ENOMEM;
	if (ret < 0)
		sites_free(sites);
	return ret;
}

void sites_free(struct sites *sites)
{
	for (unsigned long i = 0; i < sites->maps; i++) {
		pc_forget(sites->map[i].at, sites->map[i].bytes);
		munmap(sites->map[i].at, sites->map[i].bytes);
	}
	free(sites->run);
	free(sites->site);
	free(sites->target);
	free(sites->map);
	*sites = (struct sites){ 0 };
}

/* --- Of use to those who patch and run it ----------------------------------------------- */

void sites_code(const struct sites *sites, unsigned long i, bool on, uint8_t code[SITES_LENGTH])
{
	struct emit e = { .at = code };

	if (on)
		put_call(&e, sites->site[i], sites->target[i]);
	else
		put(&e, nop, sizeof(nop));
}

bool sites_crosses(const uint8_t *site, unsigned boundary)
{
	return (uintptr_t)site % boundary + SITES_LENGTH > boundary;
}

double sites_straddlers(const struct sites *sites, unsigned boundary)
{
	unsigned long found = 0;

	for (unsigned long i = 0; i < sites->count; i++)
		found += sites_crosses(sites->site[i], boundary);
	return (double)found / (double)sites->count;
}

/* Executors begin apart from each other, and each goes on where its round before ended. */
void sites_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct sites *sites = work->arg;
	uint64_t round = atomic_load_explicit(&counts->rounds, memory_order_relaxed);
	unsigned long i = (unsigned long)((round + executor * 7) * SITES_ROUND % sites->count);
	uint64_t called = 0;

	for (unsigned n = 0; n < SITES_ROUND; n++) {
		called += sites->run[i](counts->calls);
		i = i + 1 < sites->count ? i + 1 : 0;
	}
	__atomic_store_n(&counts->calls[1], counts->calls[1] + called, __ATOMIC_RELAXED);
	atomic_store_explicit(&counts->executed,
			      atomic_load_explicit(&counts->executed, memory_order_relaxed) +
				      SITES_ROUND,
			      memory_order_relaxed);
}
