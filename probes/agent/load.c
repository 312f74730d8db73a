/* SPDX-License-Identifier: MIT */
/*
 * dlopen() and dlclose(), followed by a look at what came and went.
 *
 * The loader looks for a file without a slash in the folders of dlopen()'s caller: that would be
 * the agent. So the folders that the real caller's object has are tried first.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/agent/agent.h"

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* The file in the folders that the object of this code searches: path, or NULL. */
static const char *search(const char *file, const void *caller, char *path, size_t size)
{
	void *(*open)(const char *, int) = real("dlopen");
	struct link_map *map = NULL;
	Dl_serinfo size_of, *info = NULL;
	const char *found = NULL;
	void *handle = NULL;
	Dl_info where;

	if (dladdr1(caller, &where, (void **)&map, RTLD_DL_LINKMAP) && map)
		handle = open(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	if (!dlinfo(handle, RTLD_DI_SERINFOSIZE, &size_of))
		info = malloc(size_of.dls_size);
	if (info && !dlinfo(handle, RTLD_DI_SERINFOSIZE, info) &&
	    !dlinfo(handle, RTLD_DI_SERINFO, info)) {
		for (unsigned i = 0; i < info->dls_cnt && !found; i++) {
			snprintf(path, size, "%s/%s", info->dls_serpath[i].dls_name, file);
			if (!access(path, R_OK))
				found = path;
		}
	}
	free(info);
	((int (*)(void *))real("dlclose"))(handle);
	return found;
}

static void *open_deeper(const char *file, int flags)
{
	void *(*open)(const char *, int) = real("dlopen");
	void *handle;

	agent_loading(true);
	handle = open(file, flags);
	agent_loading(false);
	return handle;
}

void *dlopen(const char *file, int flags)
{
	char path[PATH_MAX];
	const char *found = NULL;
	void *handle;

	if (file && *file && !strchr(file, '/'))
		found = search(file, __builtin_return_address(0), path, sizeof(path));
	handle = found ? open_deeper(found, flags) : NULL;
	if (!handle)
		handle = open_deeper(file, flags);
	if (handle)
		agent_scan();
	return handle;
}

int dlclose(void *handle)
{
	int (*close)(void *) = real("dlclose");
	int ret;

	agent_loading(true);
	ret = close(handle);
	agent_loading(false);
	agent_scan();
	return ret;
}
