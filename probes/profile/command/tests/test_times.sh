#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions that take a known time of CPU are timed: threads, recursion, signals, sleep; what leaves by
# longjmp() is told as torn, and is never the time of another call. With exits by
# gcc's -minstrument-return and by -finstrument-functions. Times of which a part was left out show that
# the comparison can fail. Without exits it says so.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
source=$top/probes/profile/command/tests/lasting.c

cat >"$dir/judge.py" <<'PY'
"""judge.py PROFILE SAID FACTOR - whether times are what the program says, times FACTOR."""
import json, sys

functions = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
factor, bad = float(sys.argv[3]), 0
for line in open(sys.argv[2]):
    name, own, total = line.split()[0], *(float(t) / 1e6 * factor for t in line.split()[1:])
    times = functions[name]["times"]
    # What calls the clock ends late. Where not all calls were counted, the interval is asked.
    slack = 0.3 * total + 0.02
    ok = times["total"]["low"] - slack <= total <= times["total"]["high"] + slack
    ok = ok and times["self"]["low"] - slack <= own <= times["self"]["high"] + slack
    if not ok:
        print(name, "takes", own, total, "it says", times)
        bad += 1
sys.exit(bad > 0)
PY

cat >"$dir/torn.py" <<'PY'
"""torn.py PROFILE - are calls that left without an exit told, and not timed?"""
import json, sys

functions = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
assert functions["jumps"].get("times", {"timed": 0})["timed"] == 0, functions["jumps"]
# Half of the calls leave by longjmp(), and take ten times as long.
turns = functions["by_turns"]["times"]
assert turns["torn"] > 0 and "problem" in turns, turns
assert turns["timed"] <= functions["by_turns"]["calls"] / 2 + 1, turns
assert turns["total"]["seconds"] < 3 * functions["by_turns"]["calls"] * 300e-6, turns
# Time without a CPU is not in them, and told.
sleeps = functions["sleeps"]["times"]
assert sleeps["wall"] > 60 * 900e-6 * 0.9, sleeps
assert sleeps["total"]["seconds"] < sleeps["wall"] / 2, sleeps
PY

# judged - are times and torn calls right?
judged()
{
	python3 "$dir/judge.py" "$dir/p.json" "$dir/said" 1 && python3 "$dir/torn.py" "$dir/p.json"
}

# try FLAG...
try()
{
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 "$@" -c -o "$dir/lasting.o" "$source" 2>"$dir/errors" || {
		echo "$CC has not $*"
		return 0
	}
	# shellcheck disable=SC2086
	$CC -no-pie -pthread -o "$dir/lasting" "$dir/lasting.o"
	# A thread that another program keeps from its CPU is one more time in three intervals.
	for attempt in 1 2 3; do
		timeout 60 "$fastinst" profile --overhead 10% --format json,table,callgrind,pprof,collapsed,speedscope,html \
			--output "$dir/p" "$dir/lasting" >"$dir/said" || wrong "it failed"
		cat "$dir/p.table"
		! judged || break
		[ "$attempt" != 3 ] || wrong "times, $*"
	done
	if python3 "$dir/judge.py" "$dir/p.json" "$dir/said" 3 >"$dir/log"; then
		wrong "any time is taken for right"
	fi
	grep -q '^events: ns Calls' "$dir/p.callgrind" || wrong "callgrind has no times"
	tried=yes
}

tried=
try -foptimize-sibling-calls -fno-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return
if [ -e "$build/probes/calls/starts.lo" ]; then
	try -finstrument-functions
fi

needs_patchable
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -pthread -o "$dir/bare" "$source"
timeout 60 "$fastinst" profile --output "$dir/bare.table" "$dir/bare" >/dev/null || wrong "without exits"
grep -q 'no times: exits cannot be seen' "$dir/bare.table" || wrong "nothing is said of exits: $(cat "$dir/bare.table")"
[ -n "$tried" ] || skip "$CC leaves no exits"
exit $failed
