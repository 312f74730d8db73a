/* SPDX-License-Identifier: MIT */
/* Whether a program takes the agent by LD_PRELOAD, and the list that it gets. */
#include "probes/elf/preload.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/elf/elf.h"

#define INTERPRETERS 4 /* as many does the kernel go through */

/* An empty entry, which the loader skips: what stands behind it, up to the agent, is not the
 * user's. */
#define OURS "::"

/* --- The program ------------------------------------------------------------------------------ */

/* The runtimes of sanitizers have to come first; their names stand among those of symbols. */
static void note_runtime(struct preload *preload, const struct elf *elf)
{
	static const char *const runtimes[] = { "libasan.so", "libtsan.so", "libhwasan.so",
						"liblsan.so", "libclang_rt." };
	struct elf_section names;

	if (!elf_find_section(elf, ".dynstr", &names))
		return;
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		const uint8_t *at =
			memmem(names.bytes, names.len, runtimes[i], strlen(runtimes[i]));

		if (at)
			snprintf(preload->runtime, sizeof(preload->runtime), "%.*s",
				 (int)(names.bytes + names.len - at), (const char *)at);
	}
}

static void note_elf(struct preload *preload, const struct elf *elf)
{
	static const char musl[] = "/ld-musl-";
	struct elf_section loader;

	preload->is_musl = elf_find_section(elf, ".interp", &loader) &&
			   memmem(loader.bytes, loader.len, musl, strlen(musl));
	preload->is_foreign = preload->is_musl;
	note_runtime(preload, elf);
}

/* The text becomes the interpreter of a script (#! PATH ARGUMENT), else "". */
static void note_program(struct preload *preload, int fd, char text[256])
{
	ssize_t len = pread(fd, text, 255, 0);
	struct elf elf;

	text[len < 0 ? 0 : len] = '\0';
	if (!strncmp(text, "#!", 2)) {
		size_t start = 2 + strspn(text + 2, " \t"), n = strcspn(text + start, " \t\n");

		memmove(text, text + start, n);
		text[n] = '\0';
		return;
	}
	if (!strncmp(text, ELFMAG, SELFMAG)) {
		int ret = elf_map_fd(&elf, fd, ELF_PLAIN);

		preload->is_foreign = ret == -ENOEXEC;
		if (!ret) {
			note_elf(preload, &elf);
			elf_unmap(&elf);
		}
	}
	*text = '\0';
}

void preload_look(struct preload *preload, int folder, const char *path)
{
	char text[256];

	*preload = (struct preload){ 0 };
	for (int i = 0; i <= INTERPRETERS && *path; i++) {
		int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return;
		note_program(preload, fd, text);
		close(fd);
		path = text;
		folder = AT_FDCWD;
	}
}

bool preload_find(const char *file, char *path, size_t size)
{
	const char *folders = getenv("PATH");
	int saved = errno;
	bool found = strchr(file, '/') && !access(file, X_OK);

	for (folders = folders ? folders : "/bin:/usr/bin";
	     *folders && !found && !strchr(file, '/'); folders += *folders == ':') {
		int len = (int)strcspn(folders, ":");

		snprintf(path, size, "%.*s/%s", len, folders, file);
		found = !access(path, X_OK);
		folders += len;
	}
	if (!found || strchr(file, '/'))
		snprintf(path, size, "%s", file);
	errno = saved;
	return found;
}

/* --- The list --------------------------------------------------------------------------------- */

size_t preload_size(const char *before, const char *agent)
{
	return strlen(before ? before : "") + strlen(OURS) + PRELOAD_NAME + 1 + strlen(agent) + 1;
}

/* How much of the list is the user's: all that stands before what is ours. */
static size_t count_head(const char *before, const char *ours)
{
	size_t end = (size_t)(ours - before);

	for (size_t at = end; at-- > 0;)
		if (!strncmp(before + at, OURS, strlen(OURS)))
			return at;
	return end;
}

void preload_write(char *to, size_t size, const char *before, const char *agent,
		   const struct preload *preload)
{
	const char *list = before ? before : "", *ours = strstr(list, agent);
	int head = (int)(ours ? count_head(list, ours) : strlen(list));
	const char *tail = ours ? ours + strlen(agent) : "";

	if (preload->is_foreign)
		snprintf(to, size, "%.*s%s", head, list, tail);
	else
		snprintf(to, size, "%.*s" OURS "%s%s%s%s", head, list, preload->runtime,
			 *preload->runtime ? ":" : "", agent, tail);
}
