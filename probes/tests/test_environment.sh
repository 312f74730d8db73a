#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program may do with its environment what it likes, before it loads a library and ends: overwrite the strings, as
# setproctitle() does, or clear it. Its report comes all the same, and has what the library did.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
cat >"$dir/late.c" <<'END'
int late(int i);
__attribute__((noinline)) int late(int i) { return i + 1; }
END
cat >"$dir/prog.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int early(int i);
__attribute__((noinline)) int early(int i) { return i + 1; }

int main(int argc, char **argv)
{
	int (*late)(int);
	void *library;

	if (!strcmp(argv[1], "overwritten"))
		for (char **string = environ; *string; string++)
			memset(*string, 'x', strlen(*string));
	if (!strcmp(argv[1], "cleared"))
		clearenv();
	if (!strcmp(argv[1], "gone"))
		environ = NULL;
	library = dlopen(argv[argc - 1], RTLD_NOW);
	late = (int (*)(int))dlsym(library, "late");
	for (clock_t end = clock() + (clock_t)(atof(argv[2]) * CLOCKS_PER_SEC); clock() < end;)
		late(early(1));
	for (int i = 0; i < 100; i++)
		late(early(i));
	return 0;
}
END
# build FLAG LIBRARY...
build()
{
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O2 "$1" -shared -fPIC -o "$dir/late.so" "$dir/late.c"
	$CC -O2 "$1" -o "$dir/prog" "$dir/prog.c" "${@:2}"
}

# reports SECONDS PATTERN COMMAND... - of a program that takes so long, it prints what has the names of both functions for NAME
reports()
{
	local name seconds=$1 pattern=$2

	shift 2
	for how in untouched overwritten cleared gone; do
		timeout 60 "$@" -- "$dir/prog" $how "$seconds" "$dir/late.so" >"$dir/out" 2>"$dir/errors" || wrong "$* ($how): exit status $?: $(cat "$dir/errors")"
		for name in early late; do
			grep -qE "${pattern//NAME/$name}" "$dir/out" "$dir/errors" || wrong "$*, $how: nothing of $name() in $(cat "$dir/out" "$dir/errors")"
		done
	done
}

build -fpatchable-function-entry=5
reports 0 ' 100 .*NAME\b' "$fastinst" run
reports 0 ' 100 .*NAME\b' "$fastinst" run --on early --on late
reports 0 '> NAME\(' "$fastinst" trace --on '*'
# Epochs find what was loaded.
reports 0.6 '^ *[0-9].* NAME$' "$fastinst" profile
reports 0.6 '^ *[0-9].* NAME$' "$fastinst" profile --on early --on late
build -fsanitize-coverage=trace-pc "-L$build/.libs" "-Wl,-rpath,$build/.libs" -lfastinst -lpatchcore
reports 0.3 'NAME\+0x' "$fastinst" profile --edges --format json --period 20
exit $failed
