#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax protocols on this machine: what is broken on purpose tears, also where a file claims that it holds; every
# form has the same rows, the page too, and a claim is tested only if that is asked for.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# claiming NAME SED-EXPRESSION - a file of that name: text-poke, changed
claiming()
{
	sed -E "s/^name .*/name $1/; $2" "$top/stress/protocols/text-poke.protocol" >"$dir/$1.protocol"
	! cmp -s "$top/stress/protocols/text-poke.protocol" "$dir/$1.protocol" || fail "$1 is as it was"
}

# The guard dropped, so that a mix stands for a sync.
claiming unguarded '/^guard/d; /^supports [^l]/d; s/^supports line/supports line 3/; s/plain tail/plain back/; s/plain 0/plain front/'
claiming sound '/^supports [^l]/d; s/^supports line/supports line 3/'

# until_seen STATUS OPTION... - tmax protocols, for longer and longer while the machine is too busy to see much
until_seen()
{
	local status=$1 budget

	shift
	for budget in 2 4 8 16 32; do
		rm -f "$dir/journal"
		expect "0 1 2" "$tmax" protocols --budget ${budget}s --journal "$dir/journal" "$@"
		[ "$rc" != "$status" ] || return 0
	done
	fail "exit status $rc, not $status, after $budget s"
}

until_seen 1 --strict --format json --seed 5 "$dir/unguarded.protocol" "$dir/sound.protocol"
valid "$dir/out"
valid "$dir/journal"
cp "$dir/out" "$dir/json"
command -v python3 >/dev/null && python3 - "$dir/json" <<'READER'
import json, sys

told = json.load(open(sys.argv[1]))
rows = {row["name"].rsplit("/", 1)[-1]: row for row in told["protocols"]}
assert told["seed"] == "5", told
assert set(rows) == {"unguarded.protocol", "sound.protocol", "no-int3"}, rows.keys()
torn = rows["unguarded.protocol"]["claimed"]
assert torn["verdict"] == "tears" and torn["torn"] > 0, torn
assert "/unguarded.protocol" in torn["witness"]["command"], torn
sound = rows["sound.protocol"]["claimed"]
assert sound["verdict"] in ("holds", "unclear") and sound["torn"] == 0 and sound["upper_p"] <= 1, sound
assert rows["no-int3"]["broken"] and rows["no-int3"]["claimed"]["sites"] == 0
READER

# Its witness is found again by the command that is told.
command=$(sed -nE 's/.*"command":"tmax (stress [^"]*unguarded[^"]*)".*/\1/p' "$dir/json")
# shellcheck disable=SC2086 # words
expect 1 "$tmax" $command --stop-tears 1 --seconds 20s

# The page has each row, and says what a row is of.
expect 0 "$tmax" report --output "$dir/page" "$dir/journal"
for word in 'Protocols on trial' unguarded.protocol no-int3 'sequence of steps, as read in its source'; do
	grep -q "$word" "$dir/page/index.html" || fail "the page has no $word"
done

# Without one that tears nothing is known, and there is nothing to draw.
grep -vE '"protocol":"[^"]*(no-int3|unguarded)' "$dir/journal" >"$dir/blind"
expect 0 "$tmax" report --output "$dir/blind-page" "$dir/blind"
[ ! -s "$dir/err" ] || fail "a figure is missing"
grep -q 'Too little was seen for a figure' "$dir/blind-page/index.html" || fail "there is a figure of nothing"
grep -q unclear "$dir/blind-page/index.html" || fail "a blind run says something"

# A fleet takes it once, and tells whose steps broke on which kind of machine.
for added in 1 0; do
	expect 0 "$tmax" merge -o "$dir/fleet.db" --machine here "$dir/journal"
	grep -q "^$added run" "$dir/out" || fail "not $added runs are added"
done
expect 0 "$tmax" fleet report "$dir/fleet.db"
grep -qE "unguarded.protocol, these steps as read in its source.* [1-9][^ ]* of [^ ]* changes tore.* 1 machine$" "$dir/out" ||
	fail "the fleet knows of no tear"

until_seen 1 --strict "$dir/unguarded.protocol"
grep -qE "^unguarded .* tears " "$dir/out" || fail "no row that tears"
grep -q "^tmax stress --protocol $dir/unguarded.protocol .*# as read in " "$dir/out" || fail "no command"
until_seen 0 --strict --format junit text-poke
valid_junit "$dir/out"
grep -q "this sequence of steps, as read in Linux" "$dir/out" || fail "JUnit names no source"

complains 64 "is no protocol of a file" "$tmax" protocols wait
complains 64 "moon" "$tmax" protocols moon
sed 's/^guard plain/guard plump/' "$top/stress/protocols/text-poke.protocol" >"$dir/bad.protocol"
complains 64 "bad.protocol:" "$tmax" protocols "$dir/bad.protocol"
complains 73 "cannot open journal" "$tmax" protocols --budget 2s --journal "$dir/none/journal" text-poke
