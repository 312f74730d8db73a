/* SPDX-License-Identifier: MIT */
/*
 * What one pass of a loop takes the thread that runs it, while nothing is changed: a
 * site that is off (latent; "Living on the Edge", section 8.5) or on (invoke; table 2's
 * invocation), and what people use instead. tmax-bench(1) has the rows and their extras.
 *
 * A sample is the time of PASS_TIMES passes in a row, divided by their number, so the clock and
 * its reading (some 40 ticks) are some hundredths of a tick in it. It is throughput: a machine
 * that does several things at once hides what fits beside the loop itself. The empty loop is one
 * cycle a pass, because of its branch, and a NOP fits beside that; in a loop that has work to do
 * more fits. Each loop is held against the empty one that lies as it does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/method/method.h"
#include "patchcore/call.h"
#include "patchcore/machine/wait.h"

#define PASS_TIMES   10000
#define PASS_SAMPLES 50 /* in a block */
#define PASS_SPECS   64 /* that a benchmark has at most */

/* What was done to the loop before it is timed. */
enum pass_state {
	PASS_BUILT,	 /* nothing: a call is there, a flag is up */
	PASS_FLAG_DOWN,	 /* the flag is down */
	PASS_NOP,	 /* pc_patch() of the site to a NOP */
	PASS_PATCHED,	 /* and back to the call */
	PASS_CALL_OFF,	 /* pc_deactivate_call() */
	PASS_CALL_ON,	 /* and pc_activate_call() with the target it had */
	PASS_CALL_OTHER, /* with another, next to that one */
	PASS_CALL_FAR,	 /* with one further than 2 GiB away */
};

struct pass_spec {
	const char *name;
	enum pass_state state;
	struct loop_spec loop;
	bool peer;
	bool split;	    /* it is a site, and that is a param of the row */
	bool only_split_0;  /* else it is measured at each */
	const char *target; /* a param, too; NULL: none */
};

struct pass {
	struct pass_spec spec;
	struct loop loop;
	struct pc_call call;
	void *far; /* a target, mapped on its own */
};

#define PAGE	    4096u
#define FAR	    (UINT64_C(6) << 30) /* bytes */
#define TARGET_SIZE 16
#define SPLITS	    LOOP_SITE_BYTES
#define BODIES	    2
#define LENGTH(a)   (sizeof(a) / sizeof(*(a)))

/* --- The loops ------------------------------------------------------------------------------ */

/* Those with a split stand for one at each. */
static const struct pass_spec latent[] = {
	{ "nop", PASS_NOP, .split = true },
	{ "call", PASS_CALL_OFF, .split = true },
	{ "flag", PASS_FLAG_DOWN, .loop.kind = LOOP_FLAG, .peer = true },
	{ "flag-pointer", PASS_FLAG_DOWN, .loop.kind = LOOP_FLAG_POINTER, .peer = true },
	{ "pointer", PASS_BUILT, .loop.kind = LOOP_POINTER, .peer = true },
	{ "direct", PASS_BUILT, .loop.kind = LOOP_DIRECT, .peer = true },
	{ "empty", PASS_BUILT, .loop.kind = LOOP_EMPTY },
};

static const struct pass_spec invoke[] = {
	{ "aligned", PASS_PATCHED, .split = true, .only_split_0 = true },
	{ "call", PASS_CALL_ON, .split = true, .target = "original" },
	{ "call", PASS_CALL_OTHER, .split = true, .target = "other" },
	{ "call", PASS_CALL_FAR, .split = true, .target = "far" },
	{ "flag", PASS_BUILT, .loop.kind = LOOP_FLAG, .peer = true },
	{ "pointer", PASS_BUILT, .loop.kind = LOOP_POINTER, .peer = true },
	{ "flag-pointer", PASS_BUILT, .loop.kind = LOOP_FLAG_POINTER, .peer = true },
	{ "direct", PASS_BUILT, .loop.kind = LOOP_DIRECT, .peer = true },
};

/* First with nothing else in the loop, then with work in it. */
static size_t list_specs(struct pass_spec *to, const struct pass_spec *from, size_t count)
{
	size_t added = 0;

	for (unsigned work = 0; work < BODIES; work++)
		for (size_t i = 0; i < count; i++) {
			unsigned splits = from[i].split && !from[i].only_split_0 ? SPLITS : 1;

			for (unsigned split = 0; split < splits; split++) {
				struct pass_spec *spec = &to[added++];

				*spec = from[i];
				if (spec->split)
					spec->loop.kind = LOOP_SITE;
				spec->loop.split = split;
				spec->loop.work = work;
			}
		}
	return added;
}

static int set_state(struct pass *pass)
{
	enum pass_state state = pass->spec.state;
	struct loop *loop = &pass->loop;
	void *target = NULL;
	int64_t distance;
	int ret;

	switch (state) {
	case PASS_BUILT:
		return 0;
	case PASS_FLAG_DOWN:
		atomic_store_explicit(loop->flag, 0, memory_order_relaxed);
		return 0;
	case PASS_NOP:
	case PASS_PATCHED:
		ret = pc_patch(loop->site, loop->bytes[LOOP_NOP], LOOP_SITE_BYTES);
		if (ret == 0 && state == PASS_PATCHED)
			ret = pc_patch(loop->site, loop->bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
		return ret;
	default:
		ret = pc_call_init(&pass->call, loop->site);
	}
	if (ret == 0)
		ret = pc_deactivate_call(&pass->call);
	if (ret < 0 || state == PASS_CALL_OFF)
		return ret;
	if (state == PASS_CALL_OTHER)
		target = loop->target[1];
	if (state == PASS_CALL_FAR) {
		/* What the second target does, where no displacement leads. */
		target = mmap((void *)((uintptr_t)loop->map - FAR), PAGE,
			      PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		if (target == MAP_FAILED)
			return -errno;
		pass->far = target;
		distance = (int64_t)((uintptr_t)target - (uintptr_t)loop->map);
		if (distance == (int32_t)distance)
			return -ENOSPC;
		memcpy(target, loop->target[1], TARGET_SIZE);
	}
	return pc_activate_call(&pass->call, target);
}

static void pass_free(struct pass *pass)
{
	loop_free(&pass->loop);
	if (pass->far)
		munmap(pass->far, PAGE);
	pass->far = NULL;
}

/* In its state. 0, or a negative errno with a line in why; there is nothing to free then. */
static int pass_build(struct pass *pass, const struct pass_spec *spec, char *why)
{
	int ret;

	*pass = (struct pass){ .spec = *spec };
	ret = loop_build(&pass->loop, &spec->loop);
	if (ret == 0)
		ret = set_state(pass);
	if (ret == 0)
		return 0;
	if (ret == -ENOTSUP)
		bench_policy_refused(PC_POLICY_AUTO, why);
	else
		bench_say(why, "the site cannot be made ready", ret);
	pass_free(pass);
	return ret;
}

/* A loop, and the empty one that is timed beside it, in the same block. */
struct timed_pass {
	struct pass pass;
	struct timed_pass *beside; /* NULL: none */
	int ret;		   /* of its being built */
	char why[BENCH_WHY];
};

#define BASES (SPLITS * BODIES) /* one for each split and body */

/* All that one run of a benchmark needs. */
struct pass_plan {
	const char *measure;
	struct timed_pass timed[PASS_SPECS + 2 * BASES];
	struct timed_pass *empty[BASES];
	size_t loops;
	struct bench_case base[BASES], cases[PASS_SPECS];
};

/* --- Blocks ----------------------------------------------------------------------------------- */

/*
 * Once untimed, for the caches and the branch predictors: two loops that took turns would each
 * be timed with what the other has left there.
 */
static void add_passes(const struct timed_pass *t, struct samples *s)
{
	for (unsigned i = 0; i <= PASS_SAMPLES; i++) {
		uint64_t counts[2] = { 0, 0 }, start = ticks_now();

		t->pass.loop.run(PASS_TIMES, counts);
		if (i)
			samples_add(s, (double)(ticks_now() - start) / PASS_TIMES);
	}
}

static int timed_block(struct bench_case *c, struct samples *s, char *why)
{
	const struct timed_pass *t = c->arg;
	const struct timed_pass *broken = t->ret < 0 ? t : t->beside;

	if (broken && broken->ret < 0) {
		snprintf(why, BENCH_WHY, "%s", broken->why);
		return broken->ret;
	}
	add_passes(t, &s[0]);
	if (t->beside)
		add_passes(t->beside, &s[1]);
	return 0;
}

/* --- Rows ------------------------------------------------------------------------------------- */

static void sum_up_timed(struct bench_case *c, struct bench_row *row)
{
	const struct timed_pass *t = c->arg;

	bench_row_over(row, &c->samples[0], t->beside ? &c->samples[1] : &c->base_samples[0]);
}

static unsigned base_of(const struct pass_spec *spec)
{
	return spec->loop.split * BODIES + spec->loop.work;
}

static struct timed_pass *add_timed(struct pass_plan *p, const struct pass_spec *spec,
				    bool has_beside)
{
	struct timed_pass *t = &p->timed[p->loops++];

	t->ret = pass_build(&t->pass, spec, t->why);
	if (has_beside)
		t->beside = p->empty[base_of(spec)];
	return t;
}

static void make_case(struct pass_plan *p, struct bench_case *c, struct timed_pass *t)
{
	const struct pass_spec *spec = &t->pass.spec;

	*c = (struct bench_case){ .block = timed_block, .arg = t };
	bench_row_name(&c->row, spec->name, p->measure, "ticks");
	c->row.peer = spec->peer;
	if (spec->split)
		bench_row_param_text(&c->row, "split", loop_split_name(spec->loop.split));
	if (spec->target)
		bench_row_param_text(&c->row, "target", spec->target);
	bench_row_param_text(&c->row, "body", spec->loop.work ? "work" : "none");
}

/* Against the base, with each one's split and body; beside an empty loop, unless base is one. */
static int measure_passes(const struct bench_run *run, struct bench_result *result,
			  const char *measure, const struct pass_spec *specs, size_t count,
			  struct pass_spec base)
{
	struct pass_plan *p = calloc(1, sizeof(*p));
	bool has_beside = base.loop.kind != LOOP_EMPTY;
	struct pass_spec spec[PASS_SPECS], empty = { .name = "empty" };
	int ret;

	if (!p)
		return -ENOMEM;
	p->measure = measure;
	count = list_specs(spec, specs, count);
	for (unsigned i = 0; i < BASES; i++) {
		base.loop.split = empty.loop.split = i / BODIES;
		base.loop.work = empty.loop.work = i % BODIES;
		p->empty[i] = add_timed(p, &empty, false);
		make_case(p, &p->base[i], add_timed(p, &base, has_beside));
	}
	for (size_t i = 0; i < count; i++) {
		make_case(p, &p->cases[i], add_timed(p, &spec[i], has_beside));
		p->cases[i].sum_up = sum_up_timed;
		p->cases[i].base = &p->base[base_of(&spec[i])];
	}
	ret = bench_measure(run, p->cases, count, result);
	for (size_t i = 0; i < p->loops; i++)
		if (p->timed[i].ret == 0)
			pass_free(&p->timed[i].pass);
	free(p);
	return ret;
}

static int measure_latent(const struct bench_run *run, struct bench_result *result)
{
	return measure_passes(run, result, "pass", latent, LENGTH(latent),
			      (struct pass_spec){ .name = "empty", .loop.kind = LOOP_EMPTY });
}

static int measure_invoke(const struct bench_run *run, struct bench_result *result)
{
	return measure_passes(
		run, result, "call", invoke, LENGTH(invoke),
		(struct pass_spec){ "direct", .loop.kind = LOOP_DIRECT, .peer = true });
}

const struct benchmark bench_latent = {
	.name = "latent",
	.about = "a site that is switched off, in a loop",
	.title = "A site that is switched off",
	.caption = "Time of a pass of a loop.",
	.run = measure_latent,
};

const struct benchmark bench_invoke = {
	.name = "invoke",
	.about = "the call that a site makes which is switched on",
	.title = "The call of an active site",
	.caption = "Time of a pass of a loop that calls an empty function.",
	.run = measure_invoke,
};
