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

int one_cell_tell(const struct one_cell_command *c, json_t *line)
{
	struct journal *journal;
	struct identity id;
	int ret = 0, status = EXIT_PASS;

	if (!line)
		return complain(EXIT_INTERNAL, 0, "the result cannot be told in JSON");
	if (c->journal)
		ret = journal_open(&journal, c->journal);
	if (ret < 0) {
		status = complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", c->journal);
	} else if (c->journal) {
		ret = identity_read(&id);
		if (ret == 0)
			ret = journal_write_run(journal, c->line->name, &id, NULL);
		if (ret == 0)
			ret = journal_put(journal, json_incref(line));
		journal_close(journal);
		if (ret < 0)
			status = complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s",
					  c->journal);
	}
	if (c->json)
		journal_tell(stdout, json_incref(line));
	json_decref(line);
	return status;
}

int one_cell_status(enum outcome outcome)
{
	return outcome == OUTCOME_DONE		? EXIT_PASS
	       : outcome == OUTCOME_INTERRUPTED ? EXIT_INTERRUPTED
	       : outcome == OUTCOME_ERROR	? EXIT_MISSING
						: EXIT_INCONCLUSIVE;
}
