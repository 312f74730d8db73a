/* SPDX-License-Identifier: MIT */
/* What is in a machine.conf, for the library and for people. */
#include <limits.h>

#include "calibrate/statistics/bound.h"
#include "calibrate/tests/conf_place.h"

#define INI_LINE 198 /* inih: a buffer of 200 with newline and NUL */

static void assert_same_identity(const struct identity *a, const struct identity *b)
{
	char value[2][128];
	const char *name;

	for (unsigned i = 0; identity_field(a, i, &name, value[0], sizeof(value[0])); i++) {
		identity_field(b, i, &name, value[1], sizeof(value[1]));
		assert_string_equal(value[0], value[1]);
	}
	assert_null(identity_differs(a, b));
}

static void assert_same_bound(const struct machine_conf_bound *bound, const struct claim *claim)
{
	assert_true(bound->toggles == claim->rests.toggles);
	assert_true(bound->tears == claim->rests.tears);
	assert_true(bound->upper_p == claim->upper_p);
}

/* The levels of which something is known, in their order. */
static void assert_same_levels(const struct machine_conf *conf, const struct estimate *e)
{
	unsigned k = 0;

	for (unsigned i = 0; i < e->levels; i++) {
		const struct machine_conf_level *level = &conf->level[k];

		if (!e->level[i].claim[CLAIM_LINE].count.toggles ||
		    !e->level[i].claim[CLAIM_PAGE].count.toggles)
			continue;
		assert_int_equal(level->waits.first, e->level[i].rung.first);
		assert_int_equal(level->waits.second, e->level[i].rung.second);
		assert_int_equal(level->waits.stretch, e->level[i].rung.stretch);
		assert_true(llabs((long long)level->ticks - (long long)e->level[i].ticks) <= 1);
		assert_same_bound(&level->line, &e->level[i].claim[CLAIM_LINE]);
		assert_same_bound(&level->page, &e->level[i].claim[CLAIM_PAGE]);
		k++;
	}
	assert_int_equal(conf->levels, k);
}

static void assert_same_values(const struct machine_conf *conf, const struct place *p)
{
	static const enum machine_conf_verdict verdicts[] = {
		[VERDICT_PASS] = MACHINE_CONF_PASS,
		[VERDICT_FAIL] = MACHINE_CONF_FAIL,
		[VERDICT_INCONCLUSIVE] = MACHINE_CONF_INCONCLUSIVE,
	};
	const struct estimate *e = &p->estimate;

	assert_same_identity(&conf->identity, &p->identity);
	assert_int_equal(conf->schema, MACHINE_CONF_SCHEMA);
	assert_int_equal(conf->verdict, verdicts[e->verdict]);
	assert_memory_equal(&conf->cpus, &p->cpus, sizeof(p->cpus));
	assert_int_equal(conf->usable, e->verdict == VERDICT_PASS);
	assert_int_equal(conf->long_run, e->long_run);
	assert_int_equal(conf->runs, e->runs);
	assert_int_equal(conf->measured, p->from.measured);
	assert_true(conf->confidence == CONFIDENCE);
	assert_same_levels(conf, e);
	assert_int_equal(conf->window, e->window.bytes);
	assert_true(conf->window_p == e->window.upper_p);
	assert_true(conf->window_toggles == e->window.toggles);
	assert_true(conf->window_confidence == CONFIDENCE);
}

static void the_library_reads_what_is_written(void **state)
{
	struct place *p = *state;
	struct machine_conf conf;

	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);
	assert_int_equal(count_files(p->folder), 1);
}

static void only_a_pass_is_usable(void **state)
{
	struct place *p = *state;

	for (int v = VERDICT_PASS; v <= VERDICT_INCONCLUSIVE; v++) {
		p->estimate.verdict = (enum verdict)v;
		assert_int_equal(write_conf(p), 0);
		assert_int_equal(must_read(p).usable, v == VERDICT_PASS);
	}
}

/* A bound that is rounded down would promise too much. */
static void small_bounds_keep_their_digits(void **state)
{
	static const double bounds[] = { 1, 1.0000001e-9, 3.24797943917e-19, 0.1 + 0.2, 9.995e-7 };
	struct place *p = *state;
	struct estimate *e = &p->estimate;
	struct level *level = &e->level[1];

	/* Enough behind them for the smallest. */
	level->claim[CLAIM_LINE].rests.toggles = e->window.toggles = UINT64_MAX;
	level->claim[CLAIM_LINE].rests.tears = 0;
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		level->claim[CLAIM_LINE].upper_p = e->window.upper_p = bounds[i];
		assert_int_equal(write_conf(p), 0);
		assert_true(must_read(p).level[0].line.upper_p == bounds[i]);
		assert_true(must_read(p).window_p == bounds[i]);
	}
}

/* The library's rules, which know no special functions, refuse no bound of ours. */
static void honest_bounds_are_taken(void **state)
{
	static const uint64_t counts[] = { 0,	1,     2,	3,	  7,	     50,
					   999, 12345, 1000000, 77777777, 9000000000 };
	static const double spreads[] = { 0, 0.5, 3, 40 };
	const size_t n = sizeof(counts) / sizeof(counts[0]);
	struct place *p = *state;
	struct claim *claim = &p->estimate.level[1].claim[CLAIM_PAGE];

	p->estimate.verdict = VERDICT_INCONCLUSIVE;
	for (size_t i = 0; i < n * n * 4; i++) {
		uint64_t toggles = counts[i / 4 / n], tears = counts[i / 4 % n];

		if (!toggles || tears > toggles)
			continue;
		claim->rests.toggles = p->estimate.window.toggles = toggles;
		claim->rests.tears = tears;
		claim->upper_p = bound_mixed(tears, toggles, 5, spreads[i % 4], CONFIDENCE);
		p->estimate.window.upper_p = bound_upper(0, toggles, CONFIDENCE);
		assert_int_equal(write_conf(p), 0);
		must_read(p);
	}
}

/* The one line that the library reads at any length. */
static void many_cpus_fit(void **state)
{
	struct place *p = *state;
	struct machine_conf conf;

	memset(&p->cpus, 0x55, sizeof(p->cpus));
	p->identity.cpus = CPUS_MAX;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);
	assert_int_equal(cpus_count(&conf.cpus), CPUS_MAX / 2);
	/* It may also be just as long as inih's buffer, or not. */
	for (unsigned count = 30; count < 90; count++) {
		p->cpus = (struct cpus){ 0 };
		for (unsigned i = 0; i < count; i++)
			p->cpus.word[2 * i / 64] |= UINT64_C(1) << 2 * i % 64;
		assert_int_equal(write_conf(p), 0);
		conf = must_read(p);
		assert_same_values(&conf, p);
	}
}

/* Of nothing, and at the limits. */
static void extremes_are_readable(void **state)
{
	struct place *p = *state;
	struct sums none = { 0 };
	struct machine_conf conf;

	estimate_make(&p->estimate, &none, 1, &p->plan);
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);
	assert_int_equal(conf.levels, 0);

	for (unsigned i = 0; i < p->estimate.levels; i++)
		for (int c = 0; c < CLAIMS; c++)
			p->estimate.level[i].claim[c].count.toggles = UINT64_MAX;
	p->estimate.window.bytes = 64;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_int_equal(conf.levels, p->estimate.levels);
}

/*
 * A command is for readers that take lines of any length: the library skips its end. A list of
 * CPUs it reads whole.
 */
static void assert_short_lines(const char *path)
{
	char *text = read_text(path);

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > INI_LINE && strncmp(line, "command = ", 10) != 0 &&
		    strncmp(line, "cpus = ", 7) != 0)
			fail_msg("%zu bytes: %s", strlen(line), line);
	free(text);
}

static void lengthen_identity(struct identity *id)
{
	fill_text(id->vendor, sizeof(id->vendor));
	fill_text(id->brand, sizeof(id->brand));
	fill_text(id->microcode, sizeof(id->microcode));
	fill_text(id->hypervisor, sizeof(id->hypervisor));
	fill_text(id->caches, sizeof(id->caches));
	fill_text(id->kernel, sizeof(id->kernel));
	id->family = id->model = id->stepping = id->sockets = id->cores = id->cpus = UINT_MAX;
}

static void the_longest_texts_fit(void **state)
{
	struct place *p = *state;
	char journal[NAME_MAX + 1];
	struct machine_conf conf;

	lengthen_identity(&p->identity);
	fill_text(p->estimate.reason, sizeof(p->estimate.reason));
	fill_text(journal, sizeof(journal));
	p->from.journal = journal;
	p->plan.untested_placements = p->plan.untesteds = PLACEMENT_COUNT;
	for (unsigned i = 0; i < PLACEMENT_COUNT; i++) {
		p->plan.untested[i].which = (int)i;
		fill_text(p->plan.untested[i].reason, sizeof(p->plan.untested[i].reason));
	}
	assert_int_equal(write_conf(p), 0);
	assert_short_lines(p->path);
	conf = must_read(p);
	assert_same_values(&conf, p);
}

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("no \"%s\" in\n%s", words, text);
}

static void a_journal_name_is_only_a_name(void **state)
{
	static const char *const names[] = {
		"j\n[wait]\nusable = yes\n", "j\r\n", ";",     "[wait]", "= : =", " ",
		"\xff\xfe\t\x1b[2J",	     "",      "j ; k",
	};
	struct place *p = *state;
	char *text;

	p->estimate.verdict = VERDICT_FAIL;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct machine_conf conf;

		p->from.journal = names[i];
		assert_int_equal(write_conf(p), 0);
		conf = must_read(p);
		assert_same_values(&conf, p);
	}
	/* What follows a semicolon is a comment to inih. */
	text = read_text(p->path);
	assert_says(text, "\njournal = j ? k\n");
	free(text);
}

static void assert_all_said(const struct place *p, const char *const *words, size_t count)
{
	char *text;

	assert_int_equal(write_conf(p), 0);
	text = read_text(p->path);
	for (size_t i = 0; i < count; i++)
		assert_says(text, words[i]);
	free(text);
}

static void people_can_read_it(void **state)
{
	static const char *const words[] = {
		"[tmax]\nschema = 4\ntool = " PACKAGE_STRING "\ndate = 2",
		"\nplan = quick\nsource = calibration\njournal = journal.jsonl\nevidence = "
		"machine.conf.evidence\n"
		"verdict = pass\nreason = a wait keeps tears below ",
		"\n[scope]\ncpus = 0-1\nevidence = this-run\nruns = 1\nmeasured = 1795335991\n",
		"\n[window]\nbytes = 64\ntoggles = 4000000\n",
		"\n[wait]\nusable = yes\nconfidence = 0.95\nlevels = 2\nlong_levels = 0\n"
		"rested_levels = 0\nrequire_p = 0.0001\n"
		"membarrier_ticks = 73000\n",
		("\n[level 1]\nfirst = 100\nsecond = 100\nstretch = 4\nticks = 5000\n"
		 "line_toggles = 4000000\nline_tears = 2000\nline_p = "),
		"\n[level 2]\nfirst = 1600\nsecond = 1600\nstretch = 4\nticks = 10000\n",
		"\n[untested]\ncross-socket = one package only\n",
	};

	assert_all_said(*state, words, sizeof(words) / sizeof(words[0]));
}

/* Behind all others; what a machine of the fleet does at rest says nothing of this one. */
static void levels_at_rest_are_written(void **state)
{
	struct place *p = *state;
	struct estimate *e = &p->estimate;
	struct level *rested = &e->level[e->ladder.count + 1];
	struct machine_conf conf;
	unsigned last;

	for (int c = 0; c < CLAIMS; c++) {
		rested->claim[c].count = sample_count(40, 100000, 0);
		rested->claim[c].upper_p = 1e-5;
	}
	rested->upper_p = 1e-5;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_int_equal(conf.rested, 1);
	last = machine_conf_all_levels(&conf) - 1;
	assert_int_equal(conf.level[last].rest, CELL_RESTED);
	assert_int_equal(conf.level[last].waits.first, 100);
	assert_int_equal(conf.level[last].page.toggles, 4000000);
	assert_true(conf.level[last].page.upper_p == 1e-5);
	p->from.prior = "fleet.prior";
	assert_int_equal(write_conf(p), 0);
	assert_int_equal(must_read(p).rested, 0);
}

static void a_prior_says_so(void **state)
{
	struct place *p = *state;
	struct machine_conf conf;
	char *text;

	assert_int_equal(write_conf(p), 0);
	assert_false(must_read(p).fleet);
	p->from.prior = "fleet.prior";
	p->from.confidence = 0.9;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_true(conf.fleet);
	assert_true(conf.confidence == 0.9 && conf.window_confidence == 0.9);
	text = read_text(p->path);
	assert_says(text, "\nsource = fleet\nprior = fleet.prior\nverdict = ");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(the_library_reads_what_is_written),
		IN_PLACE(only_a_pass_is_usable),
		IN_PLACE(small_bounds_keep_their_digits),
		IN_PLACE(honest_bounds_are_taken),
		IN_PLACE(many_cpus_fit),
		IN_PLACE(extremes_are_readable),
		IN_PLACE(the_longest_texts_fit),
		IN_PLACE(a_journal_name_is_only_a_name),
		IN_PLACE(people_can_read_it),
		IN_PLACE(levels_at_rest_are_written),
		IN_PLACE(a_prior_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
