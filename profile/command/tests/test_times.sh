#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Functions that take a known time of CPU are timed: threads, recursion, signals, sleep; what leaves by
# longjmp() counts as torn, and is never the time of another call. With exits by
# gcc's -minstrument-return and by -finstrument-functions. Times of which a part was left out show that
# the comparison can fail. Without exits it says so.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
source=$top/profile/command/tests/lasting.c

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
"""torn.py PROFILE - do calls that left without an exit count as torn, and are not timed?"""
import json, sys

functions = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
assert functions["jumps"].get("times", {"timed": 0})["timed"] == 0, functions["jumps"]
# Half of the calls leave by longjmp(), and take ten times as long.
turns = functions["by_turns"]["times"]
assert turns["torn"] > 0 and "problem" in turns, turns
assert turns["timed"] <= functions["by_turns"]["calls"] / 2 + 1, turns
assert turns["total"]["seconds"] < 3 * functions["by_turns"]["calls"] * 300e-6, turns
# Time without a CPU is not in them, but in "wall".
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
try -finstrument-functions

# Calls that take some tens to some thousand ticks, by the program's own measure: what the probes of a call take is not
# in its time. An interval that holds everything is none.
cat >"$dir/brief.c" <<'C'
#include <stdio.h>
#include <time.h>

#define F(name, rounds)                                                         \
	__attribute__((noinline)) static unsigned long name(unsigned long x)    \
	{                                                                       \
		for (int i = 0; i < (rounds); i++)                              \
			x = x * 3 + 1;                                          \
		return x;                                                       \
	}
F(brief_2, 2)
F(brief_16, 16)
F(brief_40, 40)
F(brief_160, 160)
F(brief_800, 800)

static const struct {
	const char *name;
	unsigned long (*run)(unsigned long);
} one[] = { { "brief_2", brief_2 },
	    { "brief_16", brief_16 },
	    { "brief_40", brief_40 },
	    { "brief_160", brief_160 },
	    { "brief_800", brief_800 } };

__attribute__((no_instrument_function)) static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(void)
{
	static unsigned memory[4096];
	unsigned dice = 1;
	unsigned long x = 1;

	for (int i = 0; i < 1000000; i++) {
		for (int j = 0; j < 30; j++) {
			dice = dice * 1664525 + 1013904223;
			memory[dice >> 20]++;
		}
		for (int k = 0; k < 5; k++)
			x = one[k].run(x);
	}
	/* The least of many: no probe, and no other program. */
	for (int k = 0; k < 5; k++) {
		double least = 1e9;

		for (int i = 0; i < 200; i++) {
			double start = now();

			for (int j = 0; j < 100; j++)
				x = one[k].run(x);
			start = (now() - start) / 100;
			least = start < least ? start : least;
		}
		printf("%s %g\n", one[k].name, least);
	}
	return x == memory[0];
}
C
cat >"$dir/brief.py" <<'PY'
"""brief.py PROFILE SAID - are calls as long as the program says?"""
import json, sys

functions = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
bad = 0
for line in open(sys.argv[2]):
    name, true = line.split()[0], float(line.split()[1])
    total = {k: v / functions[name]["calls"] * 1e9 for k, v in functions[name]["times"]["total"].items()}
    # A processor may run a call and its probes side by side, and its clock is not always the same.
    ok = total["low"] <= 1.3 * true + 1 and total["high"] >= 0.7 * true - 4
    # Other work beside it is in the average, and not in the least.
    if true > 30:
        ok = ok and 0.7 * true < total["seconds"] < 2 * true
    if not ok:
        print(name, "takes", true, "it says", total)
        bad += 1
sys.exit(bad > 0)
PY
# shellcheck disable=SC2086
if $CC -O2 -fno-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return -c -o "$dir/brief.o" "$dir/brief.c" 2>"$dir/errors"; then
	# shellcheck disable=SC2086
	$CC -no-pie -o "$dir/brief" "$dir/brief.o"
	for attempt in 1 2 3; do
		timeout 60 "$fastinst" profile --overhead 5% --format json --output "$dir/b" "$dir/brief" >"$dir/said" || wrong "brief calls"
		! python3 "$dir/brief.py" "$dir/b" "$dir/said" || break
		[ "$attempt" != 3 ] || wrong "brief calls: $(cat "$dir/said")"
	done
fi

needs_patchable
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -pthread -o "$dir/bare" "$source"
timeout 60 "$fastinst" profile --output "$dir/bare.table" "$dir/bare" >/dev/null || wrong "without exits"
grep -q 'no times: exits cannot be seen' "$dir/bare.table" || wrong "nothing is said of exits: $(cat "$dir/bare.table")"
[ -n "$tried" ] || skip "$CC leaves no exits"
exit $failed
