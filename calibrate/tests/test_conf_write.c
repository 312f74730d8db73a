/* SPDX-License-Identifier: MIT */
/* What is in a machine.conf, for the library and for people. */
#include <limits.h>

#include "calibrate/bound.h"
#include "calibrate/tests/conf_place.h"
#include "calibrate/verify_conf.h"

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

static void assert_same_values(const struct machine_conf *conf, const struct place *p)
{
	const struct estimate *e = &p->estimate;

	assert_same_identity(&conf->identity, &p->identity);
	assert_int_equal(conf->usable, e->verdict == VERDICT_PASS);
	assert_int_equal(conf->first_wait, e->waits.first);
	assert_int_equal(conf->second_wait, e->waits.second);
	assert_int_equal(conf->stretch, e->stretch);
	assert_true(conf->toggles == e->toggles);
	assert_true(conf->upper_p == e->upper_p);
	assert_true(conf->confidence == CONFIDENCE);
	assert_int_equal(conf->window, e->window);
	assert_true(conf->window_p == e->window_p);
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

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		p->estimate.upper_p = p->estimate.window_p = bounds[i];
		assert_int_equal(write_conf(p), 0);
		assert_true(must_read(p).upper_p == bounds[i]);
		assert_true(must_read(p).window_p == bounds[i]);
	}
}

/* Estimates of nothing, of everything, and at the limits. */
static void extremes_are_readable(void **state)
{
	static const struct waits nothing[CLAIMS];
	struct place *p = *state;
	struct machine_conf conf;

	estimate_make(&p->estimate, NULL, 0, nothing, &p->plan);
	p->estimate.verdict = VERDICT_INCONCLUSIVE;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);

	p->estimate.waits = (struct waits){ MACHINE_CONF_WAIT, MACHINE_CONF_WAIT };
	p->estimate.stretch = MACHINE_CONF_STRETCH;
	p->estimate.toggles = UINT64_MAX;
	p->estimate.window = 64;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);
}

/* A command is for those who read lines of any length: the library skips its end. */
static void assert_short_lines(const char *path)
{
	char *text = read_text(path);

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > INI_LINE && strncmp(line, "command = ", 10) != 0)
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

static const struct torn torn_longest = { { true, true }, { UINT64_MAX, UINT64_MAX } };

static void lengthen_sections(struct estimate *e)
{
	e->sections = SECTIONS_MAX;
	for (unsigned i = 0; i < SECTIONS_MAX; i++) {
		e->section[i] = (struct section){
			.placement = (enum placement)(i / CROSSING_COUNT),
			.crossing = (enum crossing)(i % CROSSING_COUNT),
			.toggles = UINT64_MAX,
			.tears = UINT64_MAX,
			.upper_p = 1.0 / 3,
			.torn = torn_longest,
		};
	}
}

static void lengthen_arms(struct arms *arms)
{
	arms->count = ARMS_MAX;
	for (unsigned i = 0; i < ARMS_MAX; i++) {
		arms->arm[i] = (struct arm){
			.provokers = PROVOKERS_ALL,
			.rest = UINT64_MAX,
			.loop = UINT_MAX,
			.toggles = UINT64_MAX,
			.tears = UINT64_MAX,
			.rate = 1.0 / 3,
			.ratio = 1e300 / 3,
			.p = 1e-300 / 3,
		};
	}
}

static struct cell longest_cell(void)
{
	return (struct cell){
		.placement = PLACEMENT_OVERSUBSCRIBED,
		.crossing = CROSSING_PAGE,
		.pair = PAIR_CALL_CALL,
		.protocol = PROTOCOL_MEMBARRIER,
		.split = 4,
		.executors = UINT_MAX,
		.first_wait = UINT64_MAX,
		.second_wait = UINT64_MAX,
		.stretch = UINT64_MAX,
		.rest = UINT64_MAX,
		.provokers = PROVOKERS_ALL,
		.loop = UINT_MAX,
		.toggles = UINT64_MAX,
		.seconds = 1e300 / 3,
		.stop_tears = UINT64_MAX,
		.seed = UINT64_MAX,
	};
}

static void lengthen_estimate(struct estimate *e)
{
	fill_text(e->reason, sizeof(e->reason));
	e->have_torn_cell = true;
	e->torn_cell.cell = longest_cell();
	e->torn_cell.result.toggles = e->torn_cell.result.tears[TEAR_OTHER] = UINT64_MAX;
	for (unsigned i = 0; i < CLAIMS; i++) {
		e->claim[i].waits = (struct waits){ UINT64_MAX, UINT64_MAX };
		e->claim[i].toggles = e->claim[i].tears = UINT64_MAX;
		e->claim[i].far_toggles = e->claim[i].far_tears = UINT64_MAX;
		e->claim[i].drift_p = 1e-300 / 3;
		e->claim[i].torn = torn_longest;
	}
	lengthen_sections(e);
	lengthen_arms(&e->arms);
	e->worsts = WORST_MAX;
	for (unsigned i = 0; i < WORST_MAX; i++)
		e->worst[i] = (struct worst){ longest_cell(), UINT64_MAX, UINT64_MAX };
}

static void the_longest_texts_fit(void **state)
{
	struct place *p = *state;
	char journal[NAME_MAX + 1];
	struct machine_conf conf;

	lengthen_identity(&p->identity);
	lengthen_estimate(&p->estimate);
	fill_text(journal, sizeof(journal));
	p->from.journal = journal;
	p->plan.gaps = PLACEMENT_COUNT;
	for (unsigned i = 0; i < PLACEMENT_COUNT; i++) {
		p->plan.gap[i].placement = (enum placement)i;
		fill_text(p->plan.gap[i].reason, sizeof(p->plan.gap[i].reason));
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
		"[tmax]\nschema = 2\ntool = " PACKAGE_STRING "\ndate = 2",
		"\nplan = default\njournal = journal.jsonl\nverdict = pass\n"
		"reason = 5 tears in 3e+09 toggles at these waits: below 0.3 per toggle\n",
		"\n[window]\nbytes = 32\ntoggles = 1000\n",
		"\n[wait]\nusable = yes\nfirst = 3000\nsecond = 2500\nstretch = 4\n"
		"toggles = 3000000000\ntears = 5\nupper_p = 0.3",
		"\nconfidence = 0.95\npromise = 1.9999999999999999e-06\ntorn_first = 2000\n"
		"torn_second = none\nceiling = 100000\nnaive_store_tore = yes\n"
		"torn_cell = none tore\n",
		"\n[placement spread page]\ntoggles = 77\ntears = 3\n"
		"upper_p = 0.125\ntorn_first = none\ntorn_second = 900\n",
		"\n[gaps]\ncross-socket = one package only\n",
	};

	assert_all_said(*state, words, sizeof(words) / sizeof(words[0]));
}

static void each_claim_has_its_own_part(void **state)
{
	static const char *const words[] = {
		"\n[crossing line]\nfirst = 3000\nsecond = 1500\ntoggles = 2000000000\ntears = 0\n"
		"upper_p = 0.25\nfar_toggles = 7000\nfar_tears = 0\nsteady = yes\nsteady_p = 1\n"
		"torn_first = none\ntorn_second = none\n",
		"\n[crossing page]\nfirst = 2600\nsecond = 2500\ntoggles = 1000000000\ntears = 5\n"
		"upper_p = 0.5\nfar_toggles = 0\nfar_tears = 3\nsteady = no\nsteady_p = 0.00391\n"
		"torn_first = 2600\ntorn_second = 800\n",
		"[distance]\ncells = 9\nfar = 4\nspread = 150 to 640\n",
	};

	assert_all_said(*state, words, sizeof(words) / sizeof(words[0]));
}

static void provokers_are_told_with_what_they_raised(void **state)
{
	static const char *const words[] = {
		"\n[provoker none rest 2000 loop 0]\ntoggles = 9000\ntears = 0\nrate = 0\n"
		"ratio = unknown\np = 1\n",
		"\n[provoker cold-back+chain rest 500 loop 64]\ntoggles = 8000\ntears = 4\n"
		"rate = 0.0005\nratio = 2.5\np = 0.0156\n",
	};

	assert_all_said(*state, words, sizeof(words) / sizeof(words[0]));
}

static void the_torn_cell_can_be_told(void **state)
{
	static const char *const words[] = {
		"\ntorn_cell = spread line split 3 call-call executors 1 waits "
		"3000/3000: 4 tears in 5000 toggles\n",
	};
	struct place *p = *state;

	p->estimate.have_torn_cell = true;
	cell_defaults(&p->estimate.torn_cell.cell);
	p->estimate.torn_cell.result.tears[TEAR_NEW_FRONT] = 4;
	p->estimate.torn_cell.result.toggles = 5000;
	assert_all_said(p, words, 1);
}

/* As verify does it. */
static void the_worst_cells_can_be_run_again(void **state)
{
	struct cell cells[WORST_MAX];
	struct place *p = *state;
	struct estimate *e = &p->estimate;
	char why[256], command[2][1024];
	FILE *f;

	for (e->worsts = 0; e->worsts < WORST_MAX; e->worsts++) {
		e->worst[e->worsts].cell = e->worst[0].cell;
		e->worst[e->worsts].cell.seed = e->worsts;
		e->worst[e->worsts].cell.provokers = PROVOKERS_ALL;
	}
	assert_int_equal(write_conf(p), 0);
	f = fopen(p->path, "r");
	assert_non_null(f);
	if (verify_conf_cells(f, cells, WORST_MAX, why, sizeof(why)) != WORST_MAX)
		fail_msg("%s", why);
	fclose(f);
	for (unsigned i = 0; i < WORST_MAX; i++) {
		cell_command(&e->worst[i].cell, command[0], sizeof(command[0]));
		cell_command(&cells[i], command[1], sizeof(command[1]));
		assert_string_equal(command[0], command[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(the_library_reads_what_is_written),
		IN_PLACE(only_a_pass_is_usable),
		IN_PLACE(small_bounds_keep_their_digits),
		IN_PLACE(extremes_are_readable),
		IN_PLACE(the_longest_texts_fit),
		IN_PLACE(a_journal_name_is_only_a_name),
		IN_PLACE(people_can_read_it),
		IN_PLACE(each_claim_has_its_own_part),
		IN_PLACE(provokers_are_told_with_what_they_raised),
		IN_PLACE(the_torn_cell_can_be_told),
		IN_PLACE(the_worst_cells_can_be_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
