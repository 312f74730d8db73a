/* SPDX-License-Identifier: MIT */
#include "calibrate/program/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/program/exit_status.h"

static bool refuse(const char *option, const char *text, const char *what)
{
	fprintf(stderr, "tmax: --%s '%s': %s\n", option, text, what);
	return false;
}

bool option_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char what[96], *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *value >= min &&
	    *value <= max)
		return true;
	snprintf(what, sizeof(what), "must be a whole number from %" PRIu64 " to %" PRIu64, min,
		 max);
	return refuse(option, text, what);
}

bool option_seconds(const char *option, const char *text, double *seconds)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 } };
	char *end;
	double number;

	/* strtod() would take hexadecimal numbers, too. */
	if (strspn(text, "0123456789.") > 0 && !strpbrk(text, "xX")) {
		number = strtod(text, &end);
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			*seconds = number * units[i].factor;
			if (strcmp(end, units[i].suffix) == 0 && *seconds > 0 &&
			    *seconds <= 31 * 86400.0)
				return true;
		}
	}
	return refuse(option, text, "must be a time such as 90s, 10m or 2h");
}

bool option_name(const char *option, const char *text, int (*parse)(const char *), int *value)
{
	*value = parse(text);
	return *value >= 0 || refuse(option, text, "no such name; see tmax(1)");
}

int usage_error(const char *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tmax %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (try 'tmax %s --help')\n", command);
	return EXIT_USAGE;
}

static bool option_enum(int option, const char *text, struct cell *cell)
{
	int value = -1;
	bool good = false;

	switch (option) {
	case OPTION_PLACEMENT:
		good = option_name("placement", text, placement_parse, &value);
		cell->placement = (enum placement)value;
		break;
	case OPTION_CROSSING:
		good = option_name("crossing", text, crossing_parse, &value);
		cell->crossing = (enum crossing)value;
		break;
	case OPTION_PAIR:
		good = option_name("pair", text, pair_parse, &value);
		cell->pair = (enum code_pair)value;
		break;
	case OPTION_PROTOCOL:
		good = option_name("protocol", text, protocol_parse, &value);
		cell->protocol = (enum protocol)value;
		break;
	case OPTION_ORACLE:
		good = option_name("oracle", text, oracle_parse, &value);
		cell->oracle = (enum oracle)value;
		break;
	case OPTION_PROVOKER:
		good = option_name("provoker", text, provokers_parse, &value);
		cell->provokers = (unsigned)value;
		break;
	}
	return good;
}

bool option_cell(int option, const char *text, struct cell *cell)
{
	const uint64_t ticks = CELL_WAIT_MAX;
	uint64_t number;

	switch (option) {
	case OPTION_SPLIT:
		if (!option_u64("split", text, 1, 4, &number))
			return false;
		cell->split = (unsigned)number;
		return true;
	case OPTION_EXECUTORS:
		if (!option_u64("executors", text, 1, PLACEMENT_EXECUTORS_MAX, &number))
			return false;
		cell->executors = (unsigned)number;
		return true;
	case OPTION_FIRST_WAIT:
		return option_u64("first-wait", text, 0, ticks, &cell->first_wait);
	case OPTION_SECOND_WAIT:
		return option_u64("second-wait", text, 0, ticks, &cell->second_wait);
	case OPTION_STRETCH:
		return option_u64("stretch", text, 0, CELL_STRETCH_MAX, &cell->stretch);
	case OPTION_LOOP:
		if (!option_u64("loop", text, 0, CELL_LOOP_MAX, &number))
			return false;
		cell->loop = (unsigned)number;
		return true;
	case OPTION_REST:
		return option_u64("rest", text, 0, ticks, &cell->rest);
	case OPTION_TOGGLES:
		return option_u64("toggles", text, 1, CELL_TOGGLES_MAX, &cell->toggles);
	case OPTION_SECONDS:
		if (strcmp(text, "0") == 0) {
			cell->seconds = 0;
			return true;
		}
		return option_seconds("seconds", text, &cell->seconds);
	case OPTION_STOP_TEARS:
		return option_u64("stop-tears", text, 0, INT64_MAX, &cell->stop_tears);
	case OPTION_SEED:
		return option_u64("seed", text, 0, INT64_MAX, &cell->seed);
	case OPTION_PLACE:
		return option_u64("place", text, 0, INT64_MAX, &cell->place);
	case OPTION_SWAP:
		cell->swap = true;
		return true;
	}
	return option_enum(option, text, cell);
}
