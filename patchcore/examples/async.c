/* SPDX-License-Identifier: MIT */
/* Start a thousand changes, do something else, and finish them: no caller stands through a wait. */
#include <errno.h>
#include <patchcore/async.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
	COUNT = 1000,
	SLOT = 64, /* one function ends each line, so that its first instruction straddles */
	BYTES = COUNT * SLOT + SLOT
};

static uint8_t *code;

static uint8_t *function(int i)
{
	return code + (i + 1) * SLOT - 2;
}

/* mov eax, number */
static void make_load(uint8_t bytes[5], uint32_t number)
{
	bytes[0] = 0xb8;
	memcpy(bytes + 1, &number, sizeof(number));
}

static int make_functions(void)
{
	code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (code == MAP_FAILED)
		return -EACCES;
	for (int i = 0; i < COUNT; i++) {
		make_load(function(i), 1);
		function(i)[5] = 0xc3; /* ret */
	}
	/* Open pages need no look at their protection for each change. */
	return pc_text_open(code, BYTES);
}

static int sum(void)
{
	int all = 0;

	for (int i = 0; i < COUNT; i++)
		all += ((int (*)(void))(void *)function(i))();
	return all;
}

int main(void)
{
	uint8_t load[5];
	int ret = pc_init(), asked = 0;

	if (ret == 0)
		ret = make_functions();
	make_load(load, 2);
	for (int i = 0; i < COUNT && ret == 0; i++)
		ret = pc_start_patch(function(i), load, sizeof(load));
	if (ret == -ENOTSUP || ret == -EACCES) {
		printf("not to be had here: %s\n", strerror(-ret));
		return 0;
	}

	/* The first is wanted now: a step whenever one is due, and time for other things between.
	 */
	while (ret == 0 && pc_finish_patch(function(0)) > PC_FINISHED)
		asked++;

	/* One that is not finished yet finishes when an executor runs it. */
	if (ret == 0 && ((int (*)(void))(void *)function(1))() != 2)
		ret = -EIO;

	/* The rest: one pair of waits for hundreds. */
	if (ret == 0)
		ret = pc_drain();
	if (ret < 0) {
		printf("not patched: %s\n", strerror(-ret));
		return 1;
	}
	printf("asked %d times for the first; %d functions return %d\n", asked, COUNT, sum());
	return sum() == 2 * COUNT ? 0 : 1;
}
