/* SPDX-License-Identifier: MIT */
/*
 * A list of cells may be any file. What is read of it can be run, and is read again from its own
 * command line.
 */
#define FUZZ_RUNS 20000

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/session/experiment.h"
#include "results/tests/fuzz.h"
#include "stress/run/gap.h"

/* A command line says all that makes the cell. */
static void read_again(const struct listed *l)
{
	char command[512], again[512], why[CELLS_WHY];
	struct cells cells = { 0 };
	int (*say)(const struct cell *, char *, size_t) = l->gaps ? gap_command : cell_command;
	int length = say(&l->cell, command, sizeof(command));
	FILE *stream;

	must(length > 0 && (size_t)length < sizeof(command));
	stream = fmemopen(command, (size_t)length, "r");
	must(stream && cells_read(stream, &cells, why) == 0 && cells.count == 1);
	say(&cells.at[0].cell, again, sizeof(again));
	must(strcmp(command, again) == 0);
	fclose(stream);
	cells_free(&cells);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[CELLS_WHY] = "", reason[160];
	struct cells cells = { 0 };
	FILE *stream = fuzz_open(data, size);
	int ret;

	ret = cells_read(stream, &cells, why);
	must(ret == 0 || why[0]);
	for (size_t i = 0; i < cells.count; i++) {
		const struct listed *l = &cells.at[i];

		must(strlen(l->name) < sizeof(l->name));
		must((l->gaps ? gap_check : cell_check)(&l->cell, reason, sizeof(reason)) == 0);
		read_again(l);
	}
	cells_free(&cells);
	fclose(stream);
	return 0;
}

#ifndef TMAX_LIBFUZZER
static const struct fuzz_input inputs[] = {
	FUZZ_INPUT(
		"# nothing\n\n"
		"line-2000: tmax stress --crossing line --split 4 --first-wait 2000 --seconds 2\n"
		"tmax gaps --crossing page --protocol membarrier --seconds 0.5 # in between\n"),
	FUZZ_INPUT("tmax stress --placement spread --crossing line --split 1 --executors 2 --pair "
		   "call-nop --protocol wait --oracle crash --first-wait 0 --second-wait 0 "
		   "--stretch 0 "
		   "--rest 2000 --provoker cold-back+sites --loop 7 --toggles 5 --seconds 0 "
		   "--stop-tears 1 --seed 3 --place 4 --swap\n"),
};

static const char *const tokens[] = { "tmax ",	     "stress ", "gaps ",   "--crossing ", "--pair ",
				      "--seconds ",  "none ",	"word ",   ": ",	  "\n",
				      "#",	     "--",	"atomic ", "--split=",	  "1e9 ",
				      "--seed 0 ",   "--swap ", "a: ",	   "\r\n",	  ";",
				      "--provoker ", "load+",	NULL };

int main(int argc, char **argv)
{
	const struct fuzz_corpus corpus = { .inputs = inputs,
					    .count = sizeof(inputs) / sizeof(*inputs),
					    .tokens = tokens };

	return fuzz_main(argc, argv, &corpus);
}
#endif
