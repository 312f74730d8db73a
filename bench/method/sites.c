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

static unsigned draw_below(uint64_t *random, unsigned below)
{
	return (unsigned)(random_next(random) % below);
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
static const struct {
	uint8_t len, bytes[7];
} fillers[] = {
	{ 3, { 0x48, 0x89, 0xf2 } },			     /* mov rdx, rsi */
	{ 2, { 0x31, 0xc9 } },				     /* xor ecx, ecx */
	{ 5, { 0xbe, 0x01, 0x00, 0x00, 0x00 } },	     /* mov esi, 1 */
	{ 7, { 0x48, 0x8d, 0x35, 0x40, 0x00, 0x00, 0x00 } }, /* lea rsi, [rip + 64] */
	{ 5, { 0x48, 0x8b, 0x54, 0x24, 0x08 } },	     /* mov rdx, [rsp + 8] */
	{ 4, { 0x40, 0x0f, 0xb6, 0xce } },		     /* movzx ecx, sil */
	{ 6, { 0x41, 0xb8, 0x02, 0x00, 0x00, 0x00 } },	     /* mov r8d, 2 */
};

/* sub and add rsp; none, a small frame, or a large one. */
static void put_frame(struct emit *e, unsigned frame, bool open)
{
	uint8_t which = open ? 0xec : 0xc4;

	if (frame == 1)
		PUT(e, 0x48, 0x83, which, 0x18);
	else if (frame == 2)
		PUT(e, 0x48, 0x81, which, 0x88, 0x01, 0x00, 0x00);
}

/* Returns where in it the site is. */
static size_t put_function(struct emit *e, const uint8_t *target, uint64_t *random)
{
	unsigned pushes = draw_below(random, SAVED_MOST + 1), frame = draw_below(random, 3);
	size_t site, body;
	double u[2];

	if (draw_below(random, 2))
		PUT(e, 0xf3, 0x0f, 0x1e, 0xfa); /* endbr64 */
	for (unsigned i = pushes; i > 0; i--)
		put(e, saved[i - 1].push, saved[i - 1].len);
	put_frame(e, frame, true);
	PUT(e, 0x31, 0xc0); /* xor eax, eax */
	for (unsigned more = draw_below(random, 8); more > 0; more--) {
		unsigned i = draw_below(random, sizeof(fillers) / sizeof(*fillers));

		put(e, fillers[i].bytes, fillers[i].len);
	}
	site = e->done;
	PUT(e, 0xe8);
	put_rel32(e, target, 0);
	put_frame(e, frame, false);
	for (unsigned i = 0; i < pushes; i++)
		put(e, saved[i].pop, saved[i].len);
	PUT(e, 0xc3);
	/* What no executor runs: of a log-normal size, as function sizes are. */
	for (unsigned i = 0; i < 2; i++)
		u[i] = ((double)(random_next(random) >> 11) + 0.5) * 0x1p-53;
	body = (size_t)fmin(BODY_MEDIAN * exp(sqrt(-2 * log(u[0])) * cos(2 * M_PI * u[1])),
			    BODY_MOST);
	put_copies(e, 0x90, body + -(e->done + body) % ALIGN);
	return site;
}

/* --- All of them -------------------------------------------------------------------------- */

/* Unmapped nothing is noted: the same draws, to see how long it gets. */
static size_t put_functions(struct sites *sites, uint64_t random)
{
	struct emit e = { .at = sites->map };

	/* inc qword [rdi]; mov eax, 1; ret */
	PUT(&e, 0x48, 0xff, 0x07, 0xb8, 0x01, 0x00, 0x00, 0x00, 0xc3);
	put_copies(&e, 0x00, TARGET_BYTES - e.done);
	for (unsigned long i = 0; i < sites->count; i++) {
		size_t start = e.done, site = put_function(&e, sites->map, &random);

		if (!sites->map)
			continue;
		sites->run[i] = (sites_fn *)(uintptr_t)(sites->map + start);
		sites->site[i] = sites->map + site;
	}
	return e.done;
}

int sites_build(struct sites *sites, unsigned long count, uint64_t seed)
{
	void *map = MAP_FAILED;
	int ret = -ENOMEM;

	if (!count)
		return -EINVAL;
	*sites = (struct sites){
		.count = count,
		.run = calloc(count, sizeof(*sites->run)),
		.site = calloc(count, sizeof(*sites->site)),
	};
	sites->bytes = (put_functions(sites, seed) + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (sites->run && sites->site)
		map = mmap(NULL, sites->bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map != MAP_FAILED) {
		sites->map = map;
		put_functions(sites, seed);
		ret = pc_text_open(map, sites->bytes);
	}
	if (ret < 0)
		sites_free(sites);
	return ret;
}

void sites_free(struct sites *sites)
{
	if (sites->map) {
		pc_forget(sites->map, sites->bytes);
		munmap(sites->map, sites->bytes);
	}
	free(sites->run);
	free(sites->site);
	*sites = (struct sites){ 0 };
}

/* --- Patching and running it ----------------------------------------------- */

void sites_code(const struct sites *sites, unsigned long i, bool on, uint8_t code[SITES_LENGTH])
{
	struct emit e = { .at = code };

	if (on)
		put_call(&e, sites->site[i], sites->map);
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
