/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/formats.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stress/base/command_line.h"

static int write_one(const char *path, const char *format,
		     int (*write)(const char *, FILE *, const void *), const void *data)
{
	FILE *out = path ? fopen(path, "we") : stderr;
	int ret;

	if (!out)
		ret = -errno;
	else
		ret = write(format, out, data);
	if (out && out != stderr && fclose(out) && !ret)
		ret = -errno;
	if (ret < 0)
		complain(0, ret, "cannot write %s", path ? path : "to standard error");
	return ret;
}

int write_formats(const char *formats, const char *output,
		  int (*write)(const char *, FILE *, const void *), const void *data)
{
	bool several = strchr(formats, ',');
	char *copy = strdup(formats), *rest = copy, *path = NULL;
	const char *name;
	int ret = copy ? 0 : -ENOMEM;

	while (!ret && (name = strsep(&rest, ","))) {
		if (several && asprintf(&path, "%s.%s", output, name) < 0)
			ret = -ENOMEM;
		else
			ret = write_one(several ? path : output, name, write, data);
		if (several)
			free(path);
	}
	free(copy);
	return ret;
}
