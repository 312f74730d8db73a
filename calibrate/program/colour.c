/* SPDX-License-Identifier: MIT */
#include "calibrate/program/colour.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/program/exit_status.h"

static bool has_colours(FILE *out)
{
	const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(fileno(out)) && !(refused && *refused) && terminal && *terminal &&
	       strcmp(terminal, "dumb") != 0;
}

void put_verdict(FILE *out, const char *name, int status)
{
	int colour = status == EXIT_PASS ? 32 : status == EXIT_TEARS ? 31 : 33;

	if (has_colours(out))
		fprintf(out, "\033[1;%dm%s\033[0m", colour, name);
	else
		fputs(name, out);
}
