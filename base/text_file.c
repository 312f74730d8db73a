/* SPDX-License-Identifier: MIT */
/* Text from packed files, whole files, and where the files of the package are. */
#include "base/text_file.h"

#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_MAX (UINT64_C(128) << 20) /* bytes that the decoder may take */

struct packed {
	FILE *file;
	lzma_stream stream;
	uint8_t buffer[1 << 16];
};

static ssize_t read_packed(void *cookie, char *to, size_t size)
{
	struct packed *packed = cookie;
	lzma_stream *stream = &packed->stream;
	lzma_ret ret = LZMA_OK;

	stream->next_out = (uint8_t *)to;
	stream->avail_out = size;
	while (ret == LZMA_OK && stream->avail_out == size) {
		if (!stream->avail_in) {
			stream->next_in = packed->buffer;
			stream->avail_in =
				fread(packed->buffer, 1, sizeof(packed->buffer), packed->file);
		}
		ret = lzma_code(stream, feof(packed->file) ? LZMA_FINISH : LZMA_RUN);
	}
	if (ret == LZMA_OK || ret == LZMA_STREAM_END)
		return (ssize_t)(size - stream->avail_out);
	errno = EIO;
	return -1;
}

static int close_packed(void *cookie)
{
	struct packed *packed = cookie;

	lzma_end(&packed->stream);
	fclose(packed->file);
	free(packed);
	return 0;
}

static FILE *unpack(FILE *file)
{
	static const cookie_io_functions_t functions = { .read = read_packed,
							 .close = close_packed };
	struct packed *packed = calloc(1, sizeof(*packed));
	FILE *text = NULL;

	if (packed) {
		packed->file = file;
		if (lzma_stream_decoder(&packed->stream, MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK)
			text = fopencookie(packed, "r", functions);
		if (!text)
			lzma_end(&packed->stream);
	}
	if (!text) {
		fclose(file);
		free(packed);
		errno = ENOMEM;
	}
	return text;
}

FILE *text_file_open(const char *path)
{
	size_t length = strlen(path);
	bool is_packed = length > 3 && strcmp(path + length - 3, ".xz") == 0;
	FILE *file = fopen(path, "re");

	return file && is_packed ? unpack(file) : file;
}

int text_file_end(FILE *out, const char *fresh, const char *path, int ret)
{
	if ((ferror(out) | fclose(out)) && ret >= 0)
		ret = -EIO;
	if (ret >= 0 && rename(fresh, path) < 0)
		ret = -errno;
	if (ret < 0)
		unlink(fresh);
	return ret;
}

char *text_file_read(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t room = 0;

	if (!file)
		return NULL;
	/* A text has no NUL, so all of it is one "line". */
	if (getdelim(&text, &room, '\0', file) < 0) {
		free(text);
		text = NULL;
		errno = ferror(file) ? EIO : EINVAL;
	}
	fclose(file);
	return text;
}

/* --- Files of the package --------------------------------------------------------------------- */

static int find_data_in(const char *folder, const char *name, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", folder, name);

	if (length < 0 || (size_t)length >= size)
		return -ENAMETOOLONG;
	return access(path, R_OK) ? -errno : 0;
}

int data_file(const char *name, char *path, size_t size)
{
	const char *folder = getenv("TMAX_DATADIR");
	char beside[PATH_MAX + sizeof("/data")], *slash;
	ssize_t length;

	if (folder)
		return find_data_in(folder, name, path, size);
	length = readlink("/proc/self/exe", beside, PATH_MAX);
	beside[length > 0 && length < PATH_MAX ? length : 0] = '\0';
	slash = strrchr(beside, '/');
	if (slash)
		strcpy(slash, "/data");
	if (slash && find_data_in(beside, name, path, size) == 0)
		return 0;
	return find_data_in(PKGDATADIR, name, path, size);
}
