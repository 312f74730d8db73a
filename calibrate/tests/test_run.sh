#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Real calibrations, as short as can be: what they write agrees with itself and is taken by the
# library on this machine only; one that is killed is resumed where its journal stops.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# No noise of this machine can make the verdict "fail": there is always a longer wait.
short=(--quick --ceiling 1000000000)

# conf_says NAME FILE SECTION - the value of a name in the config
conf_says()
{
	awk -v section="[$3]" -v name="$1" '
		/^\[/ { inside = $0 == section }
		inside && $1 == name && $2 == "=" { sub(/^[^=]*= /, ""); print }' "$2"
}

# cells JOURNAL - of each readable cell: stage protocol first second outcome toggles crossing noisy
cells()
{
	local any='[^"]*'

	sed -nE "/^\{.*\}\$/ s/^.*\"type\":\"cell\".*\"stage\":\"($any)\".*\"noisy\":(true|false).*\
\"crossing\":\"($any)\".*\"protocol\":\"($any)\".*\
\"first_wait\":([0-9]+),\"second_wait\":([0-9]+).*\"outcome\":\"($any)\".*\
\"error\":[-0-9]+,\"toggles\":([0-9]+).*/\1 \4 \5 \6 \7 \8 \3 \2/p" "$1"
}

# agrees CONF JOURNAL - config, last estimate of the journal, its cells and exit status $rc
agrees()
{
	local verdict usable toggles crossing

	grep '"type":"estimate"' "$2" | tail -n 1 >"$dir/estimate"
	[ -s "$dir/estimate" ] || fail "no estimate in $2"
	verdict=$(conf_says verdict "$1" tmax)
	usable=$(conf_says usable "$1" wait)
	case "$rc $verdict $usable" in
	"0 pass yes" | "2 inconclusive no") ;;
	*) fail "exit status $rc, verdict $verdict, usable $usable" ;;
	esac
	[ "$(member verdict "$dir/estimate")" = "$verdict" ] || fail "another verdict in $2"
	[ "$(member reason "$dir/estimate")" = "$(conf_says reason "$1" tmax)" ] ||
		fail "another reason in $2"
	grep -qF "Verdict: $verdict" "$dir/out" || fail "another verdict in the summary"
	# The first of its name in the line is the machine's own.
	sed -E 's/"claims":.*//' "$dir/estimate" >"$dir/machine"
	[ "$(member first_wait "$dir/machine")" = "$(conf_says first "$1" wait)" ] ||
		fail "another first wait in $2"
	[ "$(member second_wait "$dir/machine")" = "$(conf_says second "$1" wait)" ] ||
		fail "another second wait in $2"
	for crossing in line page; do
		toggles=$(cells "$2" | awk -v first="$(conf_says first "$1" "crossing $crossing")" \
			-v second="$(conf_says second "$1" "crossing $crossing")" \
			-v crossing="$crossing" '
			$1 == "campaign" && $2 == "wait" && $3 == first && $4 == second &&
			$5 == "done" && $7 == crossing && $8 == "false" { sum += $6 }
			END { printf "%.0f\n", sum }')
		[ "$(conf_says toggles "$1" "crossing $crossing")" = "$toggles" ] ||
			fail "cells across a $crossing in $2 have $toggles toggles, the config not"
	done
}

# --- one run ---

expect "0 2" "$tmax" calibrate "${short[@]}" --budget 8s --output "$dir/run/machine.conf" \
	--journal "$dir/journal" --figure "$dir/figure"
agrees "$dir/run/machine.conf" "$dir/journal"
cp "$dir/out" "$dir/summary"
cp "$dir/err" "$dir/progress"
valid "$dir/journal"
[ "$(ls "$dir/run")" = machine.conf ] || fail "left beside the config: $(ls "$dir/run")"
[ "$(conf_says journal "$dir/run/machine.conf" tmax)" = journal ] || fail "the journal's name"
for words in 'Machine: ' 'Atomic window: ' "Config:  $dir/run/machine.conf" \
	"Journal: $dir/journal"; do
	grep -qF "$words" "$dir/summary" || fail "summary without $words"
done
[ "$(head -n 1 "$dir/journal" | member type /dev/stdin)" = run ] || fail "no run line first"

# Plain lines where there is no terminal.
grep -q 'tears in .* toggles; .* s left$' "$dir/progress" || fail "no progress on stderr"
if grep -q "$(printf '[\r\033]')" "$dir/progress"; then
	fail "terminal codes where there is no terminal"
fi

# Every placement is a section or a gap.
for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down spread \
	oversubscribed; do
	sections=$(grep -c "^\[placement $placement " "$dir/run/machine.conf" || true)
	gap=$(conf_says "$placement" "$dir/run/machine.conf" gaps)
	case "$sections:$gap" in
	0: | [1-9]*:?*) fail "$placement is $sections sections and gap '$gap'" ;;
	esac
done

if command -v gnuplot >/dev/null; then
	grep -qF '</svg>' "$dir/figure.svg" || fail "no figure.svg"
	[ "$(head -c 4 "$dir/figure.png" | tail -c 3)" = PNG ] || fail "no figure.png"
	grep -qF "Figure:  $dir/figure.svg" "$dir/summary" || fail "no figure in the summary"
else
	grep -q 'no figure' "$dir/progress" || fail "nothing tells that there is no figure"
fi
[ -s "$dir/figure.dat" ] || fail "no figure.dat"

# Any cell of it can be run again.
read -ra again < <(grep '"type":"cell"' "$dir/journal" | tail -n 1 | member command /dev/stdin)
expect "0 1" "$tmax" "${again[@]:1}" --toggles 64 --json
valid "$dir/out"

# --- its config ---

# info_says STATUS WORDS CONF
info_says()
{
	PATCHCORE_MACHINE_CONF=$3 expect "$1" "$tmax" info
	grep -qF "$2" "$dir/out" || fail "info on ${3##*/} does not say '$2'"
}

conf=$dir/run/machine.conf
if [ "$(conf_says tsc_invariant "$conf" identity)" = no ]; then
	echo "no invariant TSC: no config can be valid here"
elif [ "$(conf_says usable "$conf" wait)" = yes ]; then
	info_says 0 "valid" "$conf"
else
	info_says 3 "refused" "$conf"
fi
# What a longer run would have written.
sed 's/^usable = .*/usable = yes/; s/^toggles = 0$/toggles = 1/' "$conf" >"$dir/usable.conf"
if [ "$(conf_says tsc_invariant "$conf" identity)" = yes ]; then
	info_says 0 "valid" "$dir/usable.conf"
fi
while read -r field value; do
	awk -v field="$field" -v value="$value" '
		/^\[/ { inside = $0 == "[identity]" }
		inside && $1 == field { $0 = field " = " value } { print }' \
		"$dir/usable.conf" >"$dir/foreign.conf"
	! cmp -s "$dir/usable.conf" "$dir/foreign.conf" || fail "$field is $value already"
	info_says 3 "$field differs" "$dir/foreign.conf"
	grep -qF "$field differs" "$dir/err" || fail "nothing of $field on stderr"
done <<'LIST'
microcode 0xbadbad
vendor Nobody
hypervisor Elsewhere
cpus 4096
tsc_khz 1
LIST

# --- killed and resumed ---

# keys JOURNAL - of the cells that can be read
keys()
{
	grep '^{.*}$' "$1" | sed -nE 's/.*"type":"cell".*"key":"([^"]*)".*/\1/p'
}

killed=$dir/killed/machine.conf
journal=$killed.jsonl # where it lies unless told otherwise
resumable=("$tmax" calibrate "${short[@]}" --budget 10s --quiet --output "$killed")

"${resumable[@]}" >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" 10 || fail "no cells"
kill -KILL $!
wait $! || true
[ ! -e "$killed" ] || fail "a killed run left a config"
cp "$journal" "$dir/before"
valid "$dir/before"

"${resumable[@]}" --resume >"$dir/out" 2>"$dir/err" &
started+=($!)
wait_for has_cells "$journal" $(($(count_cells "$dir/before") + 10)) || fail "not resumed"
kill -KILL $!
wait $! || true
[ ! -s "$dir/err" ] || fail "a journal without fault is complained of"
head -n "$(wc -l <"$dir/before")" "$journal" | cmp -s - "$dir/before" ||
	fail "what a killed run had written has changed"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"

# The next one is cut in the middle of its last line.
lost=$(keys "$journal" | tail -n 1)
truncate -s -60 "$journal"
cut=$(($(wc -l <"$journal") + 1))
valid <(head -n "$((cut - 1))" "$journal")
expect "0 2" "${resumable[@]}" --resume
[ "$(wc -l <"$dir/err")" = 1 ] || fail "a cut line is not told with one line"
grep -q "1 unreadable.* line $cut\$" "$dir/err" || fail "it is not told that line $cut is cut"
agrees "$killed" "$journal"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"
keys "$journal" >"$dir/keys"
grep -qxF "$lost" "$dir/keys" || fail "the cell that was cut was not run again"
valid <(sed "${cut}d" "$journal")
[ "$(grep -c '"type":"run"' "$journal")" = 3 ] || fail "not one run line per start"

# And what is complete is not run again.
expect "0 2" "${resumable[@]}" --resume
agrees "$killed" "$journal"
[ -z "$(keys "$journal" | sort | uniq -d)" ] || fail "cells were run again"
