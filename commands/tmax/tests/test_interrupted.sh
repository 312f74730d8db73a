#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Signals, to the program and to its child: the status that is documented, what was counted is kept,
# and no child is left behind.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

conf=$dir/machine.conf
# Ends when told to; no cell takes over 4 s.
long=("$tmax" calibrate --quick --quiet --budget 5m)

# start COMMAND... - in the background, as $pid; a $child runs its cell when this returns
start()
{
	"$@" >"$dir/out" 2>"$dir/err" </dev/null &
	pid=$!
	started+=("$pid")
	wait_for has_child || fail "no child: $*"
}

has_child()
{
	child=$(children "$pid")
	[ -n "$child" ]
}

# ends STATUS - the program that start started, and its last known child with it
ends()
{
	rc=0
	wait "$pid" || rc=$?
	[ "$rc" = "$1" ] || fail "exit status $rc, not $1"
	wait_for has_ended "$child" || fail "child $child is left behind"
}

record
known=0
for signal in INT TERM HUP; do
	echo old >"$conf"
	cp "$dir/recorded" "$dir/$signal"
	start "${long[@]}" --output "$conf" --journal "$dir/$signal" --resume
	wait_for has_slices "$dir/$signal" 3 || fail "no slices"
	wait_for has_child || fail "no child"
	kill -"$signal" "$pid"
	ends 130
	[ ! -s "$dir/err" ] || fail "SIG$signal is no error"
	grep -q '^Verdict: ' "$dir/out" || fail "no summary"
	grep -q "^Journal: $dir/$signal" "$dir/out" || fail "the journal is not named"
	tail -n 1 "$dir/out" | grep -q '^Interrupted: what was counted .* is kept' ||
		fail "it is not told what an interrupted run leaves"
	! grep -qE 'below 1[ ;.]' "$dir/out" || fail "a bound that says nothing"
	valid "$dir/$signal"
	tail -n 1 "$dir/$signal" | grep -q '"type":"estimate"' || fail "no estimate"
	# What it has counted until then is as good as any other.
	known=$((known + 1))
	[ "$(runs "$conf.evidence")" = "$known" ] || fail "an interrupted run adds no evidence"
	# Those of one hour are one, and an hour may end meanwhile.
	grep -qE "^runs = [12]$" "$conf" || fail "the config is not of all $known runs"
done
valid "$conf.evidence"

# Before its first slice a run has nothing to add.
echo old >"$conf"
start "${long[@]}" --output "$conf" --journal "$dir/early"
kill -INT "$pid"
ends 130
if ! has_slices "$dir/early" 1; then
	[ "$(runs "$conf.evidence")" = "$known" ] || fail "evidence of a run that tried no wait"
	[ "$(cat "$conf")" = old ] || fail "a run that tried no wait replaced the config"
	grep -q '^Verdict: inconclusive: it was broken off' "$dir/out" || fail "it does not say so"
	grep -q '^Interrupted: nothing was added' "$dir/out" || fail "it does not say what to do"
fi
valid "$dir/early"
[ -z "$(find "$dir" -name '*.tmp')" ] || fail "a temporary file was left"

start "$tmax" stress "${seat[@]}" --toggles 1000000000000 --json
kill -TERM "$pid"
ends 130
[ "$(member outcome)" = interrupted ] || fail "outcome $(member outcome), not interrupted"
valid "$dir/out"

start "$tmax" stress "${seat[@]}" --toggles 1000000000000 --json
kill -KILL "$child"
ends 2
[ "$(member outcome)/$(member signal)" = killed/9 ] || fail "not killed by 9"
valid "$dir/out"

# What its threads can no longer tell is not a number of 20 digits.
start "$tmax" stress "${seat[@]}" --toggles 1000000000000
kill -KILL "$child"
ends 2
grep -q '^noise  *unknown involuntary switches, [0-9u]' "$dir/out" || fail "noise: $(grep ^noise "$dir/out")"

was_killed()
{
	grep -q '"outcome":"killed".*"signal":9' "$dir/killed"
}

start "${long[@]}" --output "$conf" --journal "$dir/killed"
kills_a_child()
{
	if has_child; then
		kill -KILL "$child" 2>/dev/null || true
	fi
	was_killed
}
wait_for kills_a_child || fail "no record of a cell that was killed"
wait_for has_cells "$dir/killed" "$(($(count_cells "$dir/killed") + 1))" ||
	fail "the run does not go on after a cell was killed"
wait_for has_child || fail "no child"
kill -TERM "$pid"
ends 130
valid "$dir/killed"
[ ! -s "$dir/err" ] || fail "a killed cell is no error"

# Its cell would take for ever.
start "$tmax" stress "${seat[@]}" --toggles 1000000000000
started+=("$child")
kill -KILL "$pid"
ends 137

# Ctrl-C, where there is a terminal that sends it to all.
if command -v script >/dev/null && script -qefc true "$dir/typescript" >/dev/null 2>&1 </dev/null; then
	{
		wait_for has_cells "$dir/terminal" 1 || true
		printf '\003'
	} | script -qefc "'$tmax' calibrate --quick --budget 5m --output '$conf' \
		--journal '$dir/terminal'" "$dir/typescript" >/dev/null && rc=0 || rc=$?
	[ "$rc" = 130 ] || fail "exit status $rc after Ctrl-C"
	valid "$dir/terminal"
	if grep '"outcome":"killed"' "$dir/terminal"; then
		fail "Ctrl-C is the parent's, but it ended the child"
	fi
	grep -q 'Verdict: ' "$dir/typescript" || fail "no summary"
	# One line that renews itself: time left, tears so far, what is running.
	grep -q "$(printf '\r\033\\[K')[0-9]*:[0-9][0-9] left, .* tears\\? in .* toggles; " \
		"$dir/typescript" || fail "no progress on a terminal"
else
	echo "Ctrl-C not tested: no script"
fi
