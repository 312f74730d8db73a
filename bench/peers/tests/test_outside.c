/* SPDX-License-Identifier: MIT */
/* What a program of its own answers, as a peer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/method/samples.h"
#include "bench/peers/outside.h"

/* Answers only what it is asked by the letter. */
#define FAKE                                                                                       \
	"while read -r line; do case \"$line\" in "                                                \
	"'toggle 2 1') printf '10 20\\n30 40\\n.\\n';; "                                           \
	"'toggle 2 0') printf '1 2\\n.\\n';; "                                                     \
	"'flow max 20 1') printf '20000000 7 8 9\\n.\\n';; "                                       \
	"'flow 1000 5 0') printf '5000000 5 1 2\\n.\\n';; "                                        \
	"'flow 0 5 0') printf '5000000 5 1\\n.\\n';; "                                             \
	"'cost 100') printf '1.5 2\\n3\\n.\\n';; "                                                 \
	"'cost 200') printf '1 2 3 4\\n.\\n';; "                                                   \
	"*) echo error what;; esac; done"

static struct peer fake_peer(struct outside *o)
{
	char why[BENCH_WHY] = "";

	*o = (struct outside){ .ticks = 2 };
	assert_int_equal(
		process_start(&o->process, (const char *[]){ "sh", "-c", FAKE, NULL }, NULL, why),
		0);
	return (struct peer){ .name = "fake", .state = o };
}

static void test_toggle_order_and_scale(void **arg)
{
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";
	struct outside o;
	struct peer peer = fake_peer(&o);

	(void)arg;
	assert_int_equal(outside_toggle(&peer, 2, true, s, why), 0);
	assert_int_equal(s[0].count, 2);
	assert_int_equal(s[1].count, 2);
	assert_true(s[0].value[0] == 20 && s[0].value[1] == 60);
	assert_true(s[1].value[0] == 40 && s[1].value[1] == 80);
	/* Fewer than asked for: none is kept. */
	assert_int_equal(outside_toggle(&peer, 2, false, s, why), -EPROTO);
	assert_string_equal(why, "fake gave 2 numbers, not 4");
	assert_int_equal(s[0].count, 2);
	samples_free(&s[0]);
	samples_free(&s[1]);
	process_end(o.process);
}

static void test_flow_and_cost(void **arg)
{
	struct peer_flow flow = { 0 };
	struct peer_cost cost = { 0 };
	char why[BENCH_WHY] = "";
	struct outside o;
	struct peer peer = fake_peer(&o);

	(void)arg;
	assert_int_equal(outside_flow(&peer, 1e300, 0.02, true, &flow, why), 0);
	assert_true(flow.seconds > 0.0199 && flow.seconds < 0.0201);
	assert_int_equal(flow.toggles, 7);
	assert_int_equal(flow.calls[0], 8);
	assert_int_equal(flow.calls[1], 9);
	assert_int_equal(outside_flow(&peer, 1000, 0.005, false, &flow, why), 0);
	assert_int_equal(flow.toggles, 5);
	assert_int_equal(outside_flow(&peer, 0, 0.005, false, &flow, why), -EPROTO);
	assert_int_equal(outside_cost(&peer, 100, &cost, why), 0);
	assert_true(cost.empty == 3 && cost.off == 4 && cost.on == 6);
	assert_int_equal(outside_cost(&peer, 200, &cost, why), -EPROTO);
	assert_int_equal(outside_cost(&peer, 300, &cost, why), -EREMOTEIO);
	assert_string_equal(why, "sh: what");
	process_end(o.process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_toggle_order_and_scale),
		cmocka_unit_test(test_flow_and_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
