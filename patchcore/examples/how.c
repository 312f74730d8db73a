/* SPDX-License-Identifier: MIT */
/*
 * Change two instructions at once, where both lie across the boundary of a word, and only if the
 * code is still the one that the caller knows.
 */
#include "example.h"

#define SITE 61 /* offset on the page: three bytes are on one cache line, one on the next */

/* mov al, LOW; mov ah, HIGH; movzx eax, ax; ret */
static const uint8_t before[] = { 0xb0, 1, 0xb4, 1, 0x0f, 0xb7, 0xc0, 0xc3 };
static const uint8_t after[] = { 0xb0, 2, 0xb4, 2 };

/* An instruction starts at the first byte and at the third. */
static const struct pc_how how = { .expected = before, .starts = 1 << 0 | 1 << 2 };

int main(void)
{
	uint8_t *site = map_open_code() + SITE;
	int ret = pc_init(), number;

	memcpy(site, before, sizeof(before));
	if (ret == 0)
		ret = pc_patch_how(site, after, sizeof(after), &how);
	/* Once more is refused: other code stands there by now. */
	if (ret == 0 && pc_patch_how(site, after, sizeof(after), &how) != -ESTALE)
		ret = -EPROTO;
	number = run(site);
	printf("%s: %#x\n", pc_strerror(ret), (unsigned)number);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 && number == 0x202) || (ret == -ENOTSUP && number == 0x101) ? 0 : 1;
}
