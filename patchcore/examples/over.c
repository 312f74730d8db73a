/* SPDX-License-Identifier: MIT */
/* Detour a function whose first instructions are short: a jump replaces several, and back. */
#include <patchcore/merge.h>
#include <patchcore/patchcore.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTION 62  /* offset on the page */
#define DETOUR	 256 /* where the jump leads */

/* mov eax, edi; add eax, 1; ret: starts at 0, 2 and 5, the jump ends behind the first two. */
static const uint8_t old_code[] = { 0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3 };
#define OLD_STARTS 0x05u
#define JUMP	   5u

/* mov eax, edi; add eax, 100; ret */
static const uint8_t detour[] = { 0x89, 0xf8, 0x83, 0xc0, 0x64, 0xc3 };

static _Atomic unsigned long old_runs, new_runs, others;
static _Atomic int stop;
static int (*function)(int);

static void *execute(void *unused)
{
	while (!stop) {
		int got = function(1);

		old_runs += got == 2;
		new_runs += got == 101;
		others += got != 2 && got != 101;
	}
	return unused;
}

static int install(uint8_t *at)
{
	int32_t distance = DETOUR - (FUNCTION + (int)JUMP);
	uint8_t jump[JUMP] = { 0xe9 };

	memcpy(jump + 1, &distance, sizeof(distance));
	/* A thread may be at the second instruction: that start is lost, so all are looked at. */
	return pc_patch_over(at, jump, JUMP, OLD_STARTS, 1, PC_CHECK_THREADS);
}

static int take_off(uint8_t *at)
{
	/* Nothing is lost now, and that is checked. */
	return pc_patch_over(at, old_code, JUMP, 1, OLD_STARTS, PC_STARTS_KEPT);
}

static void wait_for(_Atomic unsigned long *runs)
{
	unsigned long before = *runs;

	while (*runs < before + 1000)
		;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int ret;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 77;
	memcpy(page + FUNCTION, old_code, sizeof(old_code));
	memcpy(page + DETOUR, detour, sizeof(detour));
	function = (int (*)(int))(void *)(page + FUNCTION);
	if (pc_init() < 0 || pthread_create(&thread, NULL, execute, NULL) != 0)
		return 1;
	ret = install(page + FUNCTION);
	if (ret == 0)
		wait_for(&new_runs);
	if (ret == 0)
		ret = take_off(page + FUNCTION);
	wait_for(&old_runs);
	stop = 1;
	pthread_join(thread, NULL);
	printf("%s: %lu old, %lu new, %lu others\n", strerror(-ret), old_runs, new_runs, others);
	/* -ENOTSUP, -EAGAIN and so on: the old code is still there. */
	return others || (ret == 0 && new_runs == 0);
}
