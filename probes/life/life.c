/* SPDX-License-Identifier: MIT */
/*
 * Start and end, and the list of providers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <patchcore/patchcore.h>

#include "probes/core/core.h"

static const struct provider *const providers[] = {
	&patchable_provider,
	&marker_provider,
	&branch_provider,
	&blocks_provider,
	&hooks_provider,
	&entries_provider,
	NULL,
};

/* Not by the agent's dlopen(), which would look for probes. A static program has no loader. */
static void *open_code(void *function)
{
	Dl_info here;

	return getauxval(AT_BASE) && dladdr(function, &here)
		       ? dlmopen(LM_ID_BASE, here.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
		       : NULL;
}

static bool held; /* it has opened itself, as sites lead here */

int fi_init(void)
{
	int ret = pc_init();

	if (!held)
		held = open_code((void *)fi_init);
	if (!ret)
		ret = core_open();
	if (ret < 0)
		return ret;
	entries_take_request();
	ret = object_scan(providers);
	core_unlock();
	callback_tell();
	return ret;
}

int fi_scan(void)
{
	uint32_t before;
	int ret = core_lock();

	if (ret < 0)
		return ret;
	before = probes_found;
	ret = object_scan(providers);
	if (!ret && entries_take_request())
		ret = object_again(&entries_provider);
	if (!ret)
		ret = (int)(probes_found - before);
	core_unlock();
	callback_tell();
	return ret;
}

/* One by one: a probe that cannot be turned off keeps none from it. */
static int all_off(void)
{
	uint32_t n = fi_probes();
	uint32_t *ids = calloc(n ? n : 1, sizeof(*ids));
	long found;
	int ret;

	if (!ids)
		return -ENOMEM;
	found = fi_find("*", ids, n);
	ret = found < 0 ? (int)found
			: fi_deactivate_batch(ids, (size_t)found < n ? (size_t)found : n);
	free(ids);
	return ret;
}

int fi_fini(void)
{
	int ret = all_off();

	if (!ret)
		ret = fi_synchronize();
	if (!ret)
		ret = core_lock();
	if (ret < 0)
		return ret;
	ret = objects_hold(site_restore, NULL);
	if (!ret)
		ret = object_close();
	if (!ret)
		core_close();
	core_unlock();
	return ret;
}

static void let_go(void *function)
{
	int (*close)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "dlclose");
	void *handle = open_code(function);

	for (int i = 0; handle && i < 2; i++)
		close(handle);
}

int fi_unload(void)
{
	if (!core_lock()) {
		core_unlock();
		return -EBUSY;
	}
	near_unload();
	block_unload();
	let_go((void *)pc_init);
	if (held)
		let_go((void *)fi_init);
	held = false;
	return 0;
}
