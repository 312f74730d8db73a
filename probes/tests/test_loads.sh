#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads load libraries of their own at the same time: of several patterns each is on in each of them, before
# dlopen() returns. A constructor that loads another library, with the loader's lock, ends, also while
# another thread asks the loader about what it has found.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# build NAME FLAG...
build()
{
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 "$top/probes/tests/loads.c" -o "$dir/$1" "${@:2}" -pthread -ldl
}

build loads
for i in 1 2 3 4; do
	build $i.so -DLIBRARY -shared -fPIC -fpatchable-function-entry=5
done
build nested.so -DLIBRARY -DOPENS="\"$dir/4.so\"" -shared -fPIC -fpatchable-function-entry=5

timeout 120 "$fastinst" run --on first_run --on last_run --output "$dir/counts" -- \
	"$dir/loads" 100 "$dir"/{1,2,3,4}.so >"$dir/says" || wrong "exit status $?"
for name in first_run last_run; do
	n=$(awk -v name=$name '$4 == name { n += $1 } END { print n + 0 }' "$dir/counts")
	[ "$n" = "$(cat "$dir/says")" ] || wrong "$n calls of $name, not $(cat "$dir/says")"
done

# What the agent says would be that it could not ask the command; signals of patches come in between.
for _ in 1 2 3 4 5; do
	timeout 120 "$fastinst" trace --on '*_run' --output "$dir/trace" -- \
		"$dir/loads" 10 "$dir/nested.so" "$dir"/{1,2,3}.so >"$dir/says" 2>"$dir/errors" ||
		wrong "a constructor: exit status $?"
	[ ! -s "$dir/errors" ] || wrong "a constructor: $(cat "$dir/errors")"
	n=$(wc -l <"$dir/trace")
	[ "$n" = $((2 * $(cat "$dir/says"))) ] || wrong "$n events of $(cat "$dir/says") libraries"
done
exit $failed
