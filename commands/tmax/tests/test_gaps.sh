#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax gaps: what is printed, journalled and told by the exit status; that a record's command runs
# the same cell again; and what is refused.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

cell=(--crossing page --split 2 --rest 300 --toggles 2000 --seconds 20s --provoker chain --loop 7
	--seed 42)
expect 0 "$tmax" gaps "${seat[@]}" "${cell[@]}" --journal "$dir/journal" --json
[ ! -s "$dir/err" ] || fail "something on stderr"
[ "$(wc -l <"$dir/out")" = 1 ] || fail "a record is one line"
for want in outcome:done crossing:page split:2 rest:300 provokers:chain loop:7 seed:42 pair:word \
	toggles:2000 error:0; do
	[ "$(member "${want%:*}")" = "${want#*:}" ] || fail "record without $want"
done
# Two stores per toggle, counted at each look.
[ "$(member stores)" -ge 4000 ] || fail "stores: $(member stores)"
[ "$(member stores)" -lt 4064 ] || fail "stores: $(member stores)"
[[ $(member rate) != 0.0 ]] || fail "no rate"
for part in '"kind":"old-front"' '"kind":"new-front"' '"discarded":{"wrap":' '"witness":{' \
	'"cpus":{'; do
	grep -qF -- "$part" "$dir/out" || fail "record without $part"
done

# The journal has a line that tells the machine, and what was printed.
[ "$(wc -l <"$dir/journal")" = 2 ] || fail "not two lines in the journal"
sed -n 1p "$dir/journal" | grep -q '"type":"run"' || fail "no run line"
sed -n 2p "$dir/journal" | grep -q '"type":"gaps"' || fail "no gaps line"
[ "$(member stores "$dir/journal")" = "$(member stores)" ] || fail "another result in the journal"
valid "$dir/journal"

# The command of a record runs the same cell.
read -ra again <<<"$(member command)"
[ "${again[*]:0:2}" = "tmax gaps" ] || fail "command: ${again[*]}"
cp "$dir/out" "$dir/record"
expect 0 "$tmax" "${again[@]:1}" --json
[ "$(member command)" = "${again[*]}" ] || fail "another command the second time"
[ "$(grep -oE '"cell":\{[^}]*\}' "$dir/out")" = "$(grep -oE '"cell":\{[^}]*\}' "$dir/record")" ] ||
	fail "another cell the second time"

# An aligned site, as text: no gap, and none thrown away.
expect 0 "$tmax" gaps "${seat[@]}" --crossing none --seconds 0.5s
for line in '^outcome  *done$' '^stores  *[1-9][0-9]* in ' '^executions  *[1-9]' '^old-front  *0 gaps' \
	'^new-front  *0 gaps' '^discarded  *wrap 0, late 0, preempted 0, stale 0, lost 0$' \
	'^clocks  *-\?[0-9]* ticks apart, within [0-9]*$' '^again  *tmax gaps '; do
	grep -q -- "$line" "$dir/out" || fail "text without $line"
done

while read -r word option value; do
	complains 64 "$word" "$tmax" gaps "$option" "$value"
	[ ! -s "$dir/out" ] || fail "gaps $option $value: something on stdout"
done <<'LIST'
split --split 1
split --split 5
protocol --protocol naive
protocol --protocol hope
sites --provoker sites
provoker --provoker storm
crossing --crossing 64
executors --executors 0
seconds --seconds soon
LIST
complains 69 executors "$tmax" gaps --placement same-core --executors 1024
complains 73 "cannot open journal" "$tmax" gaps "${seat[@]}" --toggles 100 --journal "$dir/no/journal"
if [ -w /dev/full ]; then
	complains 74 "cannot write journal" "$tmax" gaps "${seat[@]}" --toggles 100 --journal /dev/full
fi

# Ended early: that is told.
"$tmax" gaps "${seat[@]}" --seconds 1h --json >"$dir/out" 2>"$dir/err" &
pid=$!
started+=("$pid")
has_child()
{
	[ -n "$(children "$pid")" ]
}
wait_for has_child || fail "no cell begins"
kill -INT "$pid"
rc=0
wait "$pid" || rc=$?
[ "$rc" = 130 ] || fail "status $rc when interrupted"
[ "$(member outcome)" = interrupted ] || fail "outcome $(member outcome) when interrupted"
