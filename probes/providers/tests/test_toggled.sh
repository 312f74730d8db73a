#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Basic blocks and compares are turned on and off at random, from outside, while threads of the program compute: it
# computes the same.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so

option=-fsanitize-coverage=trace-pc
# shellcheck disable=SC2086 # CC may carry options
! $CC $option,trace-cmp -O2 -c -o "$dir/program.o" "$top/probes/providers/tests/blocked.c" 2>/dev/null || option+=,trace-cmp
# It is linked without the option, for which clang would add a library.
# shellcheck disable=SC2086
$CC $option -O2 -c -o "$dir/program.o" "$top/probes/providers/tests/blocked.c" 2>"$dir/errors" || skip "$(head -1 "$dir/errors")"
# shellcheck disable=SC2086
$CC -o "$dir/program" "$dir/program.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs" -pthread

# It may be over before its turn: then a longer one.
for rounds in 400000 4000000 40000000; do
	"$dir/program" $rounds threads >"$dir/is"
	timeout 120 "$fastinst" run --off --output "$dir/counts" -- "$dir/program" $rounds threads >"$dir/says" 2>"$dir/errors" &
	runner=$!
	while kill -0 "$runner" 2>/dev/null; do
		for pattern in '*' 'collatz*' 'note*' '*+0x?[0-7]'; do
			"$fastinst" on "$pattern" >/dev/null 2>&1 || true
			"$fastinst" off "[$((RANDOM % 2))a-n]*" >/dev/null 2>&1 || true
		done
		"$fastinst" off '*' >/dev/null 2>&1 || true
	done
	wait "$runner" || wrong "toggled, it failed: $(cat "$dir/errors")"
	diff "$dir/is" "$dir/says" || wrong "toggled, it computes something else"
	if grep -q ' block ' "$dir/counts"; then
		break
	fi
done
grep -q ' block ' "$dir/counts" || wrong "nothing was ever on"

exit $failed
