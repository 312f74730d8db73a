#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program is stopped for a while, again and again, as its machine may be, and goes on: in a call that is timed, in
# a phase in which blocks are on. Calls and times are what the program itself says, and no phase claims the
# time in which nothing ran.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
stops=4
cat >"$dir/steps.c" <<'C'
#include <stdio.h>
#include <time.h>

static volatile unsigned long work;

/* Seconds of CPU, so that a stop is not in them. */
__attribute__((no_instrument_function, noinline)) static double used(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

__attribute__((noinline)) static void step(void)
{
	for (int i = 0; i < 200000; i++)
		work = work + 1;
}

int main(void)
{
	unsigned long steps = 0;
	double start = used(), inside = 0;

	while (used() - start < 0.6) {
		double before = used();

		step();
		inside += used() - before;
		steps++;
	}
	printf("%lu %g\n", steps, inside);
	return 6;
}
C

# child_of PID - the first process that it has started, or nothing
child_of()
{
	local children=

	[ -z "$1" ] || read -r children _ 2>/dev/null <"/proc/$1/task/$1/children" || true
	echo "$children"
}

# stopped OPTION... - profiles, and stops the program
stopped()
{
	local status=0 tool child=

	timeout 60 "$fastinst" profile "$@" --format json --output "$dir/p" "$dir/steps" >"$dir/said" 2>"$dir/log" &
	tool=$!
	for _ in $(seq 1000); do
		child=$(child_of "$(child_of $tool)")
		[ "$(cat "/proc/${child:-none}/comm" 2>/dev/null)" != steps ] || break
		child=
		sleep 0.01
	done
	for _ in $(seq $stops); do
		sleep 0.1
		kill -STOP "$child" 2>/dev/null || break
		sleep 1.2
		kill -CONT "$child" 2>/dev/null || break
	done
	wait $tool || status=$?
	[ $status = 6 ] || wrong "exit status $status: $(cat "$dir/log")"
}

cat >"$dir/judge.py" <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
steps, inside = (float(word) for word in open(sys.argv[2]).read().split())
step = next(f for f in profile["functions"] if f["name"] == "step")
times = step["times"]["total"]
print(steps, inside, step, profile["quality"]["seconds"])
assert step["low"] <= steps <= step["high"], "calls"
assert times["low"] * 0.8 <= inside <= times["high"] * 1.25 + 0.02, "times"
# A stop is many times what is measured.
assert times["seconds"] < 2 * inside, "a stop is in the times"
PY

tried=
# shellcheck disable=SC2086 # CC may carry options
if $CC -O1 -fno-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return -c -o "$dir/steps.o" "$dir/steps.c" 2>/dev/null; then
	# shellcheck disable=SC2086
	$CC -no-pie -o "$dir/steps" "$dir/steps.o"
	# Of twenty intervals one may hold less.
	for attempt in 1 2 3; do
		stopped --overhead 10%
		! python3 "$dir/judge.py" "$dir/p" "$dir/said" || break
		[ "$attempt" != 3 ] || wrong "calls and times"
	done
	tried=yes
fi

if $CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/steps.o" "$dir/steps.c" 2>/dev/null; then
	# shellcheck disable=SC2086
	$CC -pthread -o "$dir/steps" "$dir/steps.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
	stopped --edges --period 10 --phase 5
	python3 - "$dir/p" <<'PY' || wrong "a stop is in the phases"
import json, sys
profile = json.load(open(sys.argv[1]))
print(profile["seconds"], profile["seconds_in_phases"], profile["phases"], profile["seconds_toggling"])
assert profile["phases"] > 0 and profile["edges"]
# What was asked for, and in phases that last longer the CPU time that there was, the agent's included.
assert profile["seconds_in_phases"] < profile["phases"] * 0.005 + 0.75, profile["seconds_in_phases"]
PY
	tried=yes
fi
[ -n "$tried" ] || skip "$CC leaves neither exits nor blocks"
exit $failed
