/* SPDX-License-Identifier: MIT */
/* tmax calibrate: the main job. */
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "calibrate/session/session.h"
#include "calibrate/statistics/evidence.h"
#include "calibrate/verify/conf_write.h"
#include "commands/tmax/calibrate_cmd.h"
#include "commands/tmax/commands.h"
#include "patchcore/machine/kinds.h"
#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/policy.h"
#include "stress/placement/placement.h"

#define BUDGET_MIN  5 /* seconds; less cannot pass through all stages */
#define NO_SEED	    UINT64_MAX
#define LOCKED_BYTE (INT64_MAX - 1) /* of a journal: no line comes as far */

static int resume_calibration(struct session *s, const struct request *r, const struct identity *id)
{
	struct journal_data *known = &s->known;
	int ret = journal_read(r->journal, known);
	const char *field;
	const json_t *line;
	uint64_t seed;
	size_t i = 0;

	if (ret == -ENOENT)
		return EXIT_PASS;
	if (ret < 0)
		return complain(EXIT_MISSING, ret, "cannot read journal %s", r->journal);
	if (known->skipped)
		error(0, 0, "%s: %zu unreadable line%s skipped, the first is line %zu", r->journal,
		      known->skipped, S(known->skipped), known->first_bad);
	field = known->have_identity ? identity_differs(&known->identity, id) : NULL;
	/* The same draws again, unless other ones are asked for. */
	while (!r->experiment.list && !r->have_seed && (line = line_next(known, "run", &i)))
		if (seed_from_json(json_object_get(line, "seed"), &seed) == 0)
			s->seed = seed;
	/*
	 * Cells and gaps before its last estimate are in the store: to count them again would be to
	 * invent evidence. What was before is told by the place in the file: a clock may be set.
	 */
	if (!r->experiment.list) {
		known->count -= known->concluded;
		if (known->count)
			memmove(known->records, known->records + known->concluded,
				known->count * sizeof(*known->records));
		for (i = known->concluded_others; i-- > 0;)
			if (strcmp(json_text_of(json_array_get(known->others, i), "type"),
				   "gaps") == 0)
				json_array_remove(known->others, i);
	}
	if (!field && !known->mixed)
		return EXIT_PASS;
	return complain(
		EXIT_USAGE, 0,
		"%s is of another machine (%s differs): not resumed; give another --journal",
		r->journal, field ? field : "it is mixed, something");
}

#define NAMES 8

/*
 * Each calibration holds one of these names, which are the machine's and go with the process. It
 * takes its own before it asks for the others: of two that start together one sees the other.
 */
static bool is_alone(void)
{
	static struct sockaddr_un name = { AF_UNIX, "\0tmax-calibrate-" };
	static int mine = -1;
	bool alone = true;

	for (int i = 0; i < NAMES; i++) {
		int fd = i == mine ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			continue;
		name.sun_path[sizeof(name.sun_path) - 1] = (char)i;
		errno = 0;
		if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 && mine < 0) {
			mine = i;
			continue;
		}
		alone &= errno != EADDRINUSE;
		close(fd);
	}
	return alone;
}

static int open_journal(struct session *s, const struct request *r, const struct identity *id)
{
	const char *plan = r->experiment.list ? r->experiment.name : r->plan.name;
	struct flock lock = { .l_type = F_WRLCK, .l_start = LOCKED_BYTE, .l_len = 1 };
	int ret, status, fd = open(r->journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	json_t *untested;
	bool alone = is_alone();
	struct stat st;

	/*
	 * One run at a time writes to a journal: two that resume would both take what a third has
	 * left there, and count it twice. The lock goes with the process. What cannot be locked is
	 * not; that it cannot be opened is told where it is opened to be written.
	 */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    fcntl(fd, F_OFD_SETLK, &lock) != 0 && (errno == EAGAIN || errno == EACCES)) {
		error(0, 0, "another run writes to %s: waiting until it has ended", r->journal);
		if (fcntl(fd, F_OFD_SETLKW, &lock) && interrupted)
			return EXIT_INTERRUPTED;
		alone = is_alone();
	}
	if (!alone && !r->quiet)
		error(0, 0, "another calibration runs on this machine, and disturbs this one");
	status = r->resume ? resume_calibration(s, r, id) : EXIT_PASS;
	if (status != EXIT_PASS)
		return status;
	s->begin = seconds_now();
	ret = journal_open(&s->journal, r->journal);
	if (ret < 0)
		return complain(EXIT_CANNOT_CREATE, ret, "cannot open journal %s", r->journal);
	untested = json_array();
	for (unsigned i = 0; i < r->plan.untesteds; i++) {
		const struct untested *u = &r->plan.untested[i];

		json_array_append_new(untested, json_pack("{s:s, s:s}",
							  u->is_provoker ? "provoker" : "placement",
							  untested_name(u), "reason", u->reason));
	}
	ret = journal_write_run(s->journal, plan, id, untested, s->seed);
	json_decref(untested);
	return ret == 0 ? EXIT_PASS
			: complain(EXIT_CANNOT_WRITE, ret, "cannot write journal %s", r->journal);
}

/*
 * Adds the run, and estimates from all that is known of this machine, this run included. Two runs
 * unlike all before them say that the machine is another one: a new epoch begins.
 */
static int add_evidence(const struct session *s, const struct request *r, struct provenance *from,
			const struct sums *sums, struct estimate *all)
{
	struct evidence_run run = { .sums = *sums };
	struct evidence evidence;
	struct knowledge known;
	char reason[80];
	double chance = 1;
	int ret = evidence_read(r->evidence, &evidence);

	if (ret < 0)
		return ret;
	evidence_stamp(&run, r->plan.name, from->identity, from->cpus, s->done);
	ret = knowledge_of(&known, &evidence, &run.identity, &run.cpus);
	/* Two runs of one hour share its storm. */
	if (ret == 0 && known.latest && known.latest->time / 3600 != run.time / 3600)
		chance = evidence_strangeness(known.runs, known.count, &run.sums);
	knowledge_free(&known);
	evidence_free(&evidence);
	if (chance < EVIDENCE_CHANGED) {
		snprintf(reason, sizeof(reason), "the machine changed: p = %s", NUMBER(chance));
		error(0, 0, "%s. What was known of it counts no more.", reason);
		ret = evidence_begin_epoch(r->evidence, reason);
	}
	if (ret == 0)
		ret = evidence_append(r->evidence, &run);
	if (ret == 0)
		ret = evidence_read(r->evidence, &evidence);
	if (ret < 0)
		return ret;
	if (evidence.broken)
		error(0, 0, "%s: %zu unreadable line%s passed over", r->evidence, evidence.broken,
		      S(evidence.broken));
	ret = knowledge_of(&known, &evidence, from->identity, from->cpus);
	if (ret == 0 && !known.latest)
		ret = -ENOENT;
	if (ret == 0) {
		estimate_make(all, known.runs, known.count, &r->plan);
		from->measured = known.latest->time;
	}
	knowledge_free(&known);
	evidence_free(&evidence);
	return ret;
}

/* To the journal, where that has all that was measured, and to the user. */
static int tell_estimate(struct session *s, const struct request *r, const struct estimate *e,
			 const struct provenance *from, bool written)
{
	json_t *body = estimate_to_json(e), *line = body ? journal_line("estimate", body) : NULL;
	int ret = written ? session_written(s, journal_put(s->journal, json_incref(line))) : -EIO;

	if (r->json)
		journal_tell(stdout, json_incref(line));
	else
		summary_print(stdout, e, from);
	if (r->verbose && !r->json)
		summary_details(stdout, e, from);
	json_decref(line);
	json_decref(body);
	return ret < 0 ? EXIT_CANNOT_WRITE : EXIT_PASS;
}

/* What this run has added to what the config said of the machine before. */
static void put_since(const struct request *r, const struct estimate *e, const struct identity *id)
{
	static struct machine_conf before;
	double least = 1;
	char why[160];

	if (machine_conf_read(&before, r->output, why, sizeof(why)) < 0 || before.fleet ||
	    !before.levels || identity_differs(&before.identity, id))
		return;
	for (unsigned i = 0; i < e->levels; i++)
		least = fmin(least, e->level[i].upper_p);
	printf("Since:   the best bound per change is %s, from runs in %u hour%s; it was %s, from "
	       "%" PRIu64 "\n",
	       NUMBER(least), e->runs, S(e->runs),
	       NUMBER(machine_conf_p(machine_conf_surest(&before, SITES_ALL), SITES_ALL)),
	       before.runs);
}

/*
 * What one run has counted goes to the store, and what the store then says of this machine to the
 * journal, the user and the config. A run that saw nothing adds nothing, and takes nothing away:
 * there its own estimate is told. written: the journal has all that was measured.
 */
static int conclude_calibration(struct session *s, const struct request *r,
				const struct identity *id, const struct sums *sums,
				const struct estimate *one, bool written)
{
	bool has_conf = access(r->output, F_OK) == 0;
	const struct estimate *e = one;
	const char *kept = "";
	struct estimate all;
	struct cpus cpus;
	struct provenance from = {
		.identity = id,
		.cpus = &cpus,
		.plan = &r->plan,
		.journal = basename(r->journal),
		.evidence = basename(r->evidence),
		.cells = s->count,
	};
	int status, ret = 0;

	for (size_t i = 0; i < s->count; i++)
		from.noisy += s->done[i].noisy;

	cpus_here(s->topology, &cpus);
	if (!one->blind) {
		ret = add_evidence(s, r, &from, sums, &all);
		if (ret < 0) {
			tell_estimate(s, r, one, &from, false);
			return complain(EXIT_CANNOT_WRITE, ret,
					"cannot add to the evidence %s, or read it", r->evidence);
		}
		cpuid_keep(r->evidence);
		e = &all;
	}
	status = tell_estimate(s, r, e, &from, written);
	if (!r->json && has_conf && !one->blind)
		put_since(r, e, id);
	/* Without a wait a config would only take away what another one had said. */
	if (has_conf && one->blind)
		kept = ", as it was";
	else if (has_conf && !e->wait_runs)
		kept = ", as it was: no wait was ever tried";
	if (status == EXIT_PASS && !kept[0]) {
		ret = conf_write(r->output, e, &from);
		if (ret < 0)
			status = complain(EXIT_CANNOT_WRITE, ret, "cannot write %s", r->output);
	}
	if (!r->json && (status == EXIT_PASS || (one->blind && kept[0])))
		printf("Config:  %s%s\n", r->output, kept);
	if (!r->json)
		printf("Journal: %s (tmax report makes a page of it)%s%s\n", r->journal,
		       one->blind ? "" : ", evidence: ", one->blind ? "" : r->evidence);
	return status != EXIT_PASS ? status : (int)e->verdict;
}

static int run_session(struct session *s, struct request *r, const struct identity *id)
{
	struct sums sums = { 0 };
	struct estimate estimate;
	int cpus = hwloc_get_nbobjs_by_type(s->topology, HWLOC_OBJ_PU);
	bool broke_off, in_pairs = r->only == ONLY_WINDOW && cpus >= PAIRS_FROM;
	int ret, status = open_journal(s, r, id);

	if (status != EXIT_PASS)
		return status;
	if (r->experiment.list)
		return experiment_run(&r->experiment, s);
	ret = (in_pairs ? climb_pairs : climb)(s, &r->plan, &sums, &estimate);
	broke_off = ret < 0 && ret != -EINTR && ret != -EIO;
	/* -EIO has been told where it came up. What was counted is evidence all the same. */
	if (broke_off)
		error(0, -ret, "the calibration broke off");
	if (!estimate.blind || !broke_off)
		status = conclude_calibration(s, r, id, &sums, &estimate, ret != -EIO);
	if (broke_off)
		status = EXIT_MISSING;
	if (ret == -EINTR && status != EXIT_CANNOT_WRITE && !r->json)
		printf("Interrupted: %s\n",
		       estimate.blind
			       ? "nothing was added; the same command begins anew"
			       : "what was counted until then is kept; the same command adds more");
	if (ret == -EINTR && (status == EXIT_PASS || status == EXIT_INCONCLUSIVE))
		status = EXIT_INTERRUPTED;
	sums_free(&sums);
	return status;
}

int request_run(struct request *r)
{
	struct session s = {
		.stop = &interrupted,
		.budget = r->plan.budget,
		.begin = seconds_now(),
		.seed = r->seed,
	};
	const char *problem;
	struct identity id;
	char text[200];
	int status = machine_here(&id);

	if (status != EXIT_PASS)
		return status;
	/* The clock may be mended before the config is used, and an experiment needs none. */
	problem = id.tsc_invariant ? tsc_problem(text, sizeof(text)) : "the TSC is not invariant";
	if (problem)
		error(0, 0, "%s: the library will refuse to wait by it", problem);
	status = topology_here(&s.topology);
	if (status != EXIT_PASS)
		return status;
	plan_seat(&r->plan, s.topology);
	r->plan.widest = kind_read(&id).widest;
	progress_open(&s.progress, r->quiet, id.tsc_khz);
	if (r->experiment.list)
		status = experiment_prepare(&r->experiment, s.topology);
	if (status == EXIT_PASS)
		status = run_session(&s, r, &id);
	session_free(&s);
	cells_free(&r->experiment.cells);
	hwloc_topology_destroy(s.topology);
	return status;
}

/* --- The command line ------------------------------------------------------------------------ */

static int only_parse(const char *name)
{
	return strcmp(name, "window") == 0 ? ONLY_WINDOW
	       : strcmp(name, "gaps") == 0 ? ONLY_GAPS
					   : -1;
}

static int plan_known(const char *name)
{
	return plan_find(name) ? 0 : -1;
}

/*
 * Seconds. A shorter run needs most of its time for waits, or it ends without a verdict; a window
 * is accepted after many runs.
 */
#define BRIEF 300.0

static const char *plan_of_budget(const struct request *r)
{
	return r->budget > 0 && r->budget < BRIEF && !r->only ? "quick" : "default";
}

#define PLAN(name) OPTION_TEXT(struct request, plan_name), .fixed = (name)

static const struct option_row options[] = {
	{ "plan", "NAME", "quick: a minute; default: a quarter of an hour; thorough: two hours",
	  OPTION_TEXT(struct request, plan_name), .parse = plan_known },
	{ "quick", NULL, "the same as --plan quick", PLAN("quick") },
	{ "thorough", NULL, "the same as --plan thorough", PLAN("thorough") },
	{ "budget", "TIME", "another time, such as 10m (at least 5s); plan quick below 5m",
	  OPTION_TIME(struct request, budget, BUDGET_MIN) },
	{ "require-p", "P", "tears per change that a pass stays below (1e-4)",
	  OPTION_INTO(option_probability, struct request, require_p) },
	{ "only", "WHAT",
	  "spend all of the time on window (stores inside a line) or gaps (of fetches)",
	  OPTION_CHOICE(struct request, only, only_parse) },
	{ "output", "FILE", "the config (default: where the library looks for it)",
	  OPTION_FILE(struct request, output) },
	{ "journal", "FILE", "append a line per cell (default: the config's name + .jsonl)",
	  OPTION_FILE(struct request, journal) },
	{ "evidence", "FILE", "the store (default: the config's name + .evidence)",
	  OPTION_FILE(struct request, evidence) },
	{ "verbose", NULL, "tell every rung and placement, too",
	  OPTION_FLAG(struct request, verbose) },
	{ "json", NULL, "print the estimate as one line of JSON instead of text",
	  OPTION_FLAG(struct request, json) },
	{ "resume", NULL, "skip what the journal holds of a run that was killed",
	  OPTION_FLAG(struct request, resume) },
	{ "seed", "N", "of the run (drawn anew)",
	  OPTION_NUMBER(struct request, seed, 0, INT64_MAX) },
	{ "quiet", NULL, "no progress", OPTION_FLAG(struct request, quiet) },
	{ 0 },
};

static const struct command_line command = {
	.about = "Measure T_max of this machine, the longest time by which an instruction fetch\n"
		 "may lag behind a store: how often executors tear after how long a wait. Add\n"
		 "that to the store of evidence, and write what all of it says to machine.conf.\n",
	.options = { options },
	.end = "Exit status: 0 pass, 1 no wait is good enough, 2 inconclusive, 64 usage,\n"
	       "69 something is missing, 73 cannot create, 74 cannot write, 130 interrupted.\n",
};

int request_parse(int argc, char **argv, struct request *r)
{
	uint32_t seed;
	int status;

	*r = (struct request){ .seed = NO_SEED };
	status = command_line_parse(&command, argc, argv, r, NULL);
	if (status != EXIT_PASS)
		return status;
	r->plan = *plan_find(r->plan_name ? r->plan_name : plan_of_budget(r));
	r->have_seed = r->seed != NO_SEED;
	/* Other places and another order in each run: only so do runs tell more together. */
	if (!r->have_seed)
		r->seed = getrandom(&seed, sizeof(seed), 0) == sizeof(seed) ? seed
									    : (uint32_t)time(NULL);
	if (r->budget > 0)
		r->plan.budget = r->budget;
	r->plan.only = r->only;
	if (r->plan.only) {
		r->plan.window = r->only == ONLY_WINDOW;
		r->plan.fetch_gaps = r->only == ONLY_GAPS;
	}
	if (r->require_p > 0)
		r->plan.require_p = r->require_p;
	if (!r->output) {
		r->output = r->default_output;
		if (machine_conf_default_path(r->default_output, sizeof(r->default_output)) < 0)
			return refuse_usage("no home folder to write to: give --output");
	}
	if (!r->evidence)
		r->evidence = r->default_evidence;
	snprintf(r->default_evidence, sizeof(r->default_evidence), "%.4096s.evidence", r->output);
	if (!r->journal)
		r->journal = r->default_journal;
	snprintf(r->default_journal, sizeof(r->default_journal), "%.4096s.jsonl", r->output);
	return EXIT_PASS;
}

int cmd_calibrate(int argc, char **argv)
{
	struct request r;
	int ret, status = request_parse(argc, argv, &r);
	char why[200] = "";

	if (status != EXIT_PASS)
		return status;
	/* Better to fail before a quarter of an hour of work than after it. */
	ret = conf_check(r.output, why, sizeof(why));
	if (ret < 0)
		return complain(EXIT_CANNOT_CREATE, ret, "cannot write %s", r.output);
	if (why[0])
		error(0, 0, "the library will refuse %s: %s", r.output, why);
	if (!r.experiment.list && evidence_check(r.evidence) < 0)
		return EXIT_CANNOT_WRITE;
	return request_run(&r);
}
