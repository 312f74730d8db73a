/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/bound.h"
#include "calibrate/conf_write.h"
#include "patchcore/machine_conf.h"
#include "results/tests/sample.h"

#define OLD	 "what an earlier run has proved\n"
#define INI_LINE 198 /* inih: a buffer of 200 with newline and NUL */
#define NOBODY	 65534

struct place {
	char folder[64];
	char path[128];
	struct identity identity;
	struct plan plan;
	struct estimate estimate;
	struct provenance from;
};

static void fill_estimate(struct estimate *e)
{
	*e = (struct estimate){
		.verdict = VERDICT_PASS,
		.reason = "no tear in 3e+09 toggles at these waits",
		.first_wait = 3000,
		.second_wait = 2500,
		.toggles = 3000000000,
		.upper_p = 1.0 / 3,
		.pooled_p = 1e-10,
		.torn = { .seen = { true, false }, .wait = { 2000, 0 } },
		.margin = 1.5,
		.tears_here = true,
		.window = 32,
		.window_toggles = 1000,
		.window_p = 2.0 / 3,
		.sections = 1,
	};
	e->section[0] = (struct section){
		.placement = PLACEMENT_SPREAD,
		.crossing = CROSSING_PAGE,
		.toggles = 77,
		.upper_p = 0.125,
		.torn = { .seen = { false, true }, .wait = { 0, 900 } },
	};
}

static int new_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	*state = p;
	strcpy(p->folder, "/tmp/test_conf_write.XXXXXX");
	if (!mkdtemp(p->folder) || chmod(p->folder, 0755) < 0)
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/machine.conf", p->folder);
	p->identity = sample_identity();
	p->plan = *plan_find("default");
	p->plan.gap[p->plan.gaps++] = (struct gap){ PLACEMENT_CROSS_SOCKET, "one package only" };
	fill_estimate(&p->estimate);
	p->from = (struct provenance){ &p->identity, &p->plan, "journal.jsonl" };
	signal(SIGXFSZ, SIG_IGN);
	return 0;
}

static int leave_place(void **state)
{
	struct place *p = *state;
	char command[128];
	int ret;

	snprintf(command, sizeof(command), "rm -rf '%s'", p->folder);
	ret = system(command);
	free(p);
	return ret;
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 2 * MACHINE_CONF_BYTES);

	assert_non_null(f);
	assert_true(fread(text, 1, 2 * MACHINE_CONF_BYTES - 1, f) > 0);
	fclose(f);
	return text;
}

static void write_old(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(OLD, f);
	assert_int_equal(fclose(f), 0);
}

static void assert_old(const char *path)
{
	char *text = read_text(path);

	assert_string_equal(text, OLD);
	free(text);
}

static int write_conf(const struct place *p)
{
	return conf_write(p->path, &p->estimate, &p->from);
}

static struct machine_conf must_read(const struct place *p)
{
	struct machine_conf conf;
	char why[256] = "";

	if (machine_conf_read(&conf, p->path, why, sizeof(why)) != 0)
		fail_msg("not readable: %s", why);
	return conf;
}

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
	assert_int_equal(conf->first_wait, e->first_wait);
	assert_int_equal(conf->second_wait, e->second_wait);
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
	struct place *p = *state;
	struct machine_conf conf;

	estimate_make(&p->estimate, NULL, 0, 0, 0);
	p->estimate.verdict = VERDICT_INCONCLUSIVE;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);

	p->estimate.first_wait = p->estimate.second_wait = MACHINE_CONF_WAIT;
	p->estimate.toggles = UINT64_MAX;
	p->estimate.window = 64;
	assert_int_equal(write_conf(p), 0);
	conf = must_read(p);
	assert_same_values(&conf, p);
}

static void assert_short_lines(const char *path)
{
	char *text = read_text(path);

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > INI_LINE)
			fail_msg("%zu bytes: %s", strlen(line), line);
	free(text);
}

static void fill_text(char *text, size_t size)
{
	memset(text, 'W', size - 1);
	text[size - 1] = '\0';
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

static void lengthen_estimate(struct estimate *e)
{
	fill_text(e->reason, sizeof(e->reason));
	e->have_worst = true;
	e->worst.cell = (struct cell){
		.placement = PLACEMENT_OVERSUBSCRIBED,
		.crossing = CROSSING_PAGE,
		.executors = UINT_MAX,
		.split = 4,
		.pair = PAIR_CALL_CALL,
		.first_wait = UINT64_MAX,
		.second_wait = UINT64_MAX,
	};
	e->worst.result.toggles = e->worst.result.tears[TEAR_OTHER] = UINT64_MAX;
	e->sections = SECTIONS_MAX;
	for (unsigned i = 0; i < SECTIONS_MAX; i++) {
		e->section[i] = (struct section){
			.placement = (enum placement)(i / CROSSING_COUNT),
			.crossing = (enum crossing)(i % CROSSING_COUNT),
			.toggles = UINT64_MAX,
			.tears = UINT64_MAX,
			.upper_p = 1.0 / 3,
			.torn = { .seen = { true, true }, .wait = { UINT64_MAX, UINT64_MAX } },
		};
	}
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

static void people_can_read_it(void **state)
{
	static const char *const words[] = {
		"[tmax]\nschema = 1\ntool = " PACKAGE_STRING "\ndate = 2",
		"\nplan = default\njournal = journal.jsonl\nverdict = pass\n"
		"reason = no tear in 3e+09 toggles at these waits\n",
		"\n[window]\nbytes = 32\ntoggles = 1000\n",
		"\ntorn_first = 2000\ntorn_second = none\n"
		"first_bounded = both sides\nsecond_bounded = from above only\nmargin = 1.5\n"
		"ceiling = 100000\nnaive_store_tore = yes\nworst_cell = none tore\n",
		"\n[placement spread page]\nfirst = 3000\nsecond = 2500\ntoggles = 77\ntears = 0\n"
		"upper_p = 0.125\ntorn_first = none\ntorn_second = 900\n",
		"\n[gaps]\ncross-socket = one package only\n",
	};
	struct place *p = *state;
	char *text;

	assert_int_equal(write_conf(p), 0);
	text = read_text(p->path);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_says(text, words[i]);
	free(text);
}

static void the_worst_cell_can_be_told(void **state)
{
	struct place *p = *state;
	char *text;

	p->estimate.have_worst = true;
	cell_defaults(&p->estimate.worst.cell);
	p->estimate.worst.result.tears[TEAR_NEW_FRONT] = 4;
	p->estimate.worst.result.toggles = 5000;
	assert_int_equal(write_conf(p), 0);
	text = read_text(p->path);
	assert_says(text, "\nworst_cell = spread line split 3 call-call executors 1 waits "
			  "3000/3000: 4 tears in 5000 toggles\n");
	free(text);
}

/* --- failures --- */

static int write_limited(const struct place *p, rlim_t bytes)
{
	struct rlimit before, limit;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ bytes, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ret = write_conf(p);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	return ret;
}

static void a_full_disk_leaves_the_old_one(void **state)
{
	struct place *p = *state;
	struct stat st;
	rlim_t size;

	assert_int_equal(write_conf(p), 0);
	assert_int_equal(stat(p->path, &st), 0);
	size = (rlim_t)st.st_size;
	write_old(p->path);
	for (rlim_t limit = 0; limit < size; limit += limit + 500 < size ? 500 : size - limit) {
		assert_int_equal(write_limited(p, limit), -EFBIG);
		assert_old(p->path);
		assert_int_equal(count_files(p->folder), 1);
	}
	assert_int_equal(write_limited(p, size - 1), -EFBIG);
	assert_old(p->path);
	assert_int_equal(write_limited(p, size), 0);
	assert_int_equal(must_read(p).first_wait, p->estimate.first_wait);
}

/* Root may write to a folder that is read-only, so it steps down for a moment. */
static int as_nobody(int (*call)(const struct place *p), const struct place *p)
{
	uid_t user = geteuid();
	int ret;

	if (user == 0)
		assert_int_equal(seteuid(NOBODY), 0);
	ret = call(p);
	if (user == 0)
		assert_int_equal(seteuid(0), 0);
	return ret;
}

static int check(const struct place *p)
{
	return conf_check(p->path);
}

static void a_read_only_folder_leaves_the_old_one(void **state)
{
	struct place *p = *state;

	write_old(p->path);
	assert_int_equal(chmod(p->folder, 0555), 0);
	assert_int_equal(as_nobody(write_conf, p), -EACCES);
	assert_int_equal(as_nobody(check, p), -EACCES);
	assert_int_equal(chmod(p->folder, 0755), 0);
	assert_old(p->path);
	assert_int_equal(count_files(p->folder), 1);
}

static void assert_refused(const struct place *p, int error)
{
	unsigned files = count_files(p->folder);

	assert_int_equal(conf_check(p->path), error);
	assert_int_equal(write_conf(p), error);
	assert_int_equal(count_files(p->folder), files);
}

static void a_folder_is_no_target(void **state)
{
	struct place *p = *state;
	struct stat st;

	assert_int_equal(mkdir(p->path, 0755), 0);
	assert_refused(p, -EISDIR);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(rmdir(p->path), 0);
	strcat(p->path, "/");
	assert_refused(p, -EISDIR);
	p->path[0] = '\0';
	assert_refused(p, -EISDIR);
}

/* A pipe stands for what must not be renamed over: /dev/null, a terminal. */
static void a_device_is_no_target(void **state)
{
	struct place *p = *state;
	struct stat st;

	assert_int_equal(mkfifo(p->path, 0600), 0);
	assert_refused(p, -ENOTSUP);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
}

static void a_file_is_no_folder(void **state)
{
	struct place *p = *state;
	char file[64];

	strcpy(file, p->path);
	write_old(file);
	strcat(p->path, "/machine.conf");
	assert_refused(p, -ENOTDIR);
	strcat(p->path, "/deeper");
	assert_refused(p, -ENOTDIR);
	assert_old(file);
}

static void missing_folders_are_made(void **state)
{
	struct place *p = *state;

	snprintf(p->path, sizeof(p->path), "%s/a//b/./c/machine.conf", p->folder);
	assert_int_equal(write_conf(p), 0);
	assert_int_equal(must_read(p).first_wait, p->estimate.first_wait);
}

static void names_that_are_too_long(void **state)
{
	struct place *p = *state;
	char path[2 * PATH_MAX];

	fill_text(path, sizeof(path));
	memcpy(path, p->folder, strlen(p->folder));
	path[strlen(p->folder)] = '/';
	assert_int_equal(conf_check(path), -ENAMETOOLONG);
	assert_int_equal(conf_write(path, &p->estimate, &p->from), -ENAMETOOLONG);
	path[300] = '\0';
	assert_int_equal(conf_check(path), -ENAMETOOLONG);
	assert_int_equal(conf_write(path, &p->estimate, &p->from), -ENAMETOOLONG);
	assert_int_equal(count_files(p->folder), 0);
}

/* In a shared folder someone may guess the name of the temporary file. */
static void a_planted_link_is_not_followed(void **state)
{
	struct place *p = *state;
	char planted[256], victim[128];

	snprintf(planted, sizeof(planted), "%s.%d.tmp", p->path, (int)getpid());
	snprintf(victim, sizeof(victim), "%s/victim", p->folder);
	write_old(victim);
	assert_int_equal(symlink(victim, planted), 0);
	assert_refused(p, -ELOOP);
	assert_old(victim);
}

static void a_check_changes_nothing(void **state)
{
	struct place *p = *state;

	assert_int_equal(conf_check(p->path), 0);
	assert_int_equal(count_files(p->folder), 0);
	write_old(p->path);
	assert_int_equal(conf_check(p->path), 0);
	assert_old(p->path);
	assert_int_equal(count_files(p->folder), 1);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, new_place, leave_place)

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
		IN_PLACE(the_worst_cell_can_be_told),
		IN_PLACE(a_full_disk_leaves_the_old_one),
		IN_PLACE(a_read_only_folder_leaves_the_old_one),
		IN_PLACE(a_folder_is_no_target),
		IN_PLACE(a_device_is_no_target),
		IN_PLACE(a_file_is_no_folder),
		IN_PLACE(missing_folders_are_made),
		IN_PLACE(names_that_are_too_long),
		IN_PLACE(a_planted_link_is_not_followed),
		IN_PLACE(a_check_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
