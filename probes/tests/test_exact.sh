#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Calls counted are calls made, in threads, where functions are left by exceptions, longjmp(), tail calls and
# cancelled threads, in children and in libraries that are loaded and unloaded: by each compiler here, with
# NOPs at the entries, with hooks, and with both. One call more of any function is seen.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
tried=0

# differs - whether what the program says is not what is counted
differs()
{
	timeout 120 "$fastinst" run --output "$dir/counts" -- "$dir/exact" "$dir/libexact.so" >"$dir/out" ||
		wrong "exit status $?"
	sort "$dir/out" >"$dir/says"
	awk '$3 == "entry" { n[$4] += $1 } END { for (name in n) print name, n[name] }' "$dir/counts" |
		grep -wFf <(cut -d ' ' -f 1 "$dir/says") | sort >"$dir/is" || true
	[ -s "$dir/says" ] || wrong "the program says nothing"
	! diff "$dir/says" "$dir/is" >"$dir/diff"
}

# try COMPILER FLAG...
try()
{
	if ! "$@" -Wall -Wextra -Werror -DPLUGIN -fPIC -shared "$top/probes/tests/exact.cc" -o "$dir/libexact.so" ||
		! "$@" -Wall -Wextra -Werror "$top/probes/tests/exact.cc" -o "$dir/exact" -pthread -ldl; then
		wrong "$*: is not compiled"
		return
	fi
	tried=$((tried + 1))
	! differs || wrong "$*: the program says <, fastinst >: $(cat "$dir/diff")"
}

for cc in g++ clang++; do
	command -v $cc >/dev/null || continue
	for level in -O0 -O2; do
		try $cc $level -fpatchable-function-entry=5
		try $cc $level -finstrument-functions
	done
	try $cc -O2 -fcf-protection=full -fpatchable-function-entry=5
	try $cc -O2 -finstrument-functions -fpatchable-function-entry=5
done
[ $tried != 0 ] || skip "no compiler of C++"

while read -r name calls; do
	[ "$calls" -gt 0 ] || wrong "$name is never called"
	EXACT_LIE=$name differs || wrong "one call more of $name was not seen"
done < <(cat "$dir/says")
echo "$tried programs"
exit $failed
