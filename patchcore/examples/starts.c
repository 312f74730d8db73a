/* SPDX-License-Identifier: MIT */
/* Change two instructions at once, where both lie across the boundary of a word. */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SITE 61 /* offset on the page: three bytes are on one cache line, one on the next */

/* mov al, LOW; mov ah, HIGH */
static const uint8_t before[] = { 0xb0, 1, 0xb4, 1 };
static const uint8_t after[] = { 0xb0, 2, 0xb4, 2 };

#define STARTS (1 << 0 | 1 << 2) /* an instruction starts at the first byte and at the third */

int main(void)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	uint8_t *page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = pc_init(), number;

	if (page == MAP_FAILED)
		return puts("no memory that is writable and executable"), 0;
	memcpy(page + SITE, before, sizeof(before));
	memcpy(page + SITE + sizeof(before), (uint8_t[]){ 0x0f, 0xb7, 0xc0, 0xc3 },
	       4); /* movzx, ret */
	if (ret == 0)
		ret = pc_patch_starts(page + SITE, after, sizeof(after), STARTS);
	number = ((int (*)(void))(void *)(page + SITE))();
	printf("%s: %#x\n", strerror(-ret), (unsigned)number);
	/* -ENOTSUP: no policy is safe here, and the code is as it was. */
	return (ret == 0 && number == 0x202) || (ret == -ENOTSUP && number == 0x101) ? 0 : 1;
}
