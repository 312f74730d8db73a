/* SPDX-License-Identifier: MIT */
#include "calibrate/conf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/bound.h"
#include "patchcore/machine_conf.h"

#define TEXT_MAX 150

static const char *yes_no(bool yes)
{
	return yes ? "yes" : "no";
}

/* What the user named: no line may grow beyond inih's 200 bytes, or end or comment it. */
static void put_text(FILE *f, const char *name, const char *text)
{
	fprintf(f, "%s = ", name);
	for (unsigned i = 0; text[i] && i < TEXT_MAX; i++)
		fputc(text[i] < ' ' || text[i] > '~' || text[i] == ';' ? '?' : text[i], f);
	fputc('\n', f);
}

/* The highest wait that tore, "none" if even 0 never did. */
static void put_torn(FILE *f, const char *name, const struct torn *torn, unsigned which)
{
	if (torn->seen[which])
		fprintf(f, "%s = %" PRIu64 "\n", name, torn->wait[which]);
	else
		fprintf(f, "%s = none\n", name);
}

static void put_header(FILE *f, const struct estimate *e, const struct provenance *from)
{
	char date[32];

	journal_date(date, sizeof(date));
	fprintf(f,
		"; How long an instruction fetch may lag behind a store to code, on this machine.\n"
		"; Waits are TSC ticks, probabilities are per toggle. See machine.conf(5).\n\n"
		"[tmax]\nschema = %d\ntool = %s\ndate = %s\nplan = %s\n",
		MACHINE_CONF_SCHEMA, PACKAGE_STRING, date, from->plan->name);
	put_text(f, "journal", from->journal);
	fprintf(f, "verdict = %s\nreason = %s\n\n", verdict_name(e->verdict), e->reason);
}

static void put_identity(FILE *f, const struct identity *id)
{
	const char *name;
	char value[128];

	fputs("[identity]\n", f);
	for (unsigned i = 0; identity_field(id, i, &name, value, sizeof(value)); i++)
		fprintf(f, "%s = %s\n", name, value);
}

static void put_window(FILE *f, const struct estimate *e)
{
	fprintf(f,
		"\n; One store changes this many aligned bytes at once, as far as was seen.\n"
		"[window]\nbytes = %u\ntoggles = %" PRIu64 "\nupper_p = %.17g\nconfidence = %g\n",
		e->window, e->window_toggles, e->window_p, CONFIDENCE);
}

static void put_torn_cell(FILE *f, const struct estimate *e)
{
	const struct cell *c = &e->torn_cell.cell;

	if (!e->have_torn_cell) {
		fputs("torn_cell = none tore\n", f);
		return;
	}
	fprintf(f,
		"torn_cell = %s %s split %u %s executors %u waits %" PRIu64 "/%" PRIu64 ": %" PRIu64
		" tears in %" PRIu64 " toggles\n",
		placement_name(c->placement), crossing_name(c->crossing), c->split,
		pair_name(c->pair), c->executors, c->first_wait, c->second_wait,
		cell_result_tears(&e->torn_cell.result), e->torn_cell.result.toggles);
}

static void put_counts(FILE *f, uint64_t toggles, uint64_t tears, double upper_p)
{
	fprintf(f, "toggles = %" PRIu64 "\ntears = %" PRIu64 "\nupper_p = %.17g\n", toggles, tears,
		upper_p);
}

static void put_wait(FILE *f, const struct estimate *e, const struct plan *plan)
{
	fprintf(f,
		"\n; What the library waits by. upper_p is the bound of what is known least "
		"well;\n"
		"; pooled_p holds only if all placements and crossings are alike.\n"
		"[wait]\nusable = %s\nfirst = %" PRIu64 "\nsecond = %" PRIu64 "\nstretch = %" PRIu64
		"\n",
		yes_no(e->verdict == VERDICT_PASS), e->waits.first, e->waits.second, e->stretch);
	put_counts(f, e->toggles, e->tears, e->upper_p);
	fprintf(f, "pooled_p = %.17g\nconfidence = %g\npromise = %.17g\n", e->pooled_p, CONFIDENCE,
		plan->promise);
	put_torn(f, "torn_first", &e->torn, 0);
	put_torn(f, "torn_second", &e->torn, 1);
	fprintf(f, "ceiling = %" PRIu64 "\nnaive_store_tore = %s\n", plan->ceiling,
		yes_no(e->tears_here));
	put_torn_cell(f, e);
}

static void put_claim(FILE *f, const struct claim *c)
{
	fprintf(f, "\n[crossing %s]\nfirst = %" PRIu64 "\nsecond = %" PRIu64 "\n",
		crossing_name(c->crossing), c->waits.first, c->waits.second);
	put_counts(f, c->toggles, c->tears, c->upper_p);
	fprintf(f, "far_toggles = %" PRIu64 "\nfar_tears = %" PRIu64 "\n", c->far_toggles,
		c->far_tears);
	fprintf(f, "steady = %s\nsteady_p = %.3g\n", yes_no(!c->drifted), c->drift_p);
	put_torn(f, "torn_first", &c->torn, 0);
	put_torn(f, "torn_second", &c->torn, 1);
}

static void put_section(FILE *f, const struct section *s)
{
	fprintf(f, "\n[placement %s %s]\n", placement_name(s->placement),
		crossing_name(s->crossing));
	put_counts(f, s->toggles, s->tears, s->upper_p);
	put_torn(f, "torn_first", &s->torn, 0);
	put_torn(f, "torn_second", &s->torn, 1);
}

static void put_distances(FILE *f, const struct distance *d)
{
	fprintf(f,
		"\n; Half a round trip of a cache line, ticks. A hypervisor may move its CPUs.\n"
		"[distance]\ncells = %zu\nfar = %zu\n",
		d->cells, d->far);
	for (int p = 0; p < PLACEMENT_COUNT; p++)
		if (d->least[p])
			fprintf(f, "%s = %" PRIu64 " to %" PRIu64 "\n",
				placement_name((enum placement)p), d->least[p], d->greatest[p]);
}

static void put_arm(FILE *f, const struct arm *a)
{
	char name[PROVOKERS_MAX + 64];

	fprintf(f, "\n[provoker %s]\ntoggles = %" PRIu64 "\ntears = %" PRIu64 "\nrate = %.3g\n",
		arm_name(a, name, sizeof(name)), a->toggles, a->tears, a->rate);
	if (a->ratio >= 0)
		fprintf(f, "ratio = %.3g\n", a->ratio);
	else
		fputs("ratio = unknown\n", f);
	fprintf(f, "p = %.3g\n", a->p);
}

static void put_worst(FILE *f, const struct estimate *e)
{
	char command[1024];

	for (unsigned i = 0; i < e->worsts; i++) {
		const struct worst *w = &e->worst[i];

		cell_command(&w->cell, command, sizeof(command));
		fprintf(f,
			"\n[cell %u]\ntoggles = %" PRIu64 "\ntears = %" PRIu64 "\ncommand = %s\n",
			i + 1, w->toggles, w->tears, command);
	}
}

static void put_gaps(FILE *f, const struct plan *plan)
{
	fputs("\n; Not tested, so nothing is claimed for them.\n[gaps]\n", f);
	for (unsigned i = 0; i < plan->gaps; i++)
		fprintf(f, "%s = %s\n", placement_name(plan->gap[i].placement),
			plan->gap[i].reason);
	for (unsigned i = 0; i < plan->unprovokeds; i++)
		fprintf(f, "provoker %s = %s\n", provoker_name(plan->unprovoked[i].provoker),
			plan->unprovoked[i].reason);
}

static int put_all(FILE *f, const struct estimate *e, const struct provenance *from)
{
	put_header(f, e, from);
	put_identity(f, from->identity);
	put_window(f, e);
	put_wait(f, e, from->plan);
	for (unsigned i = 0; i < CLAIMS; i++)
		put_claim(f, &e->claim[i]);
	for (unsigned i = 0; i < e->sections; i++)
		put_section(f, &e->section[i]);
	put_distances(f, &e->distance);
	for (unsigned i = 0; i < e->arms.count; i++)
		put_arm(f, &e->arms.arm[i]);
	put_worst(f, e);
	put_gaps(f, from->plan);
	errno = 0;
	if (fflush(f) != 0 || ferror(f))
		return errno ? -errno : -EIO;
	return fsync(fileno(f)) < 0 ? -errno : 0;
}

static int make_folders(const char *path)
{
	char *copy = strdup(path);
	int ret = 0;

	if (!copy)
		return -ENOMEM;
	for (char *slash = strchr(copy + 1, '/'); slash && ret == 0;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			ret = -errno;
		*slash = '/';
	}
	free(copy);
	return ret;
}

/* Renaming a file over /dev/null would be the end of it. */
static int check_target(const char *path)
{
	size_t length = strlen(path);
	struct stat st;

	if (length == 0 || path[length - 1] == '/')
		return -EISDIR;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
	return access(path, W_OK) < 0 ? -errno : 0;
}

static int open_temporary(const char *path, char *temporary, size_t size)
{
	int ret = snprintf(temporary, size, "%s.%d.tmp", path, (int)getpid());

	if (ret < 0 || (size_t)ret >= size)
		return -ENAMETOOLONG;
	ret = check_target(path);
	if (ret == 0)
		ret = make_folders(path);
	if (ret < 0)
		return ret;
	ret = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	return ret < 0 ? -errno : ret;
}

static int fill(int fd, const struct estimate *e, const struct provenance *from)
{
	FILE *f = fdopen(fd, "w");
	int ret;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	ret = put_all(f, e, from);
	if (fclose(f) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

int conf_check(const char *path)
{
	char temporary[PATH_MAX];
	int fd = open_temporary(path, temporary, sizeof(temporary));

	if (fd < 0)
		return fd;
	close(fd);
	return unlink(temporary) < 0 ? -errno : 0;
}

int conf_write(const char *path, const struct estimate *e, const struct provenance *from)
{
	char temporary[PATH_MAX];
	int ret, fd = open_temporary(path, temporary, sizeof(temporary));

	if (fd < 0)
		return fd;
	ret = fill(fd, e, from);
	if (ret == 0 && rename(temporary, path) < 0)
		ret = -errno;
	if (ret < 0)
		unlink(temporary);
	return ret;
}
