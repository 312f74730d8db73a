/* SPDX-License-Identifier: MIT */
#include "results/figures/gnuplot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text_file.h"

#define ARGS_BEFORE 7	/* the program, its options, the script, format, output and data */
#define SECONDS	    600 /* for one picture */

enum {
	DATA,
	SVG,
	PNG,
	FILES
};

static const char *const endings[FILES] = { "dat", "svg", "png" };

int picture_fail(int rc, char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return rc;
}

int picture_make(const struct picture *p, const char *prefix, char *error, size_t size)
{
	const char *named = getenv("TMAX_GNUPLOT"), *program = named ? named : "gnuplot";
	char path[FILES][PICTURE_PATH], script[PICTURE_PATH];
	FILE *stream;
	int rc, failed;

	/* To gnuplot a name that starts with '<', '|' or '-' is a command or a stream. */
	for (int i = 0; i < FILES; i++)
		if (snprintf(path[i], PICTURE_PATH, "%s%s.%s", prefix[0] == '/' ? "" : "./", prefix,
			     endings[i]) >= PICTURE_PATH)
			return picture_fail(-ENAMETOOLONG, error, size, "the name is too long: %s",
					    prefix);
	unlink(path[SVG]);
	unlink(path[PNG]);
	stream = fopen(path[DATA], "we");
	/* -ENOENT would say that only gnuplot is missing. */
	rc = stream ? 0 : errno == ENOENT ? -ENOTDIR : -errno;
	if (stream) {
		p->print(stream, p->arg);
		failed = ferror(stream);
		if (fclose(stream) || failed) {
			rc = errno ? -errno : -EIO;
			unlink(path[DATA]);
		}
	}
	if (rc)
		return picture_fail(rc, error, size, "cannot write %s: %s", path[DATA],
				    strerror(-rc));
	if (!p->script)
		return 0;
	rc = data_file(p->script, script, sizeof(script));
	if (rc)
		return picture_fail(rc, error, size, "cannot read %s: %s", script, strerror(-rc));
	for (int file = SVG; file < FILES && !rc; file++) {
		const char *argv[ARGS_BEFORE + PICTURE_ARGS_MAX + 1] = {
			program, "-d", "-c", script, endings[file], path[file], path[DATA]
		};
		char why[PROCESS_WHY] = "";
		struct stat st;

		for (size_t i = 0; p->args[i] && i < PICTURE_ARGS_MAX; i++)
			argv[ARGS_BEFORE + i] = p->args[i];
		rc = process_run(argv, SECONDS, NULL, why);
		if (rc && rc != -EIO && rc != -ETIMEDOUT)
			picture_fail(rc, error, size, "cannot run %s: %s", program, strerror(-rc));
		else if (rc || stat(path[file], &st) || !st.st_size)
			rc = picture_fail(-EIO, error, size, "%s failed to draw %s%s%s", program,
					  path[file], why[0] ? ": " : "", why);
	}
	if (rc) {
		unlink(path[SVG]);
		unlink(path[PNG]);
	}
	return rc;
}
