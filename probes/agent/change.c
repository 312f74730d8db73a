/* SPDX-License-Identifier: MIT */
#include "probes/agent/agent.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "probes/include/fastinst.h"

#define TRIES 10 /* in each of which an object goes */

static long change_probes(const char *pattern, bool on, uint32_t from)
{
	size_t max = fi_probes() - from;
	uint32_t *ids = calloc(max ? max : 1, sizeof(*ids));
	int ret = 0;
	long n;

	if (!ids)
		return -ENOMEM;
	n = fi_find_from(pattern, from, ids, max);
	if (n > (long)max)
		n = (long)max;
	if (n > 0)
		ret = !on	       ? fi_deactivate_batch(ids, (size_t)n)
		      : trace_wanted() ? trace_on(ids, (size_t)n)
				       : fi_activate_batch(ids, (size_t)n, NULL);
	free(ids);
	return ret < 0 ? ret : n;
}

struct named *agent_named(const char *pattern)
{
	size_t max = fi_probes();
	uint32_t *ids = calloc(max + 1, sizeof(*ids));
	struct named *named = calloc(1, sizeof(*named) + max);
	long n = ids && named ? fi_find(pattern, ids, max) : -ENOMEM;

	if (named)
		named->n = max;
	for (long i = 0; i < n && i < (long)max; i++)
		named->is[ids[i]] = true;
	free(ids);
	if (n >= 0)
		return named;
	free(named);
	errno = (int)-n;
	return NULL;
}

long agent_change(const char *pattern, bool on, uint32_t from)
{
	/* Of an agent that was attached, dlopen() is not the one that is called. */
	long ret = on ? fi_scan() : 0;

	if (ret < 0)
		return ret;
	ret = change_probes(pattern, on, from);
	for (int i = 0; i < TRIES && ret == -ENODEV; i++)
		ret = change_probes(pattern, on, from);
	return ret;
}
