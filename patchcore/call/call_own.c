/* SPDX-License-Identifier: MIT */
#include "patchcore/call/call_own.h"

#include <errno.h>

#include "patchcore/word/flight.h"

void call_go_on(const void *addr)
{
	struct site *site = site_find((uintptr_t)addr);

	if (site)
		flight_step(site);
}

int call_own_get(struct pc_call *call, struct stub **own)
{
	struct stub *made;
	void *none = NULL;
	int ret;

	*own = call_own(call);
	if (*own)
		return 0;
	ret = stub_get(&made, call_end(call), call_low(call));
	if (ret < 0)
		return ret == -EACCES ? -ENOSPC : ret;
	*own = made;
	if (__atomic_compare_exchange_n(&call->own, &none, made, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return 0;
	/* Another thread was faster. */
	stub_put(made);
	*own = none;
	return 0;
}
