/* SPDX-License-Identifier: MIT */
/* For tests of machine.conf as a file: a folder of the test's own. */
#ifndef PATCHCORE_MACHINE_TESTS_CONF_FOLDER_H
#define PATCHCORE_MACHINE_TESTS_CONF_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NOBODY 65534

static char folder[] = "/tmp/test_conf.XXXXXX";

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? chmod(folder, 0755) : -1;
}

static inline int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static inline const char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

#endif
