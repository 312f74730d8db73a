/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/peers/outside.h"

#define JVM .open = jvm_open, .close = jvm_close, .toggle = jvm_toggle

#define ASKED .flow = outside_flow, .cost = outside_cost

struct peer peers[] = {
	{ "jvm-volatile", JVM, ASKED },
	{ "jvm-mutable", JVM, ASKED },
	{ "jvm-volatile-compiled", .hot_only = true, JVM },
	{ "jvm-mutable-compiled", .hot_only = true, JVM },
	{ "xray", .open = xray_open, .close = compiled_close, .toggle = outside_toggle, ASKED },
	{ "uprobe", .open = uprobe_open, .close = uprobe_close, .toggle = uprobe_toggle,
	  .flow = uprobe_flow, .cost = uprobe_cost },
	{ "uftrace", .open = uftrace_open, .close = compiled_close, .cost = uftrace_cost },
	{ "lttng", .open = lttng_open, .close = compiled_close, .cost = outside_cost },
	{ 0 },
};

void peers_open(const struct bench_run *run, bool want)
{
	for (struct peer *peer = peers; peer->name; peer++) {
		snprintf(peer->why, sizeof(peer->why), "%s", want ? "" : "not asked for");
		peer->ret = want ? peer->open(peer, run, peer->why) : -ECANCELED;
		if (peer->ret < 0 && !peer->why[0])
			snprintf(peer->why, sizeof(peer->why), "%s", strerror(-peer->ret));
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
