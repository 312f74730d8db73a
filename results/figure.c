/* SPDX-License-Identifier: MIT */
/*
 * Figure 9: from records to points, to a data file, to gnuplot.
 */
#include "results/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT	  "figure9.gp"
#define PATH_ROOM 4096
#define MILLION	  UINT64_C(1000000)

extern char **environ;

struct point {
	enum crossing crossing;
	unsigned split;
	uint64_t wait;
	uint64_t events; /* tears, or failed runs */
	uint64_t trials; /* toggles, or runs */
};

struct figure {
	enum oracle oracle;
	struct point *points;
	size_t count;
	size_t cells;
	size_t left_out;  /* cells that ended without an answer */
	uint64_t crashes; /* where tears should only have been counted */
	uint64_t toggles;
	unsigned fewest, most; /* executors */
};

struct target {
	char data[PATH_ROOM];
	char svg[PATH_ROOM];
	char png[PATH_ROOM];
};

static int __attribute__((format(printf, 4, 5)))
fail(int rc, char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return rc;
}

/* --- Points ------------------------------------------------------------------ */

static bool fits(const struct cell *c, enum oracle oracle)
{
	return c->oracle == oracle && c->protocol == PROTOCOL_WAIT &&
	       c->first_wait == c->second_wait &&
	       (c->crossing == CROSSING_LINE || c->crossing == CROSSING_PAGE);
}

/*
 * A run that was stopped early has counted as far as it went, but it has not
 * survived. A hang or a kill says nothing about the site.
 */
static bool has_answer(const struct cell_record *r)
{
	switch (r->result.outcome) {
	case OUTCOME_DONE:
	case OUTCOME_CRASH:
		return r->result.toggles > 0;
	case OUTCOME_INTERRUPTED:
		return r->cell.oracle == ORACLE_COUNT && r->result.toggles > 0;
	default:
		return false;
	}
}

/* Journals may claim anything: sums stay at the top instead of starting over. */
static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static struct point point_of(const struct cell_record *r)
{
	bool crashed = r->result.outcome == OUTCOME_CRASH;
	struct point p = {
		.crossing = r->cell.crossing,
		.split = r->cell.split,
		.wait = r->cell.first_wait,
		.events = crashed,
		.trials = 1,
	};

	if (r->cell.oracle == ORACLE_CRASH)
		return p;
	/* A crash under this oracle is a tear that no pad could count. */
	for (int kind = 0; kind < TEAR_KINDS; kind++)
		add(&p.events, r->result.tears[kind]);
	p.trials = r->result.toggles;
	return p;
}

static void take(struct figure *f, const struct cell_record *r)
{
	if (!has_answer(r)) {
		f->left_out++;
		return;
	}
	f->points[f->count++] = point_of(r);
	f->crashes += r->cell.oracle == ORACLE_COUNT && r->result.outcome == OUTCOME_CRASH;
	add(&f->toggles, r->result.toggles);
	if (!f->cells || r->cell.executors < f->fewest)
		f->fewest = r->cell.executors;
	if (r->cell.executors > f->most)
		f->most = r->cell.executors;
	f->cells++;
}

static int compare(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->crossing != q->crossing)
		return p->crossing < q->crossing ? -1 : 1;
	if (p->split != q->split)
		return p->split < q->split ? -1 : 1;
	return (p->wait > q->wait) - (p->wait < q->wait);
}

/* Adds up the points of the same crossing, split and wait, which stand together. */
static void merge(struct figure *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->count; i++) {
		if (kept && compare(&f->points[kept - 1], &f->points[i]) == 0) {
			add(&f->points[kept - 1].events, f->points[i].events);
			add(&f->points[kept - 1].trials, f->points[i].trials);
		} else {
			f->points[kept++] = f->points[i];
		}
	}
	f->count = kept;
}

static int collect(struct figure *f, const struct journal_data *data)
{
	f->points = calloc(data->count ? data->count : 1, sizeof(*f->points));
	if (!f->points)
		return -ENOMEM;
	for (size_t i = 0; i < data->count; i++)
		if (fits(&data->records[i].cell, f->oracle))
			take(f, &data->records[i]);
	qsort(f->points, f->count, sizeof(*f->points), compare);
	merge(f);
	return f->count ? 0 : -ENODATA;
}

/* --- Texts ------------------------------------------------------------------- */

/* What a machine calls itself stays on its line, in the figure and in the data. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
}

static void print_title(const struct identity *id, char *text, size_t size)
{
	bool bare = strcmp(id->hypervisor, "none") == 0;

	snprintf(text, size, "%s, microcode %s, %s%s", id->brand, id->microcode,
		 bare ? "bare metal" : "hypervisor ", bare ? "" : id->hypervisor);
	make_plain(text);
}

static void print_subtitle(const struct figure *f, char *text, size_t size)
{
	bool many = f->toggles >= 10 * MILLION;
	char executors[32], left_out[64] = "", crashes[64] = "";

	snprintf(executors, sizeof(executors), "%u", f->fewest);
	if (f->fewest != f->most)
		snprintf(executors, sizeof(executors), "%u to %u", f->fewest, f->most);
	if (f->crashes)
		snprintf(crashes, sizeof(crashes), "; %" PRIu64 " crashed, each counted as a tear",
			 f->crashes);
	if (f->left_out)
		snprintf(left_out, sizeof(left_out), "; %zu without an answer left out",
			 f->left_out);
	snprintf(text, size, "%" PRIu64 "%s toggles in %zu %s, %s executor%s%s%s",
		 many ? f->toggles / MILLION : f->toggles, many ? " million" : "", f->cells,
		 f->oracle == ORACLE_CRASH ? "runs" : "cells", executors, f->most == 1 ? "" : "s",
		 crashes, left_out);
}

/* "64 4096" and "1 2 4": the panels and the curves that exist. */
static void list_crossings(const struct figure *f, char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < f->count; i++)
		if (!i || f->points[i].crossing != f->points[i - 1].crossing)
			length +=
				(size_t)snprintf(text + length, size - length, "%s%u", i ? " " : "",
						 crossing_bytes(f->points[i].crossing));
}

static void list_splits(const struct figure *f, char *text, size_t size)
{
	size_t length = 0;
	bool seen[5] = { false };

	for (size_t i = 0; i < f->count; i++)
		seen[f->points[i].split] = true;
	for (unsigned split = 1; split <= 4; split++)
		if (seen[split])
			length += (size_t)snprintf(text + length, size - length, "%s%u",
						   length ? " " : "", split);
}

/* --- Files ------------------------------------------------------------------- */

static int join(char *path, const char *folder, const char *prefix, const char *suffix)
{
	int length = snprintf(path, PATH_ROOM, "%s%s%s", folder, prefix, suffix);

	return length < PATH_ROOM ? 0 : -ENAMETOOLONG;
}

/* To gnuplot a name that starts with '<', '|' or '-' is a command or a stream. */
static int name_target(struct target *t, const char *prefix)
{
	const char *folder = prefix[0] == '/' ? "" : "./";

	if (join(t->data, folder, prefix, ".dat") || join(t->svg, folder, prefix, ".svg") ||
	    join(t->png, folder, prefix, ".png"))
		return -ENAMETOOLONG;
	return 0;
}

static void print_points(FILE *stream, const struct figure *f, const char *title,
			 const char *subtitle)
{
	bool crash = f->oracle == ORACLE_CRASH;

	fprintf(stream, "# %s\n# %s\n# crossing split wait %s\n", title, subtitle,
		crash ? "failed runs" : "tears toggles");
	for (size_t i = 0; i < f->count; i++) {
		const struct point *p = &f->points[i];

		fprintf(stream, "%u %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			crossing_bytes(p->crossing), p->split, p->wait, p->events, p->trials);
	}
}

static int write_points(const struct figure *f, const char *path, const char *title,
			const char *subtitle)
{
	FILE *stream = fopen(path, "we");
	int failed;

	/* -ENOENT would say that only gnuplot is missing. */
	if (!stream)
		return errno == ENOENT ? -ENOTDIR : -errno;
	print_points(stream, f, title, subtitle);
	failed = ferror(stream);
	if (!fclose(stream) && !failed)
		return 0;
	failed = errno;
	unlink(path);
	return failed ? -failed : -EIO;
}

/* --- gnuplot ----------------------------------------------------------------- */

static int spawn(const char *program, char *const argv[], pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawnp(pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* 0, a negative errno if it could not be started, or how it ended. */
static int run(const char *program, char *const argv[])
{
	int status, rc;
	pid_t pid;

	rc = spawn(program, argv, &pid);
	if (rc)
		return rc;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

static int find_script(char *path)
{
	const char *folder = getenv("TMAX_DATADIR");

	if (join(path, folder ? folder : PKGDATADIR, "/", SCRIPT))
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

struct drawing {
	char script[PATH_ROOM];
	char title[160];
	char subtitle[256];
	char crossings[16];
	char splits[16];
};

static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) || st.st_size == 0;
}

static int draw_one(const struct figure *f, struct drawing *d, const char *format,
		    const char *output, const char *data, char *error, size_t size)
{
	const char *named = getenv("TMAX_GNUPLOT"), *program = named ? named : "gnuplot";
	const char *const argv[] = {
		program,      "-d",	 "-c",	   d->script,	format,
		output,	      data,	 d->title, d->subtitle, oracle_name(f->oracle),
		d->crossings, d->splits, NULL
	};
	int rc = run(program, (char *const *)(uintptr_t)argv);

	if (rc < 0)
		return fail(rc, error, size, "cannot run %s: %s", program, strerror(-rc));
	if (rc > 0 || is_empty(output))
		return fail(-EIO, error, size, "%s failed to draw %s", program, output);
	return 0;
}

static int draw(const struct figure *f, struct drawing *d, const struct target *t, char *error,
		size_t size)
{
	int rc = find_script(d->script);

	if (rc)
		return fail(rc, error, size, "cannot read %s: %s", d->script, strerror(-rc));
	rc = draw_one(f, d, "svg", t->svg, t->data, error, size);
	if (!rc)
		rc = draw_one(f, d, "png", t->png, t->data, error, size);
	return rc;
}

/* --- Together ---------------------------------------------------------------- */

/* A picture of older data, or half a picture, must not stand beside new data. */
static void remove_pictures(const struct target *t)
{
	unlink(t->svg);
	unlink(t->png);
}

static int write_figure(const struct figure *f, const struct identity *id, const char *prefix,
			char *error, size_t size)
{
	struct drawing d;
	struct target t;
	int rc = name_target(&t, prefix);

	if (rc)
		return fail(rc, error, size, "the name is too long: %s", prefix);
	print_title(id, d.title, sizeof(d.title));
	print_subtitle(f, d.subtitle, sizeof(d.subtitle));
	list_crossings(f, d.crossings, sizeof(d.crossings));
	list_splits(f, d.splits, sizeof(d.splits));
	remove_pictures(&t);
	rc = write_points(f, t.data, d.title, d.subtitle);
	if (rc)
		return fail(rc, error, size, "cannot write %s: %s", t.data, strerror(-rc));
	rc = draw(f, &d, &t, error, size);
	if (rc)
		remove_pictures(&t);
	return rc;
}

int figure9_write_oracle(const struct journal_data *data, enum oracle oracle, const char *prefix,
			 char *error, size_t size)
{
	struct figure f = { .oracle = oracle };
	int rc;

	if (!data->have_identity)
		return fail(-EINVAL, error, size, "the journal names no machine");
	if (data->mixed)
		return fail(-EINVAL, error, size, "the journal holds different machines");
	rc = collect(&f, data);
	if (rc == -ENODATA)
		fail(rc, error, size, "no cell fits the figure");
	else if (rc)
		fail(rc, error, size, "%s", strerror(-rc));
	else
		rc = write_figure(&f, &data->identity, prefix, error, size);
	free(f.points);
	return rc;
}

int figure9_write(const struct journal_data *data, const char *prefix, char *error, size_t size)
{
	return figure9_write_oracle(data, ORACLE_COUNT, prefix, error, size);
}
