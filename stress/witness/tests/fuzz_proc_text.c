/* SPDX-License-Identifier: MIT */
/*
 * The kernel's text may come from any process: in a container these files can be mounted
 * over. With any text in them, what is read is unknown or can be stored.
 */
#define FUZZ_RUNS 425000

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "results/tests/fuzz.h"
#include "stress/cell/cell.h"
#include "stress/witness/witness.c"

static void check_count(uint64_t count)
{
	must(count == WITNESS_UNKNOWN || count <= INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	FILE *stream = fuzz_open(data, size);
	double load;

	must(cpus && hwloc_bitmap_set_range(cpus, 1, 3) == 0);
	check_count(proc_interrupts(stream, cpus));
	rewind(stream);
	check_count(proc_steal(stream, cpus));
	rewind(stream);
	check_count(proc_count(stream, NULL));
	rewind(stream);
	load = proc_runnable(stream);
	must(load == -1 || load >= 0);
	fclose(stream);
	hwloc_bitmap_free(cpus);
	return 0;
}

#ifndef TMAX_LIBFUZZER
static const struct fuzz_input inputs[] = {
	FUZZ_INPUT("           CPU0       CPU1       CPU3\n"
		   "  8:          1         20        300  IO-APIC 8-edge rtc0\n"
		   "LOC:       4000      50000     600000  Local timer interrupts\n"
		   "ERR:          0\n"
		   "MIS:          0\n"),
	FUZZ_INPUT("cpu  3 0 6 9 3 0 9 3 0 0\n"
		   "cpu1 1 0 2 3 1 0 3 1 0 0\n"
		   "cpu2 2 0 4 6 2 0 6 2 0 0\n"
		   "intr 9215718 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 13\n"),
	FUZZ_INPUT("0.64 0.35 0.63 2/101 2841\n"),
	FUZZ_INPUT("17\n"),
};

static const char *const tokens[] = {
	"CPU", "CPU2 ", "cpu2 ", ":", "ERR:", "\n", " ", "/", "-", "9223372036854775807 ", NULL
};

int main(int argc, char **argv)
{
	const struct fuzz_corpus corpus = { .inputs = inputs,
					    .count = sizeof(inputs) / sizeof(*inputs),
					    .tokens = tokens };

	return fuzz_main(argc, argv, &corpus);
}
#endif
