/* SPDX-License-Identifier: MIT */
/*
 * A program with sites of all kinds that tells which of its own the library finds: address in the
 * file, kind, usable or not, source line, name.
 */
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <fastinst.h>
#include <fastinst/branch.h>
#include <fastinst/marker.h>

#define PLAIN	 __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline))

NOINLINE int work(int a);
NOINLINE int work(int a)
{
	FI_MARKER(listed, work, a, "text");
	if (fi_branch(listed, rare))
		a++;
	return a * 3;
}

NOINLINE int more(int a);
NOINLINE int more(int a)
{
	if (a > 3)
		return work(a) + 1;
	return work(a + 1) ^ 5;
}

FI_CALL_DEFINE(chosen, more);

PLAIN static const char *word(enum fi_kind kind)
{
	static const char *const words[] = { "entry", "exit",  "marker", "branch",
					     "call",  "block", "compare" };

	return words[kind];
}

PLAIN int main(int argc, char **argv)
{
	struct fi_probe probe;

	(void)argv;
	if (fi_init() < 0)
		return 1;
	for (uint32_t id = 0; id < fi_probes(); id++) {
		const char *file = "?";
		unsigned line = 0;

		if (fi_get(id, &probe) || !strstr(probe.object, "/listed"))
			continue;
		if (!fi_source(id, &file, &line) &&
		    (fi_get(id, &probe) || probe.line != line || strcmp(probe.file, file) != 0))
			return 2;
		printf("%lx %s %s %u %s\n",
		       (unsigned long)((uintptr_t)probe.address - _r_debug.r_map->l_addr),
		       word(probe.kind), probe.state == FI_REFUSED ? "refused" : "usable", line,
		       probe.function);
	}
	return fi_call(chosen, argc) == 1234;
}
