/* SPDX-License-Identifier: MIT */
/* Start changes and forget them: a thread of the library finishes what was started. */
#include <errno.h>
#include <patchcore/async.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SITE  62 /* offset on the page: two bytes are on one cache line, three on the next */
#define TIMES 1000

/* mov eax, number */
static void make_load(uint8_t bytes[5], uint32_t number)
{
	bytes[0] = 0xb8;
	memcpy(bytes + 1, &number, sizeof(number));
}

/* Until the one before is finished, the site is not to be had. */
static int change(uint8_t *site, uint32_t number, int *refused)
{
	uint8_t load[5];
	int ret;

	make_load(load, number);
	while ((ret = pc_start_patch(site, load, sizeof(load))) == -EAGAIN)
		++*refused;
	return ret;
}

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret, number = 0, refused = 0;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 0;
	make_load(page + SITE, 0);
	page[SITE + 5] = 0xc3; /* ret */
	ret = pc_init();
	/* Else each change looks the page's protection up, and holds a lock meanwhile. */
	if (ret == 0)
		ret = pc_text_open(page, 4096);
	if (ret == 0)
		ret = pc_finisher_start();
	for (int i = 1; i <= TIMES && ret == 0; i++)
		ret = change(page + SITE, (uint32_t)i, &refused);
	/* Ends the thread when all is finished. */
	if (ret == 0)
		ret = pc_finisher_stop();
	number = ((int (*)(void))(void *)(page + SITE))();
	printf("%s: %d, after %d refusals\n", strerror(-ret), number, refused);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 && number == TIMES) || (ret == -ENOTSUP && number == 0) ? 0 : 1;
}
