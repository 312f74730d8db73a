/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/peers/all.h"

struct peer peers[] = {
	{
		.name = "jvm-volatile",
		.on = "setTarget",
		.off = "setTarget",
		.open = jvm_volatile_open,
		.close = jvm_close,
		.toggle = jvm_toggle,
		.flow = jvm_flow,
		.cost = jvm_cost,
	},
	{
		.name = "jvm-mutable",
		.on = "setTarget, syncAll",
		.off = "setTarget, syncAll",
		.open = jvm_mutable_open,
		.close = jvm_close,
		.toggle = jvm_toggle,
		.flow = jvm_flow,
		.cost = jvm_cost,
	},
	{
		.name = "jvm-volatile-compiled",
		.on = "setTarget",
		.off = "setTarget",
		.hot_only = true,
		.open = jvm_volatile_open,
		.close = jvm_close,
		.toggle = jvm_toggle_compiled,
	},
	{
		.name = "jvm-mutable-compiled",
		.on = "setTarget, syncAll",
		.off = "setTarget, syncAll",
		.hot_only = true,
		.open = jvm_mutable_open,
		.close = jvm_close,
		.toggle = jvm_toggle_compiled,
	},
	{
		.name = "xray",
		.on = "patch_function",
		.off = "unpatch_function",
		.open = xray_open,
		.close = xray_close,
		.toggle = outside_toggle,
		.flow = outside_flow,
		.cost = outside_cost,
	},
	{
		.name = "uprobe",
		.on = "perf_event_open",
		.off = "close",
		.open = uprobe_open,
		.close = uprobe_close,
		.toggle = uprobe_toggle,
		.flow = uprobe_flow,
		.cost = uprobe_cost,
	},
	{
		.name = "uftrace",
		.on = "record -P",
		.off = "record",
		.open = uftrace_open,
		.close = uftrace_close,
		.cost = uftrace_cost,
	},
	{ 0 },
};

static void open_one(struct peer *peer, const struct bench_run *run)
{
	peer->why[0] = '\0';
	peer->ret = peer->open(peer, run, peer->why);
	if (peer->ret < 0 && !peer->why[0])
		snprintf(peer->why, sizeof(peer->why), "%s", strerror(-peer->ret));
}

void peers_open(const struct bench_run *run, bool want)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		if (want) {
			open_one(peer, run);
			continue;
		}
		peer->ret = -ECANCELED;
		snprintf(peer->why, sizeof(peer->why), "not asked for");
	}
}

void peers_close(void)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		if (peer->ret == 0 && peer->state)
			peer->close(peer);
		peer->ret = -ESHUTDOWN;
		snprintf(peer->why, sizeof(peer->why), "closed");
	}
}
