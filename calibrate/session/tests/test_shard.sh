#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Experiments from the command line: the paper's grid in shards whose journals make one page, the arms
# against the tail, a list of the user's; none touches machine.conf.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
top=$(realpath "$top")
schema=$(realpath "$schema")
cd "$dir"

# --- what they refuse ---

complains 64 "--plan 'slow': no such name" "$tmax" calibrate --plan slow
complains 64 "at least 5s" "$tmax" calibrate --plan thorough --budget 4s
while read -ra line; do
	complains 64 "${line[0]}" "$tmax" stress --list paper.cells "${line[@]}"
done <<'LIST'
--shard 0/3
--shard 4/3
--shard 3
--toggles 0
--repetitions 0
--repetitions 1001
--executors 0
--rest -1
LIST
for p in 0 1 -1e-9 nan 0x1p-9 1e-9x ' 1e-9' ''; do
	complains 64 require-p "$tmax" calibrate --require-p "$p"
done

# --- shards ---

# cells_of JOURNAL - the keys of its cells of the grid
cells_of()
{
	sed -nE 's/^.*"stage":"paper","key":"([^"]*)".*/\1/p' "$1"
}

# The list is found among the package's data; a part of it is a list, too.
grid=("$tmax" stress --list paper.cells --quiet)
expect 0 "${grid[@]}" --shard 1/250 --toggles 500
[ "$(cells_of paper.jsonl | wc -l)" = 2 ] || fail "the grid has other than 500 cells"
list=$(find "$OLDPWD" "$top" -name paper.cells -print -quit)
grep -- '^#\|--executors 2 ' "$list" | sed 's/--executors 2/--executors 1/' >paper.cells
for i in 1 2; do
	expect 0 "${grid[@]}" --toggles 500 --shard "$i/2" --journal "$i.jsonl"
	grep -q '^Config:  left as it is' "$dir/out" || fail "the config is not told of"
	[ "$(cells_of "$i.jsonl" | wc -l)" = 50 ] || fail "shard $i has other than 50 cells"
	[ "$(head -n 1 "$i.jsonl" | member plan /dev/stdin)" = paper ] || fail "the plan's name"
	valid "$i.jsonl"
done
cells_of 1.jsonl >keys
cells_of 2.jsonl >>keys
[ "$(sort -u keys | wc -l)" = 100 ] || fail "the shards overlap"
if cmp -s <(cells_of 1.jsonl) <(cells_of 1.jsonl | sort); then
	fail "the cells are not shuffled"
fi
expect "0 2" "$tmax" report 2.jsonl 1.jsonl --output whole
grep -q '^# The paper: ' whole/figure9-crash.dat || fail "no caption"
grep -q '^# Here: .*; N = 1; .*; runs of each: 1; 500 toggles a run;' whole/figure9-crash.dat ||
	fail "another caption"
[ "$(grep -c '^64 0 ' whole/figure9-crash.dat)" = 25 ] || fail "not 25 waits in the figure"
# All of it, and no more.
cat 1.jsonl 2.jsonl >both.jsonl
lines=$(wc -l <both.jsonl)
expect 0 "${grid[@]}" --toggles 500 --journal both.jsonl --resume
[ "$(wc -l <both.jsonl)" = $((lines + 1)) ] || fail "cells were run again"
expect 0 "${grid[@]}" --toggles 500 --journal both.jsonl --resume --repetitions 2
[ "$(cells_of both.jsonl | sort -u | wc -l)" = 200 ] || fail "not each of them twice"

# --- interrupted and resumed ---

rm paper.jsonl
"${grid[@]}" --toggles 2000 >"$dir/out" 2>"$dir/err" &
started+=($!)
has_paper_cells()
{
	[ -e paper.jsonl ] && [ "$(cells_of paper.jsonl | wc -l)" -ge "$1" ]
}
wait_for has_paper_cells 5 || fail "no cells"
kill -INT $!
rc=0
wait $! || rc=$?
[ "$rc" = 130 ] || fail "interrupted, it exits with $rc"
expect 0 "${grid[@]}" --toggles 2000 --resume
grep -v '"outcome":"interrupted"' paper.jsonl | cells_of /dev/stdin >after
[ "$(sort -u after | wc -l)" = 100 ] || fail "cells are missing"
[ "$(wc -l <after)" = 100 ] || fail "cells were run again"
valid paper.jsonl

# --- the tail ---

expect 0 "$tmax" stress --list tail.cells --seconds 0.03 --quiet
[ "$(head -n 1 tail.jsonl | member plan /dev/stdin)" = tail ] || fail "the plan's name"
for arm in line-1000 line-2000 line-4000 stretch-1000 page-2000 inside-2000 cold-back; do
	grep -q "\"stage\":\"tail-$arm\"" tail.jsonl || fail "no cell of arm $arm"
done
grep -q '"type":"gaps"' tail.jsonl || fail "no run of the gap oracle"
valid tail.jsonl

# --- a list of the user's ---

cat >own.cells <<LIST
# three cells and a run of the gap oracle
one: tmax stress ${seat[*]} --crossing page --toggles 3000 # behind it
  two: tmax stress --first-wait 0 --second-wait 0 --toggles 3000 --seed 77
tmax stress ${seat[*]} --oracle crash --pair call-nop --toggles 3000
gap: tmax gaps ${seat[*]} --toggles 2000
LIST
expect 0 "$tmax" stress --list own.cells --quiet
[ "$(head -n 1 own.jsonl | member plan /dev/stdin)" = own ] || fail "the plan's name"
for stage in own-one own-two own; do
	[ "$(grep -c "\"stage\":\"$stage\"" own.jsonl)" = 1 ] || fail "not one cell of $stage"
done
[ "$(grep -c '"type":"gaps"' own.jsonl)" = 1 ] || fail "not one run of the gap oracle"
grep -q '"stage":"own-two".* --seed 77"' own.jsonl || fail "the line's own seed"
grep -q '"stage":"own-one".* --crossing page .* --seed [0-9]\{9\}' own.jsonl || fail "no seed drawn"
grep -q '^Journal: own.jsonl' "$dir/out" || fail "the journal is not told of"
valid own.jsonl
lines=$(wc -l <own.jsonl)
expect 0 "$tmax" stress --list own.cells --quiet --resume
[ "$(wc -l <own.jsonl)" = $((lines + 1)) ] || fail "cells were run again"
for i in 1 2; do
	expect 0 "$tmax" stress --list own.cells --shard "$i/2" --journal "part$i.jsonl" --quiet \
		--toggles 2000
	grep -q '"toggles":2000' "part$i.jsonl" || fail "--toggles is not taken"
done
[ "$(cat part?.jsonl | grep -cE '"type":"(cell|gaps)"')" = 4 ] || fail "the shards are not all of it"

echo "tmax stress --split 9" >bad.cells
complains 64 "bad.cells: line 1: the split must be" "$tmax" stress --list bad.cells
echo "# nothing" >bad.cells
complains 64 "no cell in it" "$tmax" stress --list bad.cells
complains 69 "cannot read the list none" "$tmax" stress --list none
complains 64 "go with a --list" "$tmax" stress --shard 1/2
complains 64 "no --json" "$tmax" stress --list own.cells --json
# What no machine can run is left out and missing.
echo "tmax stress --placement same-core --executors 1000 --toggles 100" >>own.cells
expect 2 "$tmax" stress --list own.cells --quiet --resume
grep -q '^tmax stress: own not run here' "$dir/err" || fail "what is left out is not told"

for conf in machine.conf tmax/machine.conf .config/tmax/machine.conf; do
	[ ! -e "$dir/$conf" ] || fail "an experiment has written $conf"
done
