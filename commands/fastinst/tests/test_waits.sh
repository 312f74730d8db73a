#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Probes that go on and off end no system call of the program, also none of those that a signal would: a program
# with a thread in each of them says the same with and without.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -o "$dir/waits" "$top/commands/fastinst/tests/waits.c" -pthread

# start COMMAND...
start()
{
	rm -f "$dir/in"
	: >"$dir/says"
	mkfifo "$dir/in"
	"$@" "$dir/waits" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	job=$!
	pids+=("$job")
	exec 7>"$dir/in"
	for _ in $(seq 3000); do
		! grep -q ready "$dir/says" || return 0
		kill -0 "$job" 2>/dev/null || break
		sleep 0.01
	done
	cat "$dir/errors"
	skip "the program does not start: no System V IPC here?"
}

# finish NAME
finish()
{
	local status=0

	exec 7>&-
	wait "$job" || status=$?
	[ $status = 0 ] || wrong "$1: exit status $status"
	mv "$dir/says" "$dir/$1"
}

# toggle PID - a thread that gets no CPU for a second has not answered
toggle()
{
	local made=0

	for _ in $(seq 40); do
		timeout 60 "$fastinst" on --pid "$1" leaf >"$dir/log" 2>&1 || continue
		timeout 60 "$fastinst" off --pid "$1" leaf >"$dir/log" 2>&1 || continue
		made=$((made + 1))
	done
	[ $made -ge 10 ] || wrong "$made of 40 changes were made: $(cat "$dir/log")"
}

start env
finish without

start env
timeout 60 "$fastinst" attach --entries "$job" 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
toggle "$job"
finish attached

start "$fastinst" run --off --entries --output "$dir/counts"
toggle "$(awk '{ print $1 }' "/proc/$job/task/$job/children")"
finish run

diff "$dir/without" "$dir/attached" || wrong "attached, it said something else"
diff "$dir/without" "$dir/run" || wrong "under fastinst run it said something else"
exit $failed
