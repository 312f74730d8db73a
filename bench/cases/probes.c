/* SPDX-License-Identifier: MIT */
/*
 * What a probe costs, off, on and being switched, and static branches and static calls, beside what
 * people use instead: a flag, the way of dynamic_flag by hand, a function pointer, ifunc, tracers.
 * tmax-bench(1) has the rows and their extras.
 *
 * Calls are timed PROBES_CALLS at a time; beside each, in the same block, those of a loop or a
 * function without anything. Peers have an empty function of their own. Switching is of one probe
 * that no thread runs.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/cases/benchmarks.h"
#include "bench/peers/peer.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"
#include "probes/include/fastinst/branch.h"
#include "probes/include/fastinst/marker.h"

#define PROBES_CALLS   5000
#define PROBES_SAMPLES 20 /* in a block */
#define PROBES_PAIRS   100
#define PEER_CALLS     10000
#define PEER_PAIRS     3
#define PEERS	       2
#define PEER_CASES     4 /* of each: off, on, switched without and with an executor */
#define SPLIT	       3 /* of the call that switching is compared with */
#define LENGTH(a)      (sizeof(a) / sizeof(*(a)))

#ifdef __clang__
#define ALONE noinline
#else
#define ALONE noipa
#endif
#define PLAIN  __attribute__((ALONE, aligned(64), patchable_function_entry(0)))
#define PROBED __attribute__((ALONE, aligned(64), patchable_function_entry(5)))

/* --- What is called, and what is asked ------------------------------------------------------- */

static volatile bool guard_down, guard_up = true, flag;

static void guarded_function(void)
{
	__asm__ volatile("");
}

static void (*volatile guarded)(void) = guarded_function;

#define UNUSED __attribute__((unused))
#define PROBE_FUNCTION(name)                                                                       \
	void name(uint32_t id UNUSED, void *site UNUSED, const struct fi_regs *regs UNUSED,        \
		  void *data UNUSED)

__attribute__((target("general-regs-only"))) static PROBE_FUNCTION(empty_function)
{
}

static PROBE_FUNCTION(vector_function)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0" ::: "xmm0");
}

PLAIN static void add_one(uint64_t *sum)
{
	*sum += 1;
}

PLAIN static void add_two(uint64_t *sum)
{
	*sum += 2;
}

FI_CALL_DEFINE(probes_add, add_one);

static void (*volatile pointer)(uint64_t *sum) = add_one;

/* It is run by the loader, before anything that a sanitizer needs. */
__attribute__((used, no_sanitize_address,
	       no_sanitize_thread)) static void (*chosen(void))(uint64_t *)
{
	return add_two;
}

void by_ifunc(uint64_t *sum) __attribute__((ifunc("chosen")));

/* As dynamic_flag does it: the first byte makes a JMP rel32 of TEST $imm32, %eax, and back. */
#define TEST 0xa9
#define JMP  0xe9
static inline __attribute__((always_inline)) bool by_hand(void)
{
	__asm__ goto("1:	.byte 0xa9\n"
		     "	.long %l[other] - 2f\n"
		     "2:\n"
		     ".pushsection probes_hand, \"aw\"\n"
		     "	.quad 1b\n"
		     ".popsection\n"
		     :
		     :
		     : "cc"
		     : other);
	return false;
other:
	return true;
}

extern uint8_t *__start_probes_hand[], *__stop_probes_hand[];

/* --- Loops: each tells a sum, for tests ------------------------------------------------------ */

/* A function, and the loop that calls it. */
#define CALLED(kind, name, first)                                                                  \
	kind static uint64_t probes_##name(uint64_t a)                                             \
	{                                                                                          \
		first;                                                                             \
		__asm__ volatile("" : "+r"(a));                                                    \
		return a + 1;                                                                      \
	}                                                                                          \
	PLAIN static uint64_t loop_##name(uint64_t times)                                          \
	{                                                                                          \
		uint64_t a = 0;                                                                    \
                                                                                                   \
		while (times--)                                                                    \
			a = probes_##name(a);                                                      \
		return a;                                                                          \
	}

CALLED(PLAIN, none, (void)0)
CALLED(PLAIN, guard_down, if (__builtin_expect(guard_down, 0)) guarded())
CALLED(PLAIN, guard_up, if (guard_up) guarded())
CALLED(PROBED, off, (void)0)
CALLED(PROBED, counts, (void)0)
CALLED(PROBED, keeps, (void)0)
CALLED(PROBED, any, (void)0)
CALLED(PROBED, vectors, (void)0)

#define LOOP(name, body)                                                                           \
	PLAIN static uint64_t loop_##name(uint64_t times)                                          \
	{                                                                                          \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		for (uint64_t i = 0; i < times; i++) {                                             \
			__asm__ volatile("" : "+r"(sum));                                          \
			body;                                                                      \
		}                                                                                  \
		return sum;                                                                        \
	}

LOOP(empty, (void)0)
LOOP(marker_off, FI_MARKER(probes, marker_off))
LOOP(marker_counts, FI_MARKER(probes, marker_counts))
LOOP(marker_keeps, FI_MARKER(probes, marker_keeps))
LOOP(flag, if (__builtin_expect(flag, 0)) sum++)
LOOP(branch, if (fi_branch(probes, branch)) sum++)
LOOP(hand, if (by_hand()) sum++)
LOOP(direct, add_two(&sum))
LOOP(static, fi_call(probes_add, &sum))
LOOP(pointer, pointer(&sum))
LOOP(ifunc, by_ifunc(&sum))

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

/* --- Switching ------------------------------------------------------------------------------ */

typedef int turn_fn(bool on);

static uint32_t probe_id; /* that is switched */
static struct pc_call switched_call;

#define TURN(name, change)                                                                         \
	static int turn_##name(bool on)                                                            \
	{                                                                                          \
		return change;                                                                     \
	}

TURN(probe, on ? fi_activate(probe_id, NULL) : fi_deactivate(probe_id))
TURN(call, on ? pc_activate_call(&switched_call, NULL) : pc_deactivate_call(&switched_call))
TURN(flag, (flag = on, 0))
TURN(pointer, (pointer = on ? add_two : add_one, 0))
TURN(static, fi_call_set(probes_add, on ? add_two : add_one))

static int turn_branch(bool on)
{
	long n = on ? fi_branch_on("probes.branch") : fi_branch_off("probes.branch");

	return n < 0 ? (int)n : n == 1 ? 0 : -ENOENT;
}

/* What threads may fetch meanwhile is one instruction or the other. */
static int turn_open_hand(bool on)
{
	for (uint8_t **site = __start_probes_hand; site < __stop_probes_hand; site++)
		*(volatile uint8_t *)*site = on ? JMP : TEST;
	return 0;
}

static int protect_hand(int protection)
{
	for (uint8_t **site = __start_probes_hand; site < __stop_probes_hand; site++)
		if (mprotect((void *)((uintptr_t)*site & ~UINT64_C(4095)), 4096, protection) < 0)
			return -errno;
	return 0;
}

static int turn_hand(bool on)
{
	int ret = protect_hand(PROT_READ | PROT_WRITE | PROT_EXEC);

	if (ret < 0)
		return ret;
	turn_open_hand(on);
	return protect_hand(PROT_READ | PROT_EXEC);
}

/* --- Loops, timed ----------------------------------------------------------------------------- */

enum {
	GUARD_OFF,
	GUARD,
	UNMARKED,
	FLAG_OFF,
	FLAG_ON,
	DIRECT,
	PEERS_BASE = DIRECT + 3 /* "keeps" */
};

static struct looped {
	const char *name, *site, *measure;
	uint64_t (*loop)(uint64_t times), (*beside)(uint64_t times);
	unsigned base; /* in this list */
	bool peer;
	turn_fn *turn;	   /* on in a block, else off; NULL: it cannot be, or is a probe */
	const char *probe; /* NULL: none; else on with this function, unless it is measured off */
	fi_function *function;
	unsigned flags;
	uint64_t rounds, sum; /* of the loop, for tests */
} looped[] = {
	/* clang-format off */
	{ "guard", "entry", "off", loop_guard_down, loop_none, GUARD_OFF, .peer = true },
	{ "guard", "entry", "on", loop_guard_up, loop_none, GUARD, .peer = true },
	{ "none", "marker", "off", loop_empty, loop_empty, UNMARKED, .peer = true },
	{ "flag", "branch", "off", loop_flag, loop_empty, FLAG_OFF, .peer = true, .turn = turn_flag },
	{ "flag", "branch", "on", loop_flag, loop_empty, FLAG_ON, .peer = true, .turn = turn_flag },
	{ "direct", "call", "on", loop_direct, loop_empty, DIRECT, .peer = true },
	{ "off", "entry", "off", loop_off, loop_none, GUARD_OFF, .probe = "probes_off" },
	{ "counts", "entry", "on", loop_counts, loop_none, GUARD, .probe = "probes_counts" },
	{ "keeps", "entry", "on", loop_keeps, loop_none, GUARD, .probe = "probes_keeps",
	  .function = empty_function, .flags = FI_KEEPS_VECTORS },
	{ "any", "entry", "on", loop_any, loop_none, GUARD, .probe = "probes_any", .function = empty_function },
	{ "vectors", "entry", "on", loop_vectors, loop_none, GUARD, .probe = "probes_vectors",
	  .function = vector_function },
	{ "off", "marker", "off", loop_marker_off, loop_empty, UNMARKED, .probe = "probes.marker_off" },
	{ "counts", "marker", "on", loop_marker_counts, loop_empty, GUARD, .probe = "probes.marker_counts" },
	{ "keeps", "marker", "on", loop_marker_keeps, loop_empty, GUARD, .probe = "probes.marker_keeps",
	  .function = empty_function, .flags = FI_KEEPS_VECTORS },
	{ "branch", "branch", "off", loop_branch, loop_empty, FLAG_OFF, .turn = turn_branch },
	{ "branch", "branch", "on", loop_branch, loop_empty, FLAG_ON, .turn = turn_branch },
	{ "hand", "branch", "off", loop_hand, loop_empty, FLAG_OFF, .peer = true, .turn = turn_hand },
	{ "hand", "branch", "on", loop_hand, loop_empty, FLAG_ON, .peer = true, .turn = turn_hand },
	{ "static", "call", "on", loop_static, loop_empty, DIRECT, .turn = turn_static },
	{ "pointer", "call", "on", loop_pointer, loop_empty, DIRECT, .peer = true, .turn = turn_pointer },
	{ "ifunc", "call", "on", loop_ifunc, loop_empty, DIRECT, .peer = true },
	/* clang-format on */
};

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

static int looped_begin(struct bench_case *c, char *why)
{
	const struct looped *l = c->arg;
	bool on = strcmp(l->measure, "on") == 0;
	uint32_t id;
	int ret = 0;

	if (l->probe && fi_find(l->probe, &id, 1) != 1)
		ret = -ENOENT;
	else if (l->probe && on)
		ret = fi_activate_how(&id, 1, l->function, l->flags);
	else if (l->turn && on)
		ret = l->turn(true);
	if (ret < 0 && !l->probe)
		return bench_say(why, "it cannot be turned on", ret);
	return ret < 0 ? refuse_probe(why, l->probe, ret) : 0;
}

static void looped_end(struct bench_case *c)
{
	const struct looped *l = c->arg;

	if (l->turn)
		l->turn(false);
}

/* In ticks per round. Once untimed, for the caches and the branch predictors. */
static uint64_t add_rounds(uint64_t (*loop)(uint64_t times), struct samples *s)
{
	uint64_t sum = loop(PROBES_CALLS);

	for (unsigned i = 0; i < PROBES_SAMPLES; i++) {
		uint64_t start = ticks_now();

		sum += loop(PROBES_CALLS);
		samples_add(s, (double)(ticks_now() - start) / PROBES_CALLS);
	}
	return sum;
}

static int looped_block(struct bench_case *c, struct samples *s, char *why)
{
	struct looped *l = c->arg;

	(void)why;
	l->sum += add_rounds(l->loop, &s[0]);
	l->rounds += (PROBES_SAMPLES + 1) * PROBES_CALLS;
	add_rounds(l->beside, &s[1]);
	return 0;
}

/* The second samples time an empty loop. */
static void sum_up(struct bench_case *c, struct bench_row *row)
{
	double over = bench_row_over(row, &c->samples[0], &c->samples[1]);
	double base = over_pairs(&c->base_samples[0], &c->base_samples[1]).median;

	bench_row_extra(row, "over_base", base);
	/* What is off may take nothing, give or take a step of the clock. */
	if (base > 0)
		bench_row_extra(row, "over_ratio", over / base);
}

/* --- Switches, timed ------------------------------------------------------------------------- */

#define CODE(of) ((void *)(uintptr_t)(of))

enum {
	CALL,
	FLAG,
	POINTER,
	HAND,
	OPEN_HAND,
	PROBE
};

static struct switched {
	const char *name, *key, *text, *mapping; /* key: site or split */
	turn_fn *turn;
	void *code;	   /* to be opened where the mapping is open */
	unsigned base;	   /* in this list */
	const char *probe; /* NULL: it is none */
	bool peer;
} switched[] = {
	/* clang-format off */
	{ "call", "split", "3|2", "open", turn_call, NULL, .base = CALL },
	{ "flag", "site", "branch", "data", turn_flag, NULL, .base = FLAG, .peer = true },
	{ "pointer", "site", "call", "data", turn_pointer, NULL, .base = POINTER, .peer = true },
	{ "hand", "site", "branch", "protect", turn_hand, NULL, .base = FLAG, .peer = true },
	{ "hand", "site", "branch", "open", turn_open_hand, CODE(loop_hand), .base = FLAG, .peer = true },
	{ "probe", "split", "0", "open", turn_probe, CODE(probes_inside), .base = CALL, .probe = "probes_inside" },
	{ "probe", "split", "3|2", "open", turn_probe, CODE(probes_inside), .base = CALL, .probe = "probes_across" },
	{ "probe", "split", "0", "protect", turn_probe, NULL, .base = CALL, .probe = "probes_inside" },
	{ "branch", "site", "branch", "protect", turn_branch, NULL, .base = HAND },
	{ "branch", "site", "branch", "open", turn_branch, CODE(loop_branch), .base = OPEN_HAND },
	{ "static", "site", "call", "protect", turn_static, NULL, .base = POINTER },
	{ "static", "site", "call", "open", turn_static, CODE(&fi_call_probes_add), .base = POINTER },
	/* clang-format on */
};

static int switched_begin(struct bench_case *c, char *why)
{
	struct switched *w = c->arg;
	int ret = w->probe && fi_find(w->probe, &probe_id, 1) != 1 ? -ENOENT : 0;

	/* Once: the first activation takes longer. */
	if (w->probe && ret == 0)
		ret = fi_activate(probe_id, NULL);
	if (w->probe && ret == 0)
		ret = fi_deactivate(probe_id);
	if (ret < 0)
		return refuse_probe(why, w->probe, ret);
	ret = w->code ? pc_text_open(w->code, 128) : 0;
	return ret < 0 ? bench_say(why, "the page cannot be opened", ret) : 0;
}

static void switched_end(struct bench_case *c)
{
	const struct switched *w = c->arg;

	if (w->code)
		pc_text_close(w->code, 128);
}

static int switched_block(struct bench_case *c, struct samples *s, char *why)
{
	struct switched *w = c->arg;

	for (unsigned i = 0; i < 2 * PROBES_PAIRS; i++) {
		uint64_t start = ticks_now();
		int ret = w->turn(i % 2 == 0);

		if (ret < 0)
			return bench_say(why, "it cannot be switched", ret);
		samples_add(&s[i % 2], (double)(ticks_now() - start));
	}
	return 0;
}

/* --- Peers ---------------------------------------------------------------------------------- */

struct asked_peer {
	struct peer *peer;
	int (*ask)(struct peer *peer, unsigned times, bool on, struct samples *s, char *why);
	unsigned times;
	bool on; /* of a change: an executor runs it */
};

static int peer_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct asked_peer *a = c->arg;

	return a->ask(a->peer, a->times, a->on, s, why);
}

/* --- The plan ------------------------------------------------------------------------------- */

struct probes_plan {
	/* The first of the lists are baselines; they are rows, too, against themselves. */
	struct bench_case base[LENGTH(looped) + LENGTH(switched)];
	struct bench_case cases[LENGTH(looped) + LENGTH(switched) + PEER_CASES * PEERS];
	struct asked_peer asked[PEER_CASES * PEERS];
	size_t count;
};

static void plan_ours(struct probes_plan *p)
{
	struct bench_case *c = p->base;

	for (struct looped *l = looped; l < looped + LENGTH(looped); l++, c++) {
		*c = (struct bench_case){
			looped_begin, looped_block, looped_end, sum_up, l, .base = p->base + l->base
		};
		bench_row_name(&c->row, l->name, l->measure, "ticks");
		bench_row_param_text(&c->row, "site", l->site);
		c->row.peer = l->peer;
	}
	for (struct switched *w = switched; w < switched + LENGTH(switched); w++, c++) {
		*c = (struct bench_case){ switched_begin,
					  switched_block,
					  switched_end,
					  NULL,
					  w,
					  .base = p->base + LENGTH(looped) + w->base,
					  .second_measure = "deactivate" };
		bench_row_name(&c->row, w->name, "activate", "ticks");
		bench_row_param_text(&c->row, w->key, w->text);
		bench_row_param_text(&c->row, "mapping", w->mapping);
		c->row.peer = w->peer;
	}
	p->count = (size_t)(c - p->base);
	memcpy(p->cases, p->base, sizeof(p->base));
}

static void plan_peers(struct probes_plan *p)
{
	struct bench_case *ours = p->base + LENGTH(looped) + PROBE;
	struct asked_peer *a = p->asked;

	for (struct peer *peer = peers; peer->name; peer++)
		for (unsigned i = 0; i < (peer->site ? 0 : PEER_CASES); i++, a++) {
			struct bench_case *c = &p->cases[p->count++];
			bool on = i % 2, switches = i / 2;

			*a = (struct asked_peer){ peer, peer_cost, PEER_CALLS, on };
			*c = (struct bench_case){ .block = peer_block, .sum_up = sum_up, .arg = a };
			c->base = p->base + (on ? PEERS_BASE : GUARD_OFF);
			bench_row_name(&c->row, peer->name, on ? "on" : "off", "ticks");
			c->row.peer = true;
			if (!switches)
				continue;
			*a = (struct asked_peer){ peer, peer_toggle, PEER_PAIRS, on };
			c->sum_up = NULL;
			c->second_measure = "deactivate";
			bench_row_name(&c->row, peer->name, "activate", "ticks");
			bench_row_param(&c->row, "executors", on);
			/* No thread runs the probe either. */
			c->base = on ? NULL : ours;
		}
}

static int measure_probes(const struct bench_run *run, struct bench_result *result)
{
	const struct loop_spec spec = { .kind = LOOP_SITE, .split = SPLIT };
	static struct probes_plan plan;
	struct loop loop = { 0 };
	int ret = fi_init(), end;

	if (ret < 0)
		return ret;
	ret = loop_build(&loop, &spec);
	if (ret == 0)
		ret = pc_call_init(&switched_call, loop.site);
	if (ret == 0)
		ret = pc_deactivate_call(&switched_call);
	switched[CALL].code = loop.site;
	memset(&plan, 0, sizeof(plan));
	plan_ours(&plan);
	plan_peers(&plan);
	if (ret == 0) {
		peers_open(run, false);
		ret = bench_measure(run, plan.cases, plan.count, result);
		peers_close();
	}
	loop_free(&loop);
	end = fi_fini();
	ret = ret < 0 ? ret : end;
	return ret < 0 ? ret : measure_many_probes(run, result);
}

const struct benchmark bench_probes = {
	.name = "probes",
	.about = "probes of functions and markers, and switching them",
	.title = "Probes",
	.caption = "Time of a call of a function with a probe, or of a change.",
	.run = measure_probes,
};
