/* SPDX-License-Identifier: MIT */
/* A folder to write machine.conf into, and what to write. */
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

#include "calibrate/tests/sums_sample.h"
#include "calibrate/verify/conf_write.h"
#include "patchcore/machine/machine_conf.h"
#include "results/tests/sample.h"

#define OLD "what an earlier run has proved\n"

struct place {
	char folder[64];
	char path[128];
	struct identity identity;
	struct cpus cpus;
	struct plan plan;
	struct estimate estimate;
	struct provenance from;
};

static inline void fill_text(char *text, size_t size)
{
	memset(text, 'W', size - 1);
	text[size - 1] = '\0';
}

/* Two levels that are known, one that passes, and a window of 64 bytes. */
static inline void fill_estimate(struct estimate *e, struct plan *plan)
{
	static const enum crossing inside[] = { CROSSING_8, CROSSING_16, CROSSING_32 };
	struct sums run = { 0 };

	*plan = sample_plan(2);
	sample_membarrier(&run, plan, 73000);
	sample_rung(&run, plan, (struct waits){ 100, 100, LADDER_STRETCH },
		    sample_count(20, 100000, 50));
	sample_rung(&run, plan, (struct waits){ 1600, 1600, LADDER_STRETCH },
		    sample_count(20, 50000, 0));
	for (unsigned i = 0; i < 3; i++)
		sample_add(&run, SUM_STORE, (struct waits){ 0 }, inside[i], &plan->seat[0],
			   sample_count(4, 1000000, 0));
	estimate_make(e, &run, 1, plan);
	sums_free(&run);
	assert_int_equal(e->verdict, VERDICT_PASS);
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
	fill_estimate(&p->estimate, &p->plan);
	p->plan.untested_placements++;
	p->plan.untested[p->plan.untesteds++] =
		(struct untested){ false, PLACEMENT_CROSS_SOCKET, "one package only" };
	p->cpus.word[0] = 3;
	p->from = (struct provenance){
		.identity = &p->identity,
		.plan = &p->plan,
		.cpus = &p->cpus,
		.journal = "journal.jsonl",
		.evidence = "machine.conf.evidence",
		.measured = 1795335991,
	};
	umask(022);
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
