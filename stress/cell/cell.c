/* SPDX-License-Identifier: MIT */
/* Names, limits and the command line of a cell. */
#include "stress/cell/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/names.h"

/* Those of other files are met in journals, on command lines and in lists of cells. */
static const char *protocol_names[PROTOCOL_NAMES] = {
	[PROTOCOL_WAIT] = "wait",	[PROTOCOL_MEMBARRIER] = "membarrier",
	[PROTOCOL_ATOMIC] = "atomic",	[PROTOCOL_NAIVE] = "naive",
	[PROTOCOL_NO_INT3] = "no-int3", [PROTOCOL_FRONT_FIRST] = "front-first",
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

#define PROVOKER_ROW(id, name, traits) { name, traits },

static const struct {
	const char *name;
	unsigned traits;
} provokers[PROVOKER_COUNT] = { PROVOKERS(PROVOKER_ROW) };

NAMES(oracle, oracle, ORACLE_KINDS)
NAMES(outcome, outcome, OUTCOME_COUNT)
NAMES(tear_kind, tear_kind, TEAR_KINDS)

const char *protocol_name(enum protocol p)
{
	return p < PROTOCOL_NAMES ? protocol_names[p] : NULL;
}

#define PROTOCOL_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+/"
#define PROTOCOL_PATH	 128 /* bytes of a name: it stands in command lines and journals */

int protocol_parse(const char *name)
{
	size_t length = strlen(name);
	int id = 0;

	while (id < PROTOCOL_NAMES && protocol_names[id] && strcmp(protocol_names[id], name) != 0)
		id++;
	if (id == PROTOCOL_NAMES || !length || length >= PROTOCOL_PATH ||
	    strspn(name, PROTOCOL_LETTERS) != length || name[0] == '-')
		return -EINVAL;
	if (!protocol_names[id])
		protocol_names[id] = strdup(name);
	return protocol_names[id] ? id : -ENOMEM;
}

int protocol_file(enum protocol p, const struct protocol_file **file, char *why)
{
	return protocol_find(protocol_names[p], file, why);
}

const char *provoker_name(enum provoker p)
{
	return provokers[p].name;
}

bool provokers_have(unsigned set, unsigned traits)
{
	for (unsigned i = 0; i < PROVOKER_COUNT; i++)
		if (set & 1u << i && provokers[i].traits & traits)
			return true;
	return false;
}

char *provokers_name(unsigned set, char *buf)
{
	char *end = buf;

	strcpy(buf, "none");
	for (unsigned i = 0; i < PROVOKER_COUNT; i++)
		if (set & 1u << i)
			end = stpcpy(stpcpy(end, end == buf ? "" : "+"), provokers[i].name);
	return buf;
}

int provokers_parse(const char *names)
{
	unsigned set = 0;

	if (strcmp(names, "none") == 0)
		return 0;
	for (;; names++) {
		size_t length = strcspn(names, "+");
		unsigned one = 0;

		while (one < PROVOKER_COUNT && (strlen(provokers[one].name) != length ||
						memcmp(provokers[one].name, names, length) != 0))
			one++;
		if (one == PROVOKER_COUNT || set & 1u << one)
			return -EINVAL;
		set |= 1u << one;
		names += length;
		if (!*names)
			return (int)set;
	}
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
		.waits = { 3000, 3000, 0 },
		.rest = CELL_HOT,
		.toggles = 1000000,
		.seed = 1,
	};
}

/* Does a step name the parts before and behind the boundary? */
static bool has_parts(const struct protocol_file *p)
{
	for (unsigned way = 0; way < 2; way++)
		for (unsigned i = 0; i < p->steps[way]; i++)
			if (p->step[way][i].span.kind == SPAN_FRONT ||
			    p->step[way][i].span.kind == SPAN_BACK)
				return true;
	return false;
}

int cell_check(const struct cell *cell, char *reason, size_t size)
{
	static const struct protocol_file library = { .length = PAIR_LENGTH,
						      .pairs = (1u << PAIR_COUNT) - 1 };
	const struct protocol_file *p = &library;
	bool compiled = protocol_is_compiled(cell->protocol);
	bool atomic = cell->protocol == PROTOCOL_ATOMIC, own = cell->pair == PAIR_OWN;
	bool kinds = cell->placement == PLACEMENT_KIND_UP || cell->placement == PLACEMENT_KIND_DOWN;
	char why[WORDS_WHY] = "";

	if (!compiled && protocol_file(cell->protocol, &p, why) < 0) {
		snprintf(reason, size, "%s", why);
		return -EINVAL;
	}
	const struct {
		bool refused;
		const char *why;
	} rules[] = {
		{ !(p->pairs & 1u << cell->pair), "the protocol is not for such a pair" },
		{ cell->split < 1 || cell->split >= p->length,
		  own ? "the split must leave bytes on both sides of the boundary"
		      : "the split must be 1 to 4 bytes before the boundary" },
		{ cell->executors < 1 || cell->executors > PLACEMENT_EXECUTORS_MAX,
		  "executors must be 1 to 1024" },
		{ cell->waits.first > CELL_WAIT_MAX || cell->waits.second > CELL_WAIT_MAX ||
			  cell->rest > CELL_WAIT_MAX,
		  "a wait must be at most 1000000000 ticks" },
		{ cell->waits.stretch > CELL_STRETCH_MAX,
		  "the stretch must be 0 to 64 times the latency" },
		{ cell->provokers & ~PROVOKERS_ALL, "no such provoker" },
		{ cell->loop > CELL_LOOP_MAX, "the loop takes 0 to 4096 filler instructions" },
		{ cell->toggles < 1 || cell->toggles > CELL_TOGGLES_MAX,
		  "toggles must be 1 to 1000000000000" },
		{ !(cell->seconds >= 0 && cell->seconds <= 86400.0 * 31),
		  "seconds must be 0 to 2678400" },
		{ cell->swap && kinds, "kind-up swapped is kind-down: ask for that" },
		{ cell->place > INT64_MAX, "the place must be at most 9223372036854775807" },
		{ cell->crossing == CROSSING_NONE && (compiled ? !atomic : has_parts(p)),
		  "crossing none has no split: use protocol atomic or naive" },
		{ compiled && cell->split == 1 &&
			  (cell->pair == PAIR_CALL_CALL || cell->pair == PAIR_WORD),
		  "split 1 of call-call and word has no mix: its codes share the opcode" },
		{ cell->pair == PAIR_WORD && cell->oracle == ORACLE_CRASH,
		  "no mix of pair word crashes: use oracle count" },
		{ own && cell->oracle == ORACLE_CRASH, "pair own has oracle count" },
		{ cell->crossing == CROSSING_INSIDE &&
			  (cell->pair != PAIR_CALL_CALL || cell->oracle != ORACLE_COUNT ||
			   (compiled && !atomic)),
		  "crossing inside has pair call-call, oracle count and protocol "
		  "atomic, naive, no-int3 or front-first" },
		{ own && cell->crossing == CROSSING_NONE && cell->split - 1 + p->length > 8,
		  "the site does not fit into 8 bytes" },
		/* Beside it lies a larger boundary. */
		{ own && cell->crossing != CROSSING_NONE &&
			  (cell->split > crossing_bytes(cell->crossing) ||
			   p->length - cell->split > crossing_bytes(cell->crossing)),
		  "the site would straddle a larger boundary, too" },
		{ cell->crossing >= CROSSING_LINE && atomic,
		  "no store is atomic across a line: use protocol naive" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].refused) {
			snprintf(reason, size, "%s", rules[i].why);
			return -EINVAL;
		}
	return compiled ? 0 : protocol_check(p, cell->crossing, cell->split, reason, size);
}

char *waits_text(const struct waits *waits, char buf[WAITS_TEXT])
{
	char second[24] = "", stretch[24] = "";

	if (waits->second != waits->first)
		snprintf(second, sizeof(second), "+%" PRIu64, waits->second);
	if (waits->stretch)
		snprintf(stretch, sizeof(stretch), " x%" PRIu64, waits->stretch);
	snprintf(buf, WAITS_TEXT, "%" PRIu64 "%s%s", waits->first, second, stretch);
	return buf;
}

int waits_parse(const char *text, struct waits *waits)
{
	struct waits w = *waits;
	uint64_t *const at[] = { &w.first, &w.second, &w.stretch };
	char copy[WAITS_TEXT], *rest = copy;
	unsigned taken = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	while (rest && taken < 3) {
		uint64_t most = taken < 2 ? CELL_WAIT_MAX : CELL_STRETCH_MAX;

		if (!number_in(strsep(&rest, ","), 0, most, at[taken++]))
			return -EINVAL;
	}
	if (rest || taken < 2)
		return -EINVAL;
	*waits = w;
	return 0;
}

bool waits_same(const struct waits *a, const struct waits *b)
{
	return a->first == b->first && a->second == b->second && a->stretch == b->stretch;
}

int cell_command(const struct cell *c, char *buf, size_t size)
{
	char names[PROVOKERS_MAX], place[32] = "";

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
			oracle_name(c->oracle), c->waits.first, c->waits.second, c->waits.stretch,
			c->rest, provokers_name(c->provokers, names), c->loop, c->toggles,
			c->seconds, c->stop_tears, c->seed, place, c->swap ? " --swap" : "");
}

int cell_seat(const struct cell *cell, hwloc_topology_t topology, struct seating *seating,
	      char *reason, size_t size)
{
	int ret =
		placement_seat(topology, cell->placement, cell->executors,
			       (uint32_t)(cell->place >> PLACE_TURN_SHIFT), seating, reason, size);
	unsigned patcher = seating->patcher;

	if (ret < 0)
		return ret;
	if (cell->swap) {
		seating->patcher = seating->executor[0];
		seating->executor[0] = patcher;
	}
	return 0;
}
