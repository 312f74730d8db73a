/* SPDX-License-Identifier: MIT */
#include "stress/cell/cell.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 64 /* of a command line */
#define BLANKS	  " \t\r\n"

/* Is there such a protocol? A path is looked at when it is taken. */
static int find_protocol(const char *name)
{
	int protocol = protocol_parse(name);
	char path[PATH_MAX];

	if (protocol < 0 || protocol_is_compiled((enum protocol)protocol) || strchr(name, '/'))
		return protocol;
	return protocol_path(name, path, sizeof(path)) < 0 ? -EINVAL : protocol;
}

/* A file's codes may be of one pair alone: then that is taken. */
static bool take_protocol(const struct option_row *row, const char *text, void *request, char *why)
{
	const struct protocol_file *file;
	struct cell *cell = request;
	char reason[WORDS_WHY];

	cell->protocol = (enum protocol)row->parse(text);
	if (protocol_is_compiled(cell->protocol))
		return true;
	if (protocol_file(cell->protocol, &file, reason) < 0)
		return option_refuse(why, reason);
	if (!(file->pairs & 1u << cell->pair))
		cell->pair = (enum code_pair)__builtin_ctz(file->pairs);
	return true;
}

const struct option_row cell_options[] = {
	{ "placement", "NAME", PLACEMENT_HELP,
	  OPTION_CHOICE(struct cell, placement, placement_parse) },
	{ "crossing", "NAME", "line, page, 8, 16, 32, inside or none (line)",
	  OPTION_CHOICE(struct cell, crossing, crossing_parse) },
	{ "split", "S", "bytes of the site before the boundary, 1 to 4; 1 to 15 of pair own (3)",
	  OPTION_NUMBER(struct cell, split, 1, SITE_BYTES - 1) },
	{ "executors", "N", "how many (1)",
	  OPTION_NUMBER(struct cell, executors, 1, PLACEMENT_EXECUTORS_MAX) },
	{ "pair", "NAME", "call-call, call-nop, jmp-nop or word (call-call)",
	  OPTION_CHOICE(struct cell, pair, pair_parse) },
	{ "protocol", "NAME",
	  "wait, membarrier, atomic; broken on purpose: naive, no-int3, front-first; as others do "
	  "it: "
	  "gvisor, openj9, hotspot-call, hotspot-replace, dynamorio, javascriptcore, uftrace, "
	  "xray, "
	  "text-poke, uprobes-nop5, uprobes-nop10, word-patch, call-patch, liteinst2, "
	  "liteinst2-line; or a file with / in its path (wait)",
	  OPTION_INTO(take_protocol, struct cell, protocol), .parse = find_protocol },
	{ "oracle", "NAME", "count, or crash: a tear kills the child (count)",
	  OPTION_CHOICE(struct cell, oracle, oracle_parse) },
	{ "first-wait", "T", "ticks between INT3 and back part (3000)",
	  OPTION_NUMBER(struct cell, waits.first, 0, CELL_WAIT_MAX) },
	{ "second-wait", "T", "ticks between back and front part (3000)",
	  OPTION_NUMBER(struct cell, waits.second, 0, CELL_WAIT_MAX) },
	{ "stretch", "N", "each wait is at least N times the latency of the store (0)",
	  OPTION_NUMBER(struct cell, waits.stretch, 0, CELL_STRETCH_MAX) },
	{ "rest", "T", "mean ticks between toggles (2000)",
	  OPTION_NUMBER(struct cell, rest, 0, CELL_WAIT_MAX) },
	{ "provoker", "NAMES", "what pulls the fetches apart: " PROVOKER_HELP,
	  OPTION_CHOICE(struct cell, provokers, provokers_parse) },
	{ "loop", "N", "filler instructions in the executors' loop (0)",
	  OPTION_NUMBER(struct cell, loop, 0, CELL_LOOP_MAX) },
	{ "toggles", "N", "stop after N toggles (1000000)",
	  OPTION_NUMBER(struct cell, toggles, 1, CELL_TOGGLES_MAX) },
	{ "seconds", "T", "or after this time, such as 10s; 0 is no limit (0)",
	  OPTION_LIMIT(struct cell, seconds) },
	{ "stop-tears", "N", "or after N tears; 0 is no limit (0)",
	  OPTION_NUMBER(struct cell, stop_tears, 0, INT64_MAX) },
	{ "seed", "N", "of the rests (1)", OPTION_NUMBER(struct cell, seed, 0, INT64_MAX) },
	{ "place", "N", "picks pages and line of the site; above 2^32 the patcher's CPU (0)",
	  OPTION_NUMBER(struct cell, place, 0, INT64_MAX) },
	{ "swap", NULL, "the patcher sits where the first executor would",
	  OPTION_FLAG(struct cell, swap) },
	{ 0 },
};

/* cell_command() quotes nothing. */
int cell_read(const char *text, const char *command, struct cell *cell, char *why)
{
	static const struct command_line line = { .options = { cell_options } };
	char *words[WORDS_MAX + 1] = { NULL }, *copy = strdup(text), *save;
	int count = 0, ret = -EINVAL;

	if (!copy)
		return -ENOMEM;
	for (char *word = strtok_r(copy, BLANKS, &save);
	     word && !strchr(";#", word[0]) && count < WORDS_MAX;
	     word = strtok_r(NULL, BLANKS, &save))
		words[count++] = word;
	if (count < 2 || strcmp(words[0], "tmax") != 0 || strcmp(words[1], command) != 0)
		snprintf(why, OPTION_WHY, "it is no command line of tmax %s", command);
	else if (count == WORDS_MAX)
		option_refuse(why, "it has too many words");
	else
		ret = command_line_read(&line, count - 1, words + 1, cell, why);
	if (ret < 0 && !why[0])
		snprintf(why, OPTION_WHY, "it has an option that describes no cell: %.60s",
			 words[optind]);
	free(copy);
	return ret;
}
