/* SPDX-License-Identifier: MIT */
/* What every fuzz target has, be it driven by libFuzzer or by fuzz_driver.h. */
#ifndef RESULTS_TESTS_FUZZ_TARGET_H
#define RESULTS_TESTS_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

/* fuzz_open - the input as a file to read. */
static inline FILE *fuzz_open(const uint8_t *data, size_t size)
{
	FILE *stream =
		size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");

	must(stream != NULL);
	return stream;
}

/* A text as an input of the driver's. */
#define FUZZ_INPUT(text)                                                                           \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

#endif
