/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD for a program: which libraries its loader takes, and the list with the agent in it.
 * Allocates nothing, so that a child of vfork() may use it.
 */
#ifndef PROBES_ELF_PRELOAD_H
#define PROBES_ELF_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

#define PRELOAD_NAME 64

struct preload {
	bool is_foreign; /* its loader takes no library that was made for glibc of this machine */
	bool is_musl;
	char runtime[PRELOAD_NAME]; /* a sanitizer's, which has to come first; "" */
};

/* preload_look - by a file, or the interpreter that it names: what is not known takes the agent. */
void preload_look(struct preload *preload, int folder, const char *path);

/* preload_find - which file execvp(3) takes; false, and its name: none can be executed. */
bool preload_find(const char *file, char *path, size_t size);

/*
 * preload_write - the list with the agent in it, or without, by what is known of the program. What
 * it had before (NULL: nothing) stays; where the agent is in that, its place is the same. "": there
 * is nothing to preload. @size: of preload_size().
 */
void preload_write(char *to, size_t size, const char *before, const char *agent,
		   const struct preload *preload);
size_t preload_size(const char *before, const char *agent);

#endif
