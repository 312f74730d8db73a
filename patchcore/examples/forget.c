/* SPDX-License-Identifier: MIT */
/* Code that comes and goes: tell the library before it is unmapped. */
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* mov eax, imm32; ret */
static const uint8_t one[] = { 0xb8, 1, 0, 0, 0, 0xc3 };
static const uint8_t two[] = { 0xb8, 2, 0, 0, 0 };

static int use_once(void)
{
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret = 0;

	if (code == MAP_FAILED)
		return puts("no memory that is writable and executable"), 2;
	memcpy(code, one, sizeof(one));
	if (pc_text_open(code, 4096) == 0 && pc_patch(code, two, sizeof(two)) == 0)
		ret = ((int (*)(void))(void *)code)();
	/* Code that is mapped here later is new to the library. */
	if (pc_forget(code, 4096) < 0)
		ret = 0;
	munmap(code, 4096);
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
