/* SPDX-License-Identifier: MIT */
/* Ask whether a change may be made while other threads run the code, and why not. */
#include <patchcore/check.h>

#include "example.h"

static const uint8_t call[5] = { 0xe8, 1, 2, 3, 4 };
static const uint8_t nop_5[5] = { 0x0f, 0x1f, 0x44, 0, 0 };
static const uint8_t nops[5] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

static int ask(const char *what, uint8_t *at, const uint8_t was[5], const uint8_t is[5])
{
	struct pc_check check;
	int ret;

	memcpy(at, was, 5); /* no thread runs this yet */
	ret = pc_check_site(at, is, 5, &check);
	printf("%s: %s, %s\n", what, ret == 0 ? "yes" : "no", check.why);
	if (ret == -EILSEQ)
		printf("  lost starts: %#lx\n", (unsigned long)check.lost_starts);
	return ret;
}

int main(void)
{
	uint8_t *page = map_code(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	int ret = pc_init(); /* so that the answers are about the window of this machine */

	if (ret < 0)
		return fprintf(stderr, "pc_init: %s\n", pc_strerror(ret)), 1;
	ret = ask("a NOP for a call", page, call, nop_5) == 0 &&
	      ask("the same across a line", page + ACROSS, call, nop_5) == 0 &&
	      ask("a call for a NOP", page, nop_5, call) == 0 &&
	      ask("a call for five NOPs", page, nops, call) == -EILSEQ;
	return pc_fini() == 0 && ret ? 0 : 1;
}
