#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A thread that blocks SIGTRAP would end the program at an INT3. Under fastinst run it does not block it, so that
# probes go on and off; where fastinst attach has been, they stay off, and the command names the thread, until it
# lets SIGTRAP in, if only for a moment, as a thread that starts does. A program that takes SIGTRAP itself gets what it sends.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

# start COMMAND... - the program below it, which reads descriptor 7; pid is the program's
start()
{
	rm -f "$dir/in"
	: >"$dir/says"
	mkfifo "$dir/in"
	"$@" "$dir/masked" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	job=$!
	exec 7>"$dir/in"
	wait_for '^thread'
	thread=$(awk '/^thread/ { print $2 }' "$dir/says")
	pid=$(awk '/^Tgid/ { print $2 }' "/proc/$thread/status")
	pids+=("$pid")
}

wait_for()
{
	for _ in $(seq 3000); do
		! grep -q "$1" "$dir/says" || return 0
		sleep 0.01
	done
	wrong "\"$1\" was not said"
}

tell()
{
	echo "$1" >&7
	wait_for "^done $1"
}

# finish TAKEN
finish()
{
	local status=0

	exec 7>&-
	wait "$job" || status=$?
	[ $status = 0 ] || wrong "$what: exit status $status"
	grep -q "^taken $1\$" "$dir/says" || wrong "$what: $(tail -n 1 "$dir/says"), not $1"
}

# change on|off - a thread that gets no CPU for a second has not answered, and is asked again
change()
{
	for _ in $(seq 20); do
		! timeout 60 "$fastinst" "$1" --pid "$pid" '*' >"$dir/log" 2>&1 || return 0
		grep -q 'within a second' "$dir/log" || break
	done
	return 1
}

refused()
{
	! change on || wrong "$what: an INT3 beside a thread that blocks SIGTRAP"
	grep -q "thread $thread has SIGTRAP blocked" "$dir/log" || wrong "$what: it says $(cat "$dir/log")"
}

made()
{
	for _ in 1 2 3; do
		change on || wrong "$what: on: $(cat "$dir/log")"
		change off || wrong "$what: off: $(cat "$dir/log")"
	done
}

for flags in "" -fpatchable-function-entry=5; do
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 $flags -o "$dir/masked" "$top/commands/fastinst/tests/masked.c" -pthread

	what="run, ${flags:-plain}"
	start "$fastinst" run --off --entries --output "$dir/counts"
	made
	tell take
	tell raise
	made
	tell raise
	finish 2

	what="attach, ${flags:-plain}"
	start env
	timeout 60 "$fastinst" attach --entries "$pid" 2>"$dir/log" || wrong "$what: $(cat "$dir/log")"
	refused
	tell blink
	sleep 1.1
	made
	tell open
	made
	finish 0

	what="attach to a program that takes SIGTRAP, ${flags:-plain}"
	start env
	tell open
	tell take
	timeout 60 "$fastinst" attach --entries "$pid" 2>"$dir/log" || wrong "$what: $(cat "$dir/log")"
	made
	tell raise
	tell take
	! change on || [ "${flags:-plain}" != plain ] || wrong "$what: an INT3 that another handler would get"
	tell raise
	finish 2
done
exit $failed
