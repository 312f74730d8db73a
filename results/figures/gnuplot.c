/* SPDX-License-Identifier: MIT */
#include "results/figures/gnuplot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress/base/data_file.h"
#include "stress/base/process.h"

#define ARGS_BEFORE 7	/* the program, its options, the script, format, output and data */
#define SECONDS	    600 /* for one picture */

int picture_fail(int rc, char *error, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return rc;
}

/* --- Files ------------------------------------------------------------------- */

static int join(char *path, const char *folder, const char *prefix, const char *suffix)
{
	int length = snprintf(path, PICTURE_PATH, "%s%s%s", folder, prefix, suffix);

	return length < PICTURE_PATH ? 0 : -ENAMETOOLONG;
}

/* To gnuplot a name that starts with '<', '|' or '-' is a command or a stream. */
int picture_name(struct picture *p, const char *prefix)
{
	const char *folder = prefix[0] == '/' ? "" : "./";

	if (join(p->data, folder, prefix, ".dat") || join(p->svg, folder, prefix, ".svg") ||
	    join(p->png, folder, prefix, ".png"))
		return -ENAMETOOLONG;
	return 0;
}

static void remove_pictures(const struct picture *p)
{
	unlink(p->svg);
	unlink(p->png);
}

int picture_write_data(const struct picture *p, void (*print)(FILE *stream, const void *arg),
		       const void *arg)
{
	FILE *stream;
	int failed;

	remove_pictures(p);
	stream = fopen(p->data, "we");
	/* -ENOENT would say that only gnuplot is missing. */
	if (!stream)
		return errno == ENOENT ? -ENOTDIR : -errno;
	print(stream, arg);
	failed = ferror(stream);
	if (!fclose(stream) && !failed)
		return 0;
	failed = errno;
	unlink(p->data);
	return failed ? -failed : -EIO;
}

int picture_data(struct picture *p, const char *prefix,
		 void (*print)(FILE *stream, const void *arg), const void *arg, char *error,
		 size_t size)
{
	int rc = picture_name(p, prefix);

	if (rc)
		return picture_fail(rc, error, size, "the name is too long: %s", prefix);
	rc = picture_write_data(p, print, arg);
	if (rc)
		return picture_fail(rc, error, size, "cannot write %s: %s", p->data, strerror(-rc));
	return 0;
}

/* --- gnuplot ----------------------------------------------------------------- */

static bool is_empty(const char *path)
{
	struct stat st;

	return stat(path, &st) || st.st_size == 0;
}

static int draw_one(const char *const drawing[], const char *const args[], char *error, size_t size)
{
	const char *named = getenv("TMAX_GNUPLOT"), *program = named ? named : "gnuplot";
	const char *script = drawing[0], *format = drawing[1];
	const char *output = drawing[2], *data = drawing[3];
	const char *argv[ARGS_BEFORE + PICTURE_ARGS_MAX + 1] = { program, "-d",	  "-c", script,
								 format,  output, data };
	char why[PROCESS_WHY] = "";
	int rc;

	for (size_t i = 0; args[i] && i < PICTURE_ARGS_MAX; i++)
		argv[ARGS_BEFORE + i] = args[i];
	rc = process_run(argv, SECONDS, NULL, why);
	if (rc && rc != -EIO && rc != -ETIMEDOUT)
		return picture_fail(rc, error, size, "cannot run %s: %s", program, strerror(-rc));
	if (rc == 0 && !is_empty(output))
		return 0;
	return picture_fail(-EIO, error, size, "%s failed to draw %s%s%s", program, output,
			    why[0] ? ": " : "", why);
}

int picture_draw(const struct picture *p, const char *script, const char *const args[], char *error,
		 size_t size)
{
	char path[PICTURE_PATH];
	const char *const svg[] = { path, "svg", p->svg, p->data };
	const char *const png[] = { path, "png", p->png, p->data };
	int rc = data_file(script, path, sizeof(path));

	if (rc)
		return picture_fail(rc, error, size, "cannot read %s: %s", path, strerror(-rc));
	rc = draw_one(svg, args, error, size);
	if (!rc)
		rc = draw_one(png, args, error, size);
	if (rc)
		remove_pictures(p);
	return rc;
}
