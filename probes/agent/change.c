/* SPDX-License-Identifier: MIT */
#include "probes/agent/agent.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "probes/include/fastinst.h"

#define TRIES 10 /* an object may be unloaded in each */

struct named *agent_named(const char *pattern, uint32_t from)
{
	size_t max = fi_probes() - from;
	struct named *named = malloc(sizeof(*named) + max * sizeof(*named->ids));
	long n = named ? fi_find_from(pattern, from, named->ids, max) : -ENOMEM;

	if (n < 0) {
		free(named);
		errno = (int)-n;
		return NULL;
	}
	named->n = (size_t)n < max ? (size_t)n : max;
	return named;
}

static long change_probes(const char *pattern, bool on, uint32_t from)
{
	struct named *named = agent_named(pattern, from);
	long n, ret;

	if (!named)
		return -errno;
	n = (long)named->n;
	ret = !n	       ? 0
	      : !on	       ? fi_deactivate_batch(named->ids, named->n)
	      : trace_wanted() ? trace_on(named->ids, named->n)
			       : fi_activate_batch(named->ids, named->n, NULL);
	free(named);
	return ret < 0 ? ret : n;
}

long agent_change(const char *pattern, bool on, uint32_t from)
{
	/* In an attached process the agent sees no dlopen(). */
	long ret = on ? fi_scan() : 0;

	if (ret < 0)
		return ret;
	ret = change_probes(pattern, on, from);
	for (int i = 0; i < TRIES && ret == -ENODEV; i++)
		ret = change_probes(pattern, on, from);
	return ret;
}
