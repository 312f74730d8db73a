/* SPDX-License-Identifier: MIT */
/* Why run and trace show nothing, or less than was asked for: by the file of the program. */
#include "commands/fastinst/command.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/spelling.h"
#include "base/text.h"
#include "commands/fastinst/sites.h"
#include "probes/elf/preload.h"

#define NEAR_NAMES 3 /* that are told, at most */

/* --- Names that a pattern without a match may mean -------------------------------------------- */

/* By errors, then by length. */
static int order_by_distance(const void *a, const void *b)
{
	const struct function_count *one = a, *two = b;

	if (one->count != two->count)
		return one->count < two->count ? -1 : 1;
	return strcmp(one->function, two->function);
}

/* The letters of a pattern's function. */
static unsigned read_letters(const char *pattern, char letter[SPELLING_LETTERS])
{
	const char *colon = strchr(pattern, ':'),
		   *from = colon && colon[1] != ':' ? colon : pattern;
	unsigned n = 0;

	for (; *from && n < SPELLING_LETTERS; from++)
		if (!strchr(from == colon ? ":" : "*?\\/^$[]", *from))
			letter[n++] = *from;
	return n;
}

/* They contain the pattern with a few errors. The nearest come first. */
static struct counts find_near(const char *pattern, const struct counts *names)
{
	char letter[SPELLING_LETTERS], room[NAME_ROOM];
	unsigned letters = read_letters(pattern, letter);
	struct counts near = { 0 };

	for (size_t i = 0; i < names->n && letters; i++) {
		const char *name = demangle_name(names->count[i].function, false, room);
		unsigned errors = count_errors(letter, letters, name, true);

		if (*name && errors <= (letters + 2) / 3)
			counts_add(&near, errors * NAME_ROOM + strlen(name), 0, "", name, "");
	}
	if (near.n)
		qsort(near.count, near.n, sizeof(*near.count), order_by_distance);
	return near;
}

void complain_unmatched(const char *where, const char *pattern, const struct counts *names)
{
	static const char help[] =
		": \"fastinst list\" tells the names of a program; where nothing "
		"was compiled in, try --entries; source files take debug "
		"information (-g) and libdw";
	struct counts near = find_near(pattern, names);
	char *text = NULL;
	size_t len, told = 0;
	FILE *out = open_memstream(&text, &len);

	for (size_t i = 0; out && i < near.n && told < NEAR_NAMES; i++) {
		if (i && !strcmp(near.count[i].function, near.count[i - 1].function))
			continue;
		fputs(told++ ? ", '" : "; did you mean '", out);
		text_put(out, near.count[i].function);
		fputc('\'', out);
	}
	if (out && !fclose(out))
		remark("no probe of %s matches '%s'%s%s", where, pattern, text, told ? "?" : help);
	free(text);
	counts_free(&near);
}

/* --- Why there is little ---------------------------------------------------------------------- */

/* The program ran without the agent. */
static void why_no_process(const char *path, const struct listed_sites *sites, int error)
{
	struct elf_section loader;

	if (!error && !elf_find_section(&sites->elf, ".interp", &loader))
		remark("no process left counts: %s is linked statically, and takes no agent; link "
		       "it dynamically, or use libfastinst in it",
		       path);
	else
		remark("no process left counts: the program ended by a signal or by a system call "
		       "of its own, or the loader did not take the agent");
}

static void why_no_count(const char *path, const struct listed_sites *sites, int error)
{
	const struct listed_site *site = error ? NULL : sites->site;
	size_t refused = 0;

	for (size_t i = 0; i < sites->n; i++)
		refused += sites->site[i].reason != NULL;
	if (error == -ENOEXEC)
		remark("nothing was counted: %s is no ELF program for x86-64; of a script the "
		       "interpreter is looked at, and what it runs",
		       path);
	else if (error || !sites->n)
		remark("nothing was counted: %s has no sites; compile it, or its libraries, with "
		       "-fpatchable-function-entry=5, or try --entries",
		       path);
	else if (refused == sites->n)
		remark("nothing was counted: all sites of %s (%zu) are refused: %s", path, sites->n,
		       site->reason);
	else
		remark("nothing was counted: no site of %s (%zu) that was on was run; \"fastinst "
		       "list\" tells their names",
		       path, sites->n);
}

static bool has_names(const struct counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		if (*counts->count[i].function)
			return true;
	return false;
}

static const char *find_refusal(const struct listed_sites *sites, const char *pattern)
{
	for (size_t i = 0; i < sites->n; i++)
		if (sites->site[i].reason && !fnmatch(pattern, sites->site[i].name, 0))
			return sites->site[i].reason;
	return NULL;
}

static void why_unmatched(const char *path, const struct listed_sites *sites,
			  const struct counts *counts, bool with_functions)
{
	struct elf_symbols symbols;
	struct counts names = { 0 };

	elf_functions(&sites->elf, &symbols);
	for (size_t k = 0; k < sites->n; k++)
		counts_add(&names, 0, 0, "", sites->site[k].name, "");
	for (size_t k = 0; k < symbols.n && with_functions; k++)
		counts_add(&names, 0, 0, "", symbols.symbol[k].name, "");
	for (size_t i = counts->n; i < counts->n + counts->patterns; i++) {
		const char *pattern = counts->count[i].function;
		const char *reason = find_refusal(sites, pattern);

		if (counts->count[i].count)
			continue;
		if (reason)
			remark("'%s' of %s is refused: %s", pattern, path, reason);
		else
			complain_unmatched(path, pattern, &names);
	}
	counts_free(&names);
	elf_free(&symbols);
}

static bool why_little(const char *program, const struct counts *counts, const struct asked *asked)
{
	bool unmatched = false;
	char path[PATH_MAX];
	struct listed_sites sites;
	int error;

	for (size_t i = counts->n; asked->on && i < counts->n + counts->patterns; i++)
		unmatched |= !counts->count[i].count;
	if (!unmatched && counts->processes &&
	    (has_names(counts) || (!counts->n && asked->nothing_on)))
		return false;
	preload_find(program, path, sizeof(path));
	error = file_sites_read(&sites, path, false);
	if (unmatched)
		why_unmatched(path, &sites, counts, asked->entries && !*asked->entries);
	else if (!counts->processes)
		why_no_process(path, &sites, error);
	else if (!counts->n)
		why_no_count(path, &sites, error);
	else
		remark("functions have no names here, as the program was stripped: keep .symtab "
		       "(strip --strip-debug), or export them (-rdynamic)");
	file_sites_free(&sites);
	return unmatched;
}

int collect_counts(const struct launch *launch, const char *program, const struct asked *asked,
		   struct counts *counts)
{
	int ret = launch_reports(launch->folder, counts_line, counts);

	if (ret < 0)
		return complain(ret, ret, "the counts cannot be read");
	counts_join(counts);
	return !ret && why_little(program, counts, asked);
}
