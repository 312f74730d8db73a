#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A library is put into a program that runs, ten times at each kind of place: in loops, in malloc, in
# system calls that sleep, with signals and forks, with one thread and with many. The program looks
# for each trace of it, and its output and exit status are its own. With a tracer that forgets
# to give back registers, vectors or system calls, or that uses the thread's own stack, it finds one. Where the command is killed half-way, the program goes on as
# before.
set -euo pipefail
export LC_ALL=C

top=${srcdir:-.}
victim=$PWD/agent/launch/tests/victim
injector=$PWD/agent/launch/tests/injector
dir=$(mktemp -d)
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
failed=0

if [ "${SANITIZERS:-none}" != none ]; then
	echo "a library cannot be put into a program without the sanitizer's runtime"
	exit 77
fi

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fPIC -shared -o "$dir/guest.so" "$top/agent/launch/tests/guest.c"

# start MODE - the program, as $pid, once it runs
start()
{
	# A file of its own: a program before may have left others that write to it.
	rm -f "$dir/says"
	: >"$dir/says"
	"$victim" "$1" >"$dir/says" 2>&1 &
	pid=$!
	pids+=("$pid")
	for _ in $(seq 1000); do
		! grep -q ready "$dir/says" || return 0
		sleep 0.02
	done
	wrong "$1: it does not start"
}

# finish - the program; its exit status is in $status
finish()
{
	status=0
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || status=$?
}

start sleep
if ! "$injector" "$pid" "$dir/guest.so" 1 >"$dir/log" && grep -qE 'ptrace|does not let it be traced' "$dir/log"; then
	cat "$dir/log"
	echo "ptrace(2) is not allowed here"
	exit 77
fi
finish

# check MODE TIMES
check()
{
	start "$1"
	timeout 100 "$injector" "$pid" "$dir/guest.so" "$2" >"$dir/log" || wrong "$1: $(cat "$dir/log")"
	echo "$1: $(cat "$dir/log")"
	finish
	[ "$status" = 42 ] || wrong "$1: exit status $status"
	printf 'ready\nend\n' | cmp -s - "$dir/says" || wrong "$1: $(cat "$dir/says")"
}

check registers 5
check malloc 2
check sleep 10
check read 10
check epoll 10
check futex 10
check signals 1
check forks 5
check all 10

# broken HOW MODE - it is noticed, at the latest after so many times
broken()
{
	start "$2"
	BROKEN=$1 timeout 100 "$injector" "$pid" "$dir/guest.so" 20 >"$dir/log" || true
	finish
	[ "$status" != 42 ] || wrong "what was broken ($1) was not noticed"
}

broken registers registers
broken vectors registers
broken stack registers
broken call sleep
broken eintr epoll

# blocked - the signals that the program's threads block
blocked()
{
	awk '/^SigBlk/ { print $2 }' "/proc/$pid/status" 2>/dev/null || true
}

# killed MODE [LATE] - the command, behind each of its steps, or of those from which on it is seen to that a
# call does not end with EINTR
killed()
{
	local before step

	start "$1"
	before=$(blocked)
	for step in $(seq 100); do
		! LATE=$2 KILL=$step timeout 100 "$injector" "$pid" "$dir/guest.so" 1 >"$dir/log" || break
		for _ in $(seq 500); do
			[ "$(blocked)" != "$before" ] || break
			sleep 0.02
		done
		[ "$(blocked)" = "$before" ] || wrong "$1, killed behind step $step: signals stay blocked"
		if [ "$(blocked)" = "" ] || grep -q WRONG "$dir/says"; then
			wrong "$1, killed behind step $step"
			break
		fi
	done
	if [ "$step" -le 10 ] || [ "$step" = 100 ]; then
		wrong "$1: $step steps are all"
	fi
	finish
	[ "$status" = 42 ] || wrong "$1, killed: exit status $status"
	printf 'ready\nend\n' | cmp -s - "$dir/says" || wrong "$1, killed: $(cat "$dir/says")"
	echo "$1: the command was killed behind each of $((step - 1)) steps"
}

killed registers ""
killed sleep ""
killed read ""
killed epoll late
killed futex ""
killed all late

exit $failed
