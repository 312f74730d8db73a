/* SPDX-License-Identifier: MIT */
/* In place of source.c where the headers of libdw were not there. */
#include <stddef.h>

#include "probes/dwarf/source.h"

bool source_ready(void)
{
	return false;
}

struct source *source_open(const char *path)
{
	(void)path;
	return NULL;
}

bool source_line(struct source *source, uint64_t addr, const char **file, unsigned *line)
{
	(void)source;
	(void)addr;
	(void)file;
	(void)line;
	return false;
}

bool source_function(struct source *source, uint64_t addr, unsigned nops,
		     struct source_function *function)
{
	(void)source;
	(void)addr;
	(void)nops;
	(void)function;
	return false;
}
