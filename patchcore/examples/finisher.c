/* SPDX-License-Identifier: MIT */
/* Start changes and forget them: a thread of the library finishes what was started. */
#include <patchcore/async.h>

#include "example.h"

#define TIMES 1000

/* Until the one before is finished, the site is not to be had. */
static int change(uint8_t *site, uint32_t number, int *refused)
{
	uint8_t load[5];
	int ret;

	put_load(load, number);
	while ((ret = pc_start_patch(site, load, sizeof(load))) == -EAGAIN)
		++*refused;
	return ret;
}

int main(void)
{
	uint8_t *page = map_open_code(), *site = page + ACROSS;
	int ret, number, refused = 0;

	put_function(site, 0);
	ret = pc_init();
	/* Else each change looks the page's protection up, and holds a lock meanwhile. */
	if (ret == 0)
		ret = pc_text_open(page, PAGE);
	if (ret == 0)
		ret = pc_finisher_start();
	for (int i = 1; i <= TIMES && ret == 0; i++)
		ret = change(site, (uint32_t)i, &refused);
	/* Ends the thread when all is finished. */
	if (ret == 0)
		ret = pc_finisher_stop();
	number = run(site);
	printf("%s: %d, after %d refusals\n", strerror(-ret), number, refused);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 && number == TIMES) || (ret == -ENOTSUP && number == 0) ? 0 : 1;
}
