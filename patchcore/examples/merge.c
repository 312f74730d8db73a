/* SPDX-License-Identifier: MIT */
/* Turn the five NOPs that gcc leaves at a function's entry into a call, while threads run it. */
#include <patchcore/merge.h>
#include <patchcore/patchcore.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SITE  62  /* offset on the page */
#define PROBE 256 /* what is to be called */

static _Atomic unsigned long runs, probed;
static _Atomic int stop;
static int (*run)(void);

/* xor eax, eax; five NOPs; ret. The probe: mov eax, 1; ret. */
static void put_code(uint8_t *page)
{
	static const uint8_t code[] = { 0x31, 0xc0, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 };
	static const uint8_t probe[] = { 0xb8, 1, 0, 0, 0, 0xc3 };

	memcpy(page + SITE - 2, code, sizeof(code));
	memcpy(page + PROBE, probe, sizeof(probe));
	run = (int (*)(void))(void *)(page + SITE - 2);
}

static void *execute(void *unused)
{
	while (!stop) {
		probed += run();
		runs++;
	}
	return unused;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), call[5];
	int32_t distance = PROBE - (SITE + 5);
	unsigned long before;
	pthread_t thread;
	int ret;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 77;
	put_code(page);
	call[0] = 0xe8;
	memcpy(call + 1, &distance, sizeof(distance));
	if (pc_init() < 0 || pthread_create(&thread, NULL, execute, NULL) != 0)
		return 1;
	ret = pc_patch_merge(page + SITE, call, sizeof(call), PC_CHECK_THREADS);
	/* One run may have begun before. */
	before = runs;
	while (ret == 0 && runs < before + 1000)
		;
	stop = 1;
	pthread_join(thread, NULL);
	printf("%s: %lu runs, %lu probed\n", strerror(-ret), runs, probed);
	/* -ENOTSUP, -EAGAIN and so on: the NOPs are still there. */
	return run() == (ret == 0) && (ret < 0 || probed >= 999) ? 0 : 1;
}
