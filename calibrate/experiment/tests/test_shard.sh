#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The experiments from the command line: the paper's grid in shards whose journals merge, the tail's
# arms in turn, a list of the user's; none touches machine.conf.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"
top=$(realpath "$top")
schema=$(realpath "$schema")
cd "$dir"

# --- what they refuse ---

complains 64 "no plan is called 'slow'" "$tmax" calibrate --plan slow
complains 64 "at least 5s" "$tmax" calibrate --plan thorough --budget 4s
while read -ra line; do
	complains 64 "plan ${line[0]} has no ${line[1]}" "$tmax" calibrate --plan "${line[@]}"
done <<'LIST'
paper --budget 10m
paper --require-p 1e-5
paper --output here.conf
paper --verbose
paper --fifo
tail --require-p 1e-5
tail --output here.conf
tail --figure here
tail --shard 1/2
tail --toggles 1000
quick --toggles 1000
quick --repetitions 2
default --executors 2
default --rest 0
thorough --shard 1/2
thorough --merge
thorough --fifo
LIST
while read -ra line; do
	complains 64 "${line[0]}" "$tmax" calibrate --paper "${line[@]}"
done <<'LIST'
--shard 0/3
--shard 4/3
--shard 3
--toggles 0
--repetitions 0
--executors 2-
--executors 65
--executors 0-3
--rest -1
LIST
for p in 0 1 -1e-9 nan 0x1p-9 1e-9x ' 1e-9' ''; do
	complains 64 require-p "$tmax" calibrate --require-p "$p"
done
complains 64 "names of journals" "$tmax" calibrate --paper --merge
complains 64 "not at a shard" "$tmax" calibrate --paper --merge --shard 1/2 here
complains 64 "unexpected argument 'here'" "$tmax" calibrate --paper here
complains 69 "cannot read journal none" "$tmax" calibrate --paper --merge none

# --- shards ---

# cells_of JOURNAL - the keys of its cells of the grid
cells_of()
{
	sed -nE 's/^.*"stage":"paper","key":"([^"]*)".*/\1/p' "$1"
}

grid=(--toggles 500 --repetitions 1 --executors 1)
paper=("$tmax" calibrate --paper "${grid[@]}")

for i in 1 2; do
	expect 0 "${paper[@]}" --shard "$i/2" --journal "$i.jsonl" --quiet
	grep -q "100 cells of 500 toggles, shard $i/2; 50 to run: about " "$dir/out" ||
		fail "no estimate for shard $i"
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
for stage in paper timing; do
	grep -q "\"stage\":\"$stage\"" 1.jsonl || fail "no cells of stage $stage"
done

expect 2 "${paper[@]}" --merge 1.jsonl
grep -q '100 cells, 50 there, 50 missing' "$dir/out" || fail "half a grid"
expect 0 "${paper[@]}" --merge 2.jsonl 1.jsonl --figure whole
grep -q '100 cells, 100 there, 0 missing' "$dir/out" || fail "a whole grid"
grep -q '^# The paper: ' whole.dat || fail "no caption"
grep -q '^# Here: .*; N = 1; .*; runs of each: 1; 500 toggles a run;' whole.dat || fail "another caption"
[ "$(grep -c '^64 0 ' whole.dat)" = 25 ] || fail "not 25 waits in the figure"
if command -v gnuplot >/dev/null; then
	grep -qF 'The paper: 25 waits' whole.svg || fail "no caption in the picture"
fi
expect 0 "${paper[@]}" --merge 2.jsonl 1.jsonl 1.jsonl
grep -q ' 50 runs of cells that were there already' "$dir/out" || fail "doubles are not told"
expect 2 "$tmax" calibrate --paper "${grid[@]}" --toggles 501 --merge 1.jsonl 2.jsonl
grep -q ' 100 runs belong to another grid' "$dir/out" || fail "another grid is not told"
expect 2 "$tmax" calibrate --paper --merge 1.jsonl
grep -q '2500 cells, 0 there, 2500 missing' "$dir/out" || fail "the paper's own grid"

# What an earlier version wrote on another machine, with other seats, is the same grid.
expect 0 "$tmax" calibrate --paper --toggles 100000 --repetitions 1 --executors 1-4 \
	--merge "$top/results/runs/amd-25-17-1-kvm-paper/paper.jsonl"
grep -q '400 cells, 400 there, 0 missing' "$dir/out" || fail "an old journal"
if grep -q 'another grid' "$dir/out"; then
	fail "old runs are of another grid"
fi
grep -q '^  N 1, spread  *[0-9]* of 100 runs failed' "$dir/out" || fail "the seats of N = 1"
grep -q '^  N 4, oversubscribed  *[0-9]* of 100 ' "$dir/out" || fail "the seats of N = 4"

sed 's/"microcode":"[^"]*"/"microcode":"0xbadbad"/' 2.jsonl >foreign.jsonl
complains 64 "different machines" "${paper[@]}" --merge 1.jsonl foreign.jsonl

# --- interrupted and resumed ---

"$tmax" calibrate --plan paper "${grid[@]}" --toggles 5000 --quiet >"$dir/out" 2>"$dir/err" &
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
grep -v '"outcome":"interrupted"' paper.jsonl | cells_of /dev/stdin >before
expect 0 "$tmax" calibrate --paper "${grid[@]}" --toggles 5000 --quiet --resume
grep -q ": 100 cells of 5000 toggles; $((100 - $(wc -l <before))) to run: " "$dir/out" ||
	fail "what is there is counted as to be run"
grep -q '100 cells, 100 there, 0 missing' "$dir/out" || fail "not resumed"
grep -v '"outcome":"interrupted"' paper.jsonl | cells_of /dev/stdin >after
[ "$(sort -u after | wc -l)" = "$(wc -l <after)" ] || fail "cells were run again"
valid paper.jsonl

# --- the tail ---

# Of a starved run some arms come to nothing: then a longer one.
lacks_an_arm()
{
	for arm in line-1000 line-2000 line-4000 stretch-1000 page-2000 inside-2000 cold-back; do
		grep -q "^$arm  *all  *[1-9]" "$dir/out" || return 0
	done
	! grep -q '^gap-line  *[1-9].* stores; old-front ' "$dir/out"
}
for budget in 6s 24s 96s; do
	rm -f tail.jsonl
	expect 0 "$tmax" calibrate --plan tail --budget $budget --quiet
	lacks_an_arm || break
done
[ "$(head -n 1 tail.jsonl | member plan /dev/stdin)" = tail ] || fail "the plan's name"
for arm in line-1000 line-2000 line-4000 stretch-1000 page-2000 inside-2000 cold-back; do
	grep -q "\"stage\":\"tail-$arm\"" tail.jsonl || fail "no cell of arm $arm"
	grep -q "^$arm  *all  *[1-9]" "$dir/out" || fail "arm $arm is not in the table"
done
grep -q '"type":"gaps"' tail.jsonl || fail "no run of the gap oracle"
grep -q '^gap-line  *[1-9].* stores; old-front ' "$dir/out" || fail "gaps are not in the table"
grep -q '^Config:  left as it is' "$dir/out" || fail "the config is not told of"
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
for row in 'one  *all  *1 ' 'two  *all  *1 ' 'own  *all  *1 ' 'gap  *1 run,'; do
	grep -q "^$row" "$dir/out" || fail "no row '$row' in the table"
done
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
complains 64 "bad.cells: line 1: --split '9'" "$tmax" stress --list bad.cells
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
