/* SPDX-License-Identifier: MIT */
/*
 * A shared library to load and unload: a copy of the C mathematics library,
 * which is there wherever these tests are. For cmocka tests, which include
 * cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_TEXT_LIBRARY_H
#define PATCHCORE_TESTS_TEXT_LIBRARY_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patchcore/patchcore.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"

struct text_library {
	char path[64];
	void *handle;
	uint8_t *fn; /* a function that no other code calls */
};

static inline void library_copy(struct text_library *library)
{
	void *original;
	char buffer[4096];
	Dl_info info;
	ssize_t n;
	int from, to;

	strcpy(library->path, "/tmp/test_text.XXXXXX");
	to = mkstemp(library->path);
	original = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	if (to < 0 || !original || !dladdr(dlsym(original, "erf"), &info))
		child_skip("no shared library to copy");
	from = open(info.dli_fname, O_RDONLY);
	MUST(from >= 0);
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		MUST(write(to, buffer, (size_t)n) == n);
	close(from);
	close(to);
}

static inline void library_open(struct text_library *library)
{
	library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
	if (!library->handle)
		child_skip("it cannot be loaded a second time");
	library->fn = dlsym(library->handle, "erf");
	MUST(library->fn);
}

static inline void library_close(struct text_library *library)
{
	MUST(dlclose(library->handle) == 0);
	/* A sanitizer may keep it. */
	if (code_prot(library->fn) >= 0)
		child_skip("dlclose() does not unload");
}

#endif
