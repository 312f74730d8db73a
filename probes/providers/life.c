/* SPDX-License-Identifier: MIT */
/* Start and end of the library, and the list of providers. */
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

/* dlmopen(): an agent may interpose dlopen(). A static program has no loader. */
static void *open_code(void *function)
{
	Dl_info here;

	return getauxval(AT_BASE) && dladdr(function, &here)
		       ? dlmopen(LM_ID_BASE, here.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
		       : NULL;
}

static bool is_opened; /* the library holds itself: patched sites jump to it */

int fi_init(void)
{
	int ret = pc_init();

	if (!is_opened)
		is_opened = open_code((void *)fi_init);
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

/* Turns off all that can be; the first error is returned. */
int fi_fini(void)
{
	uint32_t n = fi_probes();
	uint32_t *ids = calloc(n ? n : 1, sizeof(*ids));
	long found = ids ? fi_find("*", ids, n) : -ENOMEM;
	int ret = (int)found;

	if (found >= 0)
		ret = fi_deactivate_batch(ids, (size_t)found < n ? (size_t)found : n);
	free(ids);
	if (!ret)
		ret = fi_synchronize();
	if (!ret)
		ret = fi_keep_writable(false);
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

static void close_code(void *function)
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
	close_code((void *)pc_init);
	if (is_opened)
		close_code((void *)fi_init);
	is_opened = false;
	return 0;
}
