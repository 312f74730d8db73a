/* SPDX-License-Identifier: MIT */
#include "bench/cases/pass/pass.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/method/policy.h"
#include "patchcore/patchcore.h"

#define PAGE	    4096u
#define FAR	    (UINT64_C(6) << 30) /* bytes */
#define TARGET_SIZE 16

const char *pass_split(unsigned split)
{
	static const char *const names[] = { "0", "1|4", "2|3", "3|2", "4|1" };

	return names[split];
}

static bool is_far(const void *a, const void *b)
{
	int64_t distance = (int64_t)((uintptr_t)a - (uintptr_t)b);

	return distance != (int32_t)distance;
}

/* What the second target does, where no displacement leads. */
static int map_far(struct pass *pass)
{
	void *wish = (void *)((uintptr_t)pass->loop.map - FAR);
	void *page = mmap(wish, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return -errno;
	pass->far = page;
	if (!is_far(page, pass->loop.map))
		return -ENOSPC;
	memcpy(page, pass->loop.target[1], TARGET_SIZE);
	return 0;
}

static int set_word(struct pass *pass, bool back)
{
	int ret = pc_patch(pass->loop.site, pass->loop.bytes[LOOP_NOP], LOOP_SITE_BYTES);

	if (ret == 0 && back)
		ret = pc_patch(pass->loop.site, pass->loop.bytes[LOOP_CALL_0], LOOP_SITE_BYTES);
	return ret;
}

static int set_target(struct pass *pass)
{
	int ret;

	switch (pass->spec.state) {
	case PASS_CALL_ON:
		return pc_activate_call(&pass->call, NULL);
	case PASS_CALL_OTHER:
		return pc_activate_call(&pass->call, pass->loop.target[1]);
	case PASS_CALL_FAR:
		ret = map_far(pass);
		return ret < 0 ? ret : pc_activate_call(&pass->call, pass->far);
	default:
		return 0;
	}
}

static int set_call(struct pass *pass)
{
	int ret = pc_call_init(&pass->call, pass->loop.site);

	if (ret == 0)
		ret = pc_deactivate_call(&pass->call);
	return ret < 0 ? ret : set_target(pass);
}

static int set_state(struct pass *pass)
{
	switch (pass->spec.state) {
	case PASS_BUILT:
		return 0;
	case PASS_FLAG_DOWN:
		atomic_store_explicit(pass->loop.flag, 0, memory_order_relaxed);
		return 0;
	case PASS_NOP:
	case PASS_PATCHED:
		return set_word(pass, pass->spec.state == PASS_PATCHED);
	default:
		return set_call(pass);
	}
}

static void explain(int ret, char *why)
{
	if (ret == -ENOTSUP)
		bench_policy_refused(PC_POLICY_AUTO, why);
	else
		snprintf(why, BENCH_WHY, "the site cannot be made ready: %s", strerror(-ret));
}

int pass_build(struct pass *pass, const struct pass_spec *spec, char *why)
{
	int ret;

	*pass = (struct pass){ .spec = *spec };
	ret = loop_build(&pass->loop, &spec->loop);
	if (ret == 0)
		ret = set_state(pass);
	if (ret == 0)
		return 0;
	explain(ret, why);
	pass_free(pass);
	return ret;
}

void pass_free(struct pass *pass)
{
	loop_free(&pass->loop);
	if (pass->far)
		munmap(pass->far, PAGE);
	pass->far = NULL;
}

/* --- Lists ---------------------------------------------------------------------------------- */

size_t pass_add_splits(struct pass_spec *to, const struct pass_spec *spec, bool work)
{
	for (unsigned split = 0; split < LOOP_SITE_BYTES; split++) {
		to[split] = *spec;
		to[split].split = true;
		to[split].loop =
			(struct loop_spec){ .kind = LOOP_SITE, .split = split, .work = work };
	}
	return LOOP_SITE_BYTES;
}

size_t pass_add_others(struct pass_spec *to, const struct pass_spec *others, size_t count,
		       bool work)
{
	for (size_t i = 0; i < count; i++) {
		to[i] = others[i];
		to[i].loop.work = work;
	}
	return count;
}
