#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Objects that go, or are replaced, and that another thread has half loaded, while the library looks for
# probes or turns them on and off: the process lives, and what is counted is what stands there.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
needs_patchable

echo 'int plugin_first(int x); int plugin_first(int x) { return x; }' >"$dir/bare.c"
cat >"$dir/plugin.c" <<'END'
#include <fastinst/branch.h>

int NAME(int x);
int plugin_last(int x);

#ifdef NO_CALL
int NAME(int x)
{
	return fi_branch(plugin, on) ? x + 1 : x;
}
#else
FI_CALL_DECLARE(called, int(int));
const void *plugin_call(void);

static int called_first(int x)
{
	return x;
}

FI_CALL_DEFINE(called, called_first);

int NAME(int x)
{
	return fi_branch(plugin, on) ? x + 1 : fi_call(called, x);
}

const void *plugin_call(void)
{
	return (const void *)fi_call_called;
}
#endif

int plugin_last(int x)
{
	return x + 2;
}
END
# The loader asks it which function to take while the plugin itself is as it is in its file.
cat >"$dir/needed.c" <<'END'
extern void (*relocating)(void);
extern int (*chosen(void))(void);
int choice(void);

static int choice_made(void)
{
	return 0;
}

int (*chosen(void))(void)
{
	relocating();
	return choice_made;
}

int choice(void) __attribute__((ifunc("chosen")));
int (*take)(void) = choice;
END

# build NAME SOURCE FLAG...
build()
{
	local name=$1 source=$2

	shift 2
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -I"$top/probes/include" -o "$dir/$name" "$source" "$@" 2>"$dir/errors" ||
		{ cat "$dir/errors"; exit 1; }
}

entries=-fpatchable-function-entry=5
build libneeded.so "$dir/needed.c" -shared -fPIC
build plain.so "$dir/plugin.c" -shared -fPIC $entries -DNAME=plugin_first
build needing.so "$dir/plugin.c" -shared -fPIC $entries -DNAME=plugin_first -Wl,--no-as-needed -L"$dir" -lneeded \
	"-Wl,-rpath,$dir"
build bare.so "$dir/bare.c" -shared -fPIC $entries
build branching.so "$dir/plugin.c" -shared -fPIC -DNAME=plugin_first -DNO_CALL
build calling.so "$dir/plugin.c" -shared -fPIC -DNAME=plugin_first
build other.so "$dir/plugin.c" -shared -fPIC $entries -DNAME=plugin_other
# A part of the program, which has functions of libc of its own: the shared library does not call these.
mapfile -t needed < <(sed -n "s/^dependency_libs=//p" "$build/libfastinst.la" | tr -d "'" | tr ' ' '\n' | grep '^-l')
build unload "$top/probes/core/tests/unload.c" $entries -rdynamic -pthread "$build/.libs/libfastinst_internal.a" "${needed[@]}" \
	-L "$build/.libs" -lpatchcore -ldl "-Wl,-rpath,$build/.libs"

for what in before beside meanwhile unseen probed branched called replaced disk half again elsewhere; do
	case $what in
	half) library=needing.so ;;
	probed) library=bare.so ;;
	branched) library=branching.so ;;
	called) library=calling.so ;;
	*) library=plain.so ;;
	esac
	cp "$dir/$library" "$dir/plugin.so"
	status=0
	timeout 60 "$dir/unload" $what "$dir" || status=$?
	case $status in
	0) ;;
	77) echo "$what: the loader has put it elsewhere" ;;
	*) wrong "$what: exit status $status" ;;
	esac
done
exit "$failed"
