/* SPDX-License-Identifier: MIT */
/*
 * A library that patches a program it is part of: a policy of its own, a look before, and a change
 * that is made only if the code is still the one that it knows.
 */
#include "example.h"

static const char *const protocols[] = {
	[PC_BY_STORE] = "one store",
	[PC_BY_WAIT] = "INT3 and two waits",
	[PC_BY_MEMBARRIER] = "INT3 and two membarriers",
	[PC_BY_NOTHING] = "nothing that is safe here",
};

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
	uint8_t *code = map_open_code();
	const struct pc_choice *own;
	int ret = pc_init();

	put_function(code, 1);
	put_function(code + ACROSS, 1);
	if (ret == 0)
		ret = pc_choose(&own, PC_POLICY_MEMBARRIER, PC_ACCEPT_P_DEFAULT);
	if (ret == -ENOTSUP) {
		printf("membarrier is not to be had here\n");
		return 0;
	}
	if (ret == 0)
		ret = change(code, own);
	if (ret == 0)
		ret = change(code + ACROSS, own);
	if (ret < 0)
		fprintf(stderr, "patchcore: %s\n", strerror(-ret));
	return ret < 0 ? 1 : 0;
}
