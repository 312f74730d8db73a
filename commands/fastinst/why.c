/* SPDX-License-Identifier: MIT */
/* Why run and trace show nothing, or less than was asked for: by the file of the program. */
#include "commands/fastinst/command.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "commands/fastinst/sites.h"

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
