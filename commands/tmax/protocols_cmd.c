/* SPDX-License-Identifier: MIT */
/*
 * tmax protocols: each protocol of the library on this machine, at every crossing and split that it
 * claims to hold at and at those just outside, in short slices in an order that is drawn.
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"
#include "calibrate/session/session.h"
#include "commands/tmax/commands.h"
#include "commands/tmax/protocols.h"

#define BUDGET	  60.0
#define SLICE	  0.25		      /* seconds, at most, */
#define SLICE_MIN 0.05		      /* and at least: shorter ones are mostly set-up */
#define SETUP	  0.07		      /* seconds that starting a child takes */
#define OVERDRAWN 3.0		      /* times the budget that a first pass may take besides it */
#define STILL	  UINT64_C(100000000) /* ticks between changes of a site that hardly changes */
#define CONTROL	  "no-int3"
#define NO_SEED	  UINT64_MAX

struct protocols_request {
	double budget;
	bool strict;
	unsigned format;
	const char *journal;
	uint64_t seed;
};

static const struct option_row options[] = {
	{ "budget", "TIME", "how long to take, at least 2s (60s)",
	  OPTION_TIME(struct protocols_request, budget, 2) },
	{ "strict", NULL, "fail if a protocol does not hold where it claims to",
	  OPTION_FLAG(struct protocols_request, strict) },
	{ "format", "NAME", "text, junit or json (text)",
	  OPTION_CHOICE(struct protocols_request, format, protocols_format_parse) },
	{ "journal", "FILE", "append a line per slice, for tmax report",
	  OPTION_FILE(struct protocols_request, journal) },
	{ "seed", "N", "of the run (drawn, and told as JSON)",
	  OPTION_NUMBER(struct protocols_request, seed, 0, INT64_MAX) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "[PROTOCOL]...",
	.about = "Run protocols by which programs change code that runs, all of the library or\n"
		 "those named (also paths of files): do they hold on this machine where they\n"
		 "claim to, what does a change cost, and what do executors lose?\n",
	.options = { options },
	.end = "Exit status: 0, also where protocols tear; 1 with --strict, if one does where it\n"
	       "claims to hold; 2 the oracle saw nothing; 64 usage, 69 no protocol is here,\n"
	       "73 cannot create, 74 cannot write, 130 interrupted.\n",
};

/* --- What to run ------------------------------------------------------------------------------ */

/* One site of one protocol. */
struct protocol_site_run {
	const char *stage;
	struct cell cell;
	bool early; /* in its pass: what decides most, if there is time for no more */
	bool over;  /* it died there, or cannot be run */
};

struct protocols_run {
	struct protocols_request asked;
	struct session session;
	struct plan plan;
	struct protocol_site_run *site;
	size_t sites;
};

/* The pair that most mixes are told of. False: no such cell can be run. */
static bool choose_pair(struct cell *cell, const struct protocol_file *file)
{
	static const enum code_pair pairs[] = { PAIR_CALL_CALL, PAIR_CALL_NOP, PAIR_JMP_NOP,
						PAIR_WORD, PAIR_OWN };
	char why[256];

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		cell->pair = pairs[i];
		if (file->pairs & 1u << pairs[i] && cell_check(cell, why, sizeof(why)) == 0)
			return true;
	}
	return false;
}

/* Not supported, beside one that is; of a crossing where none is, the one in the middle. */
static bool is_just_outside(const struct protocol_file *file, enum crossing crossing,
			    unsigned split)
{
	if (!file->supports[crossing])
		return crossing == CROSSING_NONE || split == (file->length + 1) / 2;
	return !protocol_supports(file, crossing, split) &&
	       (protocol_supports(file, crossing, split + 1) ||
		(split > 1 && protocol_supports(file, crossing, split - 1)));
}

/* A site of a protocol, if a cell can be made of it. */
static int add_site(struct protocols_run *run, struct protocol_site_run site,
		    const struct protocol_file *file, bool compare)
{
	int ret;

	if (!choose_pair(&site.cell, file))
		return 0;
	ret = ARRAY_ADD(run->site, run->sites, site);
	site.stage = STAGE_STILL;
	site.cell.rest = STILL;
	return ret < 0 || !compare ? ret : ARRAY_ADD(run->site, run->sites, site);
}

static int add_sites(struct protocols_run *run, enum protocol protocol,
		     const struct protocol_file *file)
{
	struct protocol_site_run site = { .over = false };
	size_t before = run->sites;
	int ret = 0;

	cell_defaults(&site.cell);
	site.cell.protocol = protocol;
	site.cell.toggles = CELL_TOGGLES_MAX;
	for (int c = CROSSING_NONE; c < CROSSING_COUNT; c++)
		for (unsigned split = 1; split < file->length && ret == 0; split++) {
			enum crossing crossing = (enum crossing)c;
			bool supported = protocol_supports(file, crossing, split);

			/* Of a site that crosses nothing the split says nothing. */
			if (c == CROSSING_INSIDE || (c == CROSSING_NONE && split != 2) ||
			    (!supported && !is_just_outside(file, crossing, split)))
				continue;
			site.early = supported || file->broken;
			site.stage = supported ? STAGE_CLAIMED : STAGE_OUTSIDE;
			site.cell.crossing = crossing;
			site.cell.split = split;
			ret = add_site(run, site, file, run->sites == before);
		}
	return ret;
}

static int add_protocol(struct protocols_run *run, const char *name)
{
	const struct protocol_file *file;
	char why[WORDS_WHY] = "";
	int protocol = protocol_parse(name), ret;

	if (protocol < 0 || protocol_is_compiled((enum protocol)protocol))
		return refuse_usage("%s is no protocol of a file", name);
	for (size_t i = 0; i < run->sites; i++)
		if (run->site[i].cell.protocol == (enum protocol)protocol)
			return EXIT_PASS;
	ret = protocol_file((enum protocol)protocol, &file, why);
	if (ret < 0)
		return complain(EXIT_USAGE, why[0] ? 0 : ret, "%s", why[0] ? why : name);
	ret = add_sites(run, (enum protocol)protocol, file);
	return ret < 0 ? complain(EXIT_INTERNAL, ret, "cannot plan %s", name) : EXIT_PASS;
}

/* All files of the folder in which the control is. */
static int add_library(struct protocols_run *run)
{
	char path[PATH_MAX], name[PROTOCOL_NAME];
	int ret = protocol_path(CONTROL, path, sizeof(path)), status = EXIT_PASS;
	glob_t files;

	if (ret < 0)
		return complain(EXIT_MISSING, ret, "%s", path);
	strcpy(strrchr(path, '/') + 1, "*.protocol");
	if (glob(path, 0, NULL, &files) != 0)
		return complain(EXIT_MISSING, 0, "%s: no protocol is there", path);
	for (size_t i = 0; i < files.gl_pathc && status == EXIT_PASS; i++) {
		const char *base = strrchr(files.gl_pathv[i], '/') + 1;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
		/* By such a name the library's own code is meant. */
		if (!protocol_is_compiled((enum protocol)protocol_parse(name)))
			status = add_protocol(run, name);
	}
	globfree(&files);
	return status;
}

/* --- Running ---------------------------------------------------------------------------------- */

static void shuffle_sites(struct protocols_run *run, uint64_t *random)
{
	for (size_t i = run->sites; i > 1; i--) {
		size_t k = random_next(random) % i;
		struct protocol_site_run site = run->site[i - 1];

		run->site[i - 1] = run->site[k];
		run->site[k] = site;
	}
}

/* In the seat of its pass; but those that are compared always in the same. */
static int run_slice(struct protocols_run *run, struct protocol_site_run *site, unsigned pass,
		     unsigned turn, double seconds)
{
	const struct seat *seat = &run->plan.seat[pass % run->plan.seats];
	struct session *s = &run->session;
	const struct cell_record *record;
	struct cell cell = site->cell;
	int ret;

	if (strcmp(site->stage, STAGE_STILL) == 0)
		seat = &run->plan.seat[0];
	cell.placement = seat->placement;
	cell.executors = seat->executors;
	cell.seconds = fmax(seconds - SETUP, SLICE_MIN);
	cell.seed = random_at(run->asked.seed, turn) & INT64_MAX;
	cell.place = ((run->asked.seed + pass) & INT32_MAX) << PLACE_TURN_SHIFT;
	s->progress.stage = protocol_name(cell.protocol);
	ret = session_run(s, site->stage, turn, &cell, &record);
	if (ret == -EINTR || ret == -EIO)
		return ret;
	site->over = ret < 0 || record->result.outcome != OUTCOME_DONE;
	/* Another hang would take as long. */
	for (size_t i = 0; ret == 0 && i < run->sites; i++)
		run->site[i].over |= record->result.outcome == OUTCOME_HANG &&
				     run->site[i].cell.protocol == cell.protocol;
	return 0;
}

static int run_slices(struct protocols_run *run)
{
	double slice = fmin(SLICE, fmax(SLICE_MIN, run->asked.budget / (double)run->sites));
	double more_time = OVERDRAWN * run->asked.budget;
	uint64_t random = run->asked.seed;
	unsigned turn = 0;
	int ret = 0;

	for (unsigned pass = 0; ret == 0; pass++) {
		unsigned before = turn;

		shuffle_sites(run, &random);
		for (size_t i = 0; i < 2 * run->sites && ret == 0; i++) {
			struct protocol_site_run *site = &run->site[i % run->sites];

			/* The first ones are tried once, also if that takes longer. */
			double more = pass == 0 && i < run->sites ? more_time : 0;

			if (session_left(&run->session) + more < slice)
				return 0;
			if (!site->over && site->early == (i < run->sites))
				ret = run_slice(run, site, pass, turn++, slice);
		}
		if (turn == before)
			return 0;
	}
	return ret;
}

/* --- The command ------------------------------------------------------------------------------ */

/* With topology and journal open. */
static int run_and_tell(struct protocols_run *run)
{
	struct protocols_report report = {
		.budget = run->asked.budget,
		.seed = run->asked.seed,
		.strict = run->asked.strict,
	};
	struct session *s = &run->session;
	int status = machine_here(&report.identity), ret;

	if (status != EXIT_PASS)
		return status;
	progress_open(&s->progress, !isatty(STDERR_FILENO), report.identity.tsc_khz);
	ret = journal_write_run(s->journal, "protocols", &report.identity, NULL, report.seed);
	if (ret < 0)
		return complain(EXIT_CANNOT_WRITE, ret, "cannot write the journal");
	ret = run_slices(run);
	progress_end(&s->progress);
	if (ret == -EIO)
		return EXIT_CANNOT_WRITE;
	if (protocol_rows_make(&report.rows, s->done, s->count) < 0)
		return complain(EXIT_INTERNAL, -ENOMEM, "cannot add up");
	report.seconds = seconds_now() - s->begin;
	date_text(time(NULL), false, report.date);
	protocols_print(stdout, &report, run->asked.format);
	status = report.rows.seen ? EXIT_PASS : EXIT_INCONCLUSIVE;
	for (size_t i = 0; i < report.rows.count; i++)
		if (run->asked.strict &&
		    report.rows.row[i].part[PART_CLAIMED].verdict >= STEPS_TEAR)
			status = EXIT_TEARS;
	protocol_rows_free(&report.rows);
	return ret == -EINTR && status != EXIT_TEARS ? EXIT_INTERRUPTED : status;
}

int cmd_protocols(int argc, char **argv)
{
	static struct protocols_run run; /* large */
	struct session *s = &run.session;
	const char *journal;
	int ret, status;

	run.asked = (struct protocols_request){
		.budget = BUDGET,
		.seed = NO_SEED,
	};
	status = command_line_parse(&line, argc, argv, &run.asked, NULL);
	if (status == EXIT_PASS && optind == argc)
		status = add_library(&run);
	for (int i = optind; i < argc && status == EXIT_PASS; i++)
		status = add_protocol(&run, argv[i]);
	/* The oracle has to see something. */
	if (status == EXIT_PASS)
		status = add_protocol(&run, CONTROL);
	if (status == EXIT_PASS && run.asked.seed == NO_SEED &&
	    getrandom(&run.asked.seed, sizeof(run.asked.seed), 0) != sizeof(run.asked.seed))
		status = complain(EXIT_MISSING, 0, "cannot draw a seed: give --seed");
	run.asked.seed &= INT64_MAX;
	if (status == EXIT_PASS)
		status = topology_here(&s->topology);
	if (status != EXIT_PASS)
		goto out;
	plan_seat(&run.plan, s->topology);
	s->stop = &interrupted;
	s->budget = run.asked.budget;
	s->begin = seconds_now();
	s->seed = run.asked.seed;
	journal = run.asked.journal ? run.asked.journal : "/dev/null";
	ret = journal_open(&s->journal, journal);
	status = ret < 0 ? complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", journal)
			 : run_and_tell(&run);
	session_free(s);
	hwloc_topology_destroy(s->topology);
out:
	free(run.site);
	return status;
}
