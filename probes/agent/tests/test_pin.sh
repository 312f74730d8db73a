#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An object that the program unloads while an agent that was attached reads it stays until it has been read; then it
# goes. fi_scan(), which holds nothing,
# shows that the program dies of it.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
needs_patchable
echo 'int plugged(int); int plugged(int n) { return n + 1; }' >"$dir/plugin.c"
cat >"$dir/held.c" <<'END_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/agent/pin.h"
#include "probes/include/fastinst.h"

static const char *path;
static void *plugin;

/* By this the library begins to read an object, and in that moment the program unloads it. */
int open(const char *file, int flags, ...)
{
	if (plugin && !strcmp(file, path)) {
		struct link_map *map = plugin;
		char *there = (char *)map->l_addr;

		dlclose(plugin);
		plugin = NULL;
		/* Where it was, nothing else comes. */
		for (int i = 0; i < 16; i++)
			mmap(there + i * 4096, 4096, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, file, flags, 0);
}

static int is_loaded(void)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);

	return handle && !dlclose(handle);
}

int main(int argc, char **argv)
{
	int (*look)(void) = argc > 2 && !strcmp(argv[2], "held") ? pin_scan : fi_scan;
	uint32_t before;
	void *function;

	path = argv[1];
	if (fi_init() < 0)
		return 3;
	before = fi_probes();
	plugin = dlopen(path, RTLD_NOW);
	function = plugin ? dlsym(plugin, "plugged") : NULL;
	if (!function)
		return 4;
	printf("new %d, ", look());
	printf("%s, ", plugin ? "not read" : is_loaded() ? "held" : "gone");
	pin_use(function);
	pins_drop();
	printf("%s, ", is_loaded() ? "kept" : "dropped");
	pins_drop();
	printf("%s, ", is_loaded() ? "kept" : "dropped");
	printf("%d, %d\n", pin_object(function), fi_probes() > before && fi_scan() == 0);
	return 0;
}
END_C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -shared -fPIC -o "$dir/plugin.so" "$dir/plugin.c"
# shellcheck disable=SC2086
$CC -O1 -rdynamic -I"$top" -I"$top/patchcore/include" -o "$dir/held" "$dir/held.c" "$top/probes/agent/pin.c" \
	-L"$build/.libs" -Wl,-rpath,"$build/.libs" -lfastinst -lpatchcore -ldl

status=0
(ulimit -c 0 && exec "$dir/held" "$dir/plugin.so" held) >"$dir/out" 2>&1 || status=$?
# 2: ENOENT, where the plugin was.
[ "$status $(cat "$dir/out")" = "0 new 1, held, kept, dropped, -2, 1" ] ||
	wrong "held: exit status $status, $(cat "$dir/out")"
status=0
(ulimit -c 0 && "$dir/held" "$dir/plugin.so") >"$dir/out" 2>/dev/null || status=$?
[ $status = 139 ] || wrong "what is not held and goes is read all the same: exit status $status, $(cat "$dir/out")"
exit $failed
