/* SPDX-License-Identifier: MIT */
#include "calibrate/experiment/experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/program/command_line.h"
#include "stress/run/gap.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

int cells_add(struct cells *cells, const struct listed *listed)
{
	struct listed *more = cells->at;

	/* Doubled whenever the count is a power of two. */
	if ((cells->count & (cells->count - 1)) == 0)
		more = realloc(more, (cells->count ? 2 * cells->count : 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	cells->at = more;
	more[cells->count++] = *listed;
	return 0;
}

void cells_free(struct cells *cells)
{
	free(cells->at);
	*cells = (struct cells){ 0 };
}

static int read_cell(const char *text, struct listed *l, char *why)
{
	size_t name = strspn(text, NAME_LETTERS);
	struct cell *cell = &l->cell;
	char command[8] = "";
	int ret;

	*l = (struct listed){ 0 };
	if (name && text[name] == ':') {
		if (name >= sizeof(l->name) || text[0] < 'a') {
			snprintf(why, OPTION_WHY, "its name is not one of %d letters at most",
				 CELLS_NAME - 1);
			return -EINVAL;
		}
		memcpy(l->name, text, name);
		text += name + 1;
	}
	if (sscanf(text, " tmax %7s", command) == 1)
		l->gaps = strcmp(command, "gaps") == 0;
	if (l->gaps)
		gap_defaults(cell);
	else
		cell_defaults(cell);
	/* What no line can say, to see whether it says anything. */
	cell->seed = UINT64_MAX;
	cell->placement = PLACEMENT_COUNT;
	ret = cell_read(text, l->gaps ? "gaps" : "stress", cell, why);
	if (ret < 0)
		return ret;
	l->seeded = cell->seed != UINT64_MAX;
	l->placed = cell->placement != PLACEMENT_COUNT;
	if (!l->seeded)
		cell->seed = 1;
	if (!l->placed)
		cell->placement = PLACEMENT_SPREAD;
	return l->gaps ? gap_check(cell, why, OPTION_WHY) : cell_check(cell, why, OPTION_WHY);
}

int cells_read(FILE *stream, struct cells *cells, char *why)
{
	char *line = NULL, reason[OPTION_WHY] = "";
	struct listed listed;
	size_t room = 0;
	int ret = 0;

	for (size_t number = 1; ret == 0 && getline(&line, &room, stream) > 0; number++) {
		const char *text = line + strspn(line, " \t\r\n");

		if (!*text || *text == '#')
			continue;
		ret = read_cell(text, &listed, reason);
		if (ret == 0 && cells->count == CELLS_MAX) {
			option_refuse(reason, "there are too many cells");
			ret = -EINVAL;
		}
		if (ret == 0)
			ret = cells_add(cells, &listed);
		if (ret == -EINVAL)
			snprintf(why, CELLS_WHY, "line %zu: %s", number, reason);
	}
	free(line);
	return ret == 0 && ferror(stream) ? -EIO : ret;
}
