/* SPDX-License-Identifier: MIT */
/*
 * Each change of a large program timed (paper, sec. 8.3 and figure 10): a pass that turns all
 * sites off, in order, then one that turns them on again. An executor runs the program
 * meanwhile, or none. tmax-bench(1) has the rows and their extras.
 *
 * A pass leaves caches and predictors as a large program has them: between two changes of
 * one site lie those of all others. What is started is drained after every LATENCY_DRAIN of them,
 * untimed; the paper has another thread for that, here the executor has its CPU to itself.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/emit.h"
#include "base/random.h"
#include "bench/method/method.h"
#include "patchcore/async.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"

/* --- The program ------------------------------------------------------------------------------ */

/*
 * A made-up program: functions aligned as a compiler has them, each with one call to be patched.
 *
 *	.align 16
 *	xor	eax, eax	so it returns 0, where nothing is called
 *	<NOPs>			0 to 47: a prologue of any length
 *	call	target		the site: 5 bytes
 *	ret
 *	<body>			of random size, never run: what else is in a function
 *
 * No function is laid out for the site in it. So which sites cross a boundary, and how
 * many, is left to chance as in a real program.
 *
 * The calls are counted twice: by the target in memory, and by what each function returns.
 * An executor that called without counting, or counted without calling, shows.
 */
#define SITES_LENGTH 5	/* bytes of a site */
#define SITES_ROUND  64 /* functions that an executor runs between two looks at its work */

/* Runs one function. calls[0]: raised by the target. Returns 1 if it was called, else 0. */
typedef uint64_t sites_fn(uint64_t *calls);

struct looped_sites {
	unsigned long count;
	sites_fn **run; /* by function */
	uint8_t **site;
	uint8_t *map; /* the target of all calls, then the functions */
	size_t bytes;
};

#define PAGE	      4096u
#define ALIGN	      16u
#define TARGET_BYTES  64u
#define BODY_MEDIAN   80.0 /* bytes; most functions are short, some are very long */
#define BODY_MOST     4000.0
#define PROLOGUE_MOST 48 /* bytes */

static const uint8_t nop[SITES_LENGTH] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* --- One function ------------------------------------------------------------------------- */

/* Returns where in it the site is. */
static size_t put_function(struct emit *e, const uint8_t *target, uint64_t *random)
{
	size_t site, body;
	double u[2];

	PUT(e, 0x31, 0xc0); /* xor eax, eax */
	put_copies(e, 0x90, random_next(random) % PROLOGUE_MOST);
	site = e->done;
	PUT(e, 0xe8);
	put_rel32(e, target, 0);
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
static size_t put_functions(struct looped_sites *sites, uint64_t random)
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

static void sites_free(struct looped_sites *sites)
{
	if (sites->map) {
		pc_forget(sites->map, sites->bytes);
		munmap(sites->map, sites->bytes);
	}
	free(sites->run);
	free(sites->site);
	*sites = (struct looped_sites){ 0 };
}

/*
 * All calls on, and the pages open for patching (pc_init() was called). Same seed, same program.
 * 0 or a negative errno.
 */
static int sites_build(struct looped_sites *sites, unsigned long count, uint64_t seed)
{
	void *map = MAP_FAILED;
	int ret = -ENOMEM;

	if (!count)
		return -EINVAL;
	*sites = (struct looped_sites){
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

/* --- Patching and running it ----------------------------------------------- */

static void sites_code(const struct looped_sites *sites, unsigned long i, bool on,
		       uint8_t code[SITES_LENGTH])
{
	struct emit e = { .at = code };

	if (on)
		put_call(&e, sites->site[i], sites->map);
	else
		put(&e, nop, sizeof(nop));
}

static bool sites_crosses(const uint8_t *site, unsigned boundary)
{
	return (uintptr_t)site % boundary + SITES_LENGTH > boundary;
}

static double sites_straddlers(const struct looped_sites *sites, unsigned boundary)
{
	unsigned long found = 0;

	for (unsigned long i = 0; i < sites->count; i++)
		found += sites_crosses(sites->site[i], boundary);
	return (double)found / (double)sites->count;
}

/*
 * The work of executors, with the struct looped_sites as arg: all functions in order, again and
 * again. In counts: calls[0] as the target counted, calls[1] as the functions returned. Executors
 * begin apart from each other, and each goes on where its round before ended.
 */
static void sites_run(const struct hot_work *work, unsigned executor, struct hot_counts *counts)
{
	const struct looped_sites *sites = work->arg;
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

/* --- The benchmark ---------------------------------------------------------------------------- */

#define LATENCY_SITES  20000
#define LATENCY_DRAIN  256
#define LATENCY_ROUNDS 8 /* at most: each makes four passes of every case */

enum {
	ON,
	OFF
};

/* What all cases work on. */
struct passes {
	const struct looped_sites *sites;
	uint8_t (*code)[2][8]; /* by site, ON and OFF */
	uint64_t *word;	       /* by site: the 8 bytes it begins in, while it is on */
	struct pc_call *call;
	struct hot *hot;
	struct hot_work work;
	bool calls_ready;
};

/* One way to change all sites. The first is the baseline of the others. */
static const struct latency_way {
	const char *name;
	enum {
		BY_FLOOR,
		BY_PATCH,
		BY_START,
		BY_CALL
	} change;
	bool has_policy;
	enum pc_policy policy;
} kinds[] = {
	{ .name = "floor", .change = BY_FLOOR },
	{ "patch", BY_PATCH, true, PC_POLICY_WAIT },
	{ "patch", BY_PATCH, true, PC_POLICY_MEMBARRIER },
	{ "start", BY_START, true, PC_POLICY_WAIT },
	{ "start", BY_START, true, PC_POLICY_MEMBARRIER },
	{ .name = "call", .change = BY_CALL },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))
#define CASES (2 * (KINDS - 1)) /* with and without an executor */

struct pass_case {
	struct passes *passes;
	const struct latency_way *kind;
	unsigned window;
};

/* --- One block: all off, all on ----------------------------------------------------------- */

static uint64_t *word_of(const struct passes *l, unsigned long i)
{
	return (uint64_t *)((uintptr_t)l->sites->site[i] & ~(uintptr_t)7);
}

static int change_site(const struct pass_case *lc, unsigned long i, int to)
{
	struct passes *l = lc->passes;

	switch (lc->kind->change) {
	case BY_PATCH:
		return pc_patch(l->sites->site[i], l->code[i][to], SITES_LENGTH);
	case BY_START:
		return pc_start_patch(l->sites->site[i], l->code[i][to], SITES_LENGTH);
	case BY_CALL:
		return to == ON ? pc_activate_call(&l->call[i], NULL)
				: pc_deactivate_call(&l->call[i]);
	default:
		/* What stands there already: a load of it here would fetch the line untimed. */
		__atomic_exchange_n(word_of(l, i), l->word[i], __ATOMIC_SEQ_CST);
		return 0;
	}
}

static bool is_on(const struct passes *l, unsigned long i)
{
	return memcmp(l->sites->site[i], l->code[i][ON], SITES_LENGTH) == 0;
}

static int pass_once(const struct pass_case *lc, int to, struct samples *s)
{
	const struct passes *l = lc->passes;
	bool starts = lc->kind->change == BY_START;
	int ret = 0;

	for (unsigned long i = 0; i < l->sites->count && ret == 0; i++) {
		uint64_t start = ticks_now();

		ret = change_site(lc, i, to);
		samples_add(s, (double)(ticks_now() - start));
		if (ret == 0 && starts && i % LATENCY_DRAIN == LATENCY_DRAIN - 1)
			ret = pc_drain();
	}
	if (ret == 0 && starts)
		ret = pc_drain();
	/* A change that was not made would be a cheap one. */
	for (unsigned long i = 0; i < l->sites->count && ret == 0; i++)
		if (is_on(l, i) != (to == ON || lc->kind->change == BY_FLOOR))
			ret = -EILSEQ;
	return ret;
}

static int block_of_passes(struct bench_case *c, struct samples *s, char *why)
{
	const struct pass_case *lc = c->arg;
	int ret = pass_once(lc, OFF, &s[OFF]);

	if (ret == 0)
		ret = pass_once(lc, ON, &s[ON]);
	if (ret < 0)
		snprintf(why, BENCH_WHY, "%s",
			 ret == -EILSEQ ? "a change was not made" : strerror(-ret));
	return ret;
}

static int begin_pass(struct bench_case *c, char *why)
{
	struct pass_case *lc = c->arg;
	struct passes *l = lc->passes;
	bool call = lc->kind->change == BY_CALL;
	struct pc_status status = { 0 };
	int ret;

	pc_get_status(&status);
	/* Calls are turned on and off by words, see call.h. */
	lc->window = call ? 8 : status.atomic_window;
	/* Once: pc_call_init() looks at calls that are on. */
	for (unsigned long i = 0; i < l->sites->count && call && !l->calls_ready; i++) {
		ret = pc_call_init(&l->call[i], l->sites->site[i]);
		if (ret < 0)
			return bench_say(why, "pc_call_init", ret);
	}
	l->calls_ready |= call;
	return 0;
}

static void end_pass(struct bench_case *c)
{
	struct pass_case *lc = c->arg;
	struct passes *l = lc->passes;

	pc_drain();
	/* A block that failed left some of it off. */
	for (unsigned long i = 0; i < l->sites->count; i++)
		if (!is_on(l, i))
			pc_patch(l->sites->site[i], l->code[i][ON], SITES_LENGTH);
}

/* --- Straddlers and others apart ---------------------------------------------------------- */

/* Every block has a sample per site, in their order. */
static double median_of_kind(const struct pass_case *lc, const struct samples *s, bool crosses)
{
	const struct looped_sites *sites = lc->passes->sites;
	struct samples some = { 0 };
	double median = NAN;

	for (size_t i = 0; i < s->count; i++)
		if (sites_crosses(sites->site[i % sites->count], lc->window) == crosses)
			samples_add(&some, s->value[i]);
	samples_end_block(&some);
	if (some.blocks && !some.lost)
		median = samples_block_median(&some, 0);
	samples_free(&some);
	return median;
}

static void sum_up(struct bench_case *c, struct bench_row *row)
{
	const struct pass_case *lc = c->arg;
	const struct samples *s = &c->samples[strcmp(row->measure, "off") == 0 ? OFF : ON];

	bench_row_extra(row, "straddlers", sites_straddlers(lc->passes->sites, 8));
	bench_row_extra(row, "straddlers_line", sites_straddlers(lc->passes->sites, 64));
	bench_row_extra(row, "window", lc->window);
	bench_row_extra(row, "p50_straddlers", median_of_kind(lc, s, true));
	bench_row_extra(row, "p50_others", median_of_kind(lc, s, false));
}

/* --- All cases ---------------------------------------------------------------------------- */

static struct bench_case make_case(struct pass_case *lc, struct passes *l,
				   const struct latency_way *kind, unsigned executors)
{
	struct bench_case c = {
		.begin = begin_pass,
		.block = block_of_passes,
		.end = end_pass,
		.arg = lc,
		.policy = kind->policy,
		.hot = l->hot,
		.work = &l->work,
		.executors = executors,
		.second_measure = "off",
		.rounds = LATENCY_ROUNDS,
		.sum_up = kind == kinds ? NULL : sum_up,
		.histogram = kind != kinds,
	};

	*lc = (struct pass_case){ .passes = l, .kind = kind };
	bench_row_name(&c.row, kind->name, "on", "ticks");
	if (kind->has_policy)
		bench_row_param_text(&c.row, "policy", bench_policy_name(kind->policy));
	bench_row_param(&c.row, "executors", executors);
	bench_row_param(&c.row, "sites", (double)l->sites->count);
	return c;
}

/*
 * The program is on before and after. -EILSEQ: its calls are not as many as the functions say; an
 * executor ran what the patcher did not write.
 */
static int latency_measure(const struct bench_run *run, const struct looped_sites *sites,
			   struct bench_result *result)
{
	struct passes l = {
		.sites = sites,
		.code = calloc(sites->count, sizeof(*l.code)),
		.word = calloc(sites->count, sizeof(*l.word)),
		.call = calloc(sites->count, sizeof(*l.call)),
		.work = { sites_run, (void *)sites },
	};
	struct pass_case arg[2][KINDS];
	struct bench_case cases[CASES], base[2];
	size_t count = 0;
	struct hot_sum sum;
	int ret = l.code && l.word && l.call ? 0 : -ENOMEM;

	for (unsigned long i = 0; i < sites->count && ret == 0; i++) {
		sites_code(sites, i, true, l.code[i][ON]);
		sites_code(sites, i, false, l.code[i][OFF]);
		l.word[i] = __atomic_load_n(word_of(&l, i), __ATOMIC_RELAXED);
	}
	if (ret == 0)
		ret = hot_start(&l.hot, run->topology, &run->seating);
	for (unsigned executors = 0; executors < 2; executors++) {
		base[executors] = make_case(&arg[executors][0], &l, &kinds[0], executors);
		for (size_t k = 1; k < KINDS; k++, count++) {
			cases[count] = make_case(&arg[executors][k], &l, &kinds[k], executors);
			cases[count].base = &base[executors];
		}
	}
	if (ret == 0)
		ret = bench_measure(run, cases, count, result);
	if (ret == 0) {
		sum = hot_count(l.hot);
		if (sum.calls[0] != sum.calls[1] || sum.calls[0] > sum.executed)
			ret = -EILSEQ;
	}
	hot_stop(l.hot);
	free(l.code);
	free(l.word);
	free(l.call);
	return ret;
}

static int measure_latency(const struct bench_run *run, struct bench_result *result)
{
	struct looped_sites sites;
	int ret = sites_build(&sites, LATENCY_SITES, run->seed);

	if (ret < 0)
		return ret;
	ret = latency_measure(run, &sites, result);
	sites_free(&sites);
	return ret;
}

const struct benchmark bench_latency = {
	.name = "latency",
	.about = "its distribution over 20,000 sites",
	.title = "Many sites (figure 10 of the paper)",
	.caption =
		"The paper's figure 10: share of the changes by what each took, eight bins to an "
		"octave, both scales logarithmic, so that the rare long ones are seen. "
		"Activation and deactivation apart. The second heap of patch is that of the "
		"straddlers.",
	.drawing = DRAWN_AS_HISTOGRAMS,
	.run = measure_latency,
};
