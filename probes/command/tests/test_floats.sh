#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst trace shows floating point and members of small structs as the program itself prints them: of
# C and C++, by gcc and clang; at exits, too. A value that is another one shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
[ -e probes/source/abi.lo ] || skip "built without libdw"
python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null || skip "no libdw.so.1"
source=$top/probes/command/tests/floats.c

# calls - the trace without times, numbers of processes and threads, pointers and lines; not main()
calls()
{
	cut -c34- "$dir/trace" | sed -e 's/  [^ ]*:[0-9]*$//' -e 's/0x[0-9a-f]\{5,\}/PTR/g' -e 's/^> //' |
		grep -v -e '^main(' -e '^say(' -e '^_Z'
}

# shown HOW - trace the program, and compare with what it prints
shown()
{
	timeout 60 "$fastinst" trace --output "$dir/trace" -- "$dir/program" >"$dir/says" 2>"$dir/errors" ||
		wrong "$1: $(cat "$dir/errors")"
	calls | diff "$dir/says" - >"$dir/differs" || wrong "$1: the program prints <, fastinst shows >: $(head -20 "$dir/differs")"
}

tried=0
for compiler in "$CC" clang "g++ -x c++" "clang++ -x c++"; do
	command -v "${compiler%% *}" >/dev/null || continue
	for flags in "-O0" "-O1 -gdwarf-4" "-O2"; do
		# shellcheck disable=SC2086
		$compiler -g $flags -fpatchable-function-entry=5 -o "$dir/program" "$source" 2>"$dir/errors" || {
			echo "$compiler $flags: skipped, $(grep error "$dir/errors" | head -1)"
			continue
		}
		shown "$compiler $flags"
		tried=$((tried + 1))
	done
done
[ $tried != 0 ] || wrong "no compiler has made the program"
[ "$(wc -l <"$dir/says")" -gt 105 ] || wrong "the program prints $(cat "$dir/says")"
sed -i '0,/x=1.5/s//x=1.25/' "$dir/says"
if calls | cmp -s "$dir/says" -; then
	wrong "another value was not noticed"
fi

timeout 60 "$fastinst" trace --format json --output "$dir/trace" --on ordered --on small -- "$dir/program" >/dev/null 2>&1 ||
	wrong "JSON"
valid "$dir/trace"
python3 - "$dir/trace" <<'END' || wrong "JSON: $(head -5 "$dir/trace")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
events = [line for line in lines if line["type"] == "event"]
values = [[arg["value"] for arg in event["args"]] for event in events]
assert values[0] == [0.1, 0.1, -3, 1e30], values[0]
assert values[1] == ["inf", 0, 0, 0], values[1]
assert values[2:102] == [[i / 8, i / 2, i, -i] for i in range(100)], values[2:]
members = {arg["name"]: arg["value"] for arg in events[102]["args"]}
assert members["p.x"] == 1.5 and members["m.d"] == 1e300 and members["b.b"] == -3, members
END

# shellcheck disable=SC2086
if $CC -g -O1 -fno-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return -c \
	-o "$dir/exits.o" "$source" 2>"$dir/errors"; then
	$CC -no-pie -o "$dir/program" "$dir/exits.o"
	timeout 60 "$fastinst" trace --output "$dir/trace" -- "$dir/program" >/dev/null 2>"$dir/errors" || wrong "exits"
	for result in 'ordered = 0.20000000149011612' 'ordered = inf' 'ordered = 6.875' 'small = 0.1' 'many = 9' 'full = -6' 'odd = 11' \
		gives widens; do
		grep -q " < $result\$" "$dir/trace" || wrong "no $result: $(grep ' < [^s]' "$dir/trace" | head -3)"
	done
else
	echo "$CC has no -minstrument-return=nop5: $(head -1 "$dir/errors")"
fi

exit $failed
