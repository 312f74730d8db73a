/* SPDX-License-Identifier: MIT */
/* Patch code that is never writable where it runs: no page is writable and executable. */
#include "example.h"

static void tell_way(uint8_t *code)
{
	enum pc_text_way way;
	char reason[128];
	int ret = pc_text_way(code, PAGE, &way, reason, sizeof(reason));

	printf("%s: %s\n", ret == 0 ? "can be patched" : strerror(-ret), reason);
}

int main(void)
{
	uint8_t *code = map_code(PAGE, PROT_READ | PROT_WRITE), load[5];
	int ret = pc_init(), number;

	put_function(code, 1);
	close_code(code, PAGE);
	if (ret == 0)
		tell_way(code);
	if (ret == 0)
		ret = pc_text_alias(code, PAGE);
	if (ret < 0) {
		printf("there is no alias to be had: %s\n", strerror(-ret));
		return ret == -EACCES ? SKIPPED : 1;
	}
	tell_way(code);
	/* Five bytes inside one 8-byte word, so one store changes them anywhere. */
	put_load(load, 2);
	ret = pc_patch(code, load, sizeof(load));
	if (ret < 0)
		printf("not patched: %s\n", strerror(-ret));
	/* Private memory again from here on; what was patched stays so. */
	if (ret == 0)
		ret = pc_text_close(code, PAGE);
	number = run(code);
	printf("the function returns %d\n", number);
	return ret == 0 && number == 2 ? 0 : 1;
}
