/* SPDX-License-Identifier: MIT */
/*
 * Names, limits and the command line of a cell.
 */
#include "stress/cell/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const crossing_names[CROSSING_COUNT] = {
	[CROSSING_NONE] = "none", [CROSSING_8] = "8",	    [CROSSING_16] = "16",
	[CROSSING_32] = "32",	  [CROSSING_LINE] = "line", [CROSSING_PAGE] = "page",
};

static const unsigned crossing_sizes[CROSSING_COUNT] = {
	[CROSSING_NONE] = 0, [CROSSING_8] = 8,	   [CROSSING_16] = 16,
	[CROSSING_32] = 32,  [CROSSING_LINE] = 64, [CROSSING_PAGE] = 4096,
};

static const char *const pair_names[PAIR_COUNT] = {
	[PAIR_CALL_NOP] = "call-nop",
	[PAIR_CALL_CALL] = "call-call",
	[PAIR_JMP_NOP] = "jmp-nop",
	[PAIR_WORD] = "word",
};

static const char *const protocol_names[PROTOCOL_COUNT] = {
	[PROTOCOL_WAIT] = "wait",	[PROTOCOL_MEMBARRIER] = "membarrier",
	[PROTOCOL_ATOMIC] = "atomic",	[PROTOCOL_NAIVE] = "naive",
	[PROTOCOL_NO_INT3] = "no-int3", [PROTOCOL_FRONT_FIRST] = "front-first",
	[PROTOCOL_TOUCH] = "touch",	[PROTOCOL_READ] = "read",
	[PROTOCOL_HALVES] = "halves",	[PROTOCOL_AGAIN] = "again",
};

static const char *const oracle_names[ORACLE_KINDS] = {
	[ORACLE_COUNT] = "count",
	[ORACLE_CRASH] = "crash",
};

static const char *const outcome_names[OUTCOME_COUNT] = {
	[OUTCOME_DONE] = "done",
	[OUTCOME_CRASH] = "crash",
	[OUTCOME_KILLED] = "killed",
	[OUTCOME_HANG] = "hang",
	[OUTCOME_INTERRUPTED] = "interrupted",
	[OUTCOME_ERROR] = "error",
};

static const char *const tear_kind_names[TEAR_KINDS] = {
	[TEAR_OLD_FRONT] = "old-front",
	[TEAR_NEW_FRONT] = "new-front",
	[TEAR_OTHER] = "other",
};

static const char *const provoker_names[PROVOKER_COUNT] = {
	[PROVOKER_COLD_BACK] = "cold-back", [PROVOKER_COLD_FRONT] = "cold-front",
	[PROVOKER_SHOOTDOWN] = "shootdown", [PROVOKER_BANDWIDTH] = "bandwidth",
	[PROVOKER_LOAD] = "load",	    [PROVOKER_SIBLING] = "sibling",
	[PROVOKER_WIDE] = "wide",	    [PROVOKER_CHAIN] = "chain",
	[PROVOKER_SITES] = "sites",	    [PROVOKER_EVICT] = "evict",
};

static int parse(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

const char *crossing_name(enum crossing c)
{
	return crossing_names[c];
}

const char *pair_name(enum code_pair p)
{
	return pair_names[p];
}

const char *protocol_name(enum protocol p)
{
	return protocol_names[p];
}

const char *oracle_name(enum oracle o)
{
	return oracle_names[o];
}

const char *outcome_name(enum outcome o)
{
	return outcome_names[o];
}

int crossing_parse(const char *name)
{
	return parse(crossing_names, CROSSING_COUNT, name);
}

int pair_parse(const char *name)
{
	return parse(pair_names, PAIR_COUNT, name);
}

int protocol_parse(const char *name)
{
	return parse(protocol_names, PROTOCOL_COUNT, name);
}

int oracle_parse(const char *name)
{
	return parse(oracle_names, ORACLE_KINDS, name);
}

int outcome_parse(const char *name)
{
	return parse(outcome_names, OUTCOME_COUNT, name);
}

const char *tear_kind_name(enum tear_kind k)
{
	return tear_kind_names[k];
}

int tear_kind_parse(const char *name)
{
	return parse(tear_kind_names, TEAR_KINDS, name);
}

const char *provoker_name(enum provoker p)
{
	return provoker_names[p];
}

char *provokers_name(unsigned provokers, char *buf)
{
	char *end = buf;

	strcpy(buf, "none");
	for (unsigned i = 0; i < PROVOKER_COUNT; i++) {
		if (!(provokers & 1u << i))
			continue;
		end = stpcpy(end, end == buf ? "" : "+");
		end = stpcpy(end, provoker_names[i]);
	}
	return buf;
}

/* The provoker that such a piece of a list names, or -EINVAL. */
static int parse_piece(const char *text, size_t length)
{
	for (int i = 0; i < PROVOKER_COUNT; i++)
		if (strlen(provoker_names[i]) == length &&
		    memcmp(provoker_names[i], text, length) == 0)
			return i;
	return -EINVAL;
}

int provokers_parse(const char *names)
{
	unsigned set = 0;

	if (strcmp(names, "none") == 0)
		return 0;
	for (;; names++) {
		size_t length = strcspn(names, "+");
		int one = parse_piece(names, length);

		if (one < 0 || set & 1u << one)
			return -EINVAL;
		set |= 1u << one;
		names += length;
		if (!*names)
			return (int)set;
	}
}

unsigned crossing_bytes(enum crossing c)
{
	return crossing_sizes[c];
}

void cell_defaults(struct cell *cell)
{
	*cell = (struct cell){
		.placement = PLACEMENT_SPREAD,
		.crossing = CROSSING_LINE,
		.pair = PAIR_CALL_CALL,
		.protocol = PROTOCOL_WAIT,
		.oracle = ORACLE_COUNT,
		.split = 3,
		.executors = 1,
		.first_wait = 3000,
		.second_wait = 3000,
		.rest = 2000,
		.toggles = 1000000,
		.seed = 1,
	};
}

static int refuse(char *reason, size_t size, const char *text)
{
	snprintf(reason, size, "%s", text);
	return -EINVAL;
}

int cell_check(const struct cell *cell, char *reason, size_t size)
{
	if (cell->split < 1 || cell->split > 4)
		return refuse(reason, size, "the split must be 1 to 4 bytes before the boundary");
	if (cell->executors < 1 || cell->executors > PLACEMENT_EXECUTORS_MAX)
		return refuse(reason, size, "executors must be 1 to 1024");
	if (cell->first_wait > CELL_WAIT_MAX || cell->second_wait > CELL_WAIT_MAX ||
	    cell->rest > CELL_WAIT_MAX)
		return refuse(reason, size, "a wait must be at most 1000000000 ticks");
	if (cell->stretch > CELL_STRETCH_MAX)
		return refuse(reason, size, "the stretch must be 0 to 64 times the latency");
	if (cell->provokers & ~PROVOKERS_ALL)
		return refuse(reason, size, "no such provoker");
	if (cell->loop > CELL_LOOP_MAX)
		return refuse(reason, size, "the loop takes 0 to 4096 filler instructions");
	if (cell->toggles < 1 || cell->toggles > CELL_TOGGLES_MAX)
		return refuse(reason, size, "toggles must be 1 to 1000000000000");
	if (!(cell->seconds >= 0 && cell->seconds <= 86400.0 * 31))
		return refuse(reason, size, "seconds must be 0 to 2678400");
	if (cell->swap &&
	    (cell->placement == PLACEMENT_KIND_UP || cell->placement == PLACEMENT_KIND_DOWN))
		return refuse(reason, size, "kind-up swapped is kind-down: ask for that");
	if (cell->place > INT64_MAX)
		return refuse(reason, size, "the place must be at most 9223372036854775807");
	if (cell->crossing == CROSSING_NONE && cell->protocol != PROTOCOL_ATOMIC &&
	    cell->protocol != PROTOCOL_NAIVE)
		return refuse(reason, size,
			      "crossing none has no split: use protocol atomic or naive");
	if (cell->split == 1 && (cell->pair == PAIR_CALL_CALL || cell->pair == PAIR_WORD))
		return refuse(
			reason, size,
			"split 1 of call-call and word has no mix: its codes share the opcode");
	if (cell->pair == PAIR_WORD && cell->oracle == ORACLE_CRASH)
		return refuse(reason, size, "no mix of pair word crashes: use oracle count");
	if (cell->crossing >= CROSSING_LINE && cell->protocol == PROTOCOL_ATOMIC)
		return refuse(reason, size, "no store is atomic across a line: use protocol naive");
	return 0;
}

int cell_command(const struct cell *c, char *buf, size_t size)
{
	char provokers[PROVOKERS_MAX], place[32] = "";

	if (c->place)
		snprintf(place, sizeof(place), " --place %" PRIu64, c->place);
	return snprintf(buf, size,
			"tmax stress --placement %s --crossing %s --split %u --executors %u "
			"--pair %s --protocol %s --oracle %s --first-wait %" PRIu64
			" --second-wait %" PRIu64 " --stretch %" PRIu64 " --rest %" PRIu64
			" --provoker %s --loop %u --toggles %" PRIu64
			" --seconds %.9g --stop-tears %" PRIu64 " --seed %" PRIu64 "%s%s",
			placement_name(c->placement), crossing_name(c->crossing), c->split,
			c->executors, pair_name(c->pair), protocol_name(c->protocol),
			oracle_name(c->oracle), c->first_wait, c->second_wait, c->stretch, c->rest,
			provokers_name(c->provokers, provokers), c->loop, c->toggles, c->seconds,
			c->stop_tears, c->seed, place, c->swap ? " --swap" : "");
}
