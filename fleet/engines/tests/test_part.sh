#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A part of a campaign: killed and started again, on this machine and on another, it counts once; names
# that a shell would run are names.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
export TMAX=$tmax
engines=$(realpath "$top/fleet/engines")

# A shell that expands a name makes a file called bait.
folder="$dir/a b';touch bait;\$(touch bait)\"%a{}"
list="l i's;t\$(touch bait)%j{}.cells"
mkdir "$folder"
cd "$dir"
# The second cell of each part is long enough to be cut, also where all of this is slow.
for cell in "1 0.3" "2 0.3" "3 2" "4 2" "5 0.3" "6 0.3"; do
	echo "tmax stress ${seat[*]} --first-wait 0 --second-wait 0 --toggles 1000000000 --seconds ${cell#* } --seed ${cell% *}"
done >"$folder/$list"
part=("$engines/part" "$folder")
campaign=(stress --list "./$list")

# --- what it refuses ---

for number in 0/2 3/2 1/1001 x 1/ task/2 '1/2;touch bait' -1/2; do
	expect 64 "${part[@]}" "$number" "${campaign[@]}"
done
for name in 'a;touch bait' ../up -o .x 'a b' "$(printf 'a\nb')"; do
	TMAX_MACHINE=$name expect 64 "${part[@]}" 1/2 "${campaign[@]}"
	grep -q 'set TMAX_MACHINE' "$dir/err" || fail "no advice"
done
expect 64 "${part[@]}" 1/2 info
expect 64 "${part[@]}" 1/2 stress --toggles 100
expect 69 "$engines/collect" "$folder"

# --- killed, and started again ---

export TMAX_MACHINE=one
journal=$folder/one/1-of-2.jsonl
setsid "${part[@]}" 1/2 "${campaign[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" 1 || fail "no cells"
# All processes of the part, and at once: none of them can tidy up.
kill -KILL -- -$!
wait $! || true
before=$(count_cells "$journal")
[ "$before" -lt 3 ] || fail "it was done before it was killed"
[ ! -e "$folder/one/1-of-2.done" ] || fail "done, though it was killed"
expect 69 "$engines/collect" "$folder"
expect 0 env SLURM_ARRAY_TASK_ID=1 "${part[@]}" task/2 "${campaign[@]}"
grep -q 'goes on with' "$dir/err" || fail "not resumed"
[ "$(count_cells "$journal")" = 3 ] || fail "cells were run again"
expect 0 "${part[@]}" 1/2 "${campaign[@]}"
grep -q 'done already' "$dir/err" || fail "a part that is done is run again"
expect 0 env TMAX_MACHINE=two "${part[@]}" 1/2 "${campaign[@]}"
[ ! -e "$folder/two/1-of-2.jsonl" ] || fail "a part that is done is run by another machine"
expect 64 "${part[@]}" 1/2 "${campaign[@]}" --split 2
grep -q 'another campaign' "$dir/err" || fail "another campaign is not told"

# A polite end is passed on to the program, and one machine's half of a part is not another's.
"${part[@]}" 2/2 "${campaign[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$folder/one/2-of-2.jsonl" 1 || fail "no cells"
kill -TERM $!
rc=0
wait $! || rc=$?
[ "$rc" -gt 2 ] || fail "terminated, it exits with $rc"
[ ! -e "$folder/one/2-of-2.done" ] || fail "done, though it was terminated"
[ "$(grep -c . "$folder/one/2-of-2.jsonl")" -gt 1 ] || fail "nothing was kept"
expect 2 "$engines/collect" "$folder"
grep -q 'missing, of 2: 2\.' "$dir/out" || fail "what is missing is not told"
# As if its microcode was another when it began.
sed 's/"microcode":"[^"]*"/"microcode":"0x0"/' "$folder/one/2-of-2.jsonl" >"$dir/other"
mkdir -p "$folder/two"
cp "$dir/other" "$folder/two/2-of-2.jsonl"
expect 0 env TMAX_MACHINE=two "${part[@]}" 2/2 "${campaign[@]}"
ls "$folder"/two/2-of-2.jsonl.*.other >"$dir/list" || fail "the old journal is gone"

# --- each cell counts once ---

counted()
{
	sqlite3 "$folder/fleet.db" "SELECT total(toggles) FROM sum" | sed 's/\..*//'
}
expect 0 "$engines/collect" "$folder"
cat "$folder/one/1-of-2.jsonl" "$folder/two/2-of-2.jsonl" >"$dir/all.jsonl"
[ "$(count_cells "$dir/all.jsonl")" = 6 ] || fail "not six cells"
exposed=$(sed -nE 's/.*"type":"cell".*"exposed":([0-9]+).*/\1/p' "$dir/all.jsonl" | awk '{ n += $1 } END { print n }')
if command -v sqlite3 >/dev/null; then
	[ "$(counted)" = "$exposed" ] || fail "$(counted) toggles in the database, $exposed in the journals"
	expect 0 "$engines/collect" "$folder"
	[ "$(counted)" = "$exposed" ] || fail "counted twice"
	# The same eyes see a part that is taken twice.
	"$tmax" merge -o "$folder/fleet.db" --machine one "$folder/one/2-of-2.jsonl" >/dev/null
	[ "$(counted)" -gt "$exposed" ] || fail "blind to what counts twice"
fi

# --- a calibration is each machine's own ---

mkdir "$dir/calibrations"
expect 0 "$engines/part" "$dir/calibrations" 1/2 calibrate --budget 5s
expect 0 env TMAX_MACHINE=two "$engines/part" "$dir/calibrations" 2/2 calibrate --budget 5s
expect "0 69" "$engines/collect" "$dir/calibrations"
# Where other programs take the CPUs, five seconds may be too few to count anything.
some=$(find "$dir/calibrations" -name '*.evidence' | wc -l)
if [ "$some" = 0 ]; then
	echo "no evidence in five seconds: runs were not told apart"
else
	# Both have the boot of this machine: it is one by whichever name.
	grep -qE "  1 machine, $some runs?, " "$dir/out" || fail "not $some runs of one machine"
	[ "$(grep -c 'has counted nothing' "$dir/out")" = $((2 - some)) ] || fail "nothing counted, and not told"
fi

# --- a list of one kind of machine has its page, the paper's grid its figure ---

mkdir "$dir/grid"
grep -- '^#\|--executors 2 ' "$(find "$OLDPWD" "$top" -name paper.cells -print -quit)" >"$dir/grid/paper.cells"
for k in 1 2; do
	expect 0 "$engines/part" "$dir/grid" $k/2 stress --list ./paper.cells --toggles 10 --executors 1 --split 4
done
expect 0 "$engines/collect" "$dir/grid"
[ -e "$dir/grid/page/figure9-crash.dat" ] || fail "no figure"

# --- the list is what it was ---

# shellcheck source=fleet/engines/prepare.sh
. "$engines/prepare.sh"
cp "$folder/$list" "$dir/$list"
prepare "$dir/p q" stress --list "$list" --split 2
[ "${arguments[*]}" = "stress --list ./$list --split 2" ] || fail "arguments: ${arguments[*]}"
cmp "$list" "$dir/p q/$list" || fail "the list is not there"
echo "tmax stress --split 2" >>"$list"
if prepare "$dir/p q" stress "--list=$list" 2>"$dir/err"; then
	fail "a list that changes within a campaign"
fi
[ -z "$(find "$dir" -name 'bait*')" ] || fail "a name was run"
