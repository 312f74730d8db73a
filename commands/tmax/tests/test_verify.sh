#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax verify: a config that does not apply is told from one that was tried, each report is what
# its readers take, the run can be repeated, and nothing that was measured is lost.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# well_formed FORMAT FILE - by a reader of that format that is not ours
well_formed()
{
	if [ "$1" = junit ]; then
		valid_junit "$2"
		return
	fi
	command -v python3 >/dev/null || return 0
	python3 - "$@" <<'READER' || fail "$2 is no $1"
import json, sys

form, path = sys.argv[1:]
data = open(path, "rb").read()
if form == "json":
    report = json.loads(data)
    assert report["exit"] in (0, 1, 2, 3, 74, 130) and report["reason"]
else:
    assert data.decode().splitlines()[-1]
READER
}

# --- configs that do not apply ---

# not_taken FILE WORDS - with status 3 and a reason, in every format
not_taken()
{
	local format

	for format in text junit json; do
		complains 3 "$2" "$tmax" verify --config "$1" --format "$format"
		grep -qF -- "$2" "$dir/out" || fail "$format does not say '$2'"
		well_formed "$format" "$dir/out"
	done
	[ "$(grep -c '"exit":3' "$dir/out")" = 1 ] || fail "another status in the report"
}

conf_of_here >"$dir/machine.conf"
sed 's/^microcode = .*/microcode = 0xbadbad/' "$dir/machine.conf" >"$dir/foreign.conf"
sed 's/^usable = .*/usable = no/' "$dir/machine.conf" >"$dir/unusable.conf"
sed '/^first = /d' "$dir/machine.conf" >"$dir/broken.conf"
not_taken "$dir/none.conf" "No such file"
not_taken "$dir/foreign.conf" "microcode differs"
not_taken "$dir/broken.conf" "[level 1] first is missing"
# Unless there is one for all users of this machine.
if "$tmax" info 2>/dev/null | grep '^  path  *none' >/dev/null; then
	complains 3 "no machine.conf was found" "$tmax" verify
fi
PATCHCORE_MACHINE_CONF=$dir/foreign.conf complains 3 "microcode differs" "$tmax" verify

# A name that is hard on every format.
nasty=$dir/$'a<b>&"c\' # d\n]]>\xff.conf'
cp "$dir/foreign.conf" "$nasty"
for format in text junit json; do
	complains 3 "microcode" "$tmax" verify --config "$nasty" --format "$format"
	well_formed "$format" "$dir/out"
done

if ! can_wait; then
	not_taken "$dir/machine.conf" "the config does not apply"
	echo "no TSC to wait by: no config applies here"
	exit 0
fi
not_taken "$dir/unusable.conf" "no wait that is safe"

# --- what cannot be read or written ---

complains 64 format "$tmax" verify --format yaml
complains 64 budget "$tmax" verify --budget 1s
complains 64 "more than --budget" "$tmax" verify --budget 3s --conform 4s
complains 64 fleet "$tmax" verify --fleet 0
complains 64 "name of a file" "$tmax" verify --config ''
complains 73 "$dir/no/report" "$tmax" verify --config "$dir/foreign.conf" --output "$dir/no/report"
complains 73 "$dir/no/journal" "$tmax" verify --config "$dir/machine.conf" \
	--journal "$dir/no/journal"
if [ -e /dev/full ]; then
	complains 74 "/dev/full" "$tmax" verify --config "$dir/machine.conf" --journal /dev/full
	expect 74 "$tmax" verify --config "$dir/foreign.conf" --output /dev/full
fi

# --- runs ---

# A promise that little can break, so that an ordinary machine has it kept in no time.
sed "s/_p = 1e-10/_p = 0.01/" "$dir/machine.conf" >"$dir/kept.conf"
expect "0 1 2" "$tmax" verify --config "$dir/kept.conf" --budget 2s --seed 77 --format json \
	--journal "$dir/journal"
[ ! -s "$dir/err" ] || fail "something on stderr that is no terminal"
well_formed json "$dir/out"
cp "$dir/out" "$dir/first"
# has FILE JSON - in a report
has()
{
	grep -qF -- "$2" "$1" || fail "the report has no $2"
}
has "$dir/first" "\"exit\":$rc"
has "$dir/first" '"seed":"77"'
has "$dir/first" '"accept_p":0.0001,"line":{"first_wait":3000,"second_wait":2000,"stretch":0,"p":0.01,"spread":1.0'
has "$dir/first" "--placement ${seat[1]} --crossing page"
has "$dir/first" "--first-wait 3000 --second-wait 2000"
if [ "$(grep -oE '"check":"control"[^}]*"status":"held"' "$dir/first" | wc -l)" != 2 ] &&
	[ "$rc" = 0 ]; then
	fail "it holds, but the oracle saw nothing"
fi

# What an oracle that saw nothing has counted is no evidence.
seen=$(grep -oE '"check":"control"[^}]*"status":"held"' "$dir/first" | wc -l)
lines=$(grep -c '"type":"evidence"' "$dir/kept.conf.evidence" || true)
[ "$lines" = $((seen == 2)) ] || fail "$seen controls tore, and the store has $lines lines"
# With one CPU threads take turns, so the controls seldom tear.
taskset -c "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)" \
	"$tmax" verify --config "$dir/kept.conf" --budget 2s --conform 0 --format json >"$dir/out" || true
if ! grep -qE '"check":"control"[^}]*"status":"held"' "$dir/out"; then
	[ "$(grep -c '"type":"evidence"' "$dir/kept.conf.evidence" || true)" = "$lines" ] ||
		fail "a blind oracle has added to the evidence"
fi

# Every run of a cell is in the journal, those that were noisy included.
valid "$dir/journal"
runs=$(grep -oE '"runs":[0-9]+' "$dir/first" | cut -d: -f2 | awk '{ sum += $1 } END { print sum }')
[ "$(count_cells "$dir/journal")" = "$runs" ] ||
	fail "$(count_cells "$dir/journal") cells in the journal, $runs in the report"
[ "$(grep '"type":"cell"' "$dir/journal" | grep -vc '"stage":"verify"')" = 0 ] ||
	fail "a cell of another stage"
grep -q '"type":"run".*"plan":"verify"' "$dir/journal" || fail "the journal does not tell the run"

# The same seed begins with the same cells; another one with others.
seeds()
{
	grep '"type":"cell"' "$1" | sed -nE '1s/.*"seed":"([0-9]+)".*/\1/p'
}
expect "0 1 2" "$tmax" verify --config "$dir/kept.conf" --budget 2s --seed 77 --format junit \
	--journal "$dir/again" --conform 0
well_formed junit "$dir/out"
cp "$dir/out" "$dir/no-promise"
[ "$(seeds "$dir/journal")" = "$(seeds "$dir/again")" ] || fail "another seed the second time"
PATCHCORE_MACHINE_CONF=$dir/kept.conf expect "0 1 2" "$tmax" verify --budget 2s --format junit \
	--output "$dir/report" --journal "$dir/other"
[ ! -s "$dir/out" ] || fail "the report is on standard output too"
well_formed junit "$dir/report"
grep -q '<property name="machine.vendor"' "$dir/report" || fail "JUnit without the machine"
[ "$(seeds "$dir/journal")" != "$(seeds "$dir/other")" ] || fail "the seed is not drawn"

# What processor and kernel promise was tried, unless it was not asked for.
! grep -q 'name="promise ' "$dir/no-promise" || fail "promises that were not asked for"
[ "$(grep -oE '"name":"[a-z0-9]+","status":"(held|skipped|no answer)","trials"' "$dir/first" | wc -l)" = 10 ] ||
	fail "not all promises were tried, or one is broken"
grep -q 'classname="tmax.verify.promise" name="promise flag"' "$dir/report" || fail "JUnit without promises"

# A reader refuses what is no such report: the check can fail.
sed 's/<skipped /<passed /; s/failures="[0-9]*"/failures="7"/' "$dir/report" >"$dir/wrong"
! (valid_junit "$dir/wrong") >/dev/null 2>&1 || fail "a report with other counts is valid"

# --- since an older config ---

complains 3 "baseline $dir/broken.conf" "$tmax" verify --config "$dir/kept.conf" --baseline "$dir/broken.conf"
sed 's/^model = .*/model = 7777/' "$dir/machine.conf" >"$dir/stranger.conf"
complains 3 "another processor" "$tmax" verify --config "$dir/kept.conf" --baseline "$dir/stranger.conf"
# Another microcode is what it is for.
sed "s/^microcode = .*/microcode = 0xbadbad/; s/^\(line\|page\)_p = .*/\1_p = 1e-3/" "$dir/machine.conf" >"$dir/before.conf"
sed "s/^\(line\|page\)_p = .*/\1_p = 0.03/; s/^\(line\|page\)_toggles = .*/\1_toggles = 100000/
	s/^\(line\|page\)_tears = .*/\1_tears = 2000/" "$dir/kept.conf" >"$dir/risen.conf"
since()
{
	expect "$1" "$tmax" verify --config "$2" --baseline "$dir/before.conf" --budget 2s --conform 0 --format junit
	valid_junit "$dir/out"
	grep -q 'name="promise ladder"' "$dir/out" || fail "no word of the ladder"
	grep -A1 'name="promise ladder"' "$dir/out" >"$dir/ladder"
}
since "0 1 2" "$dir/kept.conf"
! grep -q '<failure' "$dir/ladder" || fail "a ladder that has not risen: $(cat "$dir/ladder")"
since 1 "$dir/risen.conf"
grep -q '<failure message="2000 tears in 1e5 exposed toggles' "$dir/ladder" ||
	fail "a ladder that has risen: $(cat "$dir/ladder")"

# A config whose promise takes more toggles than there is time for.
expect "1 2" "$tmax" verify --config "$dir/machine.conf" --budget 2s
grep -q '^Verdict:  \(inconclusive\|broken\): ' "$dir/out" || fail "another verdict than status $rc"

# --- interrupted ---

"$tmax" verify --config "$dir/kept.conf" --budget 60s --format json --journal "$dir/cut" \
	>"$dir/out" 2>"$dir/err" </dev/null &
pid=$!
started+=("$pid")
wait_for has_cells "$dir/cut" 3 || fail "no cells"
kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" = 130 ] || [ "$rc" = 1 ] || fail "exit status $rc when interrupted"
well_formed json "$dir/out"
has "$dir/out" "\"exit\":$rc"
