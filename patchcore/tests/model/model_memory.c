/* SPDX-License-Identifier: MIT */
#include "patchcore/tests/model/model_state.h"

#include <string.h>

/* --- Memory ------------------------------------------------------------------------------- */

uint8_t part_of(uint8_t value, unsigned part)
{
	return value >> 4 * part & 15;
}

uint8_t with_part(uint8_t value, unsigned part, uint8_t set)
{
	return (uint8_t)((value & ~(15 << 4 * part)) | set << 4 * part);
}

uint8_t newest(const struct state *state, const struct model_site *site, unsigned half)
{
	const struct line *line = &state->lines[site->half[half].line];

	return line->value[line->count - 1];
}

uint8_t now_at(const struct state *state, const struct model_site *site, unsigned half)
{
	return part_of(newest(state, site, half), site->half[half].part);
}

uint8_t code_of(const struct model *model, uint8_t front, uint8_t back)
{
	for (const struct model_code *code = model->code; code->is; code++)
		if (code->front == front && (code->back == back || code->back == ANY))
			return code->is;
	return 0;
}

void put_line(struct scene *scene, unsigned index, uint8_t value)
{
	struct line *line = &scene->to.lines[index];

	if (line->value[line->count - 1] == value)
		return;
	if (line->count == DEPTH) {
		check_wrong(scene->check, "the model keeps too few old values");
		return;
	}
	line->age[line->count - 1] = 0;
	line->value[line->count++] = value;
}

void put_part(struct scene *scene, unsigned site, unsigned half, uint8_t set)
{
	const struct model_site *at = &scene->model->sites[site];

	put_line(scene, at->half[half].line,
		 with_part(newest(&scene->to, at, half), at->half[half].part, set));
}

void note_version(struct scene *scene, unsigned site, uint8_t is)
{
	const struct model_site *at = &scene->model->sites[site];
	uint8_t count = scene->to.versions[site];

	if (is == NOW)
		is = code_of(scene->model, now_at(&scene->to, at, FRONT),
			     now_at(&scene->to, at, BACK));
	if (!is || scene->to.version[site][count - 1] == is)
		return;
	if (count == VERSIONS) {
		check_wrong(scene->check, "the model keeps too few versions");
		return;
	}
	scene->to.version[site][scene->to.versions[site]++] = is;
}

void bring_up_to_date(struct scene *scene, unsigned who)
{
	for (unsigned i = 0; i < MODEL_LINES; i++)
		scene->to.threads[who].floor[i] = (uint8_t)(scene->to.lines[i].count - 1);
}

/* --- Equal states look equal ------------------------------------------------------------- */

bool fetches(const struct model *model, unsigned who)
{
	for (const struct model_op *op = model->threads[who].program; op->what != OP_END; op++)
		if (op->what == OP_FETCH)
			return true;
	return false;
}

/* How many of the oldest values of a line no thread can see any more. */
static unsigned unseen(const struct scene *scene, unsigned index)
{
	const struct line *line = &scene->to.lines[index];
	unsigned floor = line->count - 1u, old = 0;

	for (unsigned i = 0; i < scene->model->thread_count; i++)
		if (fetches(scene->model, i) && scene->to.threads[i].floor[index] < floor)
			floor = scene->to.threads[i].floor[index];
	if (scene->model->stale != STALE_FOR_EVER)
		while (old + 1u < line->count && line->age[old] > scene->model->stale)
			old++;
	return floor > old ? floor : old;
}

static void trim_line(struct scene *scene, unsigned index)
{
	struct line *line = &scene->to.lines[index];
	unsigned gone = unseen(scene, index), left = line->count - gone;

	memmove(line->value, line->value + gone, left);
	memmove(line->age, line->age + gone, left);
	memset(line->value + left, 0, DEPTH - left);
	memset(line->age + left, 0, DEPTH - left);
	line->count = (uint8_t)left;
	for (unsigned i = 0; i < scene->model->thread_count; i++) {
		uint8_t *floor = &scene->to.threads[i].floor[index];

		if (!fetches(scene->model, i))
			*floor = 0;
		else
			*floor = (uint8_t)(*floor > gone ? *floor - gone : 0);
	}
}

void trim(struct scene *scene)
{
	for (unsigned i = 0; i < MODEL_LINES; i++)
		trim_line(scene, i);
}
