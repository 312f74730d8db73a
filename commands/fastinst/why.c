/* SPDX-License-Identifier: MIT */
/* Why run and trace show nothing, or less than was asked for: by the file of the program. */
#include "commands/fastinst/command.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "commands/fastinst/sites.h"

/* --- Names that a pattern without a match may mean -------------------------------------------- */

void near_begin(struct near *near, const char *pattern)
{
	const char *colon = strchr(pattern, ':'),
		   *from = colon && colon[1] != ':' ? colon : pattern;

	*near = (struct near){ .pattern = pattern };
	for (; *from && near->letters < SPELLING_LETTERS; from++)
		if (!strchr(from == colon ? ":" : "*?\\/^$[]", *from))
			near->letter[near->letters++] = *from;
}

/* Sorted by errors, then by length. */
static void add_name(struct near *near, const char *text, unsigned errors)
{
	size_t distance = (size_t)errors * NAME_ROOM + strlen(text), at = near->n;

	for (size_t i = 0; i < near->n; i++)
		if (!strcmp(near->name[i].text, text))
			return;
	while (at > 0 && distance < near->name[at - 1].distance)
		at--;
	if (at == NEAR_NAMES)
		return;
	if (near->n == NEAR_NAMES)
		free(near->name[--near->n].text);
	memmove(&near->name[at + 1], &near->name[at], (near->n++ - at) * sizeof(*near->name));
	near->name[at] = (struct near_name){ strdup(text), distance };
}

void near_look(struct near *near, const char *function)
{
	char room[NAME_ROOM];
	const char *name = demangle_name(function, false, room);
	unsigned errors = count_errors(near->letter, near->letters, name, true);

	if (*name && near->letters && errors <= (near->letters + 2) / 3)
		add_name(near, name, errors);
}

void near_tell(struct near *near, const char *where)
{
	static const char help[] =
		": \"fastinst list\" tells the names of a program; where nothing "
		"was compiled in, try --entries; source files take debug "
		"information (-g) and libdw";
	char *names = NULL;
	size_t len;
	FILE *out = open_memstream(&names, &len);

	for (size_t i = 0; out && i < near->n; i++) {
		fputs(i ? ", '" : "; did you mean '", out);
		text_put(out, near->name[i].text);
		fputc('\'', out);
		free(near->name[i].text);
	}
	if (!out || fclose(out))
		return;
	complain(0, 0, "no probe of %s matches '%s'%s%s", where, near->pattern, names,
		 near->n ? "?" : help);
	free(names);
}

/* --- Why there is little ---------------------------------------------------------------------- */

/* The program ran without the agent. */
static void why_no_process(const char *path, const struct sites *sites, int error)
{
	struct elf_section loader;

	if (!error && !elf_find_section(&sites->elf, ".interp", &loader))
		complain(0, 0,
			 "no process left counts: %s is linked statically, and takes no "
			 "agent; link it dynamically, or use libfastinst in it",
			 path);
	else
		complain(0, 0,
			 "no process left counts: the program ended by a signal or by a "
			 "system call of its own, or the loader did not take the agent");
}

static void why_no_count(const char *path, const struct sites *sites, int error)
{
	const struct site *site = error ? NULL : sites->site;
	size_t refused = 0;

	for (size_t i = 0; i < sites->n; i++)
		refused += sites->site[i].reason != NULL;
	if (error == -ENOEXEC)
		complain(0, 0,
			 "nothing was counted: %s is no ELF program for x86-64; of a "
			 "script the interpreter is looked at, and what it runs",
			 path);
	else if (error || !sites->n)
		complain(0, 0,
			 "nothing was counted: %s has no sites; compile it, or its "
			 "libraries, with -fpatchable-function-entry=5, or try --entries",
			 path);
	else if (refused == sites->n)
		complain(0, 0, "nothing was counted: all sites of %s (%zu) are refused: %s", path,
			 sites->n, site->reason);
	else
		complain(0, 0,
			 "nothing was counted: no site of %s (%zu) that was on was run; "
			 "\"fastinst list\" tells their names",
			 path, sites->n);
}

static bool has_names(const struct counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		if (*counts->count[i].function)
			return true;
	return false;
}

static const char *find_refusal(const struct sites *sites, const char *pattern)
{
	for (size_t i = 0; i < sites->n; i++)
		if (sites->site[i].reason && !fnmatch(pattern, sites->site[i].name, 0))
			return sites->site[i].reason;
	return NULL;
}

static void why_unmatched(const char *path, const struct sites *sites, const struct counts *counts,
			  bool with_functions)
{
	struct elf_symbols symbols;

	elf_functions(&sites->elf, &symbols);
	for (size_t i = counts->n; i < counts->n + counts->patterns; i++) {
		const char *pattern = counts->count[i].function, *reason;
		struct near near;

		if (counts->count[i].count)
			continue;
		reason = find_refusal(sites, pattern);
		if (reason) {
			complain(0, 0, "'%s' of %s is refused: %s", pattern, path, reason);
			continue;
		}
		near_begin(&near, pattern);
		for (size_t k = 0; k < sites->n; k++)
			near_look(&near, sites->site[k].name);
		for (size_t k = 0; k < symbols.n && with_functions; k++)
			near_look(&near, symbols.symbol[k].name);
		near_tell(&near, path);
	}
	elf_free(&symbols);
}

bool why_little(const char *program, const struct counts *counts, const struct asked *asked)
{
	bool unmatched = false;
	char path[PATH_MAX];
	struct sites sites;
	int error;

	for (size_t i = counts->n; asked->on && i < counts->n + counts->patterns; i++)
		unmatched |= !counts->count[i].count;
	if (!unmatched && counts->processes &&
	    (has_names(counts) || (!counts->n && asked->nothing_on)))
		return false;
	error = file_sites_read(&sites, launch_which(program, path, sizeof(path)), false);
	if (unmatched)
		why_unmatched(path, &sites, counts, asked->entries && !*asked->entries);
	else if (!counts->processes)
		why_no_process(path, &sites, error);
	else if (!counts->n)
		why_no_count(path, &sites, error);
	else
		complain(0, 0,
			 "functions have no names here, as the program was stripped: keep "
			 ".symtab (strip --strip-debug), or export them (-rdynamic)");
	file_sites_free(&sites);
	return unmatched;
}
