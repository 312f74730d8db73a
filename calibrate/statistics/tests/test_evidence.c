/* SPDX-License-Identifier: MIT */
/* The store of evidence, as runs, crashes and users leave it. */
#include <errno.h>
#include <fcntl.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate/statistics/evidence.h"
#include "calibrate/tests/sums_sample.h"
#include "results/tests/sample.h"

static char path[64];
static const struct cpus two_cpus = { { 3 } };
static int64_t hours;

static int new_store(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/test_evidence.XXXXXX");
	fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static int drop_store(void **state)
{
	(void)state;
	return unlink(path);
}

static struct evidence_run new_run(uint64_t tears)
{
	struct plan plan = sample_plan(1);
	struct evidence_run run = { 0 };
	struct identity id = sample_identity();
	static unsigned count;

	evidence_stamp(&run, "quick", &id, &two_cpus, NULL);
	/* Of an hour each. */
	run.time = run.up = 3600 * ++hours;
	snprintf(run.start, sizeof(run.start), "%08x%08x", (unsigned)getpid(), ++count);
	sample_rung(&run.sums, &plan, (struct waits){ 100, 100, 4 }, sample_count(5, 10000, tears));
	return run;
}

static void add(uint64_t tears)
{
	struct evidence_run run = new_run(tears);

	assert_int_equal(evidence_append(path, &run), 0);
	sums_free(&run.sums);
}

static struct evidence read_store(void)
{
	struct evidence e;

	assert_int_equal(evidence_read(path, &e), 0);
	return e;
}

static char *read_text(void)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r");

	assert_true(getdelim(&text, &size, '\0', f) > 0);
	fclose(f);
	return text;
}

static void no_store_is_an_empty_one(void **state)
{
	struct evidence e;

	(void)state;
	assert_int_equal(evidence_read("/tmp/there/is/no/such", &e), 0);
	assert_int_equal(e.count, 0);
	e = read_store();
	assert_int_equal(e.count, 0);
	assert_int_equal(e.epoch, 0);
}

static struct knowledge known_of(const struct evidence *e, const struct identity *id)
{
	struct knowledge known;

	assert_int_equal(knowledge_of(&known, e, id, &two_cpus), 0);
	return known;
}

static void runs_add_up(void **state)
{
	struct identity id = sample_identity();
	struct knowledge known;
	struct evidence e;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		add(i);
	e = read_store();
	assert_int_equal(e.count, 4);
	assert_int_equal(e.broken, 0);
	known = known_of(&e, &id);
	assert_int_equal(known.count, 4);
	assert_ptr_equal(known.latest, &e.run[3]);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(known.runs[i].sum[0].count.tears, 5 * i);
	knowledge_free(&known);
	evidence_free(&e);
}

/* One storm may have met them all. */
static void runs_of_an_hour_are_one(void **state)
{
	struct identity id = sample_identity();
	struct knowledge known;
	struct evidence e;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		hours = 100 + i / 3;
		add(1);
	}
	e = read_store();
	known = known_of(&e, &id);
	assert_int_equal(known.all, 5);
	assert_int_equal(known.count, 2);
	assert_int_equal(known.runs[0].sum[0].count.tears, 15);
	assert_int_equal(known.runs[1].sum[0].count.tears, 10);
	knowledge_free(&known);
	evidence_free(&e);
}

static void write_text(const char *text, size_t size, const char *how)
{
	FILE *f = fopen(path, how);

	assert_int_equal(fwrite(text, 1, size, f), size);
	fclose(f);
}

/* A store behind itself, as cat, a clone or six imports at once leave it. */
static void a_line_counts_once(void **state)
{
	struct identity id = sample_identity();
	struct knowledge known;
	struct evidence e;
	char *text;

	(void)state;
	add(1);
	add(2);
	text = read_text();
	for (unsigned i = 0; i < 6; i++)
		write_text(text, strlen(text), "a");
	/* A line of a journal's date is not sealed. */
	*strchr(strstr(text, "\"date\":\"20") + 8, '2') = '1';
	write_text(text, strlen(text), "a");
	e = read_store();
	assert_int_equal(e.count, 2);
	assert_int_equal(e.broken, 0);
	known = known_of(&e, &id);
	assert_int_equal(known.all, 2);
	assert_int_equal(known.runs[0].sum[0].count.tears, 5);
	knowledge_free(&known);
	evidence_free(&e);
	free(text);
}

/* Copies of a journal that are resumed have their first cell in common, and more than that. */
static void copies_of_a_run_that_are_resumed_are_one(void **state)
{
	struct cell_record first = { .key = "controls", .date = "2026-01-01T00:00:00Z" };
	struct evidence e;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		struct evidence_run run = new_run(1 + i);

		first.result.ticks = 1000 + i / 2;
		evidence_start(run.start, &first);
		assert_int_equal(evidence_append(path, &run), 0);
		sums_free(&run.sums);
	}
	e = read_store();
	assert_int_equal(e.count, 2);
	assert_int_equal(e.run[0].sums.sum[0].count.tears, 5);
	assert_int_equal(e.run[1].sums.sum[0].count.tears, 15);
	evidence_free(&e);
}

static size_t count_hours(const struct identity *id)
{
	struct evidence e = read_store();
	struct knowledge known = known_of(&e, id);
	size_t count = known.count;

	assert_int_equal(known.all, e.count);
	knowledge_free(&known);
	evidence_free(&e);
	return count;
}

/* Lines of two stores, one behind the other. */
static void hours_are_a_set(void **state)
{
	static const int64_t of[] = { 10, 11, 10, 12, 11, 10 };
	struct identity id = sample_identity();

	(void)state;
	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		hours = of[i];
		add(i);
	}
	assert_int_equal(count_hours(&id), 3);
}

/* Ten runs of ten minutes, while the time is set by hours back and forth. */
static void a_clock_that_is_set_makes_no_hours(void **state)
{
	struct identity id = sample_identity();

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct evidence_run run = new_run(i);

		run.up = 3600 + 60 * i;
		run.time = 3600 * (i % 2 ? 1000 - i : 1000 + i) + run.up;
		assert_int_equal(evidence_append(path, &run), 0);
		sums_free(&run.sums);
	}
	assert_int_equal(count_hours(&id), 1);
}

/* Who can write to it can claim anything. */
static void a_store_of_others_is_refused(void **state)
{
	struct evidence_run run = new_run(1);

	(void)state;
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(evidence_append(path, &run), 0);
	for (mode_t mode = 020; mode; mode = mode == 020 ? 002 : 0) {
		assert_int_equal(chmod(path, 0644 | mode), 0);
		assert_int_equal(evidence_check(path), -EPERM);
		assert_int_equal(evidence_append(path, &run), -EPERM);
		assert_int_equal(evidence_begin_epoch(path, "x"), -EPERM);
	}
	/* One that is made is none of these, also where the user lets others do more. */
	assert_int_equal(unlink(path), 0);
	umask(0);
	assert_int_equal(evidence_append(path, &run), 0);
	umask(022);
	assert_int_equal(evidence_check(path), 0);
	sums_free(&run.sums);
}

/* What two CPUs do says nothing of two others. */
static void other_cpus_are_not_known(void **state)
{
	struct cpus others = { { 12 } };
	struct identity id = sample_identity();
	struct knowledge known;
	struct evidence e;

	(void)state;
	add(1);
	e = read_store();
	assert_int_equal(knowledge_of(&known, &e, &id, &others), 0);
	assert_null(known.latest);
	knowledge_free(&known);
	evidence_free(&e);
}

/* Each byte of a line in turn: the line is passed over, and the others stand. */
static void a_damaged_line_is_passed_over(void **state)
{
	size_t size, first;
	char *text;
	FILE *f;

	(void)state;
	/* No fraction, whose last digit may mean nothing. */
	add(0);
	add(2);
	text = read_text();
	size = strlen(text);
	first = (size_t)(strchr(text, '\n') - text);
	for (size_t at = 0; at < first; at += 7) {
		struct evidence e;
		char was = text[at];

		text[at] = was == '1' ? '2' : '1';
		f = fopen(path, "w");
		fwrite(text, 1, size, f);
		fclose(f);
		e = read_store();
		/* The date alone is not sealed: it is the journal's. */
		if (e.count == 2 && !memmem(text + (at > 40 ? at - 40 : 0), 60, "\"date\"", 6))
			fail_msg("not seen at %zu: %.40s", at, text + at);
		assert_true(e.count >= 1);
		assert_int_equal(e.run[e.count - 1].sums.sum[0].count.tears, 10);
		evidence_free(&e);
		text[at] = was;
	}
	free(text);
}

/* A run that is killed while it writes leaves a piece of a line. */
static void a_cut_line_costs_itself_alone(void **state)
{
	struct evidence e;
	char *text;
	size_t size;

	(void)state;
	add(1);
	text = read_text();
	size = strlen(text);
	for (size_t cut = 1; cut < size; cut += 97) {
		FILE *f = fopen(path, "w");

		fwrite(text, 1, size, f);
		fwrite(text, 1, cut, f);
		fclose(f);
		add(3);
		e = read_store();
		assert_int_equal(e.count, 2);
		assert_int_equal(e.broken, 1);
		assert_int_equal(e.run[1].sums.sum[0].count.tears, 15);
		evidence_free(&e);
	}
	free(text);
}

/* The seal is no signature: every program can make one. What is printed is printable all the same.
 */
static void a_text_for_a_terminal_is_no_evidence(void **state)
{
	static const char *const texts[] = { "\033[2J", "a\nb", "\xc2\x9b", "\x7f" };
	struct evidence e;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(texts[0]); i++) {
		struct evidence_run run = new_run(1);

		strcpy(i % 2 ? run.source : run.boot, texts[i / 2]);
		assert_int_equal(evidence_append(path, &run), 0);
		sums_free(&run.sums);
	}
	add(1);
	e = read_store();
	assert_int_equal(e.count, 1);
	assert_int_equal(e.broken, 8);
	evidence_free(&e);
}

static void runs_at_once_leave_all_their_lines(void **state)
{
	struct evidence e;

	(void)state;
	for (int i = 0; i < 4; i++) {
		if (fork() == 0) {
			for (int k = 0; k < 10; k++)
				add(1);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	e = read_store();
	assert_int_equal(e.count, 40);
	assert_int_equal(e.broken, 0);
	evidence_free(&e);
}

static size_t count_known(const struct identity *id)
{
	struct evidence e = read_store();
	struct knowledge known = known_of(&e, id);
	size_t count = known.count;

	assert_int_equal(known.latest != NULL, count > 0);
	knowledge_free(&known);
	evidence_free(&e);
	return count;
}

static void a_machine_that_changed_begins_an_epoch(void **state)
{
	struct identity id = sample_identity();
	struct evidence_run run;
	struct evidence e;

	(void)state;
	add(1);
	run = new_run(2);
	strcpy(run.identity.microcode, "0xdeadbeef");
	assert_int_equal(evidence_append(path, &run), 0);
	e = read_store();
	assert_int_equal(e.run[0].epoch, 1);
	assert_int_equal(e.run[1].epoch, 2);
	evidence_free(&e);
	/* Of the machine as it was nothing counts, whichever of both this is. */
	assert_int_equal(count_known(&id), 0);
	assert_int_equal(count_known(&run.identity), 1);
	strcpy(run.identity.kernel, "another");
	strcpy(run.start, "another");
	assert_int_equal(evidence_append(path, &run), 0);
	e = read_store();
	assert_int_equal(e.run[2].epoch, 3);
	evidence_free(&e);
	sums_free(&run.sums);
}

static void an_epoch_may_be_begun(void **state)
{
	struct identity id = sample_identity();

	(void)state;
	add(1);
	assert_int_equal(count_known(&id), 1);
	assert_int_equal(evidence_begin_epoch(path, "because"), 0);
	assert_int_equal(count_known(&id), 0);
	add(2);
	assert_int_equal(count_known(&id), 1);
}

/* Each byte of its line in turn, and the ends of lines around it: what was before does not count.
 */
static void a_damaged_epoch_line_begins_one(void **state)
{
	struct identity id = sample_identity();
	size_t from, to;
	char *text;

	(void)state;
	add(1);
	text = read_text();
	from = strlen(text);
	free(text);
	assert_int_equal(evidence_begin_epoch(path, "because"), 0);
	text = read_text();
	to = strlen(text);
	for (size_t at = from - 1; at < to; at++) {
		char was = text[at];

		text[at] = was == 'x' ? 'y' : 'x';
		write_text(text, to, "w");
		if (count_known(&id))
			fail_msg("counts again, damaged at %zu: %.20s", at - from, text + at);
		text[at] = was;
	}
	for (size_t cut = from + 1; cut < to; cut++) {
		write_text(text, cut, "w");
		assert_int_equal(count_known(&id), 0);
	}
	write_text(text, from, "w");
	assert_int_equal(count_known(&id), 1);
	free(text);
}

/* Ordinary runs, which differ; then two a hundred times as bad, or as good. */
static void strange_runs_are_noticed(void **state)
{
	static const uint64_t usual[] = { 20, 35, 11, 27, 18, 40, 22, 30, 0 };
	struct plan plan = sample_plan(1);
	struct sums runs[9] = { 0 };
	struct sums run = { 0 }, *last = &runs[8];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		sample_rung(&runs[i], &plan, (struct waits){ 100, 100, 4 },
			    sample_count(5, 100000, usual[i]));
	for (unsigned i = 0; i < 9; i++) {
		static const uint64_t both[9][2] = { { 33, 33 },     { 2500, 33 }, { 33, 2500 },
						     { 2500, 0 },    { 0, 2500 },  { 33, 0 },
						     { 2500, 2500 }, { 0, 0 },	   { 2500, 900 } };

		sample_rung(last, &plan, (struct waits){ 100, 100, 4 },
			    sample_count(5, 100000, both[i][0]));
		sample_rung(&run, &plan, (struct waits){ 100, 100, 4 },
			    sample_count(5, 100000, both[i][1]));
		assert_int_equal(evidence_strangeness(runs, 9, &run) < EVIDENCE_CHANGED, i > 5);
		assert_true(evidence_strangeness(runs, EVIDENCE_KNOWN, &run) == 1);
		sums_free(&run);
		sums_free(last);
	}
	/* What has nothing in common says nothing. */
	sample_rung(last, &plan, (struct waits){ 100, 100, 4 }, sample_count(5, 100000, 2500));
	sample_rung(&run, &plan, (struct waits){ 200, 200, 4 }, sample_count(5, 100000, 2500));
	assert_true(evidence_strangeness(runs, 9, &run) == 1);
	sums_free(&run);
	for (unsigned i = 0; i < 9; i++)
		sums_free(&runs[i]);
}

/* --- How often a machine that has not changed is said to have ----------------------------------
 */

#define TRIALS	20000
#define RUNS	13 /* before the one that is looked at */
#define TEARS	30 /* of a run in ordinary times */
#define CHANGED 30 /* times as many */

static gsl_rng *rng;

/* Of the logarithm of a run's rate the deviation; so often it is in a storm; so many times the
 * rate. */
struct weather {
	double deviation, storms, times;
};

static void draw_run(struct sums *run, const struct weather *w, double times)
{
	double storm = gsl_rng_uniform(rng) < w->storms ? w->times : 1;

	run->sum->count.toggles = 1000000;
	run->sum->count.tears = gsl_ran_poisson(
		rng, TEARS * times * storm * exp(gsl_ran_gaussian(rng, w->deviation)));
}

static void a_storm_is_no_change(void **state)
{
	static const struct weather weathers[] = {
		{ 0.5, 0, 1 }, { 1, 0, 1 }, { 0.8, 0.15, 10 }, { 0.5, 0.03, 30 }
	};
	struct sum sum[RUNS + 1] = { 0 };
	struct sums runs[RUNS + 1], *run = &runs[RUNS];

	(void)state;
	rng = gsl_rng_alloc(gsl_rng_taus2);
	for (unsigned i = 0; i <= RUNS; i++)
		runs[i] = (struct sums){ &sum[i], 1 };
	for (size_t w = 0; w < sizeof(weathers) / sizeof(weathers[0]); w++) {
		unsigned alarms = 0, found = 0;

		for (unsigned t = 0; t < TRIALS; t++) {
			for (unsigned i = 0; i <= RUNS; i++)
				draw_run(&runs[i], &weathers[w], 1);
			alarms += evidence_strangeness(runs, RUNS, run) < EVIDENCE_CHANGED;
			draw_run(&runs[RUNS - 1], &weathers[w], CHANGED);
			draw_run(run, &weathers[w], CHANGED);
			found += evidence_strangeness(runs, RUNS, run) < EVIDENCE_CHANGED;
		}
		print_message("# weather %zu: %.2g %% are alarms; %d times as many tears are found "
			      "in %.0f %%\n",
			      w, 100.0 * alarms / TRIALS, CHANGED, 100.0 * found / TRIALS);
		/* As many and more are chance in one of a million tests at the rate that is stated.
		 */
		assert_true(alarms == 0 ||
			    gsl_cdf_binomial_Q(alarms - 1, EVIDENCE_CHANGED, TRIALS) > 1e-6);
		assert_true(found > (w == 0 ? 0.6 : 0) * TRIALS);
	}
	gsl_rng_free(rng);
}

int main(void)
{
#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, new_store, drop_store)
	const struct CMUnitTest tests[] = {
		IN_STORE(no_store_is_an_empty_one),
		IN_STORE(runs_add_up),
		IN_STORE(runs_of_an_hour_are_one),
		IN_STORE(a_line_counts_once),
		IN_STORE(copies_of_a_run_that_are_resumed_are_one),
		IN_STORE(hours_are_a_set),
		IN_STORE(a_clock_that_is_set_makes_no_hours),
		IN_STORE(a_store_of_others_is_refused),
		IN_STORE(other_cpus_are_not_known),
		IN_STORE(a_damaged_line_is_passed_over),
		IN_STORE(a_cut_line_costs_itself_alone),
		IN_STORE(a_text_for_a_terminal_is_no_evidence),
		IN_STORE(runs_at_once_leave_all_their_lines),
		IN_STORE(a_machine_that_changed_begins_an_epoch),
		IN_STORE(an_epoch_may_be_begun),
		IN_STORE(a_damaged_epoch_line_begins_one),
		cmocka_unit_test(strange_runs_are_noticed),
		cmocka_unit_test(a_storm_is_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
