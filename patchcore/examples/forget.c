/* SPDX-License-Identifier: MIT */
/* Code that comes and goes: tell the library before it is unmapped. */
#include "example.h"

static int use_once(void)
{
	uint8_t *code = map_open_code(), two[5];
	int ret = 0;

	put_function(code, 1);
	put_load(two, 2);
	if (pc_text_open(code, PAGE) == 0 && pc_patch(code, two, sizeof(two)) == 0)
		ret = run(code);
	/* Code that is mapped here later is new to the library. */
	if (pc_forget(code, PAGE) < 0)
		ret = 0;
	munmap(code, PAGE);
	return ret;
}

int main(void)
{
	int made = 0;

	if (pc_init() < 0)
		return 1;
	for (int i = 0; i < 100; i++)
		made += use_once() == 2;
	printf("%d of 100 pieces of code were patched and forgotten\n", made);
	return made == 100 ? 0 : 1;
}
