/* SPDX-License-Identifier: MIT */
/* Code that is written through a second mapping. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "patchcore/tests/text_pages.h"

static int alias_pages(size_t first, size_t count)
{
	return pc_text_alias(page_at(first), count * CODE_PAGE);
}

/* --- What is mapped -------------------------------------------------------------------------- */

struct maps {
	unsigned both;	  /* mappings that are writable and executable */
	unsigned aliases; /* of this library's memory, writable */
};

static struct maps look_at_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct maps found = { 0 };
	char line[512];

	MUST(file);
	while (fgets(line, sizeof(line), file)) {
		found.both += strstr(line, " rwx") != NULL || strstr(line, " -wx") != NULL;
		found.aliases += strstr(line, " rw-s") && strstr(line, "memfd:patchcore");
	}
	fclose(file);
	return found;
}

static void must_read(const uint8_t *at, uint8_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		MUST(at[i] == value);
}

/* --- What it does ---------------------------------------------------------------------------- */

/* Never writable where it runs, and what it was at the end. */
static void aliased(const void *arg)
{
	static const int prot[] = { RX, RO, RWX, RW, RX };
	static const int now[] = { RX, RO, RX, RO, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(alias_pages(0, LENGTH(prot)) == 0);
	must_be(now);
	MUST(look_at_maps().both == 0 && look_at_maps().aliases > 0);
	for (size_t i = 0; i < LENGTH(prot); i++) {
		uint8_t *at = (uint8_t *)page_at(i) + 64;

		MUST(patch(at) == 0);
		MUST(memcmp(at, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
		must_read(at - 64, CODE_NOP, 64);
		must_read(at + 5, CODE_NOP, CODE_PAGE - 69);
		must_be(now);
	}
	MUST(close_pages(0, LENGTH(prot)) == 0);
	must_be(prot);
	MUST(look_at_maps().aliases == 0);
	for (size_t i = 0; i < LENGTH(prot); i++)
		MUST(memcmp((uint8_t *)page_at(i) + 64, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
	MUST(patch((uint8_t *)page_at(0) + 128) == 0);
	must_be(prot);
}

/* What cannot be read can be copied. */
static void unreadable(const void *arg)
{
	static const int prot[] = { PROT_EXEC, PROT_NONE };

	(void)arg;
	start_library();
	lay_out((const int[]){ RW, RW }, 2);
	memset(base, 0x77, 2 * CODE_PAGE);
	MUST(mprotect(page_at(0), CODE_PAGE, PROT_EXEC) == 0);
	MUST(mprotect(page_at(1), CODE_PAGE, PROT_NONE) == 0);
	MUST(alias_pages(0, 2) == 0);
	must_be(prot);
	MUST(patch(page_at(1)) == 0);
	MUST(close_pages(0, 2) == 0);
	must_be(prot);
	MUST(mprotect(base, 2 * CODE_PAGE, RO) == 0);
	must_read(page_at(0), 0x77, CODE_PAGE);
	must_read((uint8_t *)page_at(1) + 5, 0x77, CODE_PAGE - 5);
}

static void nested(const void *arg)
{
	static const int prot[] = { RX, RX, RX, RX };

	(void)arg;
	start_library();
	lay_out(prot, LENGTH(prot));
	MUST(alias_pages(1, 1) == 0);
	MUST(alias_pages(0, 3) == 0);
	/* An open page with an alias needs nothing else. */
	MUST(open_pages(1, 3) == 0);
	must_be((const int[]){ RX, RX, RX, RWX });
	MUST(close_pages(0, 3) == 0);
	MUST(patch((uint8_t *)page_at(1) + 8) == 0 && patch((uint8_t *)page_at(2) + 8) == 0);
	MUST(close_pages(1, 1) == 0);
	MUST(look_at_maps().aliases > 0);
	MUST(close_pages(1, 3) == 0);
	MUST(close_pages(1, 1) == -ENOENT);
	must_be(prot);
	MUST(look_at_maps().aliases == 0);
}

/* Each of two pages may have an alias of its own, or none; ways may mix. */
static void across(const void *arg)
{
	static const int prot[] = { RX, RX, RX, RX, RX };

	(void)arg;
	start_library();
	if (pc_set_policy(PC_POLICY_MEMBARRIER) < 0)
		child_skip("no membarrier");
	lay_out(prot, LENGTH(prot));
	MUST(alias_pages(1, 1) == 0 && alias_pages(0, 1) == 0);
	MUST(alias_pages(2, 1) == 0 && open_pages(3, 1) == 0);
	for (size_t i = 1; i < LENGTH(prot); i++) {
		uint8_t *at = (uint8_t *)page_at(i) - 2;

		MUST(patch(at) == 0);
		MUST(memcmp(at, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
		must_read(at + 5, CODE_NOP, CODE_PAGE - 10);
		must_be((const int[]){ RX, RX, RX, RWX, RX });
	}
	MUST(close_pages(0, 4) == 0);
	must_be(prot);
}

/* No system call: a signal handler may do it. */
static void without_system_calls(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX }, 1);
	MUST(alias_pages(0, 1) == 0);
	child_filter(SYS_openat, 0, 0, SECCOMP_RET_KILL);
	child_filter(SYS_mprotect, 0, 0, SECCOMP_RET_KILL);
	child_filter(SYS_futex, 0, 0, SECCOMP_RET_KILL);
	MUST(patch(page_at(0)) == 0);
}

/* --- While it runs --------------------------------------------------------------------------- */

static atomic_bool stop;
static atomic_ulong runs;

static void *run_all_along(void *at)
{
	while (!stop) {
		uint32_t number = code_run(at);

		MUST(number == CODE_OLD || number == CODE_NEW);
		runs++;
	}
	return NULL;
}

static void must_patch(uint8_t *at, uint32_t number)
{
	uint8_t code[CODE_LEN];

	code_load(code, number);
	MUST(pc_patch(at, code, sizeof(code)) == 0);
	MUST(code_run(at) == number);
}

static void while_it_runs(const void *arg)
{
	pthread_t thread;

	(void)arg;
	start_library();
	lay_out((const int[]){ RW }, 1);
	code_put(base + 64, CODE_OLD);
	MUST(mprotect(base, CODE_PAGE, RX) == 0);
	MUST(pthread_create(&thread, NULL, run_all_along, base + 64) == 0);
	for (int i = 0; i < 500; i++) {
		unsigned long before = runs;

		MUST(alias_pages(0, 1) == 0);
		must_patch(base + 64, i % 2 ? CODE_OLD : CODE_NEW);
		MUST(close_pages(0, 1) == 0);
		for (int spins = 0; spins < 100 && runs == before; spins++)
			sched_yield();
	}
	stop = true;
	pthread_join(thread, NULL);
	MUST(runs > 0 && code_prot(base) == RX);
}

/* --- Where pages may not be writable and executable ------------------------------------------ */

static void must_work_by_alias(void)
{
	MUST(patch((uint8_t *)page_at(0) + 64) == -EACCES);
	MUST(alias_pages(0, 2) == 0);
	MUST(patch((uint8_t *)page_at(0) + 64) == 0);
	MUST(memcmp((uint8_t *)page_at(0) + 64, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5) == 0);
	must_be((const int[]){ RX, RX });
	MUST(close_pages(0, 2) == 0);
	must_be((const int[]){ RX, RX });
	MUST(look_at_maps().aliases == 0);
}

static void denied_by_kernel(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	/* PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN */
	if (prctl(65, 1, 0, 0, 0) < 0)
		child_skip("Linux before 6.3 has no PR_SET_MDWE");
	must_work_by_alias();
}

/* Every mprotect() there is. */
static void denied_by_filter(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	child_filter(SYS_mprotect, 2, 0, SECCOMP_RET_ERRNO | EPERM);
	must_work_by_alias();
}

/* --- What is refused ------------------------------------------------------------------------- */

static void must_refuse(int ret)
{
	static const int prot[] = { RX, RX };
	uint8_t before[2 * CODE_PAGE];

	memcpy(before, base, sizeof(before));
	MUST(alias_pages(0, 2) == ret);
	must_be(prot);
	MUST(memcmp(base, before, sizeof(before)) == 0);
	MUST(look_at_maps().aliases == 0);
	MUST(close_pages(0, 1) == -ENOENT);
}

static void busy(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	MUST(open_pages(1, 1) == 0);
	MUST(alias_pages(0, 2) == -EBUSY);
	must_be((const int[]){ RX, RWX });
	MUST(look_at_maps().aliases == 0);
	MUST(close_pages(1, 1) == 0);
	MUST(alias_pages(0, 2) == 0);
	MUST(pc_text_alias(base, 0) == -EINVAL);
	MUST(pc_text_alias(NULL, 1) == -EFAULT);
}

static void no_memory_file(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	child_filter(SYS_memfd_create, 0, 0, SECCOMP_RET_ERRNO | EPERM);
	must_refuse(-EACCES);
}

static void no_mapping(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	child_filter(SYS_mmap, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	must_refuse(-EACCES);
}

/* An error, and not the signal that comes with a file that is too large. */
static void no_files_so_large(const void *arg)
{
	static const struct rlimit limit = { CODE_PAGE, CODE_PAGE };

	(void)arg;
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	setrlimit(RLIMIT_FSIZE, &limit);
	must_refuse(-EACCES);
}

/* The second of two mappings fails, and the first is undone. */
static void undone(const void *arg)
{
	(void)arg;
	start_library();
	lay_out((const int[]){ RO, RX }, 2);
	child_filter(SYS_mmap, 2, PROT_EXEC, SECCOMP_RET_ERRNO | EACCES);
	MUST(alias_pages(0, 2) == -EACCES);
	must_be((const int[]){ RO, RX });
	MUST(look_at_maps().aliases == 0);
	MUST(alias_pages(0, 1) == 0);
}

/* It is closed all the same, and given back when that is possible again. */
static void not_given_back(const void *arg)
{
	struct rlimit limit, none;

	(void)arg;
	start_library();
	lay_out((const int[]){ RWX, RX }, 2);
	MUST(alias_pages(0, 1) == 0 && patch(page_at(0)) == 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	MUST(close_pages(0, 1) == -EMFILE);
	MUST(close_pages(0, 1) == -ENOENT);
	must_read((uint8_t *)page_at(0) + 5, CODE_NOP, CODE_PAGE - 5);
	setrlimit(RLIMIT_NOFILE, &limit);
	MUST(look_at_maps().aliases == 1);
	MUST(patch((uint8_t *)page_at(0) + 32) == 0);
	MUST(look_at_maps().aliases == 0);
	must_be((const int[]){ RWX, RX });
}

/* Neither descriptors nor mappings. */
static void leaves_nothing(const void *arg)
{
	int fd = dup(0);

	(void)arg;
	close(fd);
	start_library();
	lay_out((const int[]){ RX, RX }, 2);
	for (int i = 0; i < 100; i++)
		MUST(alias_pages(0, 2) == 0 && close_pages(0, 2) == 0);
	MUST(dup(0) == fd);
	MUST(look_at_maps().aliases == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(aliased),
		child_unit_test(unreadable),
		child_unit_test(nested),
		child_unit_test(across),
		child_unit_test(without_system_calls),
		child_unit_test(while_it_runs),
		child_unit_test(denied_by_kernel),
		child_unit_test(denied_by_filter),
		child_unit_test(busy),
		child_unit_test(no_memory_file),
		child_unit_test(no_mapping),
		child_unit_test(no_files_so_large),
		child_unit_test(undone),
		child_unit_test(not_given_back),
		child_unit_test(leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
