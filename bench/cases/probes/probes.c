/* SPDX-License-Identifier: MIT */
#include "bench/cases/probes/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases/probes/loops.h"
#include "bench/method/loop.h"
#include "bench/peers/peer.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "probes/include/fastinst.h"
#include "probes/include/fastinst/marker.h"

#define PROBED	   __attribute__((PROBES_ALONE, aligned(64), patchable_function_entry(5)))
#define PEER_CALLS 10000
#define PEERS	   8
#define SPLIT	   3 /* of the call that switching is compared with */
#define LENGTH(a)  (sizeof(a) / sizeof(*(a)))

/* --- What is called ------------------------------------------------------------------------- */

static volatile bool guard_down, guard_up = true;

static void nothing(void)
{
	__asm__ volatile("");
}

static void (*volatile guarded)(void) = nothing;

__attribute__((target("general-regs-only"))) static void
empty_function(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
}

static void vector_function(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	__asm__ volatile("pxor %%xmm0, %%xmm0" ::: "xmm0");
}

#define BODY(a)                                                                                    \
	do {                                                                                       \
		__asm__ volatile("" : "+r"(a));                                                    \
		return (a) + 1;                                                                    \
	} while (0)

/* A function, and the loop that calls it. */
#define CALLED(kind, name, first)                                                                  \
	kind static uint64_t probes_##name(uint64_t a)                                             \
	{                                                                                          \
		first;                                                                             \
		BODY(a);                                                                           \
	}                                                                                          \
	PROBES_PLAIN static void loop_##name(uint64_t times)                                       \
	{                                                                                          \
		for (uint64_t a = 0; times--;)                                                     \
			a = probes_##name(a);                                                      \
	}

CALLED(PROBES_PLAIN, none, (void)0)
CALLED(PROBES_PLAIN, guard_down, if (__builtin_expect(guard_down, 0)) guarded())
CALLED(PROBES_PLAIN, guard_up, if (guard_up) guarded())
CALLED(PROBED, off, (void)0)
CALLED(PROBED, counts, (void)0)
CALLED(PROBED, keeps, (void)0)
CALLED(PROBED, any, (void)0)
CALLED(PROBED, vectors, (void)0)

#define LOOP(name, first)                                                                          \
	PROBES_PLAIN static void loop_##name(uint64_t times)                                       \
	{                                                                                          \
		for (uint64_t a = 0; times--; a++) {                                               \
			__asm__ volatile("" : "+r"(a));                                            \
			first;                                                                     \
		}                                                                                  \
	}

LOOP(unmarked, (void)0)
LOOP(marker_off, FI_MARKER(probes, marker_off))
LOOP(marker_counts, FI_MARKER(probes, marker_counts))
LOOP(marker_keeps, FI_MARKER(probes, marker_keeps))

/* Never run: inside 8 bytes, and across. */
void probes_inside(void);
void probes_across(void);
__asm__(".pushsection .text.probes_switched, \"ax\", @progbits\n"
	"	.p2align 12\n"
	"	.type probes_inside, @function\n"
	"probes_inside:\n"
	"	.fill 5, 1, 0x90\n"
	"	ret\n"
	"	.size probes_inside, . - probes_inside\n"
	"	.p2align 6\n"
	"	.fill 61, 1, 0xcc\n"
	"	.type probes_across, @function\n"
	"probes_across:\n"
	"	.fill 5, 1, 0x90\n"
	"	ret\n"
	"	.size probes_across, . - probes_across\n"
	"	.p2align 12\n"
	".popsection\n"
	".pushsection __patchable_function_entries, \"awo\", @progbits, .text.probes_switched\n"
	"	.quad probes_inside\n"
	"	.quad probes_across\n"
	".popsection\n");

/* --- The list of cases ---------------------------------------------------------------------- */

enum what {
	UNTOUCHED,
	OFF, /* a probe, never on */
	COUNTS,
	KEEPS,
	ANY,
	VECTORS,
};

struct called {
	const char *name, *site, *measure;
	void (*loop)(uint64_t times);
	const char *probe; /* NULL: none */
	enum what what;
	unsigned base; /* in this list */
	void (*beside)(uint64_t times);
	bool peer;
};

enum {
	GUARD_OFF,
	GUARD,
	UNMARKED,
	FIRST,
	PEERS_BASE = FIRST + 2 /* "keeps" */
};

static const struct called list[] = {
	{ "guard", "entry", "off", loop_guard_down, NULL, UNTOUCHED, GUARD_OFF, loop_none, true },
	{ "guard", "entry", "on", loop_guard_up, NULL, UNTOUCHED, GUARD, loop_none, true },
	{ "none", "marker", "off", loop_unmarked, NULL, UNTOUCHED, UNMARKED, loop_unmarked, true },
	{ "off", "entry", "off", loop_off, "probes_off", OFF, GUARD_OFF, loop_none, false },
	{ "counts", "entry", "on", loop_counts, "probes_counts", COUNTS, GUARD, loop_none, false },
	{ "keeps", "entry", "on", loop_keeps, "probes_keeps", KEEPS, GUARD, loop_none, false },
	{ "any", "entry", "on", loop_any, "probes_any", ANY, GUARD, loop_none, false },
	{ "vectors", "entry", "on", loop_vectors, "probes_vectors", VECTORS, GUARD, loop_none,
	  false },
	{ "off", "marker", "off", loop_marker_off, "probes.marker_off", OFF, UNMARKED,
	  loop_unmarked, false },
	{ "counts", "marker", "on", loop_marker_counts, "probes.marker_counts", COUNTS, GUARD,
	  loop_unmarked, false },
	{ "keeps", "marker", "on", loop_marker_keeps, "probes.marker_keeps", KEEPS, GUARD,
	  loop_unmarked, false },
};

/* --- Probes --------------------------------------------------------------------------------- */

static int refuse_probe(char *why, const char *name, int ret)
{
	struct fi_probe probe = { .reason = "" };
	uint32_t id;

	if (fi_find(name, &id, 1) == 1)
		fi_get(id, &probe);
	snprintf(why, BENCH_WHY, "probe %s: %.100s", name,
		 probe.reason[0] ? probe.reason : strerror(-ret));
	return ret;
}

static int set(const char *name, enum what what, char *why)
{
	fi_function *function = what == COUNTS	  ? NULL
				: what == VECTORS ? vector_function
						  : empty_function;
	uint32_t id;
	int ret = -ENOENT;

	if (fi_find(name, &id, 1) == 1)
		ret = what == OFF ? 0
				  : fi_activate_how(&id, 1, function,
						    what == KEEPS ? FI_KEEPS_VECTORS : 0);
	return ret < 0 ? refuse_probe(why, name, ret) : 0;
}

/* --- Calls ---------------------------------------------------------------------------------- */

static int called_begin(struct bench_case *c, char *why)
{
	const struct called *called = c->arg;

	return called->probe ? set(called->probe, called->what, why) : 0;
}

static int called_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct called *called = c->arg;

	(void)why;
	probes_samples(called->loop, &s[0]);
	probes_samples(called->beside, &s[1]);
	return 0;
}

static void plan_called(struct bench_case *c, const struct called *called)
{
	*c = (struct bench_case){
		.begin = called_begin,
		.block = called_block,
		.sum_up = probes_sum_up,
		.arg = (void *)(uintptr_t)called,
	};
	bench_row_name(&c->row, called->name, called->measure, "ticks");
	bench_row_param_text(&c->row, "site", called->site);
	c->row.peer = called->peer;
}

/* --- Peers ---------------------------------------------------------------------------------- */

/* Those that trace calls of functions, and change nothing else. */
static bool is_tracer(const struct peer *peer)
{
	return peer->cost && strncmp(peer->name, "jvm", 3) != 0;
}

static int peer_calls(struct bench_case *c, struct samples *s, char *why)
{
	struct peer *peer = c->arg;
	struct peer_cost cost;
	int ret = peer_opened(peer, why);

	if (ret == 0)
		ret = peer->cost(peer, PEER_CALLS, &cost, why);
	if (ret < 0)
		return ret;
	samples_add(&s[0], cost.on);
	samples_add(&s[1], cost.empty);
	return 0;
}

static int peer_switches(struct bench_case *c, struct samples *s, char *why)
{
	struct peer *peer = c->arg;
	int ret = peer_opened(peer, why);

	return ret < 0 ? ret : peer->toggle(peer, 1, false, s, why);
}

/* --- Switching ------------------------------------------------------------------------------ */

struct switched {
	const char *probe; /* NULL: the call */
	const char *split, *mapping;
	struct loop loop;
	struct pc_call call;
	uint32_t id;
};

/* Both sites are on one page, the call on another. */
static void *page_of(const struct switched *w)
{
	return w->probe ? (void *)(uintptr_t)probes_inside : (void *)w->loop.site;
}

static bool is_open(const struct switched *w)
{
	return strcmp(w->mapping, "open") == 0;
}

static int switched_begin(struct bench_case *c, char *why)
{
	struct switched *w = c->arg;
	int ret = w->probe && fi_find(w->probe, &w->id, 1) != 1 ? -ENOENT : 0;

	/* Once: the first activation takes longer. */
	if (w->probe && ret == 0)
		ret = fi_activate(w->id, NULL);
	if (w->probe && ret == 0)
		ret = fi_deactivate(w->id);
	if (ret < 0)
		return refuse_probe(why, w->probe, ret);
	ret = is_open(w) ? pc_text_open(page_of(w), 128) : 0;
	return ret < 0 ? bench_say(why, "the page cannot be opened", ret) : 0;
}

static void switched_end(struct bench_case *c)
{
	const struct switched *w = c->arg;

	if (is_open(w))
		pc_text_close(page_of(w), 128);
}

static int switch_one(struct switched *w, bool on)
{
	if (w->probe)
		return on ? fi_activate(w->id, NULL) : fi_deactivate(w->id);
	return on ? pc_activate_call(&w->call, NULL) : pc_deactivate_call(&w->call);
}

static int switched_block(struct bench_case *c, struct samples *s, char *why)
{
	for (unsigned i = 0; i < 2 * PROBES_PAIRS; i++) {
		uint64_t start = ticks_now();
		int ret = switch_one(c->arg, i % 2 == 0);

		if (ret < 0)
			return bench_say(why, "it cannot be switched", ret);
		samples_add(&s[i % 2], (double)(ticks_now() - start));
	}
	return 0;
}

static void plan_switched(struct bench_case *c, struct switched *w)
{
	*c = (struct bench_case){
		.begin = switched_begin,
		.block = switched_block,
		.end = switched_end,
		.arg = w,
		.second_measure = "deactivate",
	};
	bench_row_name(&c->row, w->probe ? "probe" : "call", "activate", "ticks");
	bench_row_param_text(&c->row, "split", w->split);
	bench_row_param_text(&c->row, "mapping", w->mapping);
}

/* --- The plan ------------------------------------------------------------------------------- */

static struct switched switched[] = {
	{ .probe = "probes_inside", .split = "0", .mapping = "open" },
	{ .probe = "probes_across", .split = "3|2", .mapping = "open" },
	{ .probe = "probes_inside", .split = "0", .mapping = "protect" },
	{ .split = "3|2", .mapping = "open" },
};

struct plan {
	struct bench_case called[LENGTH(list)];
	struct bench_case call, cases[LENGTH(list) + LENGTH(switched) + 2 * PEERS];
	size_t count;
};

/* The first peers in the list are baselines; they are rows, too, against themselves. */
static void plan_cases(struct plan *p)
{
	struct switched *call = &switched[LENGTH(switched) - 1];

	for (size_t i = 0; i < LENGTH(list); i++)
		plan_called(&p->called[i], &list[i]);
	for (size_t i = 0; i < LENGTH(list); i++) {
		p->cases[p->count] = p->called[i];
		p->cases[p->count++].base = &p->called[list[i].base];
	}
	plan_switched(&p->call, call);
	for (size_t i = 0; i < LENGTH(switched); i++) {
		plan_switched(&p->cases[p->count], &switched[i]);
		p->cases[p->count++].base = &p->call;
	}
}

static void plan_peers(struct plan *p)
{
	struct bench_case *probe = &p->cases[LENGTH(list)]; /* the first that is switched */
	unsigned count = 0;

	for (struct peer *peer = peers; peer->name && count < PEERS; peer++) {
		struct bench_case *c = &p->cases[p->count];

		if (!is_tracer(peer))
			continue;
		count++;
		*c = (struct bench_case){ .block = peer_calls,
					  .sum_up = probes_sum_up,
					  .base = &p->called[PEERS_BASE],
					  .arg = peer };
		bench_row_name(&c->row, peer->name, "on", "ticks");
		c->row.peer = true;
		p->count++;
		if (!peer->toggle)
			continue;
		c = &p->cases[p->count++];
		*c = (struct bench_case){ .block = peer_switches,
					  .arg = peer,
					  .second_measure = "deactivate" };
		c->base = probe;
		bench_row_name(&c->row, peer->name, "activate", "ticks");
		c->row.peer = true;
	}
}

static int measure_here(const struct bench_run *run, struct bench_result *result)
{
	const struct loop_spec spec = { .kind = LOOP_SITE, .split = SPLIT };
	struct switched *call = &switched[LENGTH(switched) - 1];
	struct plan *p = calloc(1, sizeof(*p));
	int ret = p ? loop_build(&call->loop, &spec) : -ENOMEM;

	if (ret == 0) {
		ret = pc_call_init(&call->call, call->loop.site);
		if (ret == 0)
			ret = pc_deactivate_call(&call->call);
		plan_cases(p);
		plan_peers(p);
		if (ret == 0)
			ret = bench_measure(run, p->cases, p->count, result);
		loop_free(&call->loop);
	}
	free(p);
	return ret;
}

int bench_probes(const struct bench_run *run, struct bench_result *result)
{
	int ret = fi_init(), end;

	if (ret < 0)
		return ret;
	ret = measure_here(run, result);
	if (ret == 0)
		ret = probes_branches(run, result);
	end = fi_fini();
	if (ret == 0)
		ret = end;
	return ret < 0 ? ret : probes_many(run, result);
}
