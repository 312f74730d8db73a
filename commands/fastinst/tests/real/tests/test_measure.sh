#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# commands/fastinst/tests/real/measure on two small programs of the tree: the tables and the JSON have figures that
# must hold on any machine. A program whose output changes under probes, one that dies under
# them, and one that cannot be built or had show that it can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# measure STATUS ARGUMENT... - its exit status is that; the tables in table
measure()
{
	local expected=$1 status=0

	shift
	timeout 300 bash "$top/commands/fastinst/tests/real/measure" --small --rounds 1 --toggle 1 --recipes "$dir/recipes.sh" "$@" \
		"$dir/made" >"$dir/table" 2>"$dir/errors" || status=$?
	[ $status = "$expected" ] || wrong "measure $*: exit status $status, $(cat "$dir/table" "$dir/errors")"
}

# has PATTERN - the tables say so
has() { grep -qE "$1" "$dir/table" || wrong "not said: $1 in $(cat "$dir/table")"; }

mkdir "$dir/sources"
cat >"$dir/sources/liar.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { return puts(getenv("LD_PRELOAD") ? "probes" : "none") < 0; }
END
cat >"$dir/sources/dying.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { puts("begins"); fflush(stdout); if (getenv("LD_PRELOAD")) abort(); return 0; }
END
echo 'int main(void) { return nothing }' >"$dir/sources/broken.c"
# What changes its output after it has run natively once, but behind a driver that takes that out.
cat >"$dir/sources/driven.c" <<'END'
#include <stdio.h>
#include <unistd.h>
int main(void) { char line[9]; while (fgets(line, sizeof(line), stdin)) printf("%d %s", (int)getpid(), line); return 0; }
END
cat >"$dir/recipes.sh" <<'END'
nbody_input() { arguments=("${nbody_steps:-20000}"); }
turns=0
driven_build() { own_source "$1" driven; }
driven_input() { arguments=(); }
driven_drive() { echo "$scale" >>"${latencies%/*}/scales"; echo "SET 5 $((++turns))" >"$latencies"; seq "$scale" | "$@"; }
driven_filter() { cut -d' ' -f2; }
own_source() { "$CC" -O2 -c "$1/$2.c" && "$CC" -o program "$2.o"; }
liar_build() { own_source "$1" liar; }
liar_input() { arguments=(); }
dying_build() { own_source "$1" dying; }
dying_input() { arguments=(); }
broken_build() { own_source "$1" broken; }
broken_input() { arguments=(); }
END

measure 0 --programs "nbody blackscholes"
# Calls that are known: ten pairs a step, and those of the energy before and after.
has '^\| nbody \| 7 \| 7 \| 0 \| 7 \| [0-7] \| [0-9.]+ \| [0-7] \| [0-9.]+ \|$'
has '^\| nbody \| .* \| 920[0-9]{3} \| -?[0-9.]+ \|$'
has '^\| blackscholes \| .* \| 300[0-9]{2} \| -?[0-9.]+ \|$'
has '^\| nbody \| [1-9][0-9]* \| 7 \| [1-9][0-9]* \| 0 \| 0 \| [0-9]+ \|$'
has '^- policy wait: no machine.conf'
has '^\| nbody \| 7 \| [0-9.]+ \| [1-9][0-9.]* \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$'
grep -q '"program": "nbody", "form": "entries", "sites": 7' "$dir/made/table.json" || wrong "$(cat "$dir/made/table.json")"
cp "$dir/table" "$dir/before"
measure 0 --programs "nbody blackscholes" --tables
diff "$dir/before" "$dir/table" || wrong "--tables tells something else"
grep -qE '^nbody +[1-9]' "$dir/made/table.txt" || wrong "$(cat "$dir/made/table.txt")"
if command -v python3 >/dev/null; then
	python3 -m json.tool "$dir/made/table.json" >/dev/null || wrong "table.json is no JSON"
fi

# Threads that lose memory are found.
TOGGLER_LEAK=10000000 measure 1 --programs "nbody" --no-exits --rounds 0
has '^- nbody, toggled-entries-membarrier: threads that toggle hold [0-9]{7,} bytes'

# The shares of all edges, and those of a profile: with a phase of 2 ms in 10 they are alike, with none they are not.
nbody_steps=2000000 measure 0 --programs "nbody" --instant --periods 10
has '^\| nbody \| [1-9].* \| (9[0-9]|100)[0-9.]* \| [1-9][0-9.]* \| '
nbody_steps=500000 measure 0 --programs "nbody" --instant --periods 10 --seconds 2 --counted 1
has '^\| nbody \| [1-9].* \| (9[0-9]|100)[0-9.]* \| [1-9][0-9.]* \| '
measure 0 --programs "nbody" --instant --periods 90000
has '^\| nbody \| [0-9].* \| 0 \| 0 \| '

# Of two pairs the median is the mean, and the interval has both.
nbody_steps=2000000 measure 0 --programs "nbody" --pairs --no-exits
has '^\| nbody \| [1-9][0-9.]* \| 2 \| ([0-9.]+ \| ){7}[0-9.]+ \|$'
for key in to_off to_init; do
	sed -nE "s/.*\"$key\": ([0-9.]+), \"${key}_low\": ([0-9.]+), \"${key}_high\": ([0-9.]+), \"${key}_1\": ([0-9.]+), \"${key}_2\": ([0-9.]+).*/\1 \2 \3 \4 \5/p" \
		"$dir/made/table.json" |
		awk 'function is(a, b) { return a - b < 0.001 && b - a < 0.001 }
			{ least = $4 < $5 ? $4 : $5; right = is($1, ($4 + $5) / 2) && is($2, least) && is($3, $4 + $5 - least) }
			END { exit !right }' || wrong "$key: not the pairs: $(cat "$dir/made/table.json")"
	has "^Geometric mean of the programs: .*profiled / ${key#to_}[a-z]* $(sed -nE "s/.*\"$key\": ([0-9.]+).*/\1/p" "$dir/made/table.json") \\["
done

measure 0 --programs "nbody" --pairs
[ "$(grep -cE '^\| nbody \| [1-9][0-9.]* \| 2 \| ([0-9.]+ \| ){7}[0-9.]+ \|$' "$dir/table")" = 2 ] || wrong "not entries and exits: $(cat "$dir/table")"

export own_sources=$dir/sources
measure 1 --programs "liar" --no-exits
has '^- liar, init: the output differs'
has '^- liar, toggled-entries-membarrier: the output differs'
grep -q 'liar, on: the output differs' "$dir/made/table.json" || wrong "table.json does not say what is wrong"
measure 1 --programs "liar" --tables
measure 0 --programs "driven" --no-exits --toggle 0 --seconds 1
[ "$(sort -n "$dir/made/scales" | tail -n 1)" -gt 1 ] || wrong "--seconds gives no more to do"
has '^\| driven:SET \| 5 \| 5 \| 5 \| 1.000 \| [0-9]'
measure 1 --programs "dying" --no-exits
has '^- dying, on: exit status 134, natively 0'
measure 69 --programs "broken" --no-exits
has "^- broken: the form 'native' could not be built"
APT_SOURCE="deb-src [trusted=yes] file:$dir/nothing none main" measure 69 --programs "bzip2" --no-exits
has '^- bzip2: '
measure 64 --rounds none
measure 64 --no-such-option

[ $failed = 0 ] && echo "the machinery of commands/fastinst/tests/real/measure"
exit $failed
