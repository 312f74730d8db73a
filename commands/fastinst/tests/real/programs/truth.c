/* SPDX-License-Identifier: MIT */
/*
 * Loaded by LD_PRELOAD into a program that was compiled with -fsanitize-coverage=trace-pc: counts
 * each edge, which block a thread runs behind which. "fastinst profile --edges" is held against it.
 *
 *	TRUTH_OUTPUT  file for lines "FROM TO COUNT", with tabs between; blocks have the names that
 *		      the library gives them
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fastinst.h>

#define PLACES (1u << 22)
#define CALL   5 /* bytes */

struct place {
	_Atomic uintptr_t from, to;
	_Atomic uint64_t count;
};

static struct place places[PLACES];
static _Atomic uint64_t lost;
static __thread uintptr_t previous;

static struct place *place_of(uintptr_t from, uintptr_t to)
{
	uint64_t at = (from * 31 + to) * UINT64_C(0x9e3779b97f4a7c15) >> 42;

	for (unsigned i = 0; i < 1024; i++) {
		struct place *place = &places[(at + i) % PLACES];
		uintptr_t there = 0;

		/* "from" is free, then taken; "to" follows, and others wait for it. */
		if (atomic_load_explicit(&place->from, memory_order_relaxed) != from &&
		    !atomic_compare_exchange_strong(&place->from, &there, from))
			continue;
		there = 0;
		if (atomic_load_explicit(&place->to, memory_order_relaxed) == to ||
		    atomic_compare_exchange_strong(&place->to, &there, to) || there == to)
			return place;
	}
	return NULL;
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t here = (uintptr_t)__builtin_return_address(0) - CALL;
	struct place *place = previous ? place_of(previous, here) : NULL;

	if (place)
		atomic_fetch_add_explicit(&place->count, 1, memory_order_relaxed);
	else if (previous)
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
	previous = here;
}

/* --- At the end ------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct fi_probe *one = a, *two = b;

	return one->address < two->address ? -1 : one->address > two->address;
}

static const char *name_of(const struct fi_probe *probe, size_t n, uintptr_t address)
{
	struct fi_probe wanted = { .address = (void *)address };
	const struct fi_probe *found = bsearch(&wanted, probe, n, sizeof(*probe), by_address);

	return found ? found->function : "?";
}

static void write_edges(FILE *out, const struct fi_probe *probe, size_t n)
{
	for (const struct place *place = places; place < places + PLACES; place++)
		if (place->count)
			fprintf(out, "%s\t%s\t%llu\n", name_of(probe, n, place->from),
				name_of(probe, n, place->to), (unsigned long long)place->count);
	if (lost)
		fprintf(stderr, "truth: %llu edges are lost\n", (unsigned long long)lost);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("TRUTH_OUTPUT");
	FILE *out = path ? fopen(path, "we") : NULL;
	struct fi_probe *probe;
	size_t n = 0;

	if (!out || fi_init() < 0)
		return;
	probe = calloc(fi_probes() + 1, sizeof(*probe));
	for (uint32_t id = 0; probe && id < fi_probes(); id++)
		n += fi_get(id, &probe[n]) == 0 && probe[n].kind == FI_BLOCK;
	if (probe) {
		qsort(probe, n, sizeof(*probe), by_address);
		write_edges(out, probe, n);
	}
	free(probe);
	fclose(out);
}
