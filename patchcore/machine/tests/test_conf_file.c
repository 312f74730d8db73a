/* SPDX-License-Identifier: MIT */
/* A machine.conf as a file: what can be read, and that only its users can have written it. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/tests/conf_folder.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"

/* --- Reading ---------------------------------------------------------------------- */

/* With one line about it unless it is good. */
static bool reads_as(const char *path, int expected)
{
	struct machine_conf conf;
	char why[160] = "";
	int ret = machine_conf_read(&conf, path, why, sizeof(why));

	if (ret != expected)
		dprintf(2, "%s: %d (%s)\n", path, ret, why);
	return ret == expected && (ret == 0) == !why[0] && !strchr(why, '\n');
}

static void test_read(void **state)
{
	struct machine_conf sample = conf_here(), conf;
	struct conf_lines lines = conf_lines(&sample);
	char text[CONF_TEXT], why[160];
	size_t size = conf_text(&lines, text);

	(void)state;
	assert_int_equal(machine_conf_read(&conf, conf_file(text, size), why, sizeof(why)), 0);
	assert_true(conf_same(&conf, &sample));
}

static void test_read_bad_text(void **state)
{
	(void)state;
	assert_true(reads_as(conf_file("", 0), -EINVAL));
	assert_true(reads_as(conf_file("[tmax]\n", 7), -EINVAL));
	assert_true(reads_as(conf_file("[tmax]\nschema = 1\n\0", 19), -EINVAL));
	assert_true(reads_as(conf_file("\0", 1), -EINVAL));
}

/* A good config with a comment in front that makes it just so long. */
static const char *padded_conf(size_t size)
{
	struct machine_conf sample = conf_here();
	struct conf_lines lines = conf_lines(&sample);
	char text[CONF_TEXT], *all = malloc(size + CONF_TEXT);
	size_t used = conf_text(&lines, text), padding = size - used;
	const char *path;

	assert_non_null(all);
	for (size_t i = 0; i < padding; i++)
		all[i] = i % 64 == 63 || i == padding - 1 ? '\n' : '#';
	memcpy(all + padding, text, used);
	path = conf_file(all, size);
	free(all);
	return path;
}

static void test_read_large(void **state)
{
	const char *path;

	(void)state;
	assert_true(reads_as(padded_conf(MACHINE_CONF_BYTES), 0));
	assert_true(reads_as(padded_conf(MACHINE_CONF_BYTES + 1), -EFBIG));
	path = conf_file("", 0);
	assert_int_equal(truncate(path, INT64_C(1) << 40), 0);
	assert_true(reads_as(path, -EFBIG));
}

static void test_read_missing(void **state)
{
	char target[256];

	(void)state;
	assert_true(reads_as("", -ENOENT));
	assert_true(reads_as(in_folder("none"), -ENOENT));
	snprintf(target, sizeof(target), "%s", in_folder("nowhere"));
	assert_int_equal(symlink(target, in_folder("dangling")), 0);
	assert_true(reads_as(in_folder("dangling"), -ENOENT));
	assert_int_equal(symlink("circle", in_folder("circle")), 0);
	assert_true(reads_as(in_folder("circle"), -ELOOP));
	assert_true(reads_as("/dev/null/machine.conf", -ENOTDIR));
}

/* None of them may block, or be read for ever. */
static void read_no_file(const void *arg)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), pipes[2];
	char path[64];

	(void)arg;
	MUST(reads_as(folder, -EINVAL));
	MUST(reads_as("/dev/zero", -EINVAL));
	MUST(reads_as("/dev/null", -EINVAL));
	MUST(mkfifo(in_folder("fifo"), 0666) == 0);
	MUST(reads_as(in_folder("fifo"), -EINVAL));
	MUST(pipe(pipes) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[0]);
	MUST(reads_as(path, -EINVAL));
	MUST(chdir(folder) == 0);
	strcpy(address.sun_path, "socket");
	MUST(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	MUST(reads_as(in_folder("socket"), -ENXIO));
}

/* Root reads everything, so root becomes another user. */
static void read_forbidden(const void *arg)
{
	const char *path = in_folder("forbidden");
	int fd = open(path, O_WRONLY | O_CREAT, 0000);

	(void)arg;
	MUST(fd >= 0);
	if (geteuid() == 0)
		MUST(setgroups(0, NULL) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	MUST(reads_as(path, -EACCES));
}

/* --- Which users can have written it --------------------------------------------------------- */

/* A good config of that name, which says how long to wait first. */
static void put_conf(const char *path, mode_t mode, uint64_t first_wait)
{
	struct machine_conf sample = conf_here();
	struct conf_lines lines;
	char text[CONF_TEXT];
	size_t size;
	int fd;

	sample.level[0].waits.first = first_wait;
	lines = conf_lines(&sample);
	size = conf_text(&lines, text);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	MUST(fd >= 0 && write(fd, text, size) == (ssize_t)size && fchmod(fd, mode) == 0);
	close(fd);
}

/* In words that say what to do. */
static bool refused_for(const char *path, const char *about)
{
	struct machine_conf conf;
	char why[160] = "";
	int ret = machine_conf_read(&conf, path, why, sizeof(why));

	if (ret != -EPERM || !strstr(why, about))
		dprintf(2, "%s: %d (%s), not about '%s'\n", path, ret, why, about);
	return ret == -EPERM && strstr(why, about) && !strchr(why, '\n');
}

/* A folder of its own for a test, and the path of a config in it. */
static const char *new_place(const char *name, mode_t mode)
{
	static char path[4][256];
	static unsigned next;
	char *place = path[next++ % 4];

	snprintf(place, sizeof(path[0]), "%s/%s", folder, name);
	MUST(mkdir(place, 0700) == 0 && chmod(place, mode) == 0);
	strcat(place, "/machine.conf");
	return place;
}

static void file_modes(const void *arg)
{
	static const mode_t good[] = { 0400, 0600, 0644, 0755, 0444 };
	static const mode_t bad[] = { 0666, 0664, 0646, 0620, 0602, 0777, 02660 };
	const char *path = new_place("modes", 0755);

	(void)arg;
	put_conf(path, 0600, 600);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		MUST(chmod(path, good[i]) == 0 && reads_as(path, 0));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		MUST(chmod(path, bad[i]) == 0);
		MUST(refused_for(path, "it can be written to by others"));
		MUST(refused_for(path, "chmod go-w it"));
	}
}

static void folder_modes(const void *arg)
{
	static const mode_t good[] = { 0500, 0700, 0755, 02755 };
	static const mode_t bad[] = { 0777, 0775, 0757, 01775, 01777 };
	const char *path = new_place("folder-modes", 0700), *its = in_folder("folder-modes");

	(void)arg;
	put_conf(path, 0644, 600);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		MUST(chmod(its, good[i]) == 0 && reads_as(path, 0));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		MUST(chmod(its, bad[i]) == 0);
		MUST(refused_for(path, "its folder can be written to by others"));
		MUST(refused_for(path, bad[i] & 01000 ? "folder of your own" : "chmod go-w it"));
	}
	/* Nor by a name that does not show it. */
	MUST(chdir(its) == 0);
	MUST(refused_for("machine.conf", "its folder"));
	MUST(refused_for("./machine.conf", "its folder"));
	MUST(refused_for("../folder-modes//machine.conf", "its folder"));
}

#define OTHER 12345 /* neither root nor the user that runs the test */

static void become(uid_t uid)
{
	MUST(setgroups(0, NULL) == 0 && seteuid(0) == 0 && seteuid(uid) == 0);
}

static void owners(const void *arg)
{
	const char *path = new_place("owners", 0755), *its = in_folder("owners");

	(void)arg;
	if (geteuid() != 0)
		child_skip("only root can give files away");
	put_conf(path, 0644, 600);
	MUST(reads_as(path, 0));
	MUST(chown(path, OTHER, 0) == 0);
	MUST(refused_for(path, "it belongs to user 12345, not to root: chown it"));
	MUST(chown(path, 0, 0) == 0 && chown(its, OTHER, 0) == 0);
	MUST(refused_for(path, "its folder belongs to user 12345"));
	/* A group that is not root's may read it all the same. */
	MUST(chown(path, 0, OTHER) == 0 && chown(its, 0, OTHER) == 0);
	MUST(reads_as(path, 0));
	/* The effective user counts, whose rights the process has. */
	become(NOBODY);
	MUST(reads_as(path, 0));
	MUST(seteuid(0) == 0 && chown(path, NOBODY, 0) == 0 && chown(its, NOBODY, 0) == 0);
	become(NOBODY);
	MUST(reads_as(path, 0));
	MUST(seteuid(0) == 0 && chown(path, OTHER, 0) == 0);
	become(NOBODY);
	MUST(refused_for(path, "it belongs to user 12345, not to root or user 65534"));
	MUST(seteuid(0) == 0 && chown(path, NOBODY, 0) == 0);
	MUST(refused_for(path, "it belongs to user 65534"));
}

/* A user that can write to any folder on the way can lead the path elsewhere. */
static void links(const void *arg)
{
	const char *target = new_place("target", 0755), *open_target = new_place("open", 0777);
	const char *link = new_place("link", 0755), *open_link = new_place("open-link", 0777);
	char path[300];

	(void)arg;
	put_conf(target, 0644, 600);
	put_conf(open_target, 0644, 600);
	MUST(symlink(target, link) == 0 && symlink(target, open_link) == 0);
	MUST(reads_as(link, 0));
	MUST(refused_for(open_link, "its folder can be written to"));
	/* Also when the link is one of several. */
	snprintf(path, sizeof(path), "%s.2", link);
	MUST(symlink("machine.conf", path) == 0 && reads_as(path, 0));
	MUST(unlink(path) == 0 && symlink("../open-link/machine.conf", path) == 0);
	MUST(refused_for(path, "its folder can be written to"));
	MUST(unlink(path) == 0 && symlink(open_target, path) == 0);
	MUST(refused_for(path, "its folder can be written to"));
	/* A folder that is a link is where it leads. */
	snprintf(path, sizeof(path), "%s/folder", folder);
	MUST(symlink("link/../target", path) == 0);
	strcat(path, "/machine.conf");
	MUST(reads_as(path, 0));
	MUST(chmod(in_folder("target"), 0777) == 0);
	MUST(refused_for(path, "its folder can be written to"));
	MUST(refused_for(link, "its folder can be written to"));
}

/* Without a folder: its mode counts, and a memfd is open to all at first. */
static void open_files(const void *arg)
{
	const char *path = conf_file("", 0);
	int fd = memfd_create("open", 0);
	char other[64];

	(void)arg;
	snprintf(other, sizeof(other), "/proc/self/fd/%d", fd);
	MUST(refused_for(other, "it can be written to by others (mode 0777)"));
	MUST(fchmod(fd, 0600) == 0 && reads_as(other, -EINVAL) && reads_as(path, -EINVAL));
	snprintf(other, sizeof(other), "/dev/fd/%d", fd);
	MUST(reads_as(other, -EINVAL));
}

#define EXCHANGES 3000

static void *exchange(void *arg)
{
	const char *const *pair = arg;

	for (int i = 0; i < EXCHANGES; i++)
		MUST(renameat2(AT_FDCWD, pair[0], AT_FDCWD, pair[1], RENAME_EXCHANGE) == 0);
	return NULL;
}

/* The file that is read is the one that was judged, also if another takes its place meanwhile. */
static void must_not_mix(const char *path, const char *const pair[2])
{
	unsigned good = 0, bad = 0;
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, exchange, (void *)pair) == 0);
	while (pthread_tryjoin_np(thread, NULL) == EBUSY) {
		struct machine_conf conf;
		char why[160];
		int ret = machine_conf_read(&conf, path, why, sizeof(why));

		MUST(ret == -EPERM || (ret == 0 && conf.level[0].waits.first == 600));
		good += ret == 0;
		bad += ret != 0;
	}
	if (!good || !bad)
		child_skip("never read while they took each other's place");
}

static void exchanged(const void *arg)
{
	const char *path = new_place("a", 0755), *evil = new_place("b", 0777);
	char other[300], a[256], b[256];
	const char *files[] = { path, other }, *folders[] = { a, b };

	(void)arg;
	put_conf(path, 0644, 600);
	put_conf(evil, 0644, 1);
	snprintf(other, sizeof(other), "%s.evil", path);
	put_conf(other, 0666, 1);
	must_not_mix(path, files);
	snprintf(a, sizeof(a), "%s/a", folder);
	snprintf(b, sizeof(b), "%s/b", folder);
	must_not_mix(path, folders);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),	   cmocka_unit_test(test_read_bad_text),
		cmocka_unit_test(test_read_large), cmocka_unit_test(test_read_missing),
		child_unit_test(read_no_file),	   child_unit_test(read_forbidden),
		child_unit_test(file_modes),	   child_unit_test(folder_modes),
		child_unit_test(owners),	   child_unit_test(links),
		child_unit_test(open_files),	   child_unit_test(exchanged),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
