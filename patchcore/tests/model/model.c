/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/tests/model/model_state.h"

/* --- All steps out of a state --------------------------------------------------------------- */

static bool has_ended(const struct model *model, const struct state *state, unsigned who)
{
	uint8_t pc = state->threads[who].pc;

	return pc == GONE || op_at(model, who, pc)->what == OP_END;
}

/* Not begun, or over. */
static bool is_outside(const struct model *model, const struct state *state, unsigned who)
{
	return has_ended(model, state, who) ||
	       op_at(model, who, state->threads[who].pc)->what == OP_SIGNAL;
}

static bool can_run(const struct model *model, const struct state *state, unsigned who)
{
	uint8_t over = model->threads[who].over;

	if (has_ended(model, state, who))
		return false;
	for (unsigned i = 0; i < model->thread_count; i++)
		if (model->threads[i].over == who + 1 && !is_outside(model, state, i))
			return false;
	/* No signal comes to a thread that is no more. */
	return !over || !is_outside(model, state, who) || !has_ended(model, state, over - 1u);
}

static struct scene scene_of(struct check *check, const struct model *model,
			     const struct state *state, unsigned who)
{
	return (struct scene){ check, model, state, *state, who };
}

static void thread_steps(struct check *check, const struct model *model, const struct state *state,
			 unsigned who)
{
	struct scene scene = scene_of(check, model, state, who);

	if (can_run(model, state, who))
		step_thread(&scene);
}

static void sync_steps(struct check *check, const struct model *model, const struct state *state,
		       unsigned who)
{
	for (unsigned i = 0; i < model->thread_count; i++)
		if (state->threads[who].pending >> i & 1) {
			struct scene scene = scene_of(check, model, state, who);

			step_serialise(&scene, i);
		}
}

static void death_step(struct check *check, const struct model *model, const struct state *state,
		       unsigned who)
{
	struct scene scene = scene_of(check, model, state, who);

	if (!model->threads[who].mortal || state->died || !can_run(model, state, who))
		return;
	scene.to.died = 1;
	memset(&scene.to.threads[who], 0, sizeof(scene.to.threads[who]));
	scene.to.threads[who].pc = GONE;
	check_step(check, &scene.to, "%-9s dies", model->threads[who].name);
}

static void count_up(uint8_t *count, unsigned most)
{
	if (*count < most)
		++*count;
}

static void tick(struct check *check, const struct model *model, const struct state *state)
{
	struct scene scene = scene_of(check, model, state, 0);
	struct state *to = &scene.to;

	if (model->stale == STALE_FOR_EVER)
		return;
	for (unsigned i = 0; i < MODEL_LINES; i++)
		for (unsigned j = 0; j + 1 < to->lines[i].count; j++)
			count_up(&to->lines[i].age[j], model->stale + 1u);
	for (unsigned i = 0; i < model->thread_count; i++)
		if (!has_ended(model, to, i) && op_at(model, i, to->threads[i].pc)->what == OP_WAIT)
			count_up(&to->threads[i].timer, model->longest);
	for (unsigned i = 0; i < model->site_count; i++)
		count_up(&to->stamp[i], model->longest);
	trim(&scene);
	check_step(check, to, "time passes");
}

/* All threads that must end have ended, and all others are out of the handler. */
static bool all_ended(const struct model *model, const struct state *state)
{
	for (unsigned i = 0; i < model->thread_count; i++) {
		bool idle =
			model->threads[i].endless && state->threads[i].pc == settle_pc(model, i, 0);

		if (!idle && !is_outside(model, state, i))
			return false;
	}
	return true;
}

/* No thread will change anything any more: the code must be as it should. */
static void look_at_end(struct check *check, const struct model *model, const struct state *state)
{
	for (unsigned i = 0; i < model->site_count; i++) {
		uint8_t is = code_of(model, now_at(state, &model->sites[i], FRONT),
				     now_at(state, &model->sites[i], BACK));

		/* An executor that helps may still come. */
		if (state->turn[i] % 2)
			return;
		if (is != state->version[i][state->versions[i] - 1])
			check_wrong(check, "site %u ends as instruction %u, not %u", i, is,
				    state->version[i][state->versions[i] - 1]);
	}
	check_end(check);
}

static void all_steps(struct check *check, const void *from, const void *context)
{
	const struct model *model = context;
	const struct state *state = from;

	for (unsigned i = 0; i < model->thread_count; i++) {
		thread_steps(check, model, state, i);
		sync_steps(check, model, state, i);
		death_step(check, model, state, i);
	}
	tick(check, model, state);
	if (all_ended(model, state))
		look_at_end(check, model, state);
}

static void set_up_site(struct state *state, const struct model *model, unsigned index)
{
	const struct model_site *site = &model->sites[index];
	const struct model_code *code = model->code;

	while (code->is != site->start)
		code++;
	for (unsigned half = 0; half < 2; half++) {
		uint8_t *value = &state->lines[site->half[half].line].value[0];

		*value = with_part(*value, site->half[half].part, half ? code->back : code->front);
	}
	state->versions[index] = 1;
	state->version[index][0] = site->start;
}

void model_check(const char *name, const struct model *model, bool expect_wrong,
		 struct check_verdict *verdict)
{
	bool asked = getenv("PATCHCORE_MODEL_TRACE");
	struct state start = { 0 };
	struct check_model all = { sizeof(start), &start, all_steps, model };

	for (unsigned i = 0; i < MODEL_LINES; i++)
		start.lines[i].count = 1;
	for (unsigned i = 0; i < model->site_count; i++)
		set_up_site(&start, model, i);
	for (unsigned i = 0; i < model->thread_count; i++)
		start.threads[i].pc = settle_pc(model, i, 0);
	if (asked)
		printf("# %s\n", name);
	check_run(&all, asked || !expect_wrong, verdict);
	printf("# %s: %zu states, %zu steps%s%s\n", name, verdict->states, verdict->steps,
	       verdict->is_wrong ? ": " : "", verdict->wrong);
}
