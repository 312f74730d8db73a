/* SPDX-License-Identifier: MIT */
#include "probes/agent/agent.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "probes/agent/trace.h"
#include "probes/include/fastinst.h"

long agent_change(const char *pattern, bool on)
{
	uint32_t *ids;
	size_t max;
	long n;
	int ret;

	/* Of an agent that was attached, dlopen() is not the one that is called. */
	ret = on ? agent_look() : 0;
	if (ret < 0)
		return ret;
	max = fi_probes();
	ids = calloc(max ? max : 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	ret = 0;
	n = fi_find(pattern, ids, max);
	if (n > (long)max)
		n = (long)max;
	if (n > 0)
		ret = !on	       ? fi_deactivate_batch(ids, (size_t)n)
		      : trace_wanted() ? trace_on(ids, (size_t)n)
				       : fi_activate_batch(ids, (size_t)n, NULL);
	free(ids);
	agent_let_go();
	return ret < 0 ? ret : n;
}
