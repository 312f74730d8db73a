/* SPDX-License-Identifier: MIT */
/* A machine and cells that look like real ones, for every test of results/. */
#ifndef RESULTS_TESTS_SAMPLE_H
#define RESULTS_TESTS_SAMPLE_H

#include <stdio.h>
#include <string.h>

#include "results/journal/journal.h"

static inline struct identity sample_identity(void)
{
	return (struct identity){
		.vendor = "GenuineIntel",
		.family = 6,
		.model = 143,
		.stepping = 8,
		.brand = "Intel(R) Xeon(R) Processor @ 2.60GHz",
		.microcode = "0x2b000603",
		.hypervisor = "KVMKVMKVM",
		.cache_line = 64,
		.caches = "L1d 32K L1i 32K L2 2048K L3 107520K",
		.features = UINT64_C(0xfedcba9876543210),
		.tsc_invariant = true,
		.tsc_khz = 2600000,
		.sockets = 1,
		.cores = 2,
		.cpus = 2,
		.kernel = "6.1.0-30-amd64",
	};
}

/* The cells differ in i, so that one cannot be taken for another. */
static inline struct cell_record sample_record(unsigned i)
{
	struct cell_record r = { .stage = "bracket", .date = "2026-01-31T23:59:59Z" };

	cell_defaults(&r.cell);
	r.cell.crossing = i % 2 ? CROSSING_PAGE : CROSSING_LINE;
	r.cell.split = 1 + i % 4;
	r.cell.waits.first = r.cell.waits.second = 100 * (uint64_t)i;
	r.cell.seconds = 0.1;
	r.cell.seed = 1 + i;
	r.cell.provokers = i;
	r.cell.waits.stretch = i % 2 * 4;
	r.cell.loop = i;
	r.cell.place = 7 * (uint64_t)i;
	r.cell.swap = i % 2;
	r.noisy = i % 2;
	snprintf(r.key, sizeof(r.key), "bracket/%u", i);
	r.result = (struct cell_result){
		.toggles = 1000000,
		.exposed = 900000,
		.torn = 4,
		.executions = 7654321,
		.old_new = { 4000000, 3654321 },
		.tears = { 3, 2, 1 },
		.traps = 12345,
		.retries = 6,
		.ticks = 2600000000,
		.frame = { 0x12345, 0x12346 },
		.seconds = 1.0000000000000002,
		.latency = { 500, 700, 100000 },
		.event = { {
			.toggle = 4321,
			.kind = TEAR_NEW_FRONT,
			.tsc = 1000000000,
			.after_int3 = 5000,
			.after_front = -100,
			.latency = { 500, 600, 700 },
			.waited = { 3000, 2990 },
			.step = { 40, 41 },
		} },
		.events = 1,
		.witness = {
			.voluntary = 10,
			.involuntary = 20,
			.minor_faults = 30,
			.major_faults = 1,
			.interrupts = 400,
			.smis = WITNESS_UNKNOWN,
			.tsc_jumps = 2,
			.longest_step = 54321,
			.offset = -12,
			.offset_error = 34,
			.error_after = 35,
			.clock = { 1.25, -1 },
			.steal = 0.015625,
			.load = 1.25,
		},
		.seating = { .placement = r.cell.placement, .executors = 1, .executor = { 1 } },
	};
	return r;
}

/* What a gap looks like: something that this machine cannot offer. */
static inline json_t *sample_gaps(void)
{
	return json_pack("[{s:s, s:s}]", "placement", placement_name(PLACEMENT_CROSS_SOCKET),
			 "reason", "one package only");
}

#endif
