/* SPDX-License-Identifier: MIT */
#include "probes/command/why.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "probes/launch/launch.h"
#include "probes/list/sites.h"

static bool has_section(const struct elf *elf, const char *name)
{
	struct elf_section section;

	for (uint32_t i = 0; i < elf->number; i++)
		if (elf_section(elf, i, &section) && !strcmp(section.name, name))
			return true;
	return false;
}

/* The agent was not in it. */
static void why_no_process(const char *path, const struct sites *sites, int error)
{
	if (!error && !has_section(&sites->elf, ".interp"))
		fprintf(stderr,
			"fastinst: no process left counts: %s is linked statically, and takes no "
			"agent; link it dynamically, or use libfastinst in it\n",
			path);
	else
		fputs("fastinst: no process left counts: the program ended by a signal or by a "
		      "system call of its own, or the loader did not take the agent\n",
		      stderr);
}

static void why_no_count(const char *path, const struct sites *sites, int error)
{
	const struct site *site = error ? NULL : sites->site;
	size_t refused = 0;

	for (size_t i = 0; i < sites->n; i++)
		refused += sites->site[i].reason != NULL;
	if (error == -ENOEXEC)
		fprintf(stderr,
			"fastinst: nothing was counted: %s is no ELF program for x86-64; of a "
			"script the interpreter is looked at, and what it runs\n",
			path);
	else if (error || !sites->n)
		fprintf(stderr,
			"fastinst: nothing was counted: %s has no sites; compile it, or its "
			"libraries, with -fpatchable-function-entry=5, or try --entries\n",
			path);
	else if (refused == sites->n)
		fprintf(stderr,
			"fastinst: nothing was counted: all %zu sites of %s are refused: %s\n",
			sites->n, path, site->reason);
	else
		fprintf(stderr,
			"fastinst: nothing was counted: none of the %zu sites of %s that were on "
			"was run; \"fastinst list\" tells their names\n",
			sites->n, path);
}

static bool has_names(const struct counts *counts)
{
	for (size_t i = 0; i < counts->n; i++)
		if (*counts->count[i].function)
			return true;
	return false;
}

void why_none(const char *program, const struct counts *counts, bool expected)
{
	char path[PATH_MAX];
	struct sites sites;
	int error;

	if (counts->processes && (has_names(counts) || (!counts->n && !expected)))
		return;
	error = file_sites_read(&sites, launch_which(program, path, sizeof(path)));
	if (!counts->processes)
		why_no_process(path, &sites, error);
	else if (!counts->n)
		why_no_count(path, &sites, error);
	else
		fputs("fastinst: functions have no names here, as the program was stripped: keep "
		      ".symtab (strip --strip-debug), or export them (-rdynamic)\n",
		      stderr);
	file_sites_free(&sites);
}
