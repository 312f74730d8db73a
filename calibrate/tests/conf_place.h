/* SPDX-License-Identifier: MIT */
/*
 * A folder to write machine.conf into, and what to write.
 */
#ifndef CALIBRATE_TESTS_CONF_PLACE_H
#define CALIBRATE_TESTS_CONF_PLACE_H

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/conf_write.h"
#include "patchcore/machine_conf.h"
#include "results/tests/sample.h"

#define OLD "what an earlier run has proved\n"

struct place {
	char folder[64];
	char path[128];
	struct identity identity;
	struct plan plan;
	struct estimate estimate;
	struct provenance from;
};

static inline void fill_text(char *text, size_t size)
{
	memset(text, 'W', size - 1);
	text[size - 1] = '\0';
}

static inline void fill_lists(struct estimate *e)
{
	e->section[0] = (struct section){
		.placement = PLACEMENT_SPREAD,
		.crossing = CROSSING_PAGE,
		.toggles = 77,
		.tears = 3,
		.upper_p = 0.125,
		.torn = { .seen = { false, true }, .wait = { 0, 900 } },
	};
	e->arms.arm[0] = (struct arm){ .rest = 2000, .toggles = 9000, .ratio = -1, .p = 1 };
	e->arms.arm[1] = (struct arm){
		.provokers = 1u << PROVOKER_COLD_BACK | 1u << PROVOKER_CHAIN,
		.rest = 500,
		.loop = 64,
		.toggles = 8000,
		.tears = 4,
		.rate = 0.0005,
		.ratio = 2.5,
		.p = 0.015625,
	};
	e->worst[0] = (struct worst){ .toggles = 123, .tears = 4 };
	cell_defaults(&e->worst[0].cell);
	e->sections = e->worsts = 1;
	e->arms.count = 2;
}

static inline void fill_estimate(struct estimate *e)
{
	*e = (struct estimate){
		.verdict = VERDICT_PASS,
		.reason = "5 tears in 3e+09 toggles at these waits: below 0.3 per toggle",
		.waits = { 3000, 2500 },
		.stretch = 4,
		.toggles = 3000000000,
		.tears = 5,
		.upper_p = 1.0 / 3,
		.pooled_p = 1e-10,
		.torn = { .seen = { true, false }, .wait = { 2000, 0 } },
		.tears_here = true,
		.window = 32,
		.window_toggles = 1000,
		.window_p = 2.0 / 3,
	};
	e->distance.least[PLACEMENT_SPREAD] = 150;
	e->distance.greatest[PLACEMENT_SPREAD] = 640;
	e->distance.cells = 9;
	e->distance.far = 4;
	e->claim[CLAIM_LINE] = (struct claim){
		.far_toggles = 7000,
		.crossing = CROSSING_LINE,
		.waits = { 3000, 1500 },
		.toggles = 2000000000,
		.upper_p = 0.25,
		.drift_p = 1,
	};
	e->claim[CLAIM_PAGE] = (struct claim){
		.far_tears = 3,
		.crossing = CROSSING_PAGE,
		.waits = { 2600, 2500 },
		.toggles = 1000000000,
		.tears = 5,
		.upper_p = 0.5,
		.drift_p = 0.00390625,
		.drifted = true,
		.torn = { .seen = { true, true }, .wait = { 2600, 800 } },
	};
	fill_lists(e);
}

static inline int new_place(void **state)
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

static inline int leave_place(void **state)
{
	struct place *p = *state;
	char command[128];
	int ret;

	snprintf(command, sizeof(command), "rm -rf '%s'", p->folder);
	ret = system(command);
	free(p);
	return ret;
}

static inline unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static inline char *read_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 2 * MACHINE_CONF_BYTES);

	assert_non_null(f);
	assert_true(fread(text, 1, 2 * MACHINE_CONF_BYTES - 1, f) > 0);
	fclose(f);
	return text;
}

static inline void write_old(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(OLD, f);
	assert_int_equal(fclose(f), 0);
}

static inline void assert_old(const char *path)
{
	char *text = read_text(path);

	assert_string_equal(text, OLD);
	free(text);
}

static inline int write_conf(const struct place *p)
{
	return conf_write(p->path, &p->estimate, &p->from);
}

static inline struct machine_conf must_read(const struct place *p)
{
	struct machine_conf conf;
	char why[256] = "";

	if (machine_conf_read(&conf, p->path, why, sizeof(why)) != 0)
		fail_msg("not readable: %s", why);
	return conf;
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, new_place, leave_place)

#endif
