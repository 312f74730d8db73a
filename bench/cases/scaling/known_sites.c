/* SPDX-License-Identifier: MIT */
#include "bench/cases/scaling/known_sites.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "patchcore/machine/wait.h"
#include "patchcore/patchcore.h"
#include "patchcore/site/site.h"
#include "patchcore/trap/trap.h"
#include "stress/base/random.h"

#define CELL	    16u /* functions are aligned to it, so no two sites share one */
#define CELLS_MOST  24u /* of one function */
#define CODE_STRIDE 256u
#define CODE_LINE   64u
#define CODE_SPLIT  3u
#define CODE_LENGTH 5u

/* mov eax, imm32 */
static const uint8_t codes[2][8] = { { 0xb8, 1, 2, 3, 4 }, { 0xb8, 5, 6, 7, 8 } };

/* --- Making them known ---------------------------------------------------------------------- */

static int make_code(struct known_sites *sites)
{
	size_t bytes = KNOWN_PATCHED * CODE_STRIDE;
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	sites->code = at;
	sites->code_bytes = bytes;
	for (unsigned i = 0; i < KNOWN_PATCHED; i++) {
		sites->patched[i] = at + i * CODE_STRIDE + CODE_LINE - CODE_SPLIT;
		memcpy(sites->patched[i], codes[0], CODE_LENGTH);
		sites->order[i] = (uintptr_t)sites->patched[i];
	}
	return 0;
}

/* Addresses that nobody else gets. There is nothing behind them. */
static int make_addresses(struct known_sites *sites, uint64_t *random)
{
	size_t bytes = (size_t)sites->count * CELLS_MOST * CELL;
	uint8_t *map =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uintptr_t function = (uintptr_t)map;

	if (map == MAP_FAILED)
		return -errno;
	for (unsigned long i = KNOWN_PATCHED; i < sites->count; i++) {
		sites->order[i] = function + random_next(random) % CELL;
		function += CELL * (1 + random_next(random) % CELLS_MOST);
	}
	return 0;
}

static void shuffle(struct known_sites *sites, uint64_t *random)
{
	for (unsigned long i = sites->count; i > 1; i--) {
		unsigned long other = random_next(random) % i;
		uintptr_t mine = sites->order[i - 1];

		sites->order[i - 1] = sites->order[other];
		sites->order[other] = mine;
	}
}

static int make_known(const struct known_sites *sites)
{
	for (unsigned long i = 0; i < sites->count; i++)
		if (!site_get(sites->order[i]))
			return -ENOMEM;
	return 0;
}

int known_sites_make(struct known_sites *sites, unsigned long count, uint64_t seed)
{
	int ret;

	*sites = (struct known_sites){ .count = count };
	if (count < KNOWN_PATCHED)
		return -EINVAL;
	sites->order = calloc(count, sizeof(*sites->order));
	if (!sites->order)
		return -ENOMEM;
	ret = make_code(sites);
	if (ret == 0)
		ret = make_addresses(sites, &seed);
	if (ret == 0)
		ret = make_known(sites);
	/*
	 * In memory the records lie in the order of the addresses, as a program gets them
	 * that is patched from its beginning to its end. Only then are they mixed.
	 */
	if (ret == 0)
		shuffle(sites, &seed);
	else
		known_sites_free(sites);
	return ret;
}

void known_sites_free(struct known_sites *sites)
{
	free(sites->order);
	sites->order = NULL;
}

/* --- One sample ----------------------------------------------------------------------------- */

/* Taken out beforehand: reading the order is not what is asked. */
static void take(struct known_sites *sites, enum known_what what, uintptr_t addr[KNOWN_AT_ONCE])
{
	uintptr_t same = known_sites_next(sites);

	for (unsigned i = 0; i < KNOWN_AT_ONCE; i++)
		addr[i] = what == KNOWN_FIND_HOT    ? same
			  : what == KNOWN_FIND_MISS ? known_sites_miss(known_sites_next(sites))
						    : known_sites_next(sites);
	if (what == KNOWN_FIND_HOT)
		site_find(same);
}

static double time_finds(struct known_sites *sites, enum known_what what)
{
	uintptr_t addr[KNOWN_AT_ONCE];
	volatile uintptr_t seen = 0;
	uint64_t start;

	take(sites, what, addr);
	start = ticks_now();
	for (unsigned i = 0; i < KNOWN_AT_ONCE; i++) {
		seen = (uintptr_t)site_find(addr[i]);
		_mm_lfence();
	}
	start = ticks_now() - start;
	(void)seen;
	return (double)start / KNOWN_AT_ONCE;
}

static double time_traps(const struct known_sites *sites)
{
	siginfo_t info = { .si_code = SI_KERNEL };
	ucontext_t context = { 0 };
	uint64_t start = ticks_now();

	for (unsigned i = 0; i < KNOWN_AT_ONCE; i++) {
		context.uc_mcontext.gregs[REG_RIP] =
			(greg_t)(uintptr_t)sites->patched[i % KNOWN_PATCHED] + 1;
		trap_on_signal(SIGTRAP, &info, &context);
		_mm_lfence();
	}
	return (double)(ticks_now() - start) / KNOWN_AT_ONCE;
}

static int time_patch(struct known_sites *sites, double *ticks)
{
	unsigned patches = sites->patches++;
	uint8_t *site = sites->patched[patches % KNOWN_PATCHED];
	const uint8_t *code = codes[(patches / KNOWN_PATCHED + 1) % 2];
	uint64_t start = ticks_now();
	int ret = pc_patch(site, code, CODE_LENGTH);

	*ticks = (double)(ticks_now() - start);
	return ret;
}

int known_sites_time(struct known_sites *sites, enum known_what what, double *ticks)
{
	switch (what) {
	case KNOWN_FIND:
	case KNOWN_FIND_HOT:
	case KNOWN_FIND_MISS:
		*ticks = time_finds(sites, what);
		return 0;
	case KNOWN_TRAP:
		*ticks = time_traps(sites);
		return 0;
	case KNOWN_WAIT:
	case KNOWN_MEMBARRIER:
		return time_patch(sites, ticks);
	default:
		return -EINVAL;
	}
}

/* --- For callgrind -------------------------------------------------------------------------- */

int bench_count_finds(unsigned long sites, unsigned long finds)
{
	struct known_sites known;
	volatile uintptr_t seen = 0;
	int ret = known_sites_make(&known, sites, 1);

	for (unsigned long i = 0; i < finds && ret == 0; i++)
		seen = (uintptr_t)site_find(known_sites_next(&known));
	(void)seen;
	if (ret == 0)
		known_sites_free(&known);
	return ret;
}
