/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/model/model_state.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Steps -------------------------------------------------------------------------------- */

static const char *const op_names[] = {
	[OP_END] = "ends",
	[OP_LABEL] = "label",
	[OP_JUMP] = "goes on",
	[OP_MAYBE] = "chooses",
	[OP_HOLD] = "hold, site",
	[OP_RELEASE] = "release, site",
	[OP_PUT_INT3] = "INT3, site",
	[OP_STORE] = "store, site/half/part/instruction",
	[OP_EXCHANGE] = "compare-exchange, site/old/new/instruction",
	[OP_LOAD] = "read the line, site/half",
	[OP_STORE_LINE] = "store the line as read before, site/half/part",
	[OP_WAIT] = "has waited, ticks",
	[OP_SYNC_BEGIN] = "membarrier begins",
	[OP_SYNC_END] = "membarrier ends",
	[OP_SET] = "set variable, number/value",
	[OP_SWAP] = "compare-exchange variable, number/old/new",
	[OP_IF] = "look at variable, number/value",
	[OP_IF_DEAD] = "is its owner dead, variable",
	[OP_STAMP] = "note the time, site",
	[OP_ELAPSED] = "has the time passed, site/ticks",
	[OP_FETCH] = "run, site",
	[OP_IF_ODD] = "handler looks at the turn, site",
	[OP_IF_INT3] = "handler looks at the byte, site",
	[OP_IF_TURN] = "handler looks at the turn again, site",
	[OP_FOREIGN] = "takes the trap for a foreign one",
	[OP_MUST] = "looks what stands there, site/instruction",
	[OP_SIGNAL] = "signal arrives",
};

static uint8_t label_at(const struct model *model, unsigned who, unsigned pc, uint8_t label)
{
	const struct model_op *program = model->threads[who].program;

	for (unsigned i = pc; program[i].what != OP_END; i++)
		if (program[i].what == OP_LABEL && program[i].a == label)
			return settle_pc(model, who, i);
	for (unsigned i = pc; i-- > 0;)
		if (program[i].what == OP_LABEL && program[i].a == label)
			return settle_pc(model, who, i);
	fprintf(stderr, "model: no label %u\n", label);
	abort();
}

uint8_t settle_pc(const struct model *model, unsigned who, unsigned pc)
{
	const struct model_op *op = op_at(model, who, pc);

	if (op->what == OP_LABEL)
		return settle_pc(model, who, pc + 1);
	if (op->what == OP_JUMP)
		return label_at(model, who, pc, op->a);
	return (uint8_t)pc;
}

/* The state is what it is after this step of the thread. */
static void end_step(struct scene *scene, unsigned pc, const char *note)
{
	const struct model_op *op =
		op_at(scene->model, scene->who, scene->from->threads[scene->who].pc);
	struct thread *thread = &scene->to.threads[scene->who];

	thread->pc = (uint8_t)pc;
	thread->timer = 0;
	if (op_at(scene->model, scene->who, pc)->what == OP_FETCH)
		thread->memory = 0;
	trim(scene);
	check_step(scene->check, &scene->to, "%-9s %s %u/%u/%u/%u  %s",
		   scene->model->threads[scene->who].name, op_names[op->what], op->a, op->b, op->c,
		   op->d, note);
}

static void go_on(struct scene *scene)
{
	end_step(scene,
		 settle_pc(scene->model, scene->who, scene->from->threads[scene->who].pc + 1u), "");
}

static void jump_to_label(struct scene *scene, uint8_t label)
{
	end_step(scene,
		 label_at(scene->model, scene->who, scene->from->threads[scene->who].pc, label),
		 "no");
}

/* A jump that says yes. */
static void jump_if(struct scene *scene, bool yes, uint8_t label)
{
	if (yes)
		end_step(scene,
			 label_at(scene->model, scene->who, scene->from->threads[scene->who].pc,
				  label),
			 "yes");
	else
		go_on(scene);
}

static uint8_t value_of(const struct scene *scene, uint8_t value)
{
	return value == SELF ? scene->model->threads[scene->who].id : value;
}

/* Is the thread of that number dead, or thought to be? */
static bool is_dead(const struct scene *scene, uint8_t id)
{
	for (unsigned i = 0; i < scene->model->thread_count; i++)
		if (scene->model->threads[i].id == id && scene->from->threads[i].pc == GONE)
			return true;
	return scene->model->wrong_about && id && id != scene->model->threads[scene->who].id;
}

static void step_if_dead(struct scene *scene, const struct model_op *op)
{
	struct scene other = *scene;

	/* A thread that may be wrong about it may also be right. */
	if (is_dead(scene, scene->from->vars[op->a]))
		jump_if(&other, true, op->b);
	if (!is_dead(scene, scene->from->vars[op->a]) || scene->model->wrong_about)
		go_on(scene);
}

static void step_maybe(struct scene *scene, const struct model_op *op)
{
	struct scene other = *scene;

	jump_if(&other, true, op->a);
	go_on(scene);
}

/* --- Running an instruction ----------------------------------------------------------------- */

static void note_version_ran(struct scene *scene, uint8_t is, const struct model_op *op)
{
	unsigned site = op->a, version;
	struct thread *thread = &scene->to.threads[scene->who];

	for (version = thread->last[site]; version < scene->to.versions[site]; version++)
		if (scene->to.version[site][version] == is)
			break;
	if (version == scene->to.versions[site]) {
		check_wrong(scene->check, "%s runs instruction %u of site %u out of order",
			    scene->model->threads[scene->who].name, is, site);
		return;
	}
	if (scene->model->monotone)
		thread->last[site] = (uint8_t)version;
	jump_if(scene, true, op->b);
}

static void trapped(struct scene *scene)
{
	if (scene->model->trap_syncs)
		bring_up_to_date(scene, scene->who);
	end_step(scene,
		 settle_pc(scene->model, scene->who, scene->from->threads[scene->who].pc + 1u),
		 "traps");
}

/* Fetch the i-th value that the front's line still shows, and the j-th of the back's. */
static void fetch_parts(struct scene *scene, const struct model_op *op, unsigned i, unsigned j)
{
	const struct model_site *site = &scene->model->sites[op->a];
	unsigned front_line = site->half[FRONT].line, back_line = site->half[BACK].line;
	uint8_t front = part_of(scene->from->lines[front_line].value[i], site->half[FRONT].part);
	uint8_t back = part_of(scene->from->lines[back_line].value[j], site->half[BACK].part);
	struct scene other = *scene;
	uint8_t is = code_of(scene->model, front, back);

	if (scene->model->monotone) {
		other.to.threads[scene->who].floor[front_line] = (uint8_t)i;
		other.to.threads[scene->who].floor[back_line] = (uint8_t)j;
	}
	if (front == INT3)
		trapped(&other);
	else if (is)
		note_version_ran(&other, is, op);
	else
		check_wrong(scene->check, "%s tears at site %u: front %u with back %u",
			    scene->model->threads[scene->who].name, op->a, front, back);
}

static void step_fetch(struct scene *scene, const struct model_op *op)
{
	const struct model_site *site = &scene->model->sites[op->a];
	const struct thread *thread = &scene->from->threads[scene->who];
	unsigned front = site->half[FRONT].line, back = site->half[BACK].line;

	for (unsigned i = thread->floor[front]; i < scene->from->lines[front].count; i++)
		for (unsigned j = thread->floor[back]; j < scene->from->lines[back].count; j++)
			fetch_parts(scene, op, i, j);
}

/* --- Syncs ---------------------------------------------------------------------------------- */

static void step_sync_begin(struct scene *scene)
{
	const struct model *model = scene->model;
	uint8_t pending = 0;

	for (unsigned i = 0; i < model->thread_count; i++) {
		if (!fetches(model, i) || scene->from->threads[i].pc == GONE)
			continue;
		/* Signal handlers of the caller run where it does. */
		if (model->threads[i].id == model->threads[scene->who].id)
			bring_up_to_date(scene, i);
		else
			pending |= (uint8_t)(1u << i);
	}
	scene->to.threads[scene->who].pending = pending;
	go_on(scene);
}

void step_serialise(struct scene *scene, unsigned which)
{
	scene->to.threads[scene->who].pending &= (uint8_t) ~(1u << which);
	bring_up_to_date(scene, which);
	trim(scene);
	check_step(scene->check, &scene->to, "%-9s is reached by the membarrier of %s",
		   scene->model->threads[which].name, scene->model->threads[scene->who].name);
}

/* --- One step of a thread ----------------------------------------------------------------- */

/* A number, or what a variable holds. */
static uint8_t named(const struct scene *scene, uint8_t value)
{
	return value & 0x80 ? scene->from->vars[value & 0x7f] : value;
}

static void step_store(struct scene *scene, const struct model_op *op)
{
	put_part(scene, op->a, op->b, named(scene, op->c));
	note_version(scene, op->a, named(scene, op->d));
	go_on(scene);
}

static void step_put_int3(struct scene *scene, const struct model_op *op)
{
	if (now_at(scene->from, &scene->model->sites[op->a], FRONT) == INT3) {
		jump_to_label(scene, op->b);
		return;
	}
	put_part(scene, op->a, FRONT, INT3);
	go_on(scene);
}

static void step_exchange(struct scene *scene, const struct model_op *op)
{
	if (now_at(scene->from, &scene->model->sites[op->a], FRONT) != op->b) {
		jump_to_label(scene, op->e);
		return;
	}
	put_part(scene, op->a, FRONT, op->c);
	note_version(scene, op->a, op->d);
	go_on(scene);
}

static void step_store_line(struct scene *scene, const struct model_op *op)
{
	const struct model_site *site = &scene->model->sites[op->a];

	put_line(scene, site->half[op->b].line,
		 with_part(scene->from->threads[scene->who].memory, site->half[op->b].part, op->c));
	go_on(scene);
}

static void step_swap(struct scene *scene, const struct model_op *op)
{
	if (scene->from->vars[op->a] != value_of(scene, op->b)) {
		jump_to_label(scene, op->d);
		return;
	}
	scene->to.vars[op->a] = value_of(scene, op->c);
	go_on(scene);
}

static void step_elapsed(struct scene *scene, const struct model_op *op)
{
	unsigned passed = scene->from->stamp[op->a] + scene->model->threads[scene->who].ahead;

	if (passed < op->b)
		jump_to_label(scene, op->c);
	else
		go_on(scene);
}

static void step_must(struct scene *scene, const struct model_op *op)
{
	const struct model_site *site = &scene->model->sites[op->a];
	uint8_t front = now_at(scene->from, site, FRONT), back = now_at(scene->from, site, BACK);

	if (code_of(scene->model, front, back) != op->b)
		check_wrong(scene->check, "%s finds front %u with back %u, not instruction %u",
			    scene->model->threads[scene->who].name, front, back, op->b);
	go_on(scene);
}

static void step_signal(struct scene *scene)
{
	if (scene->model->trap_syncs)
		bring_up_to_date(scene, scene->who);
	go_on(scene);
}

/* Stores to the code, and what keeps them apart. */
static bool step_code(struct scene *scene, const struct model_op *op)
{
	switch (op->what) {
	case OP_PUT_INT3:
		step_put_int3(scene, op);
		return true;
	case OP_STORE:
		step_store(scene, op);
		return true;
	case OP_EXCHANGE:
		step_exchange(scene, op);
		return true;
	case OP_LOAD:
		scene->to.threads[scene->who].memory =
			newest(scene->from, &scene->model->sites[op->a], op->b);
		go_on(scene);
		return true;
	case OP_STORE_LINE:
		step_store_line(scene, op);
		return true;
	case OP_WAIT:
		if (scene->from->threads[scene->who].timer >= op->a)
			go_on(scene);
		return true;
	case OP_SYNC_BEGIN:
		step_sync_begin(scene);
		return true;
	case OP_SYNC_END:
		if (!scene->from->threads[scene->who].pending)
			go_on(scene);
		return true;
	case OP_MUST:
		step_must(scene, op);
		return true;
	default:
		return false;
	}
}

/* The library's own data. */
static bool step_data(struct scene *scene, const struct model_op *op)
{
	switch (op->what) {
	case OP_HOLD:
		scene->to.turn[op->a] = scene->from->turns[op->a] + 1;
		go_on(scene);
		return true;
	case OP_RELEASE:
		scene->to.turns[op->a] += 2;
		scene->to.turn[op->a] = scene->to.turns[op->a];
		go_on(scene);
		return true;
	case OP_SET:
		scene->to.vars[op->a] = value_of(scene, op->b);
		go_on(scene);
		return true;
	case OP_SWAP:
		step_swap(scene, op);
		return true;
	case OP_IF:
		jump_if(scene, scene->from->vars[op->a] == value_of(scene, op->b), op->c);
		return true;
	case OP_IF_DEAD:
		step_if_dead(scene, op);
		return true;
	case OP_STAMP:
		scene->to.stamp[op->a] = 0;
		go_on(scene);
		return true;
	case OP_ELAPSED:
		step_elapsed(scene, op);
		return true;
	default:
		return false;
	}
}

/* Executors, and choices. */
static void step_rest(struct scene *scene, const struct model_op *op)
{
	switch (op->what) {
	case OP_MAYBE:
		step_maybe(scene, op);
		return;
	case OP_FETCH:
		step_fetch(scene, op);
		return;
	case OP_IF_ODD:
		scene->to.threads[scene->who].memory = scene->from->turn[op->a];
		jump_if(scene, scene->from->turn[op->a] % 2, op->b);
		return;
	case OP_IF_INT3:
		jump_if(scene, now_at(scene->from, &scene->model->sites[op->a], FRONT) == INT3,
			op->b);
		return;
	case OP_IF_TURN:
		jump_if(scene, scene->from->threads[scene->who].memory == scene->from->turn[op->a],
			op->b);
		return;
	case OP_FOREIGN:
		check_wrong(scene->check, "%s takes our trap for a foreign one",
			    scene->model->threads[scene->who].name);
		return;
	case OP_SIGNAL:
		step_signal(scene);
		return;
	default:
		return;
	}
}

void step_thread(struct scene *scene)
{
	const struct model_op *op =
		op_at(scene->model, scene->who, scene->from->threads[scene->who].pc);

	if (!step_code(scene, op) && !step_data(scene, op))
		step_rest(scene, op);
}
