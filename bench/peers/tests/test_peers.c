/* SPDX-License-Identifier: MIT */
/*
 * The peers as they are to be had here: each that opens does what it is asked, and each that
 * does not says why. What is not installed is skipped. And what a program answers, as a peer.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "bench/method/result.h"
#include "bench/peers/peer.h"

#define PAIRS 3
#define CALLS 20000

static volatile sig_atomic_t checks_stop;
static struct bench_run run = { .rounds = 1, .stop = &checks_stop };

static struct peer *peer_of(const char *name)
{
	for (struct peer *peer = peers; peer->name; peer++)
		if (!strcmp(peer->name, name))
			return peer;
	fail_msg("no peer %s", name);
	return NULL;
}

static void check_reason(const char *why)
{
	assert_true(why[0] != '\0');
	for (; *why; why++)
		assert_in_range(*why, ' ', '~');
}

/* What it leaves: no process, and nothing of its folder. */
static void close_it(struct peer *peer)
{
	char folder[PEER_PATH];

	strcpy(folder, peer->folder);
	peer_close(peer);
	assert_null(peer->process);
	assert_int_equal(peer->folder[0], 0);
	assert_true(!folder[0] || access(folder, F_OK) < 0);
}

static bool is_open(struct peer *peer)
{
	double begin = seconds_now();

	if (peer_open(peer, &run) == 0) {
		print_message("%s: open after %.1f s\n", peer->name, seconds_now() - begin);
		return true;
	}
	check_reason(peer->why);
	print_message("%s: %s\n", peer->name, peer->why);
	close_it(peer);
	return false;
}

/* --- What each is asked --------------------------------------------------------------------- */

static void check_toggle(struct peer *peer, bool hot)
{
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	assert_int_equal(peer_toggle(peer, PAIRS, hot, s, why), 0);
	for (int which = 0; which < 2; which++) {
		assert_int_equal(s[which].count, PAIRS);
		for (size_t i = 0; i < PAIRS; i++)
			assert_true(s[which].value[i] > 0);
		samples_free(&s[which]);
	}
}

static void check_cost(struct peer *peer)
{
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	for (unsigned on = 0; on < 2; on++) {
		assert_int_equal(peer_cost(peer, CALLS, on, s, why), 0);
		assert_true(s[0].value[on] > 0 && isfinite(s[0].value[on]));
		assert_true(s[1].value[on] > 0 && isfinite(s[1].value[on]));
	}
	/* A traced call does more than one of nothing. */
	assert_true(s[0].value[1] > s[1].value[1]);
	samples_free(&s[0]);
	samples_free(&s[1]);
}

static void check_all(struct peer *peer)
{
	if (!is_open(peer))
		skip();
	for (unsigned hot = 0; hot < 2; hot++)
		check_toggle(peer, hot);
	check_cost(peer);
	close_it(peer);
}

static void test_xray(void **arg)
{
	(void)arg;
	check_all(peer_of("xray"));
}

static void test_uprobe(void **arg)
{
	(void)arg;
	check_all(peer_of("uprobe"));
}

/* Each is asked what it is warm for. */
static void test_jvm(void **arg)
{
	struct peer *peer = peer_of("jvm-volatile");

	(void)arg;
	assert_true(peer->hot && !peer[1].hot);
	for (int i = 0; i < 2; i++, peer++) {
		if (!is_open(peer))
			skip();
		assert_true(peer->unit > 0.1 && peer->unit < 10);
		check_toggle(peer, peer->hot);
		close_it(peer);
	}
}

/* --- What a program answers ----------------------------------------------------------------- */

/* Only what it is asked by the letter. */
#define FAKE                                                                                       \
	"echo .; while read -r line; do case \"$line\" in "                                        \
	"'toggle 2 1') printf '10 20\\n30 40\\n.\\n';; "                                           \
	"'toggle 2 0') printf '1 2\\n.\\n';; "                                                     \
	"'cost 100') printf '1.5 2\\n3\\n.\\n';; "                                                 \
	"'cost 200') printf '1 2 3 4\\n.\\n';; "                                                   \
	"*) echo error what;; esac; done"

static struct peer fake = { "fake", "xray.c", "none", "true", .start = FAKE };

static void test_answers(void **arg)
{
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	(void)arg;
	if (!is_open(&fake))
		skip();
	assert_int_equal(peer_toggle(&fake, 2, true, s, why), 0);
	assert_int_equal(s[0].count, 2);
	assert_int_equal(s[1].count, 2);
	assert_true(s[0].value[0] == 10 && s[0].value[1] == 30);
	assert_true(s[1].value[0] == 20 && s[1].value[1] == 40);
	/* Fewer than asked for: none is kept. */
	assert_int_equal(peer_toggle(&fake, 2, false, s, why), -EPROTO);
	assert_string_equal(why, "fake gave 2 numbers, not 4");
	assert_int_equal(s[0].count, 2);
	assert_int_equal(peer_cost(&fake, 100, false, s, why), 0);
	assert_int_equal(peer_cost(&fake, 100, true, s, why), 0);
	assert_true(s[0].value[2] == 2 && s[0].value[3] == 3);
	assert_true(s[1].value[2] == 1.5 && s[1].value[3] == 1.5);
	assert_int_equal(peer_cost(&fake, 200, false, s, why), -EPROTO);
	assert_int_equal(peer_cost(&fake, 300, false, s, why), -EREMOTEIO);
	samples_free(&s[0]);
	samples_free(&s[1]);
	assert_string_equal(why, "sh: what");
	close_it(&fake);
	/* Who asks it after that. */
	assert_int_equal(peer_cost(&fake, 100, true, s, why), -ENODEV);
	assert_string_equal(why, "not open");
}

/* --- What is missing ------------------------------------------------------------------------ */

static void check_package(const char *name, const char *package)
{
	struct peer *peer = peer_of(name);
	struct samples s[2] = { { 0 } };
	char why[BENCH_WHY] = "";

	assert_true(peer_open(peer, &run) < 0);
	check_reason(peer->why);
	if (!strstr(peer->why, package))
		fail_msg("'%s' does not name %s", peer->why, package);
	close_it(peer);
	/* Who asks it all the same is told why. */
	assert_int_equal(peer_cost(peer, CALLS, true, s, why), -ENODEV);
	assert_string_equal(why, peer->why);
}

static void test_not_installed(void **arg)
{
	char *path;

	(void)arg;
	if (!getenv("TMAX_DATADIR"))
		skip(); /* the sources are missed first */
	path = strdup(getenv("PATH"));
	setenv("PATH", "/nonexistent", 1);
	check_package("xray", "(Debian: clang");
	check_package("uprobe", "(Debian: gcc");
	check_package("jvm-volatile", "(Debian: openjdk");
	setenv("PATH", path, 1);
	free(path);
}

static void test_no_source(void **arg)
{
	const char *data = getenv("TMAX_DATADIR");
	char *folder = data ? strdup(data) : NULL;
	struct peer *peer = peer_of("xray");

	(void)arg;
	setenv("TMAX_DATADIR", "/nonexistent", 1);
	assert_int_equal(peer_open(peer, &run), -ENOENT);
	assert_string_equal(peer->why, "cannot read peers/xray.c: No such file or directory");
	close_it(peer);
	unsetenv("TMAX_DATADIR");
	if (folder)
		setenv("TMAX_DATADIR", folder, 1);
	free(folder);
}

/* Nothing is started, and closing what never was open is harmless. */
static void test_not_wanted(void **arg)
{
	double begin = seconds_now();

	(void)arg;
	peers_open(&run, false);
	for (struct peer *peer = peers; peer->name; peer++) {
		assert_true(peer->ret < 0);
		assert_string_equal(peer->why, "not asked for");
		assert_null(peer->process);
	}
	peers_close();
	assert_true(seconds_now() - begin < 1);
}

/* As seated as here, with an executor if there is a second CPU. */
static int seat(void **arg)
{
	char reason[128];
	unsigned most;
	int foreign;

	(void)arg;
	if (topology_open(&run.topology, &foreign) || foreign)
		return -1;
	most = placement_max(run.topology, PLACEMENT_SPREAD, reason, sizeof(reason));
	if (most == 0)
		return placement_seat(run.topology, PLACEMENT_OVERSUBSCRIBED, 1, 0, &run.seating,
				      reason, sizeof(reason));
	return placement_seat(run.topology, PLACEMENT_SPREAD, most, 0, &run.seating, reason,
			      sizeof(reason));
}

static int unseat(void **arg)
{
	(void)arg;
	hwloc_topology_destroy(run.topology);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_wanted), cmocka_unit_test(test_not_installed),
		cmocka_unit_test(test_no_source),  cmocka_unit_test(test_answers),
		cmocka_unit_test(test_xray),	   cmocka_unit_test(test_uprobe),
		cmocka_unit_test(test_jvm),
	};

	return cmocka_run_group_tests(tests, seat, unseat);
}
