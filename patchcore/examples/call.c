/* SPDX-License-Identifier: MIT */
/* Turn a probe, a call that a compiler could have put there, off and on while a thread runs it. */
#include <errno.h>
#include <patchcore/call.h>
#include <patchcore/patchcore.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define CALL  62 /* offset on the page: two bytes are on one cache line, three on the next */
#define PROBE 256
#define OTHER 1024

static _Atomic unsigned long results[3]; /* by what the code returned */
static _Atomic int stop;
static int (*run)(void);

static void *execute(void *unused)
{
	while (!stop)
		results[run()]++;
	return unused;
}

/* xor eax, eax; call PROBE; ret */
static void make_code(uint8_t *page)
{
	int32_t distance = PROBE - (CALL + 5);

	memcpy(page + CALL - 2, (uint8_t[]){ 0x31, 0xc0, 0xe8 }, 3);
	memcpy(page + CALL + 1, &distance, sizeof(distance));
	page[CALL + 5] = 0xc3;
	memcpy(page + PROBE, (uint8_t[]){ 0xb8, 1, 0, 0, 0, 0xc3 }, 6); /* mov eax, 1; ret */
	memcpy(page + OTHER, (uint8_t[]){ 0xb8, 2, 0, 0, 0, 0xc3 }, 6);
}

static int toggle(struct pc_call *call, void *other)
{
	int ret = 0;

	for (int i = 0; i < 100000 && ret == 0; i++)
		ret = i % 2 ? pc_activate_call(call, NULL) : pc_deactivate_call(call);
	/* The first target of its own is given by a word patch, which not every machine allows. */
	if (ret == 0)
		ret = pc_activate_call(call, other);
	return ret == -ENOTSUP ? 0 : ret;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pc_call_info info = { 0 };
	struct pc_call call;
	pthread_t thread;
	int ret;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 77;
	make_code(page);
	run = (int (*)(void))(void *)(page + CALL - 2);
	ret = pc_init();
	/* Open, so that a toggle needs no system call. */
	if (ret == 0)
		ret = pc_text_open(page, 4096);
	if (ret == 0)
		ret = pc_call_init(&call, page + CALL);
	if (ret < 0 || pthread_create(&thread, NULL, execute, NULL) != 0)
		return printf("not ready: %s\n", strerror(-ret)), 1;
	ret = toggle(&call, page + OTHER);
	stop = 1;
	pthread_join(thread, NULL);
	pc_call_get(&call, &info);
	/* The place may be had again. The code stays as it is, and runs on. */
	if (ret == 0)
		ret = pc_call_fini(&call);
	printf("%s: off %lu, probe %lu, other %lu times; %u bytes before the boundary\n",
	       strerror(-ret), results[0], results[1], results[2], info.split);
	return ret == 0 && info.active && run() > 0 ? 0 : 1;
}
