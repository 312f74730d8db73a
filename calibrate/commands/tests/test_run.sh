#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real calibrations, as short as can be: what they write agrees with itself and is taken by the
# library on this machine only; what one has counted adds up with what others have, whether
# they are killed, resumed, or run at the same time.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

short=(--quick --budget 5s --quiet)

# conf_says NAME FILE SECTION - the value of a name in the config
conf_says()
{
	awk -v section="[$3]" -v name="$1" '
		/^\[/ { inside = $0 == section }
		inside && $1 == name && $2 == "=" { sub(/^[^=]*= /, ""); print }' "$2"
}

# agrees CONF JOURNAL - config, last estimate of the journal, summary and exit status $rc
agrees()
{
	local verdict usable

	grep '"type":"estimate"' "$2" | tail -n 1 >"$dir/estimate"
	[ -s "$dir/estimate" ] || fail "no estimate in $2"
	verdict=$(conf_says verdict "$1" tmax)
	usable=$(conf_says usable "$1" wait)
	case "$rc $verdict $usable" in
	"0 pass yes" | "1 fail no" | "2 inconclusive no") ;;
	*) fail "exit status $rc, verdict $verdict, usable $usable" ;;
	esac
	[ "$(member verdict "$dir/estimate")" = "$verdict" ] || fail "another verdict in $2"
	[ "$(member reason "$dir/estimate")" = "$(conf_says reason "$1" tmax)" ] ||
		fail "another reason in $2"
	[ "$(member runs "$dir/estimate")" = "$(conf_says runs "$1" scope)" ] ||
		fail "another number of runs in $2"
	grep -qF "Verdict: $verdict" "$dir/out" || fail "another verdict in the summary"
}

# adds_up CONF STORE JOURNAL... - each level of the config has what the store's lines have, and
# these what the cells of the journals have. By a reader that is not ours.
adds_up()
{
	command -v python3 >/dev/null || return 0
	python3 - "$@" <<'READER' || fail "$1 is not the sum of $2"
import collections, configparser, json, sys

conf_path, store, *journals = sys.argv[1:]

def lines(path, kind):
    for line in open(path, "rb"):
        try:
            line = json.loads(line)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("type") == kind:
            yield line

def add(sums, crossing, first, second, stretch, toggles, tears, slices):
    key = crossing, first, second, stretch
    sums[key] = [a + b for a, b in zip(sums[key], (toggles, tears, slices))]

stored = collections.defaultdict(lambda: [0, 0, 0])
for run in lines(store, "evidence"):
    for s in run["sums"]:
        if s["kind"] == "wait":
            add(stored, s["crossing"], s["first"], s["second"], s["stretch"], s["toggles"],
                s["tears"], s["slices"])

conf = configparser.ConfigParser(interpolation=None)
conf.read(conf_path)
levels = [conf[name] for name in conf.sections() if name.startswith("level ")]
assert len(levels) == int(conf["wait"]["levels"]), len(levels)
for level in levels:
    for crossing in "line", "page":
        key = crossing, int(level["first"]), int(level["second"]), int(level["stretch"])
        counted = [int(level[f"{crossing}_{name}"]) for name in ("toggles", "tears")]
        assert counted == stored[key][:2], (key, counted, stored[key])
        assert 0 < float(level[crossing + "_p"]) <= 1, key

seen = collections.defaultdict(lambda: [0, 0, 0])
for path in journals:
    for record in lines(path, "cell"):
        cell, result = record["cell"], record["result"]
        if cell["protocol"] == "wait" and cell["oracle"] == "count":
            assert result["outcome"] in ("done", "interrupted"), result["outcome"]
            toggles, tears = result["exposed"] or 0, sum(result["tears"].values())
            if result["torn"] is not None:
                tears = min(tears, result["torn"])
            add(seen, cell["crossing"], cell["first_wait"], cell["second_wait"],
                cell["stretch"], toggles, min(tears, toggles or tears), 1)
if journals:
    assert seen == stored, [(k, seen[k], stored[k]) for k in seen if seen[k] != stored[k]]
READER
}

# runs STORE - that can be read
runs()
{
	grep -c '^{.*"type":"evidence".*}$' "$1"
}

# --- one run ---

conf=$dir/run/machine.conf
expect "0 1 2" "$tmax" calibrate --quick --budget 8s --output "$conf" --journal "$dir/journal" \
	--figure "$dir/figure"
agrees "$conf" "$dir/journal"
adds_up "$conf" "$conf.evidence" "$dir/journal"
cp "$dir/out" "$dir/summary"
cp "$dir/err" "$dir/progress"
valid "$dir/journal"
valid "$conf.evidence"
[ "$(cd "$dir/run" && echo *)" = "machine.conf machine.conf.evidence" ] ||
	fail "left beside the config: $(ls "$dir/run")"
[ "$(conf_says journal "$conf" tmax)" = journal ] || fail "the journal's name"
[ "$(conf_says runs "$conf" scope)" = 1 ] || fail "one run is not one run"
[ "$(conf_says evidence "$conf" scope)" = this-run ] || fail "one run speaks for more than itself"
[ "$(wc -l <"$dir/summary")" -le 15 ] || fail "the summary is longer than 15 lines"
for words in 'Machine: ' 'How sure: ' 'Policy auto ' "Config:  $conf" "Journal: $dir/journal" \
	"evidence: $conf.evidence"; do
	grep -qF "$words" "$dir/summary" || fail "summary without $words"
done
[ "$(head -n 1 "$dir/journal" | member type /dev/stdin)" = run ] || fail "no run line first"

# Plain lines where there is no terminal.
grep -q 'tears\? in .* toggles; .* s left$' "$dir/progress" || fail "no progress on stderr"
if grep -q "$(printf '[\r\033]')" "$dir/progress"; then
	fail "terminal codes where there is no terminal"
fi

# Every placement has evidence or is a gap.
for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down spread \
	oversubscribed; do
	seats=$(grep -c "\"placement\":\"$placement\"" "$conf.evidence" || true)
	gap=$(conf_says "$placement" "$conf" gaps)
	case "$seats:$gap" in
	0: | [1-9]*:?*) fail "$placement is in $seats lines of the store, and gap '$gap'" ;;
	esac
done

if command -v gnuplot >/dev/null; then
	grep -qF '</svg>' "$dir/figure.svg" || fail "no figure.svg"
	[ "$(head -c 4 "$dir/figure.png" | tail -c 3)" = PNG ] || fail "no figure.png"
	grep -qF "Figure:  $dir/figure.svg" "$dir/summary" || fail "no figure in the summary"
else
	grep -q 'no figure' "$dir/progress" || fail "nothing tells that there is no figure"
fi
[ -s "$dir/figure.dat" ] || fail "no figure.dat"

# Any cell of it can be run again.
read -ra again < <(grep '"type":"cell"' "$dir/journal" | tail -n 1 | member command /dev/stdin)
expect "0 1" "$tmax" "${again[@]:1}" --toggles 64 --json
valid "$dir/out"

# The store tells the same as the run that wrote it.
expect 0 "$tmax" evidence --evidence "$conf.evidence"
grep -q '^Evidence: .*: 1 run in 1 hour and 1 boot, the latest .*; epoch 1$' "$dir/out" ||
	fail "the store does not tell of one run"
grep -vE '^(Config|Journal|Figure): ' "$dir/summary" | diff - <(sed 1d "$dir/out") ||
	fail "evidence tells < otherwise than the calibration"
[ "$(wc -l <"$dir/out")" -le 15 ] || fail "what evidence tells is longer than 15 lines"
expect 0 "$tmax" evidence --evidence "$conf.evidence" --verbose
grep -q '^  epoch 1  .*  quick .*toggles' "$dir/out" || fail "--verbose does not list the run"
grep -q '^Every rung ' "$dir/out" || fail "--verbose does not tell every rung"

# --- as JSON ---

expect "0 1 2" "$tmax" calibrate "${short[@]}" --output "$dir/json/machine.conf" --json \
	--figure "$dir/json/figure"
[ "$(wc -l <"$dir/out")" = 1 ] || fail "the estimate is not one line"
valid "$dir/out"
cp "$dir/out" "$dir/printed"
tail -n 1 "$dir/json/machine.conf.jsonl" | cmp -s - "$dir/printed" ||
	fail "another estimate is printed than is in the journal"
[ "$(member type)/$(member schema)" = estimate/2 ] || fail "what is printed has no envelope"
case "$rc $(member verdict)" in
"0 pass" | "1 fail" | "2 inconclusive") ;;
*) fail "exit status $rc with verdict $(member verdict)" ;;
esac
[ "$(member verdict)" = "$(conf_says verdict "$dir/json/machine.conf" tmax)" ] ||
	fail "another verdict in the config"
complains 64 "plan paper has no --json" "$tmax" calibrate --paper --json

# --- its config ---

# info_says STATUS WORDS CONF
info_says()
{
	PATCHCORE_MACHINE_CONF=$3 expect "$1" "$tmax" info
	grep -qF "$2" "$dir/out" || fail "info on ${3##*/} does not say '$2'"
}

if ! can_wait; then
	echo "no TSC to wait by: no config can be valid here"
elif [ "$(conf_says schema "$conf" tmax)" -lt 4 ]; then
	echo "the library of this tree does not read levels yet: its config is not tried"
else
	if [ "$(conf_says usable "$conf" wait)" = yes ]; then
		info_says 0 "valid" "$conf"
	else
		info_says 3 "refused" "$conf"
	fi
	# What a longer run would have written.
	sed 's/^verdict = .*/verdict = pass/; s/^usable = .*/usable = yes/' "$conf" >"$dir/usable.conf"
	[ "$(conf_says levels "$conf" wait)" = 0 ] || info_says 0 "valid" "$dir/usable.conf"
	while read -r field value; do
		awk -v field="$field" -v value="$value" '
			/^\[/ { inside = $0 == "[identity]" }
			inside && $1 == field { $0 = field " = " value } { print }' \
			"$dir/usable.conf" >"$dir/foreign.conf"
		! cmp -s "$dir/usable.conf" "$dir/foreign.conf" || fail "$field is $value already"
		info_says 3 "$field differs" "$dir/foreign.conf"
		grep -qF "$field differs" "$dir/err" || fail "nothing of $field on stderr"
	done <<'LIST'
microcode 0xbadbad
vendor Nobody
hypervisor Elsewhere
cpus 4096
tsc_khz 1
LIST
fi

# --- killed and resumed ---

# keys JOURNAL - of the cells that can be read
keys()
{
	grep '^{.*}$' "$1" | sed -nE 's/.*"type":"cell".*"key":"([^"]*)".*/\1/p'
}

killed=$dir/killed/machine.conf
journal=$killed.jsonl # where it lies unless told otherwise
store=$killed.evidence
resumable=("$tmax" calibrate --quick --budget 10s --quiet --output "$killed")

"${resumable[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" 10 || fail "no cells"
kill -KILL $!
wait $! || true
[ ! -e "$killed" ] || fail "a killed run left a config"
[ ! -e "$store" ] || fail "a killed run left evidence"
cp "$journal" "$dir/before"
valid "$dir/before"

"${resumable[@]}" --resume >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" $(($(count_cells "$dir/before") + 10)) || fail "not resumed"
kill -KILL $!
wait $! || true
[ ! -s "$dir/err" ] || fail "a journal without fault is complained of"
head -n "$(wc -l <"$dir/before")" "$journal" | cmp -s - "$dir/before" ||
	fail "what a killed run had written has changed"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"

# The next one is cut in the middle of its last line.
lost=$(keys "$journal" | tail -n 1)
truncate -s -60 "$journal"
cut=$(($(wc -l <"$journal") + 1))
valid <(head -n "$((cut - 1))" "$journal")
expect "0 1 2" "${resumable[@]}" --resume
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

# What has been added is not added again: the cells are run anew.
cells=$(count_cells "$journal")
expect "0 1 2" "$tmax" calibrate "${short[@]}" --output "$killed" --resume
[ "$(count_cells "$journal")" -gt $((cells + 10)) ] || fail "cells that were added were taken again"
[ "$(runs "$store")" = 2 ] || fail "a second run did not add to the first"
[[ "$(conf_says runs "$killed" scope)" = [12] ]] || fail "the config is not of both runs"
agrees "$killed" "$journal"
adds_up "$killed" "$store" "$journal"

# --- the store: killed, damaged, at the same time ---

# A run that is killed harms neither store nor config.
cp "$store" "$dir/store"
cp "$killed" "$dir/conf"
cells=$(count_cells "$journal")
"${resumable[@]}" >"$dir/out" 2>"$dir/err" &
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
expect "0 1 2" "$tmax" calibrate "${short[@]}" --output "$killed"
grep -q '1 unreadable line passed over' "$dir/err" || fail "calibrate does not tell a damaged line"
[[ "$(conf_says runs "$killed" scope)" = [12] ]] || fail "a damaged line is in the config"
# A store in which nothing can be read is begun behind what is there.
printf 'rubbish\n{"type":"evidence","schema":2}\n\0\n' >"$dir/rubbish"
cp "$dir/rubbish" "$dir/all"
expect 3 "$tmax" evidence --evidence "$dir/rubbish"
expect 0 "$tmax" evidence --evidence "$dir/rubbish" --import "$dir/store"
expect 0 "$tmax" evidence --evidence "$dir/rubbish"
head -n "$(wc -l <"$dir/all")" "$dir/rubbish" | cmp -s - "$dir/all" || fail "a store was rewritten"

# Two at once: the second waits for the first.
cp "$dir/store" "$store"
"$tmax" calibrate "${short[@]}" --output "$killed" --seed 5 >"$dir/one" 2>&1 &
first=$!
"$tmax" calibrate "${short[@]}" --output "$killed" --seed 6 >"$dir/two" 2>&1 &
started+=("$first" $!)
for pid in "$first" $!; do
	rc=0
	wait "$pid" || rc=$?
	[ "$rc" -le 2 ] || fail "exit status $rc of two at once: $(cat "$dir/one" "$dir/two")"
done
[ "$(cat "$dir/one" "$dir/two" | grep -cF "another run writes to $journal: waiting")" = 1 ] ||
	fail "not one of two at once waits"
valid "$store"
valid <(sed "${cut}d" "$journal")
told 4

# --- moved to another folder, and dropped ---

expect 0 "$tmax" evidence --evidence "$store"
sed 1d "$dir/out" >"$dir/told"
expect 0 "$tmax" evidence --evidence "$store" --export "$dir/exported"
valid "$dir/exported"
complains 74 "File exists" "$tmax" evidence --evidence "$store" --export "$dir/exported"
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
"$tmax" evidence --evidence "$store" --export - | cmp -s - "$dir/exported" ||
	[ "$("$tmax" evidence --evidence "$store" --export - | wc -l)" = 4 ] ||
	fail "--export - does not write to standard output"

cp "$killed" "$dir/conf"
expect 0 "$tmax" evidence --evidence "$store" --drop
cmp -s "$killed" "$dir/conf" || fail "--drop changed the config"
valid "$store"
[ "$(runs "$store")" = 4 ] || fail "--drop took runs away"
expect 3 "$tmax" evidence --evidence "$store"
grep -q '^Nothing is known of these CPUs as they are now' "$dir/out" || fail "what was dropped counts"
expect "0 1 2" "$tmax" calibrate "${short[@]}" --output "$killed"
[ "$(conf_says runs "$killed" scope)" = 1 ] || fail "what was dropped is in the config"
expect 0 "$tmax" evidence --evidence "$store" --verbose
grep -q '^Evidence: .*: 1 run .*; epoch 2$' "$dir/out" || fail "no new epoch begins"
[ "$(grep -c '^  epoch 1 ' "$dir/out")" = 4 ] || fail "--verbose does not list what was dropped"
# Epochs travel, too.
expect 0 "$tmax" evidence --evidence "$store" --export "$dir/epochs"
expect 0 "$tmax" evidence --evidence "$dir/elsewhere" --import "$dir/epochs"
expect 0 "$tmax" evidence --evidence "$dir/elsewhere"
grep -q '^Evidence: .*: 1 run .*; epoch 2$' "$dir/out" || fail "an import mixes epochs"
# What another machine has counted is kept, and says nothing of this one.
sed 's/"microcode":"[^"]*"/"microcode":"0xbadbad"/' "$dir/exported" >"$dir/foreign"
expect 3 "$tmax" evidence --evidence "$dir/foreign"
