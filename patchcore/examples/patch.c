/* SPDX-License-Identifier: MIT */
/* Let a call in generated code go elsewhere, while a thread runs it and it straddles a line. */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define CALL 62 /* offset on the page: two bytes are on one cache line, three on the next */
#define ONE  256
#define TWO  1040

static _Atomic unsigned long results[3]; /* by what the code returned */
static _Atomic int stop;
static int (*run)(void);

static void make_call(uint8_t code[5], int target)
{
	int32_t distance = target - (CALL + 5);

	code[0] = 0xe8;
	memcpy(code + 1, &distance, sizeof(distance));
}

static void *execute(void *unused)
{
	while (!stop)
		results[run()]++;
	return unused;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), call[2][5];
	pthread_t thread;
	int ret = 0;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 77;
	make_call(call[0], ONE);
	make_call(call[1], TWO);
	memcpy(page + CALL, call[0], 5);
	page[CALL + 5] = 0xc3;					      /* ret */
	memcpy(page + ONE, (uint8_t[]){ 0xb8, 1, 0, 0, 0, 0xc3 }, 6); /* mov eax, 1; ret */
	memcpy(page + TWO, (uint8_t[]){ 0xb8, 2, 0, 0, 0, 0xc3 }, 6);
	run = (int (*)(void))(void *)(page + CALL);
	if (pthread_create(&thread, NULL, execute, NULL) != 0)
		return 1;
	ret = pc_init();
	for (int i = 1; i <= 1000 && ret == 0; i++)
		ret = pc_patch(page + CALL, call[i % 2], 5);
	stop = 1;
	pthread_join(thread, NULL);
	printf("%s: one %lu, two %lu times\n", strerror(-ret), results[1], results[2]);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 || ret == -ENOTSUP) && run() == 1 ? 0 : 1;
}
