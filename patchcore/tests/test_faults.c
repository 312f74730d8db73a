/* SPDX-License-Identifier: MIT */
/*
 * The system may refuse any call at any time. Then a function returns the documented error,
 * leaves code and protections as they were, and keeps nothing. Each call of each function that
 * can fail is made to, one at a time, in every public function that makes it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/async.h"
#include "patchcore/batch.h"
#include "patchcore/call.h"
#include "patchcore/mapping.h"
#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/conf_sample.h"

#define PAGES		4u
#define CALLS_MAX	60 /* of one function in one of ours; none makes as many */
#define MEMBARRIER_SYNC (1 << 5)

/* --- What fails ------------------------------------------------------------------------------- */

enum fault {
	FAULT_MMAP,
	FAULT_MPROTECT,
	FAULT_MEMBARRIER,
	FAULT_MEMFD,
	FAULT_MEMORY,
	FAULTS
};

static const struct {
	const char *name;
	int error;
} faults[FAULTS] = {
	[FAULT_MMAP] = { "mmap", ENOMEM },
	[FAULT_MPROTECT] = { "mprotect", EACCES },
	[FAULT_MEMBARRIER] = { "membarrier", ENOMEM },
	[FAULT_MEMFD] = { "memfd_create", EMFILE },
	[FAULT_MEMORY] = { "malloc", ENOMEM },
};

/* Only in the thread that is tested, and only when armed. */
static __thread bool armed;
static enum fault what;
static int when; /* the n-th call from now */
static int calls;

static bool fails(enum fault which)
{
	if (!armed || which != what || ++calls != when)
		return false;
	errno = faults[which].error;
	return true;
}

static void arm(enum fault which, int nth)
{
	what = which;
	when = nth;
	calls = 0;
	armed = true;
}

/* Has the fault happened? */
static bool disarm(void)
{
	armed = false;
	return calls >= when;
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_mprotect(void *addr, size_t len, int prot);
int __wrap_mprotect(void *addr, size_t len, int prot);
int __real_membarrier_sync(void);
int __wrap_membarrier_sync(void);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return fails(FAULT_MMAP) ? MAP_FAILED : __real_mmap(addr, len, prot, flags, fd, offset);
}

int __wrap_mprotect(void *addr, size_t len, int prot)
{
	/* The kernel never refuses to take a right away. */
	if (prot & PROT_WRITE && fails(FAULT_MPROTECT))
		return -1;
	return __real_mprotect(addr, len, prot);
}

int __wrap_membarrier_sync(void)
{
	return fails(FAULT_MEMBARRIER) ? -ENOMEM : __real_membarrier_sync();
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fails(FAULT_MEMFD) ? -1 : __real_memfd_create(name, flags);
}

void *__wrap_malloc(size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails(FAULT_MEMORY) ? NULL : __real_aligned_alloc(align, size);
}

/* --- The code --------------------------------------------------------------------------------- */

static uint8_t *code, *elsewhere;
static uint8_t *far_away;
static uint8_t before[PAGES * CODE_PAGE];
static uint8_t new_code[CODE_LEN];
static struct pc_call call;

/* Straddlers of a word, of a page, and one site that is none. */
static uint8_t *word_site(void)
{
	return code_straddler(code);
}

static uint8_t *page_site(void)
{
	return code + CODE_PAGE - 2;
}

static uint8_t *plain_site(void)
{
	return code + 2 * CODE_PAGE;
}

static uint8_t *call_site(void)
{
	return code + 3 * CODE_PAGE + 6;
}

static void put_code(void)
{
	int32_t rel;

	code = code_map(PAGES + 1, PROT_READ | PROT_WRITE);
	elsewhere = code + PAGES * CODE_PAGE;
	code_put(word_site(), CODE_OLD);
	code_put(page_site(), CODE_OLD);
	code_put(plain_site(), CODE_OLD);
	code_put(elsewhere, CODE_NEW);
	rel = (int32_t)(elsewhere - (call_site() + CODE_LEN));
	call_site()[0] = 0xe8;
	memcpy(call_site() + 1, &rel, sizeof(rel));
	memcpy(before, code, sizeof(before));
	code_load(new_code, CODE_NEW);
	MUST(mprotect(code, (PAGES + 1) * CODE_PAGE, RX) == 0);
	far_away = mmap((void *)((uintptr_t)code ^ UINT64_C(0x100000000000)), CODE_PAGE, RX,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(far_away != MAP_FAILED);
}

static bool code_is_as_before(void)
{
	return memcmp(before, code, sizeof(before)) == 0;
}

static bool protection_is_as_before(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (code_prot(code + i * CODE_PAGE) != RX)
			return false;
	return true;
}

/* --- The public functions
 * ------------------------------------------------------------------------- */

static int init(void)
{
	return pc_init();
}

static int patch_word(void)
{
	return pc_patch(word_site(), new_code, CODE_LEN);
}

static int patch_page(void)
{
	return pc_patch(page_site(), new_code, CODE_LEN);
}

static int patch_plain(void)
{
	return pc_patch(plain_site(), new_code, CODE_LEN);
}

/* The second start lies before the boundary: a site more. */
static int patch_starts(void)
{
	return pc_patch_starts(word_site() - 1, (const uint8_t[]){ 0x90, 0xb8, 1, 2, 3, 4 },
			       CODE_LEN + 1, 3);
}

static int start(void)
{
	return pc_start_patch(page_site(), new_code, CODE_LEN);
}

static int start_plain(void)
{
	return pc_start_patch(plain_site(), new_code, CODE_LEN);
}

static void prepare_started(void)
{
	MUST(start() == 0);
}

static int drain(void)
{
	return pc_drain();
}

/* It reports no error: what is not done yet is still to be done. */
static int finish(void)
{
	int ret = 0;

	for (int i = 0; i < 1000 && (ret = pc_finish_patch(page_site())) > 0; i++)
		;
	return ret;
}

static int batch(void)
{
	struct pc_op ops[] = {
		{ .addr = word_site(), .bytes = new_code, .len = CODE_LEN },
		{ .addr = page_site(), .bytes = new_code, .len = CODE_LEN },
		{ .addr = plain_site(), .bytes = new_code, .len = CODE_LEN },
	};
	const size_t n = sizeof(ops) / sizeof(*ops);
	int ret = pc_patch_batch(ops, n), first = 0;

	/* Each is made or not, and says so. */
	armed = false;
	for (size_t i = 0; i < n; i++) {
		const uint8_t *at = ops[i].addr, *old = before + (at - code);

		MUST(memcmp(at, ops[i].result ? old : new_code, CODE_LEN) == 0);
		if (first == 0)
			first = ops[i].result;
	}
	MUST(ret == first);
	return ret;
}

static int text_open(void)
{
	return pc_text_open(code, PAGES * CODE_PAGE);
}

static int text_alias(void)
{
	return pc_text_alias(code, PAGES * CODE_PAGE);
}

static int call_init(void)
{
	return pc_call_init(&call, call_site());
}

static void prepare_call(void)
{
	MUST(call_init() == 0);
}

static int call_far(void)
{
	return pc_activate_call(&call, far_away);
}

static int call_off(void)
{
	return pc_deactivate_call(&call);
}

enum {
	PARTLY = 1 << 0, /* what was begun before stays begun, or others are made */
	KEEPS = 1 << 1,	 /* the pages stay as the function has made them */
	NO_INIT = 1 << 2,
};

static const struct function {
	const char *name;
	void (*prepare)(void);
	int (*run)(void);
	unsigned flags;
} functions[] = {
	{ "pc_init", NULL, init, NO_INIT },
	{ "pc_patch", NULL, patch_word, 0 },
	{ "pc_patch, two pages", NULL, patch_page, 0 },
	{ "pc_patch, one word", NULL, patch_plain, 0 },
	{ "pc_patch_starts", NULL, patch_starts, 0 },
	{ "pc_start_patch", NULL, start, KEEPS },
	{ "pc_start_patch, one word", NULL, start_plain, 0 },
	{ "pc_finish_patch", prepare_started, finish, PARTLY },
	{ "pc_drain", prepare_started, drain, PARTLY },
	{ "pc_patch_batch", NULL, batch, PARTLY },
	{ "pc_text_open", NULL, text_open, KEEPS },
	{ "pc_text_alias", NULL, text_alias, 0 },
	{ "pc_call_init", NULL, call_init, 0 },
	{ "pc_activate_call", prepare_call, call_far, 0 },
	{ "pc_deactivate_call", prepare_call, call_off, 0 },
};

struct trial {
	const struct function *function;
	enum fault fault;
	int nth;
	bool *happened; /* shared with the child */
	int *result;
};

/* What is documented for that: its own error, or that there is no room for a stub. */
static bool is_documented(int ret, enum fault fault)
{
	return ret == -faults[fault].error || ret == -ENOSPC ||
	       (fault == FAULT_MMAP && ret == -EACCES);
}

/* The system is well again: what was refused is made, and the rest is as it should be. */
static void check_nothing_held(const struct function *function)
{
	MUST(function->run() == 0);
	MUST(pc_drain() == 0);
	if (!(function->flags & KEEPS) || function->run == start)
		MUST(protection_is_as_before());
	MUST(pc_patch(word_site() + 64, new_code, CODE_LEN) == 0);
	MUST(pc_patch(word_site(), before + (word_site() - code), CODE_LEN) == 0);
	MUST(pc_patch(page_site(), before + (page_site() - code), CODE_LEN) == 0);
	MUST(code_run(word_site()) == CODE_OLD && code_run(page_site()) == CODE_OLD);
}

static void try_fault(const void *arg)
{
	const struct trial *trial = arg;
	const struct function *function = trial->function;
	int ret;

	conf_use_none();
	put_code();
	if (!(function->flags & NO_INIT)) {
		MUST(pc_init() == 0);
		if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
			child_skip("no membarrier here");
	}
	if (function->prepare)
		function->prepare();
	arm(trial->fault, trial->nth);
	ret = function->run();
	*trial->happened = disarm();
	*trial->result = ret;
	if (ret == 0)
		return;
	MUST(*trial->happened && is_documented(ret, trial->fault));
	if (!(function->flags & PARTLY)) {
		MUST(code_is_as_before());
		MUST(protection_is_as_before());
	}
	check_nothing_held(function);
}

static bool *happened;
static int *result;

/* False: there is no n-th call of it. */
static bool nth_fails(const struct function *function, enum fault fault, int nth)
{
	struct trial trial = { function, fault, nth, happened, result };
	int status;

	*happened = false;
	*result = 1;
	status = child_run(try_fault, &trial);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		skip();
	if (status != 0)
		fail_msg("%s, call %d of %s fails: status %#x, result %d", function->name, nth,
			 faults[fault].name, status, *result);
	return *happened;
}

static unsigned refused[FAULTS];

static void every_call_may_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		for (int f = 0; f < FAULTS; f++) {
			int nth = 1;

			while (nth < CALLS_MAX && nth_fails(&functions[i], (enum fault)f, nth)) {
				refused[f] += *result < 0;
				nth++;
			}
			assert_true(nth < CALLS_MAX);
		}
	/* Each was met somewhere, and made something fail. */
	for (int f = 0; f < FAULTS; f++)
		if (!refused[f])
			fail_msg("nothing depends on %s", faults[f].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_may_fail),
	};

	happened = mmap(NULL, CODE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (happened == MAP_FAILED)
		return 1;
	result = (int *)(happened + 64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
