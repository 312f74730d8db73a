/* SPDX-License-Identifier: MIT */
#include "calibrate/conf/conf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrate/statistics/bound.h"
#include "patchcore/machine/conf_open.h"
#include "patchcore/machine/machine_conf.h"

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
	put_text(f, "evidence", from->evidence);
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

/* On one line of any length: the library reads this one whole. */
static void put_scope(FILE *f, const struct estimate *e, const struct provenance *from)
{
	static char list[CPUS_MAX * 3]; /* at most every other one, with four digits and a comma */

	cpus_print(from->cpus, list, sizeof(list));
	fprintf(f,
		"\n; What is claimed is claimed for these CPUs, and for the time of these runs; "
		"for the "
		"long\n; run only where it says so.\n[scope]\ncpus = %s\nevidence = %s\nruns = %u\n"
		"measured = %" PRId64 "\n",
		list, e->long_run ? "long-run" : "this-run", e->runs, from->measured);
}

static void put_window(FILE *f, const struct window *w)
{
	fprintf(f,
		"\n; One store changes this many aligned bytes at once, as far as was seen.\n"
		"[window]\nbytes = %u\ntoggles = %" PRIu64 "\nupper_p = %.17g\nconfidence = %g\n",
		w->bytes, w->toggles, w->upper_p, CONFIDENCE);
}

/* Levels of which nothing is known for one kind of site or the other are of no use. */
static bool is_known(const struct level *level)
{
	return level->claim[CLAIM_LINE].count.toggles && level->claim[CLAIM_PAGE].count.toggles;
}

static unsigned count_known(const struct estimate *e)
{
	unsigned known = 0;

	for (unsigned i = 0; i < e->levels; i++)
		known += is_known(&e->level[i]);
	return known;
}

/* Without a factor gaps say nothing of tears. */
static bool is_known_long(const struct level *level)
{
	return is_known(level) && level->upper_p < 1;
}

static unsigned count_long(const struct estimate *e)
{
	unsigned known = 0;

	for (unsigned i = 0; i < LONG_WAITS; i++)
		known += is_known_long(&e->long_level[i]);
	return known;
}

static void put_wait(FILE *f, const struct estimate *e)
{
	fprintf(f,
		"\n; What the library waits by: the cheapest level that its caller accepts.\n"
		"[wait]\nusable = %s\nconfidence = %g\nlevels = %u\nlong_levels = %u\nrequire_p = "
		"%g\n"
		"membarrier_ticks = %.0f\n",
		yes_no(e->verdict == VERDICT_PASS), CONFIDENCE, count_known(e), count_long(e),
		e->require_p, e->membarrier_ticks);
	if (e->paper.known && e->paper.found)
		fprintf(f, "paper_wait = %" PRIu64 "\npaper_stays = %s\n", e->paper.wait,
			yes_no(e->paper.stays));
}

static void put_claim(FILE *f, const char *name, const struct claim *c)
{
	fprintf(f, "%s_toggles = %" PRIu64 "\n%s_tears = %" PRIu64 "\n%s_p = %.17g\n", name,
		c->count.toggles, name, c->count.tears, name, c->upper_p);
}

static void put_level(FILE *f, const struct level *level, unsigned number)
{
	fprintf(f,
		"\n[level %u]\nfirst = %" PRIu64 "\nsecond = %" PRIu64 "\nstretch = %" PRIu64
		"\nticks = %.0f\n",
		number, level->rung.first, level->rung.second, level->rung.stretch, level->ticks);
	put_claim(f, "line", &level->claim[CLAIM_LINE]);
	put_claim(f, "page", &level->claim[CLAIM_PAGE]);
}

static void put_levels(FILE *f, const struct estimate *e)
{
	unsigned number = 0;

	for (unsigned i = 0; i < e->levels; i++)
		if (is_known(&e->level[i]))
			put_level(f, &e->level[i], ++number);
	if (count_long(e))
		fputs("\n; For changes that are started and finished later. Counted are stores, "
		      "and\n"
		      "; gaps between two fetches of one instruction that are as long.\n",
		      f);
	for (unsigned i = 0; i < LONG_WAITS; i++)
		if (is_known_long(&e->long_level[i]))
			put_level(f, &e->long_level[i], ++number);
}

/* What tmax verify runs again: the level that the verdict rests on, everywhere. */
static void put_cells(FILE *f, const struct estimate *e, const struct plan *plan)
{
	int best = estimate_best(e, -1, e->require_p);
	unsigned number = 0;
	char command[1024];

	for (unsigned i = 0; best >= 0 && i < plan->seats; i++) {
		for (int c = 0; c < CLAIMS; c++) {
			const struct rung *rung = &e->level[best].rung;
			struct cell cell;

			cell_defaults(&cell);
			cell.placement = plan->seat[i].placement;
			cell.executors = plan->seat[i].executors;
			cell.crossing = c == CLAIM_LINE ? CROSSING_LINE : CROSSING_PAGE;
			cell.first_wait = rung->first;
			cell.second_wait = rung->second;
			cell.stretch = rung->stretch;
			cell_command(&cell, command, sizeof(command));
			fprintf(f, "\n[cell %u]\ncommand = %s\n", ++number, command);
		}
	}
}

static void put_untested(FILE *f, const struct plan *plan)
{
	fputs("\n; Not tested, so nothing is claimed for them.\n[gaps]\n", f);
	for (unsigned i = 0; i < plan->unseateds; i++)
		fprintf(f, "%s = %s\n", placement_name(plan->unseated[i].placement),
			plan->unseated[i].reason);
	for (unsigned i = 0; i < plan->unprovokeds; i++)
		fprintf(f, "provoker %s = %s\n", provoker_name(plan->unprovoked[i].provoker),
			plan->unprovoked[i].reason);
}

static int put_conf(FILE *f, const struct estimate *e, const struct provenance *from)
{
	put_header(f, e, from);
	put_identity(f, from->identity);
	put_scope(f, e, from);
	put_window(f, &e->window);
	put_wait(f, e);
	put_levels(f, e);
	put_cells(f, e, from->plan);
	put_untested(f, from->plan);
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

/* Renaming a file over /dev/null would replace the device. */
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

static int fill_file(int fd, const struct estimate *e, const struct provenance *from)
{
	FILE *f = fdopen(fd, "w");
	int ret;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	ret = put_conf(f, e, from);
	if (fclose(f) != 0 && ret == 0)
		ret = -errno;
	return ret;
}

int conf_check(const char *path, char *why, size_t size)
{
	char temporary[PATH_MAX];
	int fd = open_temporary(path, temporary, sizeof(temporary));

	why[0] = '\0';
	if (fd < 0)
		return fd;
	close(fd);
	fd = conf_open(temporary, why, size);
	if (fd >= 0)
		close(fd);
	return unlink(temporary) < 0 ? -errno : 0;
}

int conf_write(const char *path, const struct estimate *e, const struct provenance *from)
{
	char temporary[PATH_MAX];
	int ret, fd = open_temporary(path, temporary, sizeof(temporary));

	if (fd < 0)
		return fd;
	ret = fill_file(fd, e, from);
	if (ret == 0 && rename(temporary, path) < 0)
		ret = -errno;
	if (ret < 0)
		unlink(temporary);
	return ret;
}
