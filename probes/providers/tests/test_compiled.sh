#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# -finstrument-functions by each compiler here, optimised and not, in programs that can be moved and that
# cannot, and in a library: what is counted is what the program counts itself. The same by fastinst.
# Hooks of the program's own keep their calls.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
source=$top/probes
tried=0

# try LINK COMPILER FLAG... - LINK: object, library
try()
{
	local link=$1 status=0

	shift
	local compile=("$@" -finstrument-functions -Wall -Wextra -Werror -I "$source/include")
	local libs=(-L "$build/.libs" -lfastinst "-Wl,-rpath,$build/.libs" -pthread)

	tried=$((tried + 1))
	if [ "$link" = library ]; then
		"${compile[@]}" -fPIC -shared "$source/providers/tests/hooked.c" -o "$dir/libsample.so"
		"${compile[@]}" "$source/providers/tests/test_hooks.c" -o "$dir/test" -L "$dir" -lsample "-Wl,-rpath,$dir" "${libs[@]}"
	else
		"${compile[@]}" "$source/providers/tests/hooked.c" "$source/providers/tests/test_hooks.c" -o "$dir/test" "${libs[@]}"
	fi
	timeout 60 "$dir/test" >"$dir/out" 2>&1 || status=$?
	if [ $status = 77 ]; then
		cat "$dir/out"
		exit 77
	fi
	[ $status = 0 ] || wrong "$link $*: exit status $status, $(cat "$dir/out")"
	# Of an optimised function that returns nothing the last call becomes a jump.
	if [[ $* == *-O2* ]] && grep -q ' 0 of them' "$dir/out"; then
		wrong "$link $*: no jumps"
	fi
	echo "$link $*: $(tail -n 1 "$dir/out")"
}

for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for level in -O0 -O2; do
		try object $cc $level -fPIE -pie
		try object $cc $level -fno-pie -no-pie
		try library $cc $level
	done
	try object $cc -O2 -fcf-protection=full -Wl,-z,now
	# The same functions have NOPs, too: each call counts once.
	try object $cc -O2 -fPIE -pie -fpatchable-function-entry=5
	try library $cc -O0 -fpatchable-function-entry=5
	# Calls of six bytes, through the slot.
	try object $cc -O0 -fPIE -pie -fno-plt
	try object $cc -O2 -fno-pie -no-pie -fno-plt
	try library $cc -O2 -fno-plt -fcf-protection=full -Wl,-z,now
done
echo "$tried programs"

# --- by fastinst, in a program that knows nothing of it ---

cc=${CC:-cc}
# shellcheck disable=SC2086 # CC may carry options
$cc -O2 -finstrument-functions -o "$dir/program" "$top/commands/fastinst/tests/counted.c" -pthread -ldl
# shellcheck disable=SC2086
$cc -O2 -finstrument-functions -DLIAR -o "$dir/liar" "$top/commands/fastinst/tests/counted.c" -pthread -ldl

# differs PROGRAM - whether what it says is not what is counted, of entries and exits
differs()
{
	local kind different=1

	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/$1" threads | sort >"$dir/says"
	for kind in entry exit; do
		awk -v kind=$kind '$3 == kind && $4 ~ /^(leaf|even|fib)$/ { n[$4] += $1 }
			END { for (name in n) print name, n[name] }' "$dir/counts" | sort >"$dir/is"
		diff "$dir/says" "$dir/is" >"$dir/diff" || different=0
	done
	return $different
}

if differs program; then
	wrong "the program says <, fastinst >: $(cat "$dir/diff")"
fi
differs liar || wrong "a wrong count was not seen"

# --- hooks of its own ---

cat >"$dir/hooks.c" <<'C'
#include <stdio.h>
#define PLAIN __attribute__((no_instrument_function))
static int calls;
PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);
PLAIN void __cyg_profile_func_enter(void *function, void *caller) { (void)function, (void)caller, calls++; }
PLAIN void __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller, calls++; }
void other(void);
PLAIN int main(void)
{
	for (int i = 0; i < 100; i++)
		other();
	return printf("%d\n", calls) < 0;
}
C
echo 'void other(void); void other(void) { __asm__ volatile(""); }' >"$dir/other.c"
# shellcheck disable=SC2086
$cc -O0 -finstrument-functions -fPIC -shared "$dir/other.c" -o "$dir/libother.so"
# shellcheck disable=SC2086
$cc -O0 -finstrument-functions "$dir/hooks.c" -o "$dir/hooks" -L "$dir" -lother "-Wl,-rpath,$dir"
[ "$(timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/hooks" 2>"$dir/errors")" = 200 ] ||
	wrong "hooks of the program's own were not called"
exit $failed
