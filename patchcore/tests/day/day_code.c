/* SPDX-License-Identifier: MIT */
/* The code of the day, and how an execution is judged. */
#define _GNU_SOURCE /* process_vm_readv() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <cmocka.h>

#include "patchcore/mapping.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/day/day.h"

#define CELL	    256u /* bytes from one site to the next */
#define INVALID	    0x06 /* no opcode in 64-bit mode */
#define RET	    0xc3
#define PAIR_LEN    7u
#define TARGET	    64u /* bytes from one target of a call to the next */
#define STRADDLERS  8u	/* of a page of day_map() */
#define IN_FOCUS    3u	/* of four picks */
#define CELLS_FIRST 2u	/* of a page; those before are where the one before it goes on */

struct day_site day_sites[DAY_SITES_MAX];
unsigned day_site_count;

static uint8_t *text;	      /* DAY_PAGES */
static uint8_t *original;     /* copy of it */
static uint8_t *targets;      /* of calls, in the page behind it */
static unsigned cells, edges; /* taken */

static const uint8_t loads[2][CODE_LEN] = {
	{ 0xb8, 0x14, 0x13, 0x12, 0x11 }, /* mov eax, CODE_OLD */
	{ 0xb9, 0x24, 0x23, 0x22, 0x21 }, /* mov ecx, CODE_NEW */
};
static const uint8_t pairs[2][PAIR_LEN] = {
	{ 0xb0, 0x11, 0xb9, 0x14, 0x13, 0x12, 0x11 }, /* mov al, 11; mov ecx, CODE_OLD */
	{ 0xb4, 0x22, 0xba, 0x24, 0x23, 0x22, 0x21 }, /* mov ah, 22; mov edx, CODE_NEW */
};

const uint8_t *day_load(unsigned code)
{
	return loads[code];
}

void *day_target(unsigned code)
{
	return targets + TARGET * (code + 1);
}

/* --- Building ------------------------------------------------------------------------------- */

static void put_call(struct day_site *site)
{
	int32_t rel = (int32_t)((uint8_t *)day_target(0) - (site->at + CODE_LEN));

	site->at[0] = 0xe8;
	memcpy(site->at + 1, &rel, sizeof(rel));
}

static void put_site(uint8_t *at, enum day_shape shape, unsigned split)
{
	struct day_site *site = &day_sites[day_site_count++];

	MUST(day_site_count <= DAY_SITES_MAX);
	*site = (struct day_site){ .at = at, .len = CODE_LEN, .shape = shape, .split = split };
	if (shape == DAY_PAIR)
		site->len = PAIR_LEN;
	for (unsigned code = 0; code < 2; code++)
		memcpy(site->code[code], shape == DAY_PAIR ? pairs[code] : loads[code], site->len);
	if (shape == DAY_NOPS)
		memset(site->code[0], 0x90, site->len);
	if (shape == DAY_CALL)
		put_call(site);
	else
		memcpy(at, site->code[0], site->len);
	at[site->len] = RET;
}

/* A cell that crosses no page. */
static uint8_t *next_cell(void)
{
	unsigned per_page = CODE_PAGE / CELL - CELLS_FIRST - 1;
	unsigned page = cells / per_page, n = cells % per_page + CELLS_FIRST;

	cells++;
	return text + page * CODE_PAGE + n * CELL;
}

static uint8_t *next_edge(void)
{
	MUST(edges + 1 < DAY_PAGES);
	return text + (size_t)++edges * CODE_PAGE;
}

/* One that crosses a boundary of 8 bytes only, one of 64, one of a page. */
static void put_straddlers(enum day_shape shape, unsigned split)
{
	put_site(next_cell() + 8 - split, shape, split);
	put_site(next_cell() + 64 - split, shape, split);
	put_site(next_edge() - split, shape, split);
}

static void put_targets(void)
{
	for (unsigned code = 0; code < 2; code++) {
		uint8_t *at = day_target(code);

		memcpy(at, loads[code], CODE_LEN);
		at[CODE_LEN] = RET;
	}
}

static int prot_at_rest(void)
{
	return day_options.mapping == DAY_OPEN ? RWX : RX;
}

void day_code_build(void)
{
	text = code_map(DAY_PAGES + 1, PROT_READ | PROT_WRITE);
	memset(text, INVALID, (DAY_PAGES + 1) * CODE_PAGE);
	targets = text + DAY_PAGES * CODE_PAGE;
	put_targets();
	for (unsigned split = 1; split <= 4; split++) {
		put_straddlers(DAY_LOAD, split);
		put_site(next_cell() + 16 * split, DAY_LOAD, 0);
		if (day_options.broken)
			continue;
		put_straddlers(DAY_CALL, split);
		put_straddlers(DAY_NOPS, split);
		put_straddlers(DAY_PAIR, split + 2);
		put_site(next_cell() + 16 * split, DAY_CALL, 0);
	}
	original = malloc(DAY_PAGES * CODE_PAGE);
	MUST(original);
	memcpy(original, text, DAY_PAGES * CODE_PAGE);
	MUST(mprotect(text, (DAY_PAGES + 1) * CODE_PAGE, RX) == 0);
}

uint8_t *day_straddler(uint8_t *page, unsigned n)
{
	return page + CODE_LEN + TARGET * (n % STRADDLERS + 1) - 2;
}

uint8_t *day_map(size_t count, int prot)
{
	uint8_t *pages = mmap(NULL, count * CODE_PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	for (size_t page = 0; page < count; page++)
		for (unsigned n = 0; n < STRADDLERS; n++) {
			uint8_t *at = day_straddler(pages + page * CODE_PAGE, n);

			memcpy(at, loads[0], CODE_LEN);
			at[CODE_LEN] = RET;
		}
	mprotect(pages, count * CODE_PAGE, prot);
	return pages;
}

/* --- With the library ------------------------------------------------------------------------ */

/* All sites are known to the library, and calls have what they need for either target. */
static bool get_ready(struct day_site *site)
{
	if (site->shape == DAY_CALL)
		return pc_call_init(&site->call, site->at) == 0 &&
		       pc_activate_call(&site->call, day_target(1)) == 0 &&
		       pc_activate_call(&site->call, day_target(0)) == 0;
	if (day_options.broken || site->shape == DAY_NOPS)
		return true;
	for (unsigned code = 2; code-- > 0;)
		if (pc_patch_starts(site->at, site->code[code], site->len,
				    site->shape == DAY_PAIR ? 5 : 1) < 0)
			return false;
	return true;
}

bool day_code_begin(void)
{
	size_t size = DAY_PAGES * CODE_PAGE;

	if (day_options.mapping == DAY_OPEN && pc_text_open(text, size) < 0)
		return false;
	if (day_options.mapping == DAY_ALIAS && pc_text_alias(text, size) < 0)
		return false;
	for (unsigned i = 0; i < day_site_count; i++)
		if (!get_ready(&day_sites[i]))
			return false;
	return true;
}

static bool is_whole(const struct day_site *site)
{
	struct pc_call_info info;

	if (site->shape == DAY_CALL)
		return pc_call_get(&site->call, &info) == 0;
	return memcmp(site->at, site->code[0], site->len) == 0 ||
	       memcmp(site->at, site->code[1], site->len) == 0;
}

/* All but the sites. */
static void check_rest(struct day_worker *w)
{
	static uint8_t copy[DAY_PAGES * CODE_PAGE];

	memcpy(copy, text, sizeof(copy));
	for (unsigned i = 0; i < day_site_count; i++) {
		size_t at = (size_t)(day_sites[i].at - text);

		memcpy(copy + at, original + at, day_sites[i].len);
	}
	DAY_MUST(w, memcmp(copy, original, sizeof(copy)) == 0);
}

static void check_protection(struct day_worker *w)
{
	for (unsigned i = 0; i < DAY_PAGES; i++) {
		int prot = code_prot(text + i * CODE_PAGE);

		if (prot != prot_at_rest())
			day_error(w, "page %u has protection %d", i, prot);
	}
}

void day_code_check(struct day_worker *w)
{
	struct day_seen seen = { 0 };

	for (unsigned i = 0; i < day_site_count; i++) {
		if (!is_whole(&day_sites[i]))
			day_error(w, "site %u of shape %d is not whole", i,
				  (int)day_sites[i].shape);
		day_run(&day_sites[i], 1, &seen);
	}
	day_add(&seen);
	check_rest(w);
	check_protection(w);
}

void day_code_end(struct day_worker *w)
{
	if (day_options.mapping != DAY_PROTECT)
		DAY_MUST(w, pc_text_close(text, DAY_PAGES * CODE_PAGE) == 0);
}

void day_code_tell(pid_t pid)
{
	for (unsigned i = 0; i < day_site_count; i++) {
		const struct day_site *site = &day_sites[i];
		uint8_t bytes[DAY_LEN] = { 0 };
		struct iovec to = { bytes, site->len }, from = { site->at, site->len };

		if (process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 || bytes[0] != CODE_INT3)
			continue;
		printf("  site %u at %p, shape %d, split %u:", i, (void *)site->at,
		       (int)site->shape, site->split);
		for (size_t k = 0; k < site->len; k++)
			printf(" %02x", bytes[k]);
		puts("");
	}
}

/* --- Executing ------------------------------------------------------------------------------- */

struct regs {
	uint32_t eax, ecx, edx;
};

static inline struct regs execute_site(const uint8_t *at)
{
	struct regs regs;

	__asm__ volatile("lea -128(%%rsp), %%rsp\n" /* leave the red zone to the compiler */
			 "xor %%eax, %%eax\n"
			 "xor %%ecx, %%ecx\n"
			 "xor %%edx, %%edx\n"
			 "call *%[at]\n"
			 "lea 128(%%rsp), %%rsp\n"
			 : "=&a"(regs.eax), "=&c"(regs.ecx), "=&d"(regs.edx)
			 : [at] "r"(at)
			 : "memory", "cc");
	return regs;
}

static bool are(const struct regs *regs, uint32_t eax, uint32_t ecx, uint32_t edx)
{
	return regs->eax == eax && regs->ecx == ecx && regs->edx == edx;
}

static void judge_pair(const struct regs *regs, struct day_seen *seen)
{
	if (are(regs, 0x11, CODE_OLD, 0))
		seen->ran[0]++;
	else if (are(regs, 0x2200, 0, CODE_NEW))
		seen->ran[1]++;
	else if (are(regs, 0x11, 0, CODE_NEW) || are(regs, 0x2200, CODE_OLD, 0))
		seen->between++;
	else
		seen->torn++;
}

static void judge_run(enum day_shape shape, const struct regs *regs, struct day_seen *seen)
{
	seen->executions++;
	if (shape == DAY_PAIR)
		judge_pair(regs, seen);
	else if (are(regs, CODE_OLD, 0, 0) && shape != DAY_NOPS)
		seen->ran[0]++;
	else if (are(regs, 0, CODE_NEW, 0))
		seen->ran[1]++;
	else if (are(regs, 0, 0, 0) && (shape == DAY_CALL || shape == DAY_NOPS))
		seen->ran[shape == DAY_CALL ? 2 : 0]++;
	else
		seen->torn++;
}

void day_run(const struct day_site *site, unsigned times, struct day_seen *seen)
{
	for (unsigned i = 0; i < times; i++) {
		struct regs regs = execute_site(site->at);

		judge_run(site->shape, &regs, seen);
	}
}

void day_run_load(const uint8_t *at, unsigned times, struct day_seen *seen)
{
	for (unsigned i = 0; i < times; i++) {
		struct regs regs = execute_site(at);

		judge_run(DAY_LOAD, &regs, seen);
	}
}

struct day_site *day_pick_any(struct day_worker *w)
{
	unsigned focus = atomic_load_explicit(&day->focus, memory_order_relaxed);

	if (day_below(w, 4) < IN_FOCUS)
		return &day_sites[focus % day_site_count];
	return &day_sites[day_below(w, day_site_count)];
}

struct day_site *day_pick(struct day_worker *w, enum day_shape shape)
{
	struct day_site *site = day_pick_any(w);

	while (site->shape != shape)
		site = &day_sites[day_below(w, day_site_count)];
	return site;
}
