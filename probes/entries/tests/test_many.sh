#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Many functions of many objects are turned on and off by system calls of each object, not of each function.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
readonly objects=8 functions=200

# The code of an object lies in two segments, with nothing between them.
library()
{
	local i

	for ((i = 0; i < functions; i++)); do
		echo "int many$1_$i(int a) { static volatile int v; v += a; v -= $i; return v; }"
	done
	echo '__attribute__((section(".far"))) int many_far(int a, int *b) { *b += a; return *b - a; }'
}

for ((n = 0; n < objects; n++)); do
	library "$n" >"$dir/many.c"
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -shared -fPIC -Wl,--section-start=.far=0x800000 -o "$dir/libmany$n.so" "$dir/many.c"
done

# check WHAT - the numbers that the program printed
check()
{
	local sites on off most=$((objects * 100 + 200))

	sites=$(sed -n 's/^sites //p' "$dir/numbers")
	on=$(sed -n 's/^on //p' "$dir/numbers")
	off=$(sed -n 's/^off //p' "$dir/numbers")
	echo "$1: $sites sites, $on system calls on, $off off"
	[ "$sites" -ge $((objects * functions)) ] || wrong "$1: $sites sites"
	((on > 0 && on <= most)) || wrong "$1: $on system calls turned $sites sites on"
	((off > 0 && off <= most)) || wrong "$1: $off system calls turned $sites sites off"
}

LD_LIBRARY_PATH=$build/.libs "$build/probes/entries/tests/many" "$dir"/libmany*.so >"$dir/numbers" || wrong "one thread"
check "one thread"
MANY_THREADS=1 LD_LIBRARY_PATH=$build/.libs "$build/probes/entries/tests/many" "$dir"/libmany*.so >"$dir/numbers" || wrong "two threads"
check "two threads"
exit $failed
