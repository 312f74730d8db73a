/* SPDX-License-Identifier: MIT */
/*
 * The peers as they are to be had here: each that opens does what it is asked, and each that
 * does not says why. What is not installed is skipped.
 */
#include "bench/tests/peer_checks.h"
#include "bench/tests/threads.h"

static void test_xray(void **arg)
{
	(void)arg;
	check_all(peer_of("xray"));
}

static void test_uprobe(void **arg)
{
	struct peer *peer = peer_of("uprobe");
	unsigned before = threads();

	(void)arg;
	if (!is_open(peer))
		skip();
	/* One that slept would be stopped with all others by peers that stop the world. */
	assert_int_equal(threads(), before);
	check_toggle(peer, false);
	check_toggle(peer, true);
	check_cost(peer);
	close_it(peer);
}

/* Peers of which there is nothing to switch, only what a call costs. */
static void test_cost(const char *name)
{
	struct peer *peer = peer_of(name);

	if (!is_open(peer))
		skip();
	assert_null(peer->toggle);
	check_cost(peer);
	close_it(peer);
}

static void test_uftrace(void **arg)
{
	(void)arg;
	test_cost("uftrace");
}

static void test_lttng(void **arg)
{
	(void)arg;
	test_cost("lttng");
}

/* --- What is missing ------------------------------------------------------------------------ */

static void check_package(const char *name, const char *package)
{
	struct peer *peer = peer_of(name);
	char why[BENCH_WHY] = "";

	assert_int_equal(peer->open(peer, &run, why), -ENOENT);
	if (!strstr(why, package))
		fail_msg("'%s' does not name %s", why, package);
	assert_null(peer->state);
}

static void test_not_installed(void **arg)
{
	char *path;
	const char *found = getenv("JAVA_HOME");
	char *home;

	(void)arg;
	if (!getenv("TMAX_DATADIR"))
		skip(); /* the sources are missed first */
	path = strdup(getenv("PATH"));
	home = found ? strdup(found) : NULL;
	unsetenv("JAVA_HOME");
	setenv("PATH", "/nonexistent", 1);
	check_package("jvm-volatile", "openjdk-17-jdk-headless");
	check_package("jvm-mutable", "openjdk-17-jdk-headless");
	check_package("xray", "clang");
	check_package("uftrace", "gcc");
	check_package("lttng", "liblttng-ust-dev");
	setenv("PATH", path, 1);
	if (home)
		setenv("JAVA_HOME", home, 1);
	free(home);
	free(path);
}

static void test_no_source(void **arg)
{
	const char *data = getenv("TMAX_DATADIR");
	char *folder = data ? strdup(data) : NULL, why[BENCH_WHY] = "";
	struct peer *peer = peer_of("xray");

	(void)arg;
	setenv("TMAX_DATADIR", "/nonexistent", 1);
	assert_int_equal(peer->open(peer, &run, why), -ENOENT);
	assert_string_equal(why, "cannot read peers/xray.c: No such file or directory");
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
		assert_null(peer->state);
	}
	peers_close();
	assert_true(seconds_now() - begin < 1);
}

/* A line per peer that the documentation and the figures go by. */
static void test_table(void **arg)
{
	static const char *const names[] = {
		"jvm-volatile",
		"jvm-mutable",
		"jvm-volatile-compiled",
		"jvm-mutable-compiled",
		"xray",
		"uprobe",
		"uftrace",
		"lttng",
	};
	size_t count = 0;

	(void)arg;
	for (struct peer *peer = peers; peer->name; peer++) {
		assert_true(count < sizeof(names) / sizeof(*names));
		assert_string_equal(peer->name, names[count++]);
		assert_non_null(peer->open);
		assert_non_null(peer->close);
	}
	assert_int_equal(count, sizeof(names) / sizeof(*names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),	      cmocka_unit_test(test_not_wanted),
		cmocka_unit_test(test_not_installed), cmocka_unit_test(test_no_source),
		cmocka_unit_test(test_xray),	      cmocka_unit_test(test_uprobe),
		cmocka_unit_test(test_uftrace),	      cmocka_unit_test(test_lttng),
	};

	return cmocka_run_group_tests(tests, seat, unseat);
}
