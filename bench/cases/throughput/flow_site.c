/* SPDX-License-Identifier: MIT */
#include "bench/cases/throughput/flow_site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/method/policy.h"
#include "bench/method/result.h"
#include "patchcore/patchcore.h"

static int set_call(struct flow_site *site, unsigned state)
{
	if (!site->way->on_off)
		return pc_activate_call(&site->call, site->loop.target[state]);
	return state ? pc_deactivate_call(&site->call) : pc_activate_call(&site->call, NULL);
}

static const uint8_t *code_of(const struct flow_site *site, unsigned state)
{
	enum loop_code other = site->way->on_off ? LOOP_NOP : LOOP_CALL_1;

	return site->loop.bytes[state ? other : LOOP_CALL_0];
}

static int set_patch(const struct flow_site *site, unsigned state)
{
	return pc_patch(site->loop.site, code_of(site, state), LOOP_SITE_BYTES);
}

/* The site begins a word. */
static void make_words(struct flow_site *site)
{
	for (unsigned state = 0; state < 2; state++) {
		memcpy(&site->word[state], site->loop.site, sizeof(site->word[state]));
		memcpy(&site->word[state], code_of(site, state), LOOP_SITE_BYTES);
	}
}

int flow_site_set(void *arg, unsigned state)
{
	struct flow_site *site = arg;

	switch (site->way->means) {
	case FLOW_CALL:
		return set_call(site, state);
	case FLOW_PATCH:
		return set_patch(site, state);
	case FLOW_STORE:
		__atomic_exchange_n((uint64_t *)(void *)site->loop.site, site->word[state],
				    __ATOMIC_SEQ_CST);
		return 0;
	case FLOW_POINTER:
		atomic_store_explicit(site->loop.pointer, site->loop.target[state],
				      memory_order_seq_cst);
		return 0;
	case FLOW_FLAG:
		atomic_store_explicit(site->loop.flag, !state, memory_order_seq_cst);
		return 0;
	}
	return -EINVAL;
}

static int get_ready(struct flow_site *site)
{
	int ret;

	if (!site->loop.site)
		return 0;
	ret = pc_text_open(site->loop.site, LOOP_SITE_BYTES);
	if (ret == 0 && site->way->means == FLOW_CALL)
		ret = pc_call_init(&site->call, site->loop.site);
	if (site->way->means == FLOW_STORE)
		make_words(site);
	return ret;
}

int flow_site_build(struct flow_site **result, const struct flow_way *way)
{
	static const enum loop_kind kinds[] = {
		[FLOW_CALL] = LOOP_SITE,       [FLOW_PATCH] = LOOP_SITE, [FLOW_STORE] = LOOP_SITE,
		[FLOW_POINTER] = LOOP_POINTER, [FLOW_FLAG] = LOOP_FLAG,
	};
	struct loop_spec spec = { .kind = kinds[way->means],
				  .target = LOOP_COUNT,
				  .split = way->split };
	struct flow_site *site = aligned_alloc(128, sizeof(*site));
	int ret;

	if (!site)
		return -ENOMEM;
	memset(site, 0, sizeof(*site));
	site->way = way;
	ret = loop_build(&site->loop, &spec);
	if (ret == 0)
		ret = get_ready(site);
	if (ret < 0) {
		flow_site_free(site);
		return ret;
	}
	*result = site;
	return 0;
}

void flow_site_free(struct flow_site *site)
{
	if (site)
		loop_free(&site->loop);
	free(site);
}

int flow_site_begin(struct flow_site *site, char *why)
{
	int ret = bench_set_policy(site->way->policy, why);

	if (ret < 0)
		return ret;
	/* Two targets: both are known to the library then, whatever that takes. */
	for (unsigned i = 0; i < 2 && ret == 0; i++)
		ret = flow_site_set(site, 1 - i);
	if (ret < 0)
		snprintf(why, BENCH_WHY, "the first change failed: %s", strerror(-ret));
	return ret;
}

void flow_site_end(void)
{
	pc_set_policy(PC_POLICY_AUTO);
}
