/* SPDX-License-Identifier: MIT */
/*
 * Static branches and static calls, what they cost and what switching them does, beside what is
 * used instead: a flag, the way of dynamic_flag by hand, a function pointer, ifunc.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/cases/probes/loops.h"
#include "bench/cases/probes/probes.h"
#include "patchcore/machine/wait.h"
#include "patchcore/mapping.h"
#include "probes/include/fastinst/branch.h"

#define LENGTH(a) (sizeof(a) / sizeof(*(a)))

uint64_t probes_rounds[PROBES_KINDS], probes_sums[PROBES_KINDS];

/* --- What is called, and what is asked -------------------------------------------------------- */

static volatile bool flag;

PROBES_PLAIN static void add_one(uint64_t *sum)
{
	*sum += 1;
}

PROBES_PLAIN static void add_two(uint64_t *sum)
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

void probes_by_ifunc(uint64_t *sum) __attribute__((ifunc("chosen")));

/*
 * As dynamic_flag has it: TEST %eax with a number, or a JMP by the same number, which one byte
 * makes of the other.
 */
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

#define LOOP(kind, body)                                                                           \
	PROBES_PLAIN static void loop_##kind(uint64_t times)                                       \
	{                                                                                          \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		for (uint64_t i = 0; i < times; i++) {                                             \
			__asm__ volatile("" : "+r"(sum));                                          \
			body;                                                                      \
		}                                                                                  \
		probes_rounds[kind] += times;                                                      \
		probes_sums[kind] += sum;                                                          \
	}

LOOP(PROBES_FLAG, if (__builtin_expect(flag, 0)) sum++)
LOOP(PROBES_BRANCH, if (fi_branch(probes, branch)) sum++)
LOOP(PROBES_HAND, if (by_hand()) sum++)
LOOP(PROBES_DIRECT, add_two(&sum))
LOOP(PROBES_STATIC, fi_call(probes_add, &sum))
LOOP(PROBES_POINTER, pointer(&sum))
LOOP(PROBES_IFUNC, probes_by_ifunc(&sum))

PROBES_PLAIN static void loop_empty(uint64_t times)
{
	for (uint64_t i = 0; i < times; i++)
		__asm__ volatile("");
}

/* --- Switching -------------------------------------------------------------------------------- */

static int turn_flag(bool on)
{
	flag = on;
	return 0;
}

static int turn_branch(bool on)
{
	long n = on ? fi_branch_on("probes.branch") : fi_branch_off("probes.branch");

	return n < 0 ? (int)n : n == 1 ? 0 : -ENOENT;
}

/* What threads may fetch meanwhile is one instruction or the other. */
static void hand_bytes(bool on)
{
	for (uint8_t **site = __start_probes_hand; site < __stop_probes_hand; site++)
		*(volatile uint8_t *)*site = on ? JMP : TEST;
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
	hand_bytes(on);
	return protect_hand(PROT_READ | PROT_EXEC);
}

static int turn_open_hand(bool on)
{
	hand_bytes(on);
	return 0;
}

static int turn_static(bool on)
{
	return fi_call_set(probes_add, on ? add_two : add_one);
}

static int turn_pointer(bool on)
{
	pointer = on ? add_two : add_one;
	return 0;
}

/* --- Loops ------------------------------------------------------------------------------------ */

struct looped {
	const char *name, *site, *measure;
	void (*loop)(uint64_t times);
	int (*turn)(bool on); /* NULL: it cannot be */
	unsigned base;	      /* in this list */
};

enum {
	FLAG_OFF,
	FLAG_ON,
	DIRECT
};

static const struct looped looped[] = {
	{ "flag", "branch", "off", loop_PROBES_FLAG, turn_flag, FLAG_OFF },
	{ "flag", "branch", "on", loop_PROBES_FLAG, turn_flag, FLAG_ON },
	{ "direct", "call", "on", loop_PROBES_DIRECT, NULL, DIRECT },
	{ "branch", "branch", "off", loop_PROBES_BRANCH, turn_branch, FLAG_OFF },
	{ "branch", "branch", "on", loop_PROBES_BRANCH, turn_branch, FLAG_ON },
	{ "hand", "branch", "off", loop_PROBES_HAND, turn_hand, FLAG_OFF },
	{ "hand", "branch", "on", loop_PROBES_HAND, turn_hand, FLAG_ON },
	{ "static", "call", "on", loop_PROBES_STATIC, turn_static, DIRECT },
	{ "pointer", "call", "on", loop_PROBES_POINTER, turn_pointer, DIRECT },
	{ "ifunc", "call", "on", loop_PROBES_IFUNC, NULL, DIRECT },
};

static bool is_ours(const char *name)
{
	return !strcmp(name, "branch") || !strcmp(name, "static");
}

static int looped_begin(struct bench_case *c, char *why)
{
	const struct looped *l = c->arg;
	int ret = l->turn && !strcmp(l->measure, "on") ? l->turn(true) : 0;

	return ret < 0 ? bench_say(why, "it cannot be turned on", ret) : 0;
}

static int looped_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct looped *l = c->arg;

	(void)why;
	probes_samples(l->loop, &s[0]);
	probes_samples(loop_empty, &s[1]);
	return 0;
}

static void looped_end(struct bench_case *c)
{
	const struct looped *l = c->arg;

	if (l->turn)
		l->turn(false);
}

static void plan_looped(struct bench_case *c, const struct looped *l)
{
	*c = (struct bench_case){
		.begin = looped_begin,
		.block = looped_block,
		.end = looped_end,
		.sum_up = probes_sum_up,
		.arg = (void *)(uintptr_t)l,
	};
	bench_row_name(&c->row, l->name, l->measure, "ticks");
	bench_row_param_text(&c->row, "site", l->site);
	c->row.peer = !is_ours(l->name);
}

/* --- Changes ---------------------------------------------------------------------------------- */

struct turned {
	const char *name, *site, *mapping;
	int (*turn)(bool on);
	void *code; /* NULL: it is data */
	unsigned base;
};

enum {
	TURN_FLAG,
	TURN_POINTER,
	TURN_HAND,
	TURN_OPEN_HAND
};

#define CODE(function) ((void *)(uintptr_t)(function))
static const struct turned turned[] = {
	{ "flag", "branch", "data", turn_flag, NULL, TURN_FLAG },
	{ "pointer", "call", "data", turn_pointer, NULL, TURN_POINTER },
	{ "hand", "branch", "protect", turn_hand, CODE(loop_PROBES_HAND), TURN_FLAG },
	{ "hand", "branch", "open", turn_open_hand, CODE(loop_PROBES_HAND), TURN_FLAG },
	{ "branch", "branch", "protect", turn_branch, CODE(loop_PROBES_BRANCH), TURN_HAND },
	{ "branch", "branch", "open", turn_branch, CODE(loop_PROBES_BRANCH), TURN_OPEN_HAND },
	{ "static", "call", "protect", turn_static, CODE(&fi_call_probes_add), TURN_POINTER },
	{ "static", "call", "open", turn_static, CODE(&fi_call_probes_add), TURN_POINTER },
};

static int turned_begin(struct bench_case *c, char *why)
{
	const struct turned *t = c->arg;
	int ret = strcmp(t->mapping, "open") != 0 ? 0 : pc_text_open(t->code, 64);

	return ret < 0 ? bench_say(why, "the page cannot be opened", ret) : 0;
}

static void turned_end(struct bench_case *c)
{
	const struct turned *t = c->arg;

	if (!strcmp(t->mapping, "open"))
		pc_text_close(t->code, 64);
}

static int turned_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct turned *t = c->arg;

	for (unsigned i = 0; i < 2 * PROBES_PAIRS; i++) {
		uint64_t start = ticks_now();
		int ret = t->turn(i % 2 == 0);

		if (ret < 0)
			return bench_say(why, "it cannot be switched", ret);
		samples_add(&s[i % 2], (double)(ticks_now() - start));
	}
	return 0;
}

static void plan_turned(struct bench_case *c, const struct turned *t)
{
	*c = (struct bench_case){
		.begin = turned_begin,
		.block = turned_block,
		.end = turned_end,
		.arg = (void *)(uintptr_t)t,
		.second_measure = "deactivate",
	};
	bench_row_name(&c->row, t->name, "activate", "ticks");
	bench_row_param_text(&c->row, "site", t->site);
	bench_row_param_text(&c->row, "mapping", t->mapping);
	c->row.peer = !is_ours(t->name);
}

int probes_branches(const struct bench_run *run, struct bench_result *result)
{
	struct bench_case loops[LENGTH(looped)], turns[LENGTH(turned)];
	struct bench_case cases[LENGTH(looped) + LENGTH(turned)];
	size_t n = 0;

	for (size_t i = 0; i < LENGTH(looped); i++) {
		plan_looped(&loops[i], &looped[i]);
		cases[n] = loops[i];
		cases[n++].base = &loops[looped[i].base];
	}
	for (size_t i = 0; i < LENGTH(turned); i++) {
		plan_turned(&turns[i], &turned[i]);
		cases[n] = turns[i];
		cases[n++].base = &turns[turned[i].base];
	}
	return bench_measure(run, cases, n, result);
}
