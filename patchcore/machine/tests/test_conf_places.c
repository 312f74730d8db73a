/* SPDX-License-Identifier: MIT */
/* Where a machine.conf is looked for, in which order, and by whom. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "patchcore/machine/machine_conf.h"
#include "patchcore/machine/tests/conf_folder.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/conf_sample.h"

#define FILE_NAME "/tmax/machine.conf"
#define SYSTEM	  SYSCONFDIR FILE_NAME
#define STATE	  LOCALSTATEDIR "/lib" FILE_NAME

/* --- Finding ---------------------------------------------------------------------- */

/*
 * In a root folder of the child's own, so that it finds what the test puts
 * there, under the real paths, and nothing of this machine.
 */
static void enter_empty_root(void)
{
	char root[256];

	snprintf(root, sizeof(root), "%s", in_folder("root.XXXXXX"));
	MUST(mkdtemp(root));
	if (geteuid() != 0 && unshare(CLONE_NEWUSER) < 0)
		child_skip("neither root nor user namespaces");
	if (chroot(root) < 0)
		child_skip("chroot is not allowed");
	MUST(chdir("/") == 0);
	unsetenv("PATCHCORE_MACHINE_CONF");
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
}

static void put_file(const char *path)
{
	char part[4096];
	int fd;

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		MUST(mkdir(part, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	MUST(fd >= 0);
	close(fd);
}

static void must_find(const char *expected)
{
	char path[256] = "unset";

	MUST(machine_conf_find(path, sizeof(path)) == 0);
	if (strcmp(path, expected) != 0)
		dprintf(2, "%s, not %s\n", path, expected);
	MUST(strcmp(path, expected) == 0);
}

static void must_find_none(void)
{
	char path[256];

	MUST(machine_conf_find(path, sizeof(path)) == -ENOENT);
}

static void find_in_order(const void *arg)
{
	(void)arg;
	enter_empty_root();
	setenv("HOME", "/home/me", 1);
	must_find_none();
	put_file(STATE);
	must_find(STATE);
	put_file(SYSTEM);
	must_find(SYSTEM);
	put_file("/home/me/.config" FILE_NAME);
	must_find("/home/me/.config" FILE_NAME);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	must_find(SYSTEM);
	put_file("/xdg" FILE_NAME);
	must_find("/xdg" FILE_NAME);
	setenv("PATCHCORE_MACHINE_CONF", "named", 1);
	must_find("named");
	setenv("PATCHCORE_MACHINE_CONF", "", 1);
	must_find("/xdg" FILE_NAME);
}

/* What is no absolute path is no folder of the user's. */
static void find_odd_homes(const void *arg)
{
	(void)arg;
	enter_empty_root();
	put_file(SYSTEM);
	put_file("/home/me/.config" FILE_NAME);
	put_file("/home/me" FILE_NAME);
	MUST(chdir("/home") == 0);
	setenv("HOME", "me", 1);
	setenv("XDG_CONFIG_HOME", "me", 1);
	must_find(SYSTEM);
	setenv("HOME", "", 1);
	setenv("XDG_CONFIG_HOME", "", 1);
	must_find(SYSTEM);
	setenv("HOME", "/home/me", 1);
	must_find("/home/me/.config" FILE_NAME);
	unsetenv("HOME");
	must_find(SYSTEM);
	/* The home of many a service. */
	put_file("/dev/null");
	setenv("HOME", "/dev/null", 1);
	must_find(SYSTEM);
}

/* The first that exists decides, also when it cannot be used. */
static void find_unreadable(const void *arg)
{
	(void)arg;
	enter_empty_root();
	put_file(SYSTEM);
	put_file("/home/me/.config" FILE_NAME);
	setenv("HOME", "/home/me", 1);
	MUST(chmod("/home/me/.config" FILE_NAME, 0) == 0);
	must_find("/home/me/.config" FILE_NAME);
	MUST(unlink("/home/me/.config" FILE_NAME) == 0);
	MUST(mkdir("/home/me/.config" FILE_NAME, 0755) == 0);
	must_find("/home/me/.config" FILE_NAME);
}

static void find_too_long(const void *arg)
{
	char path[8], longer[256], home[300];

	(void)arg;
	enter_empty_root();
	put_file(SYSTEM);
	MUST(machine_conf_find(path, sizeof(path)) == -ENAMETOOLONG);
	setenv("PATCHCORE_MACHINE_CONF", "/12345678", 1);
	MUST(machine_conf_find(path, sizeof(path)) == -ENAMETOOLONG);
	setenv("PATCHCORE_MACHINE_CONF", "/123456", 1);
	MUST(machine_conf_find(path, sizeof(path)) == 0 && strcmp(path, "/123456") == 0);
	unsetenv("PATCHCORE_MACHINE_CONF");
	/* It may exist, so what comes after it must not decide in its stead. */
	memset(home, 'h', sizeof(home));
	home[0] = '/';
	home[sizeof(home) - 1] = '\0';
	setenv("HOME", home, 1);
	MUST(machine_conf_find(longer, sizeof(longer)) == -ENAMETOOLONG);
}

static void default_path(const void *arg)
{
	char path[256], tiny[4];

	(void)arg;
	unsetenv("XDG_CONFIG_HOME");
	setenv("HOME", "/home/me", 1);
	if (geteuid() == 0) {
		MUST(machine_conf_default_path(path, sizeof(path)) == 0);
		MUST(strcmp(path, STATE) == 0);
		MUST(machine_conf_default_path(tiny, sizeof(tiny)) == -ENAMETOOLONG);
		MUST(seteuid(NOBODY) == 0);
	}
	MUST(machine_conf_default_path(path, sizeof(path)) == 0);
	MUST(strcmp(path, "/home/me/.config" FILE_NAME) == 0);
	MUST(machine_conf_default_path(tiny, sizeof(tiny)) == -ENAMETOOLONG);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	MUST(machine_conf_default_path(path, sizeof(path)) == 0);
	MUST(strcmp(path, "/xdg" FILE_NAME) == 0);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	MUST(machine_conf_default_path(path, sizeof(path)) == -ENOENT);
}

/* --- With the rights of another user ----------------------------------------------- */

/* LeakSanitizer needs ptrace, which a set-user-ID program has not. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return getauxval(AT_SECURE) ? "detect_leaks=0" : "";
}

/* What this program does when it is started again with these rights. */
static int find_with_rights(void)
{
	char path[256];

	if (!getauxval(AT_SECURE)) {
		dprintf(2, "skipped: set-user-ID has no effect there\n");
		return CHILD_SKIPPED;
	}
	return machine_conf_find(path, sizeof(path)) == 0 && strstr(path, "from-the-caller");
}

static void copy_program(const char *to)
{
	static char buffer[1 << 16];
	int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0700);
	ssize_t n;

	MUST(in >= 0 && out >= 0);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		MUST(write(out, buffer, (size_t)n) == n);
	MUST(fchown(out, NOBODY, NOBODY) == 0 && fchmod(out, 04755) == 0);
	close(in);
	close(out);
}

static void start_with_rights(const void *arg)
{
	char path[256], secret[256];

	(void)arg;
	if (geteuid() != 0)
		child_skip("only root can give a program away");
	snprintf(path, sizeof(path), "%s", in_folder("program"));
	copy_program(path);
	put_file(in_folder("from-the-caller" FILE_NAME));
	put_file(in_folder("from-the-caller/.config" FILE_NAME));
	snprintf(secret, sizeof(secret), "%s", in_folder("from-the-caller"));
	setenv("PATCHCORE_MACHINE_CONF", secret, 1);
	setenv("XDG_CONFIG_HOME", secret, 1);
	setenv("HOME", secret, 1);
	execl(path, path, "--find", NULL);
	MUST(!"execl");
}

static void test_rights_ignore_environment(void **state)
{
	(void)state;
	child_must_pass(start_with_rights, NULL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		child_unit_test(find_in_order),	  child_unit_test(find_odd_homes),
		child_unit_test(find_unreadable), child_unit_test(find_too_long),
		child_unit_test(default_path),	  cmocka_unit_test(test_rights_ignore_environment),
	};

	if (argc == 2 && strcmp(argv[1], "--find") == 0)
		_exit(find_with_rights());
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
