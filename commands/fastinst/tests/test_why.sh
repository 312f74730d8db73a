#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that cannot be counted run as usual, and fastinst says why nothing was counted: linked
# statically, without sites or with none of use, stripped, with rights of another, behind a seccomp
# filter, no ELF file. Of a program that can be it says nothing, so that each of these is said of the
# one that it is true of.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
# Another user must reach the programs.
chmod 755 "$dir"

cat >"$dir/program.c" <<'END'
#include <stdio.h>
__attribute__((noinline)) int work(int x);
int work(int x) { __asm__ volatile(""); return x + 1; }
int main(int argc, char **argv) { (void)argv; printf("%d\n", work(argc)); return 5; }
END

compile()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -o "$dir/$name" "$dir/program.c" "$@"
}

# says PATTERN COMMAND... - the command, which ends with 5, is told of so, and the program says what it always does
says()
{
	local pattern=$1 status=0

	shift
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$@" >"$dir/out" 2>"$dir/errors" || status=$?
	[ "$status $(cat "$dir/out")" = "5 3" ] || wrong "$*: status $status, it says $(cat "$dir/out")"
	if [ -z "$pattern" ]; then
		[ ! -s "$dir/errors" ] || wrong "$*: $(cat "$dir/errors")"
	else
		grep -q "$pattern" "$dir/errors" || wrong "$*: not said: $pattern, but: $(cat "$dir/errors")"
	fi
}

compile program -fpatchable-function-entry=5
says '' "$dir/program" x
grep -q ' work ' "$dir/counts" || wrong "the program is not counted: $(cat "$dir/counts")"
compile none
says 'has no sites; compile it' "$dir/none" x
compile short -fpatchable-function-entry=2
says 'sites of .* are refused: no five bytes of NOPs' "$dir/short" x
cp "$dir/program" "$dir/stripped"
strip -s "$dir/stripped"
says 'program was stripped' "$dir/stripped" x
grep -q ' entry ' "$dir/counts" || wrong "the stripped program is not counted"
if compile static -fpatchable-function-entry=5 -static 2>/dev/null; then
	says 'is linked statically' "$dir/static" x
fi
printf '#!/bin/sh\nexec %s x\n' "$dir/none" >"$dir/script"
chmod +x "$dir/script"
says 'is no ELF program.*script' "$dir/script"

if [ "$(id -u)" = 0 ]; then
	cp "$dir/program" "$dir/owned"
	chown 65534 "$dir/owned"
	chmod u+s "$dir/owned"
	says 'set-user-ID' "$dir/owned" x
	PATH=$dir:$PATH says 'set-user-ID' owned x
	chown 0 "$dir/owned"
	chmod u+s "$dir/owned"
	says '' "$dir/owned" x
else
	echo "set-user-ID: not root"
fi

# shellcheck disable=SC2086
$CC -o "$dir/filtered" "$top/commands/fastinst/tests/filtered.c"
status=0
"$dir/filtered" errno "$dir/program" x >/dev/null || status=$?
if [ $status = 5 ]; then
	says 'a seccomp filter is in force' "$dir/filtered" errno "$dir/program" x
	status=0
	timeout 60 "$fastinst" run -- "$dir/filtered" kill "$dir/program" x 2>"$dir/errors" || status=$?
	[ $status = 159 ] || wrong "killed by a filter: $status"
	grep -q 'signal 31.*a seccomp filter forbids' "$dir/errors" || wrong "killed by a filter: $(cat "$dir/errors")"
else
	echo "no seccomp filters here"
fi

exit $failed
