/* SPDX-License-Identifier: MIT */
#include "calibrate/verify/conf_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text_file.h"
#include "calibrate/statistics/bound.h"
#include "patchcore/machine/machine_conf.h"

#define TEXT_MAX 150

/* What the user named: no line may grow beyond inih's 200 bytes, or end or comment it. */
static void put_text(FILE *f, const char *name, const char *text)
{
	fprintf(f, "%s = ", name);
	for (unsigned i = 0; text[i] && i < TEXT_MAX; i++)
		fputc(text[i] < ' ' || text[i] > '~' || text[i] == ';' ? '?' : text[i], f);
	fputc('\n', f);
}

/*
 * A level without a bound for lines or for pages is of no use. Without a factor the gaps behind a
 * long wait say nothing of tears, and at rest a bound of 1 is of no use, either.
 */
static bool is_known(const struct level *level, bool is_extra)
{
	return level_is_known(level) && (!is_extra || level->upper_p < 1);
}

static void put_levels(FILE *f, const struct level *level, unsigned count, bool is_extra,
		       uint64_t rest, unsigned *number)
{
	for (unsigned i = 0; i < count; i++) {
		if (!is_known(&level[i], is_extra))
			continue;
		fprintf(f, "\n[%s %u]\n", rest ? "rested" : "level", ++*number);
		if (rest)
			fprintf(f, "rest = %" PRIu64 "\n", rest);
		fields_put_conf(f, level_fields, &level[i], "");
		/* With the counts that each bound rests on: the library does not take a bound that
		 * these do not allow. */
		for (int c = 0; c < CLAIMS; c++) {
			struct claim claim = level[i].claim[c];

			if (claim.rests.toggles)
				claim.count = claim.rests;
			fields_put_conf(f, claim_fields, &claim,
					c == CLAIM_LINE ? "line_" : "page_");
		}
	}
}

static int put_conf(FILE *f, const struct estimate *e, const struct provenance *from)
{
	static char list[CPUS_MAX * 3]; /* at most every other one, with four digits and a comma */
	double confidence = from->confidence > 0 ? from->confidence : CONFIDENCE;
	const struct level *rested = e->level + e->ladder.count;
	/* What other machines may do at rest is not known. */
	unsigned rests = from->prior ? 0 : e->ladder.rested;
	unsigned levels = 0, longs = 0, known_rested = 0, number = 0;
	const struct plan *plan = from->plan;
	char value[128];
	const char *name;

	date_text(time(NULL), false, value);
	fprintf(f,
		"; How long an instruction fetch may lag behind a store to code, on %s.\n"
		"; Waits are TSC ticks, probabilities are per toggle. See machine.conf(5).\n\n"
		"[tmax]\nschema = %d\ntool = %s\ndate = %s\nplan = %s\n",
		from->prior ? "machines of this kind" : "this machine", MACHINE_CONF_SCHEMA,
		PACKAGE_STRING, value, plan->name);
	fprintf(f, "source = %s\n", from->prior ? "fleet" : "calibration");
	if (from->prior) {
		put_text(f, "prior", from->prior);
	} else {
		put_text(f, "journal", from->journal);
		put_text(f, "evidence", from->evidence);
	}
	fprintf(f, "verdict = %s\nreason = %s\n\n[identity]\n", verdict_name(e->verdict),
		e->reason);
	for (unsigned i = 0; identity_field(from->identity, i, &name, value, sizeof(value)); i++)
		fprintf(f, "%s = %s\n", name, value);
	/* The CPUs are on one line of any length: the library reads this one whole. */
	cpus_print(from->cpus, list, sizeof(list));
	fprintf(f,
		"\n; What is claimed is claimed for these CPUs, and for the time of these runs; "
		"for the long\n; run only where it says so.\n[scope]\ncpus = %s\nevidence = %s\n"
		"runs = %u\nmeasured = %" PRId64 "\n",
		list, e->long_run ? "long-run" : "this-run", e->runs, from->measured);

	fputs("\n; One store changes this many aligned bytes at once, as far as was seen.\n"
	      "[window]\n",
	      f);
	fields_put_conf(f, window_fields, &e->window, "");
	for (unsigned i = 0; i < e->levels; i++)
		levels += is_known(&e->level[i], false);
	for (unsigned i = 0; i < LONG_WAITS; i++)
		longs += is_known(&e->long_level[i], true);
	for (unsigned i = 0; i < rests; i++)
		known_rested += is_known(&rested[i], true);
	fprintf(f,
		"confidence = %g\n"
		"\n; What the library waits by: the cheapest level that its caller accepts.\n"
		"[wait]\nusable = %s\nconfidence = %g\nlevels = %u\nlong_levels = %u\n"
		"rested_levels = %u\n",
		confidence, e->verdict == VERDICT_PASS ? "yes" : "no", confidence, levels, longs,
		known_rested);
	fields_put_conf(f, estimate_fields, e, "");
	if (e->paper.known && e->paper.found)
		fields_put_conf(f, paper_fields, &e->paper, "");
	put_levels(f, e->level, e->levels, false, 0, &number);
	if (longs)
		fputs("\n; For changes that are started and finished later. Counted are stores, "
		      "and\n; gaps between two fetches of one instruction that are as long.\n",
		      f);
	put_levels(f, e->long_level, LONG_WAITS, true, 0, &number);
	if (known_rested)
		fputs("\n; For sites whose lines have not changed for so many ticks.\n", f);
	put_levels(f, rested, rests, true, CELL_RESTED, &number);

	fputs("\n; Not tested, so nothing is claimed for them.\n[untested]\n", f);
	for (unsigned i = 0; i < plan->untesteds; i++)
		fprintf(f, "%s%s = %s\n", plan->untested[i].is_provoker ? "provoker " : "",
			untested_name(&plan->untested[i]), plan->untested[i].reason);
	errno = 0;
	if (fflush(f) != 0 || ferror(f))
		return errno ? -errno : -EIO;
	return fsync(fileno(f)) < 0 ? -errno : 0;
}

/* Where conf_write() writes first; the folders that are missing are made. A file, or -errno. */
static int open_temporary(const char *path, char *temporary, size_t size)
{
	int ret = snprintf(temporary, size, "%s.%d.tmp", path, (int)getpid());
	size_t length = strlen(path);
	struct stat st;
	char *copy;

	if (ret < 0 || (size_t)ret >= size)
		return -ENAMETOOLONG;
	/* Renaming a file over /dev/null would replace the device. */
	if (length == 0 || path[length - 1] == '/')
		return -EISDIR;
	if (stat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;
		if (access(path, W_OK) < 0)
			return -errno;
	} else if (errno != ENOENT) {
		return -errno;
	}
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	ret = 0;
	for (char *slash = copy; ret == 0 && (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = '\0';
		ret = mkdir(copy, 0755) < 0 && errno != EEXIST ? -errno : 0;
	}
	free(copy);
	if (ret < 0)
		return ret;
	/* One that is there is of a run that was killed, or a trap: what is written is our own. */
	if (unlink(temporary) < 0 && errno != ENOENT)
		return -errno;
	ret = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return ret < 0 ? -errno : ret;
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
	int fd = open_temporary(path, temporary, sizeof(temporary));
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd < 0)
		return fd;
	if (f)
		return text_file_end(f, temporary, path, put_conf(f, e, from));
	close(fd);
	unlink(temporary);
	return -ENOMEM;
}
