/* SPDX-License-Identifier: MIT */
/*
 * Start and end, and the list of providers.
 */
#include <errno.h>
#include <stdlib.h>

#include <patchcore/patchcore.h>

#include "probes/blocks/blocks.h"
#include "probes/branch/branch.h"
#include "probes/core/core.h"
#include "probes/cyg/cyg.h"
#include "probes/entries/entries.h"
#include "probes/marker/marker.h"
#include "probes/patchable/patchable.h"

static const struct provider *const providers[] = {
	&patchable_provider,
	&marker_provider,
	&branch_provider,
	&blocks_provider,
	&cyg_provider,
	&entries_provider,
	NULL,
};

int fi_init(void)
{
	int ret = pc_init();

	if (!ret)
		ret = core_open();
	if (ret < 0)
		return ret;
	entries_asked();
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
	before = fi_probes();
	ret = object_scan(providers);
	if (!ret && entries_asked())
		ret = object_again(&entries_provider);
	if (!ret)
		ret = (int)(fi_probes() - before);
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
	ret = object_close(NULL);
	if (!ret)
		core_close();
	core_unlock();
	return ret;
}
