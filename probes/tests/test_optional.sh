#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What stands in for sources that need Zydis or libdw, where configure has not found them, defines the same
# functions: else the library would not link there. An empty source in its place is noticed. Without Zydis each command
# with --entries fails and says what to install, and the first command of the README installs both.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

[ "${SANITIZERS:-none}" = none ] || skip "sanitizers add symbols of their own"

# defined SOURCE... - the functions that others can call
defined()
{
	local source

	for source; do
		# shellcheck disable=SC2086 # CC may carry options
		$CC -std=gnu11 -D_GNU_SOURCE -w -I"$top" -I"$top/patchcore/include" -c -o "$dir/o.o" "$top/$source" 2>"$dir/errors" || return
		${NM:-nm} --defined-only -g "$dir/o.o" | awk '$2 == "T" { print $3 }'
	done | sort
}

# header MACRO - is it there?
header()
{
	# shellcheck disable=SC2086 # CC may carry options
	echo "#include <$1>" | $CC -fsyntax-only -x c - 2>/dev/null
}

# stands_in HEADER INSTEAD SOURCE...
stands_in()
{
	local needed=$1 instead=$2 all

	shift 2
	header "$needed" || { echo "$needed is not there: $* is not compiled"; return; }
	all=$(defined "$@") || wrong "$*: $(cat "$dir/errors")"
	some=$(defined "$instead") || wrong "$instead: $(cat "$dir/errors")"
	[ "$all" = "$some" ] || wrong "$* has $all, and $instead $some"
	[ -n "$all" ] || wrong "$* defines nothing"
	tried=yes
}

for package in libzydis-dev libdw-dev; do
	sed -n "/^readonly decoders=/,/^'/p" "$top/scripts/deps" | grep -q "^$package|" || wrong "scripts/deps: $package is not among what it installs"
	grep -q '1:build) .*[$]decoders' "$top/scripts/deps" || wrong "scripts/deps build does not install $package"
done
if [ ! -e "$build/probes/insn/insn.lo" ]; then
	for command in "run -- true" "trace -- true" "profile -- true" "attach $$" "list $(command -v true)"; do
		# shellcheck disable=SC2086 # several words
		set -- $command
		! "$fastinst" "$1" --entries "${@:2}" >"$dir/says" 2>&1 || wrong "$command: $(cat "$dir/says")"
		grep -q 'libzydis-dev' "$dir/says" || wrong "$command: $(cat "$dir/says")"
	done
fi

tried=
some=
stands_in Zydis/Zydis.h probes/insn/no_insn.c probes/insn/effects.c probes/insn/insn.c probes/insn/jump_table.c
stands_in elfutils/libdw.h probes/dwarf/no_source.c probes/dwarf/source.c
stands_in elfutils/libdw.h profile/command/none.c profile/command/read.c
[ -n "$tried" ] || skip "neither Zydis nor libdw is there"

: >"$dir/empty.c"
top=$dir
[ "$(defined empty.c)" != "$some" ] || wrong "an empty source is as good"
exit "$failed"
