/* SPDX-License-Identifier: MIT */
/* Does growth tell what grows from what does not, and what is kept; and does it come to its end? */
#include "bench/cases/growth.c"
#include "bench/cases/growth_axes.c"
#include "bench/tests/bench_run.h"

static struct bench_run run;

/* --- Operations that grow, keep, hang and die ------------------------------------------------- */

static int keep_memory(struct ground *c, unsigned i)
{
	static void *volatile last;

	last = malloc(1000);
	return mprotect(page_at(c, 2 * i), PAGE, PROT_READ) < 0 || !last ? -errno : 0;
}

static int take_long(struct ground *c, unsigned i)
{
	(void)c;
	(void)i;
	return nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

static int hang_for_good(struct ground *c, unsigned i)
{
	(void)c;
	(void)i;
	while (pause() < 0)
		continue;
	return 0;
}

static int die_by_signal(struct ground *c, unsigned i)
{
	(void)c;
	(void)i;
	raise(SIGKILL);
	return 0;
}

static int refuse_always(struct ground *c, unsigned i)
{
	(void)c;
	return i ? -ENOSPC : 0;
}

static int tell_parent(struct ground *c, unsigned i)
{
	(void)i;
	return getppid() == (pid_t)c->size ? -ECHILD : 0;
}

static int block(const struct axis *axis, unsigned size, struct growth_case *g, char *why)
{
	struct bench_case bench = { .arg = g };
	struct samples s[2] = { { 0 } };
	int ret;

	*g = (struct growth_case){
		.axis = axis, .run = &run, .size = size, .limit = 0.2, .patience = 2
	};
	ret = block_of_growth(&bench, s, why);
	assert_int_equal(s[0].count, ret < 0 ? 0 : g->last.samples);
	samples_free(&s[0]);
	/* No child is left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return ret;
}

static void what_is_kept_is_counted(void **state)
{
	static const struct axis self = { "a", "n", { 0 }, NULL, NULL, keep_memory, ALONE };
	static const struct axis often = { "b", "n", { 0 }, NULL, NULL, keep_memory, OFTEN };
	static const struct axis once = { "c", "n", { 0 }, keep_memory, NULL, do_nothing, ONCE };
	static const struct axis beside = { "d", "n", { 0 }, keep_memory, NULL, do_nothing, ALONE };
	const struct axis *const keeps[] = { &self, &often, &once };
	struct growth_case g;
	char why[BENCH_WHY];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(block(keeps[i], 200, &g, why), 0);
		assert_int_equal(g.last.reached, 200);
		assert_true(g.last.heap >= 1000 && g.last.heap < 1100);
		/* One made apart is three of one. */
		assert_true(g.last.mappings > 1.9 && g.last.mappings < 2.1);
	}
	assert_int_equal(block(&beside, 200, &g, why), 0);
	assert_true(g.last.heap == 0 && g.last.mappings == 0);
	assert_int_equal(g.last.samples, OPS);
}

static void what_takes_long_is_cut(void **state)
{
	static const struct axis axis = { "a", "n", { 0 }, take_long, NULL, do_nothing, ALONE };
	struct bench_row row = { 0 };
	struct growth_case g;
	char why[BENCH_WHY];

	(void)state;
	assert_int_equal(block(&axis, 1000, &g, why), 0);
	assert_true(g.last.reached >= 2 && g.last.reached <= 20);
	sum_up_growth(&(struct bench_case){ .arg = &g }, &row);
	assert_true(bench_row_extra_of(&row, "cut_at") == g.last.reached);
	assert_true(size_of(&row) == g.last.reached);
}

static void what_hangs_dies_or_fails_is_told(void **state)
{
	static const struct axis hangs = { "a", "n", { 0 }, NULL, NULL, hang_for_good, ALONE };
	static const struct axis dies = {
		"a", "n", { 0 }, do_nothing, NULL, die_by_signal, FORKED
	};
	static const struct axis fails = { "a", "n", { 0 }, NULL, NULL, refuse_always, ALONE };
	struct growth_case g;
	char why[BENCH_WHY];

	(void)state;
	assert_int_equal(block(&hangs, 10, &g, why), -ETIMEDOUT);
	assert_string_equal(why, "not done in 2.0 s");
	assert_int_equal(block(&dies, 10, &g, why), -ETIMEDOUT);
	assert_string_equal(why, "its process died");
	assert_int_equal(block(&fails, 10, &g, why), -ENOSPC);
	assert_string_equal(why, "a: No space left on device");
}

/* Of this process the operations of one that is forked again are no children. */
static void children_have_children(void **state)
{
	static const struct axis child = { "a", "n", { 0 }, do_nothing, NULL, tell_parent, ALONE };
	static const struct axis forked = {
		"a", "n", { 0 }, do_nothing, NULL, tell_parent, FORKED
	};
	struct growth_case g;
	char why[BENCH_WHY];

	(void)state;
	g.limit = 0;
	assert_int_equal(block(&child, (unsigned)getpid(), &g, why), -ECHILD);
	assert_int_equal(block(&forked, (unsigned)getpid(), &g, why), 0);
}

/* --- Slopes ----------------------------------------------------------------------------------- */

/* Of costs at 10, 100 and 1000 sites with so much spread. Takes the last one if it is 0 for none.
 */
static const struct bench_row *slope(struct bench_result *r, double small, double large,
				     double spread)
{
	const double cost[SIZES] = { small, large ? sqrt(small * large) : small / 2, large };

	bench_result_free(r);
	for (unsigned i = 0; i < SIZES; i++) {
		struct bench_row *row = bench_result_add(r);

		bench_row_name(row, "a", "operation", "us");
		bench_row_param(row, "sites", 10 * pow(10, i));
		bench_row_extra(row, "heap_kept", i);
		row->samples = 2;
		row->p5 = cost[i];
		row->p25 = cost[i] * spread;
		if (cost[i] == 0)
			bench_row_skip(row, "not done");
	}
	assert_int_equal(add_slope(r, 0), 0);
	return &r->row[SIZES];
}

/* What its child leaves behind comes to this process. */
static void processes_patch_until_their_cell_ends(void **state)
{
	static const struct axis axis = { "a",	      "n",	   { 0 }, add_by_wait,
					  sleep_some, change_site, ALONE };
	struct growth_case g = {
		.axis = &axis, .run = &run, .size = 4, .limit = 60, .patience = 60
	};
	struct bench_case bench = { .arg = &g };
	struct samples s[2] = { { 0 } };
	unsigned others = 0;
	char why[BENCH_WHY];
	int status;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(block_of_growth(&bench, s, why), 0);
	assert_int_equal(g.last.reached, 4);
	assert_int_equal(s[0].count, g.last.samples);
	for (; waitpid(-1, &status, 0) > 0; others++)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(others, 3);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	samples_free(&s[0]);
}

static void slopes_have_a_verdict(void **state)
{
	static const struct {
		double large, spread, slope;
		const char *verdict;
	} all[] = {
		{ 5, 1.01, 1, "flat" },	   { 4, 1.01, 0.967, "flat" },
		{ 500, 1.01, 2, "grows" }, { 50000, 1.01, 4, "grows" },
		{ 5, 2, 1, "unclear" },	   { 50, 1.01, 1.414, "grows" },
	};
	struct bench_result r = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const struct bench_row *row = slope(&r, 5, all[i].large, all[i].spread);

		assert_true(fabs(row->value.median - all[i].slope) < 0.001);
		assert_true(row->value.low < all[i].slope && row->value.high > all[i].slope - 1e-3);
		assert_string_equal(bench_row_text(row, "verdict"), all[i].verdict);
		assert_string_equal(bench_row_text(row, "of"), "sites");
		assert_true(bench_row_extra_of(row, "heap_kept") == 2);
	}
	bench_result_free(&r);
}

/* A JIT's pages at 123 us, of which each adds 1/13 us: from 100 to 20,000 the power is 0.5. */
static void what_does_not_grow_hides_nothing(void **state)
{
	static const double size[SIZES] = { 100, 1500, 20000 };
	struct bench_result r = { 0 };

	(void)state;
	slope(&r, 1, 1, 1);
	for (unsigned i = 0; i < SIZES; i++) {
		double cost = 123 + size[i] / 13;

		r.row[i].param[0].number = size[i];
		r.row[i].p5 = r.row[i].p25 = cost;
	}
	assert_int_equal(add_slope(&r, 0), 0);
	assert_true(r.row[SIZES + 1].value.median > 1.55);
	/* Cut soon after the middle one, it counts from the first. */
	bench_row_extra(&r.row[2], "cut_at", 2000);
	assert_int_equal(add_slope(&r, 0), 0);
	assert_true(r.row[SIZES + 2].value.median > 1.1 && r.row[SIZES + 2].value.median < 1.9);
	bench_result_free(&r);
}

/* The largest that was measured counts, and without two there is none. */
static void slopes_do_without_what_was_not_done(void **state)
{
	struct bench_result r = { 0 };
	const struct bench_row *row = slope(&r, 10, 0, 1.01);

	(void)state;
	assert_int_equal(row->samples, 4);
	assert_true(fabs(row->value.median - pow(0.5, 1 / log2(10))) < 0.001);
	row = slope(&r, 0, 5, 1.01);
	assert_int_equal(row->samples, 0);
	assert_true(row->why[0]);
	bench_result_free(&r);
}

/* --- All of it -------------------------------------------------------------------------------- */

static void every_row_is_there(void **state)
{
	const unsigned cells = growth_axes_count * SIZES;
	struct bench_result result = { .benchmark = "growth" };
	unsigned measured = 0;

	(void)state;
	run.rounds = 1;
	assert_int_equal(bench_growth.run(&run, &result), 0);
	assert_int_equal(result.rows, cells + growth_axes_count);
	for (unsigned i = 0; i < result.rows; i++) {
		const struct bench_row *row = &result.row[i];
		bool is_slope = i >= cells;
		const struct axis *a = &growth_axes[is_slope ? i - cells : i / SIZES];

		assert_string_equal(row->name, a->name);
		assert_string_equal(row->measure, is_slope ? "slope" : "operation");
		measured += row->samples > 0;
		/* The smallest is to be had on any machine. */
		if (!row->samples && !is_slope && i % SIZES == 0 &&
		    !strstr(row->why, "membarrier: Operation not supported"))
			fail_msg("%s of %s: %s", a->name, a->of, row->why);
		/* On a busy machine others take too long, or a look at their threads does. */
		if (!row->samples && !is_slope && strstr(row->why, "died"))
			fail_msg("%s of %s: %s", a->name, a->of, row->why);
	}
	assert_true(measured >= result.rows * 3 / 4);
	bench_result_free(&result);
}

static void it_can_be_interrupted(void **state)
{
	struct bench_result result = { .benchmark = "growth" };

	(void)state;
	bench_run_stop = 1;
	assert_int_equal(bench_growth.run(&run, &result), -EINTR);
	bench_run_stop = 0;
	assert_int_equal(result.rows, 0);
	bench_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_counted),
		cmocka_unit_test(what_takes_long_is_cut),
		cmocka_unit_test(what_hangs_dies_or_fails_is_told),
		cmocka_unit_test(children_have_children),
		cmocka_unit_test(processes_patch_until_their_cell_ends),
		cmocka_unit_test(slopes_have_a_verdict),
		cmocka_unit_test(what_does_not_grow_hides_nothing),
		cmocka_unit_test(slopes_do_without_what_was_not_done),
		cmocka_unit_test(every_row_is_there),
		cmocka_unit_test(it_can_be_interrupted),
	};

	return BENCH_RUN_TESTS(&run, tests, NULL, NULL);
}
