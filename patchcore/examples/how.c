/* SPDX-License-Identifier: MIT */
/*
 * A library that patches a program it is part of: a policy of its own, a look before, and a change
 * that is made only if the code is still the one that it knows.
 */
#include <errno.h>
#include <patchcore/patchcore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u

static const char *const protocols[] = {
	[PC_BY_STORE] = "one store",
	[PC_BY_WAIT] = "INT3 and two waits",
	[PC_BY_MEMBARRIER] = "INT3 and two membarriers",
	[PC_BY_NOTHING] = "nothing that is safe here",
};

/* mov eax, number; ret */
static void put_function(uint8_t *at, uint8_t number)
{
	memcpy(at, (const uint8_t[]){ 0xb8, number, 0, 0, 0, 0xc3 }, 6);
}

static int look(const uint8_t *site, const struct pc_choice *own)
{
	struct pc_site found;
	int ret = pc_get_site(site, 5, own, &found);

	if (ret == 0)
		printf("at %p: %s, some %llu ticks; %llu changes, %llu traps\n", (const void *)site,
		       protocols[found.protocol], (unsigned long long)found.cost,
		       (unsigned long long)found.changes, (unsigned long long)found.traps);
	return ret;
}

/* From 1 to 2, and then once more, which must be refused. */
static int change(uint8_t *site, const struct pc_choice *own)
{
	const uint8_t one[5] = { 0xb8, 1 }, two[5] = { 0xb8, 2 };
	const struct pc_how how = { .choice = own, .expected = one };
	int ret = look(site, own);

	if (ret == 0)
		ret = pc_patch_how(site, two, sizeof(two), &how);
	if (ret == 0 && pc_patch_how(site, two, sizeof(two), &how) != -ESTALE)
		ret = -EPROTO;
	return ret < 0 ? ret : look(site, own);
}

int main(void)
{
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct pc_choice *own;
	int ret = pc_init();

	if (code == MAP_FAILED)
		return 1;
	put_function(code, 1);
	put_function(code + 64 - 2, 1);
	if (ret == 0)
		ret = pc_choose(&own, PC_POLICY_MEMBARRIER, PC_ACCEPT_P_DEFAULT);
	if (ret == -ENOTSUP) {
		printf("membarrier is not to be had here\n");
		return 0;
	}
	if (ret == 0)
		ret = change(code, own);
	if (ret == 0)
		ret = change(code + 64 - 2, own);
	if (ret < 0)
		fprintf(stderr, "patchcore: %s\n", strerror(-ret));
	return ret < 0 ? 1 : 0;
}
