/* SPDX-License-Identifier: MIT */
/* Detour a function whose first instructions are short: a jump replaces several, and back. */
#include <patchcore/merge.h>
#include <pthread.h>

#include "example.h"

#define FUNCTION ACROSS
#define DETOUR	 256 /* where the jump leads */

/* mov eax, edi; add eax, 1; ret: starts at 0, 2 and 5, the jump ends behind the first two. */
static const uint8_t old_code[] = { 0x89, 0xf8, 0x83, 0xc0, 0x01, 0xc3 };
#define OLD_STARTS 0x05u
#define JUMP	   5u

/* mov eax, edi; add eax, 100; ret */
static const uint8_t detour[] = { 0x89, 0xf8, 0x83, 0xc0, 0x64, 0xc3 };

static _Atomic unsigned long old_runs, new_runs, others;
static _Atomic int stop;

static void *execute(void *code)
{
	int (*add)(int) = (int (*)(int))(uintptr_t)code;

	while (!stop) {
		int got = add(1);

		old_runs += got == 2;
		new_runs += got == 101;
		others += got != 2 && got != 101;
	}
	return NULL;
}

static void wait_for(_Atomic unsigned long *runs)
{
	unsigned long before = *runs;

	while (*runs < before + 1000)
		;
}

int main(void)
{
	uint8_t *page = map_open_code(), *at = page + FUNCTION, jump[JUMP];
	pthread_t thread;
	int ret;

	memcpy(at, old_code, sizeof(old_code));
	memcpy(page + DETOUR, detour, sizeof(detour));
	put_branch(jump, 0xe9, FUNCTION, DETOUR);
	if (pc_init() < 0 || pthread_create(&thread, NULL, execute, at) != 0)
		return 1;
	/* A thread may be at the second instruction: that start is lost, so all are looked at. */
	ret = pc_patch_over(at, jump, JUMP, OLD_STARTS, 1, PC_CHECK_THREADS);
	if (ret == 0)
		wait_for(&new_runs);
	/* Nothing is lost now, and that is checked. */
	if (ret == 0)
		ret = pc_patch_over(at, old_code, JUMP, 1, OLD_STARTS, PC_STARTS_KEPT);
	wait_for(&old_runs);
	stop = 1;
	pthread_join(thread, NULL);
	printf("%s: %lu old, %lu new, %lu others\n", strerror(-ret), old_runs, new_runs, others);
	/* -ENOTSUP, -EAGAIN and so on: the old code is still there. */
	return others || (ret == 0 && new_runs == 0);
}
