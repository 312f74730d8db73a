#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real calibrations, as short as can be: what one has counted adds up with what others have, whether
# they are killed, interrupted, resumed, or run at the same time, and wherever their evidence is moved.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# --- killed and resumed ---

# keys JOURNAL - of the cells that can be read
keys()
{
	grep '^{.*}$' "$1" | sed -nE 's/.*"type":"cell".*"key":"([^"]*)".*/\1/p'
}

killed=$dir/killed/machine.conf
journal=$killed.jsonl # where it lies unless told otherwise
store=$killed.evidence
long=("$tmax" calibrate --quick --budget 5m --quiet --output "$killed")

"${long[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_slices "$journal" 2 || fail "no slices"
kill -KILL $!
wait $! || true
[ ! -e "$killed" ] || fail "a killed run left a config"
[ ! -e "$store" ] || fail "a killed run left evidence"
cp "$journal" "$dir/before"
grep '^{.*}$' "$journal" >"$dir/recorded"
valid "$dir/before"

"${long[@]}" --resume >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" $(($(count_cells "$dir/before") + 3)) || fail "not resumed"
kill -KILL $!
wait $! || true
[ ! -s "$dir/err" ] || fail "a journal without fault is complained of"
head -n "$(wc -l <"$dir/before")" "$journal" | cmp -s - "$dir/before" ||
	fail "what a killed run had written has changed"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"

# taken - the seconds of the cells in the journal, and three more
taken()
{
	grep -oE '"result":[{][^{]*"seconds":[0-9.e-]+' "$journal" | awk -F: '
		{ sum += $NF } END { printf "%ds", sum < 2 ? 5 : sum + 3 }'
}

# The next one is cut in the middle of its last line.
lost=$(keys "$journal" | tail -n 1)
truncate -s -60 "$journal"
cut=$(($(wc -l <"$journal") + 1))
valid <(head -n "$((cut - 1))" "$journal")
expect "0 1 2" "${long[@]}" --budget "$(taken)" --resume
[ "$(wc -l <"$dir/err")" = 1 ] || fail "a cut line is not told with one line"
grep -q "1 unreadable.* line $cut\$" "$dir/err" || fail "it is not told that line $cut is cut"
agrees "$killed" "$journal"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"
keys "$journal" >"$dir/keys"
grep -qxF "$lost" "$dir/keys" || fail "the cell that was cut was not run again"
valid <(sed "${cut}d" "$journal")
[ "$(grep -c '"type":"run"' "$journal")" = 3 ] || fail "not one run line per start"
# One run's evidence, of all its cells.
[ "$(runs "$store")" = 1 ] || fail "a resumed run is not one run"
adds_up "$killed" "$store" "$journal"
# For a fleet journal and evidence are one run, whichever comes first.
for order in "$store $journal" "$journal $store" "$journal $journal"; do
	read -ra files <<<"$order"
	rm -f "$dir/fleet.db"
	for file in "${files[@]}"; do
		expect 0 "$tmax" merge -o "$dir/fleet.db" --machine one "$file"
	done
	expect 0 "$tmax" fleet report "$dir/fleet.db"
	grep -q '^  1 machine, 1 run, ' "$dir/out" || fail "a run is not one run: $order"
done

count_slices()
{
	grep -c '"type":"cell".*"stage":"ladder"' "$journal"
}

# ends_behind PID COUNT - a run, interrupted when so many slices of the ladder are in the journal
ends_behind()
{
	started+=("$1")
	wait_for has_slices "$journal" "$2" || fail "no slices"
	kill -INT "$1"
	rc=0
	wait "$1" || rc=$?
	[ "$rc" = 130 ] || [ "$rc" = 1 ] || fail "exit status $rc when interrupted"
}

# What has been added is not added again: the cells are run anew. What was added is told by the place in
# the file: the clock was set back before that line was written.
sed -i '/"type":"estimate"/s/"date":"[^"]*"/"date":"2001-01-01T00:00:00Z"/' "$journal"
slices=$(count_slices)
"${long[@]}" --resume >"$dir/out" 2>"$dir/err" &
ends_behind "$!" $((slices + 2))
[ -n "$(keys "$journal" | sort | uniq -d)" ] || fail "cells that were added were taken again"
[ "$(runs "$store")" = 2 ] || fail "a second run did not add to the first"
[[ "$(conf_says runs "$killed" scope)" = [12] ]] || fail "the config is not of both runs"
agrees "$killed" "$journal"
adds_up "$killed" "$store" "$journal"

# --- the store: killed, damaged, at the same time ---

# A run that is killed harms neither store nor config.
cp "$store" "$dir/store"
cp "$killed" "$dir/conf"
cells=$(count_cells "$journal")
"${long[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" $((cells + 5)) || fail "no cells"
kill -KILL $!
wait $! || true
cmp -s "$store" "$dir/store" || fail "a killed run changed the store"
cmp -s "$killed" "$dir/conf" || fail "a killed run changed the config"

# told RUNS [OPTION...] - so many runs are known, and nothing is complained of
told()
{
	expect 0 "$tmax" evidence --evidence "$store"
	grep -q "^Evidence: .*: $1 runs" "$dir/out" || fail "not $1 runs in the store"
	[ ! -s "$dir/err" ] || fail "a sound store is complained of"
}

told 2
# Killed in the middle of its line: that one is lost, and what is appended behind it is not.
head -c -40 "$dir/store" >"$store"
expect 0 "$tmax" evidence --evidence "$store"
grep -q "^Evidence: .*: 1 run " "$dir/out" || fail "a cut line took others with it"
grep -q '1 unreadable line passed over' "$dir/err" || fail "a cut line is not told"
tail -n 1 "$dir/store" >"$dir/whole"
expect 0 "$tmax" evidence --evidence "$store" --import "$dir/whole"
grep -q "^1 run added" "$dir/out" || fail "the line that was cut cannot be added again"
expect 0 "$tmax" evidence --evidence "$store"
grep -q "^Evidence: .*: 2 runs" "$dir/out" || fail "a cut line spoiled the next"
# One digit that has turned: the line is valid JSON, and its checksum is wrong.
sed -E '1s/"tears":0,/"tears":9,/' "$dir/store" >"$store"
! cmp -s "$store" "$dir/store" || sed -E '1s/"slices":[0-9]+/"slices":77/' "$dir/store" >"$store"
expect 0 "$tmax" evidence --evidence "$store"
grep -q "^Evidence: .*: 1 run " "$dir/out" || fail "a damaged line counts"
grep -q '1 unreadable line passed over' "$dir/err" || fail "a damaged line is not told"
# replayed - a run of what was recorded
replayed()
{
	replay "$dir/replayed"
	expect "0 1 2" "${long[@]}" --journal "$dir/replayed" --resume
}
replayed
grep -q '1 unreadable line passed over' "$dir/err" || fail "calibrate does not tell a damaged line"
[[ "$(conf_says runs "$killed" scope)" = [12] ]] || fail "a damaged line is in the config"
levels=$(conf_says levels "$killed" wait)
replayed
[ "$levels" = 0 ] || grep -qE '^Since:   the best bound per change is .*; it was .*, from [12]$' "$dir/out" ||
	fail "not told what the run has added"
# A store in which nothing can be read is begun behind what is there.
printf 'rubbish\n{"type":"evidence","schema":2}\n\0\n' >"$dir/rubbish"
cp "$dir/rubbish" "$dir/all"
expect 3 "$tmax" evidence --evidence "$dir/rubbish"
expect 0 "$tmax" evidence --evidence "$dir/rubbish" --import "$dir/store"
expect 0 "$tmax" evidence --evidence "$dir/rubbish"
head -n "$(wc -l <"$dir/all")" "$dir/rubbish" | cmp -s - "$dir/all" || fail "a store was rewritten"

# Two at once: the second waits for the first. With a journal of its own it says that it is not alone.
cp "$dir/store" "$store"
slices=$(count_slices)
"${long[@]}" --seed 5 >"$dir/one" 2>&1 &
first=$!
wait_for has_slices "$journal" $((slices + 1)) || fail "no slices"
"${long[@]}" --seed 6 >"$dir/two" 2>&1 &
second=$!
started+=("$first" "$second")
wait_for grep -sqF "another run writes" "$dir/one" "$dir/two" || fail "neither waits"
"$tmax" calibrate --quick --budget 5m --output "$dir/third.conf" >"$dir/three" 2>&1 &
third=$!
started+=("$third")
wait_for grep -sqF "another calibration runs" "$dir/three" || fail "a third does not say so"
kill -INT "$third"
rc=0
wait "$third" || rc=$?
[ "$rc" = 130 ] || [ "$rc" = 1 ] || fail "exit status $rc of the third: $(cat "$dir/three")"
ends_behind "$first" $((slices + 2))
# The second came while the first ran, and is seen all the same.
wait_for has_slices "$journal" $(($(count_slices) + 1)) || fail "the second does not go on"
"$tmax" calibrate --quick --budget 5m --output "$dir/fourth.conf" >"$dir/four" 2>&1 &
fourth=$!
started+=("$fourth")
wait_for grep -sqF "another calibration runs" "$dir/four" || fail "a fourth does not see the second"
kill -KILL "$fourth"
wait "$fourth" || true
ends_behind "$second" $(($(count_slices) + 1))
[ "$(cat "$dir/one" "$dir/two" | grep -cF "another run writes to $journal: waiting")" = 1 ] ||
	fail "not one of two at once waits"
valid "$store"
valid <(sed "${cut}d" "$journal")
told 4

# --- moved to another folder, and dropped ---

expect 0 "$tmax" evidence --evidence "$store"
sed 1d "$dir/out" >"$dir/told"
cp "$store" "$dir/exported"
cp "$store" "$dir/before"
expect 0 "$tmax" evidence --evidence "$store" --import "$dir/exported"
grep -q '^0 runs added' "$dir/out" || fail "what was exported was added to itself"
cmp -s "$store" "$dir/before" || fail "an import of nothing changed the store"
for added in 4 0; do
	expect 0 "$tmax" evidence --evidence "$dir/other" --import "$dir/exported"
	grep -q "^$added runs added" "$dir/out" || fail "not $added runs added"
done
expect 0 "$tmax" evidence --evidence "$dir/other"
sed 1d "$dir/out" | diff "$dir/told" - || fail "exported and imported < it tells otherwise >"

cp "$killed" "$dir/conf"
expect 0 "$tmax" evidence --evidence "$store" --drop
cmp -s "$killed" "$dir/conf" || fail "--drop changed the config"
valid "$store"
[ "$(runs "$store")" = 4 ] || fail "--drop took runs away"
expect 3 "$tmax" evidence --evidence "$store"
grep -q '^Nothing is known of these CPUs as they are now' "$dir/out" || fail "what was dropped counts"
replayed
[ "$(conf_says runs "$killed" scope)" = 1 ] || fail "what was dropped is in the config"
expect 0 "$tmax" evidence --evidence "$store" --verbose
grep -q '^Evidence: .*: 1 run .*; epoch 2$' "$dir/out" || fail "no new epoch begins"
[ "$(grep -c '^  epoch 1 ' "$dir/out")" = 4 ] || fail "--verbose does not list what was dropped"
# Epochs travel, too.
cp "$store" "$dir/epochs"
expect 0 "$tmax" evidence --evidence "$dir/elsewhere" --import "$dir/epochs"
expect 0 "$tmax" evidence --evidence "$dir/elsewhere"
grep -q '^Evidence: .*: 1 run .*; epoch 2$' "$dir/out" || fail "an import mixes epochs"
# Six imports at once are one.
for i in 1 2 3 4 5 6; do
	"$tmax" evidence --evidence "$dir/six" --import "$dir/epochs" >"$dir/six.$i" 2>&1 &
	started+=("$!")
done
wait "${started[@]: -6}"
[ "$(cat "$dir"/six.? | grep -c '^0 runs added')" = 5 ] || fail "not one of six imports adds: $(cat "$dir"/six.?)"
[ "$(runs "$dir/six")" = 5 ] || fail "six imports at once leave $(runs "$dir/six") lines of 5"
expect 0 "$tmax" evidence --evidence "$dir/six"
grep -q '^Evidence: .*: 1 run .*; epoch 2$' "$dir/out" || fail "imports at once mix epochs"
# Copies of a journal that are resumed are one run.
replay "$dir/copied"
cp "$dir/copied" "$dir/again"
for file in "$dir/copied" "$dir/again"; do
	expect "0 1 2" "${long[@]}" --journal "$file" --resume --evidence "$dir/one"
done
expect 0 "$tmax" evidence --evidence "$dir/one"
grep -q '^Evidence: .*: 1 run ' "$dir/out" || fail "a copied journal is a second run"
# A store that others may write to is refused before anything is measured.
chmod 666 "$dir/one"
complains 74 "can be written to by others" "${long[@]}" --evidence "$dir/one"
expect 69 "$tmax" evidence --evidence "$dir/one"
# What another machine has counted is kept, and says nothing of this one.
sed 's/"microcode":"[^"]*"/"microcode":"0xbadbad"/' "$dir/exported" >"$dir/foreign"
expect 3 "$tmax" evidence --evidence "$dir/foreign"
