/* SPDX-License-Identifier: MIT */
/* A change that is made only if the code is still the one that the caller knows. */
#include "example.h"

int main(void)
{
	const uint8_t one[5] = { 0xb8, 1 }, two[5] = { 0xb8, 2 };
	const struct pc_how how = { .expected = one };
	uint8_t *code = map_open_code();
	int ret = pc_init();

	put_function(code, 1);
	if (ret == 0)
		ret = pc_patch_how(code, two, sizeof(two), &how);
	/* Once more is refused: it is two by now. */
	if (ret == 0 && pc_patch_how(code, two, sizeof(two), &how) != -ESTALE)
		ret = -EPROTO;
	if (ret < 0)
		fprintf(stderr, "patchcore: %s\n", pc_strerror(ret));
	return ret < 0 ? 1 : 0;
}
