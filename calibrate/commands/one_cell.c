/* SPDX-License-Identifier: MIT */
#include "calibrate/commands/one_cell.h"

#include <error.h>
#include <stdio.h>
#include <string.h>

#include "calibrate/program/commands.h"
#include "calibrate/program/exit_status.h"
#include "calibrate/program/here.h"
#include "stress/provoke/provoker.h"

_Static_assert(offsetof(struct one_cell_command, cell) == 0, "options of a cell are about it");

int one_cell_main(struct one_cell_command *c, int argc, char **argv)
{
	struct run_options how = { .stop = &interrupted };
	struct seating seating;
	char reason[160] = "";
	int status, ret;

	c->defaults(&c->cell);
	status = command_line_parse(c->line, argc, argv, c, &c->given);
	if (status == EXIT_PASS && c->run_list && c->list)
		return c->run_list(c);
	if (status == EXIT_PASS && (c->shard.of > 1 || c->resume || c->quiet))
		return refuse_usage("--shard, --resume and --quiet go with a --list");
	if (status == EXIT_PASS && c->check(&c->cell, reason, sizeof(reason)) < 0)
		return refuse_usage("%s", reason);
	if (status == EXIT_PASS)
		status = topology_here(&how.topology);
	if (status != EXIT_PASS)
		return status;
	ret = cell_seat(&c->cell, how.topology, &seating, reason, sizeof(reason));
	if (ret == 0)
		ret = provokers_possible(&c->cell, how.topology, &seating, reason, sizeof(reason));
	if (ret == 0)
		ret = c->run(c, &how, &status);
	hwloc_topology_destroy(how.topology);
	if (ret == 0)
		return interrupted ? EXIT_INTERRUPTED : status;
	error(0, 0, "cannot run %s with %u executors: %s", placement_name(c->cell.placement),
	      c->cell.executors, reason[0] ? reason : strerror(-ret));
	return EXIT_MISSING;
}

int one_cell_append(const struct one_cell_command *c,
		    int (*write)(struct journal *journal, const void *what), const void *what)
{
	struct journal *journal;
	struct identity id;
	int ret;

	if (!c->journal)
		return EXIT_PASS;
	ret = journal_open(&journal, c->journal);
	if (ret < 0)
		return complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", c->journal);
	ret = identity_read(&id);
	if (ret == 0)
		ret = journal_write_run(journal, c->line->name, &id, NULL);
	if (ret == 0)
		ret = write(journal, what);
	journal_close(journal);
	if (ret < 0)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s", c->journal);
	return EXIT_PASS;
}

int one_cell_status(enum outcome outcome)
{
	switch (outcome) {
	case OUTCOME_DONE:
		return EXIT_PASS;
	case OUTCOME_INTERRUPTED:
		return EXIT_INTERRUPTED;
	case OUTCOME_ERROR:
		return EXIT_MISSING;
	default:
		return EXIT_INCONCLUSIVE;
	}
}
