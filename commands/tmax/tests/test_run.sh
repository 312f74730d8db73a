#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real calibration, as short as can be: what it writes agrees with itself and is taken by the
# library on this machine only.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# --- one run ---

conf=$dir/run/machine.conf
# On a starved machine too little is measured within seconds: then a longer run.
for budget in 7s 30s 120s; do
	rm -rf "$dir/run" "$dir/journal"
	expect "0 1 2" "$tmax" calibrate --quick --budget $budget --output "$conf" --journal "$dir/journal"
	if [ -e "$conf.evidence" ]; then
		break
	fi
done
agrees "$conf" "$dir/journal"
adds_up "$conf" "$conf.evidence" "$dir/journal"
cp "$dir/out" "$dir/summary"
cp "$dir/err" "$dir/progress"
valid "$dir/journal"
valid "$conf.evidence"
# What CPUID said lies beside the store, once for each machine.
expect 0 "$tmax" info --cpuid "$conf".evidence.*.cpuid
grep -qx "  vendor  *$(conf_says vendor "$conf" identity)" "$dir/out" || fail "a dump of another machine"
[ "$(cd "$dir/run" && echo * | sed 's/[.]evidence[.][^ ]*[.]cpuid$/.evidence.cpuid/')" = \
	"machine.conf machine.conf.evidence machine.conf.evidence.cpuid" ] ||
	fail "left beside the config: $(ls "$dir/run")"
[ "$(conf_says journal "$conf" tmax)" = journal ] || fail "the journal's name"
[ "$(conf_says runs "$conf" scope)" = 1 ] || fail "one run is not one run"
[ "$(conf_says evidence "$conf" scope)" = this-run ] || fail "one run speaks for more than itself"
[ "$(wc -l <"$dir/summary")" -le 15 ] || fail "the summary is longer than 15 lines"
for words in 'Machine: ' 'Sure: ' 'A change of code ' 'Noise: ' 'Next: ' "Config:  $conf" "Journal: $dir/journal" \
	"evidence: $conf.evidence"; do
	grep -qF "$words" "$dir/summary" || fail "summary without $words"
done
[ "$(head -n 1 "$dir/journal" | member type /dev/stdin)" = run ] || fail "no run line first"

# Plain lines where there is no terminal.
grep -q '^[0-9]*:[0-9][0-9] left, .* tears\? in .* toggles; ' "$dir/progress" || fail "no progress on stderr"
! grep -E 'ticks| x[0-9]' "$dir/progress" || fail "progress in ticks"
if grep -q "$(printf '[\r\033]')" "$dir/progress"; then
	fail "terminal codes where there is no terminal"
fi

# Every placement has evidence or a reason why it was not tested.
for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down spread \
	oversubscribed; do
	seats=$(grep -c "\"placement\":\"$placement\"" "$conf.evidence" || true)
	untested=$(conf_says "$placement" "$conf" untested)
	case "$seats:$untested" in
	0: | [1-9]*:?*) fail "$placement is in $seats lines of the store, and untested for '$untested'" ;;
	esac
done

# Any cell of it can be run again.
read -ra again < <(grep '"type":"cell"' "$dir/journal" | tail -n 1 | member command /dev/stdin)
expect "0 1" "$tmax" "${again[@]:1}" --toggles 64 --json
valid "$dir/out"

# The store tells the same as the run that wrote it, whose noise is its own.
expect 0 "$tmax" evidence --evidence "$conf.evidence"
grep -q '^Evidence: .*: 1 run in 1 hour and 1 boot, the latest .*; epoch 1$' "$dir/out" ||
	fail "the store does not tell of one run"
grep -vE '^(Noise|Since|Config|Journal): ' "$dir/summary" | diff - <(sed 1d "$dir/out") ||
	fail "evidence tells < otherwise than the calibration"
[ "$(wc -l <"$dir/out")" -le 15 ] || fail "what evidence tells is longer than 15 lines"
expect 0 "$tmax" evidence --evidence "$conf.evidence" --verbose
grep -q '^  epoch 1  .*  quick .*toggles' "$dir/out" || fail "--verbose does not list the run"
grep -q '^Every rung ' "$dir/out" || fail "--verbose does not tell every rung"

# --- as JSON ---

# Of the cells of that run.
mkdir "$dir/json"
grep -v '"type":"estimate"' "$dir/journal" >"$dir/recorded"
replay "$dir/json/machine.conf.jsonl"
expect "0 1 2" "$tmax" calibrate --quick --budget 5s --quiet --output "$dir/json/machine.conf" --json \
	--resume
[ "$(wc -l <"$dir/out")" = 1 ] || fail "the estimate is not one line"
valid "$dir/out"
in_journal "$dir/out" >"$dir/printed"
tail -n 1 "$dir/json/machine.conf.jsonl" | cmp -s - "$dir/printed" ||
	fail "another estimate is printed than is in the journal"
[ "$(member type)/$(member schema)" = estimate/2 ] || fail "what is printed has no envelope"
case "$rc $(member verdict)" in
"0 pass" | "1 fail" | "2 inconclusive") ;;
*) fail "exit status $rc with verdict $(member verdict)" ;;
esac
[ "$(member verdict)" = "$(conf_says verdict "$dir/json/machine.conf" tmax)" ] ||
	fail "another verdict in the config"

# --- its config ---

# info_says STATUS WORDS CONF
info_says()
{
	PATCHCORE_MACHINE_CONF=$3 expect "$1" "$tmax" info
	grep -qF "$2" "$dir/out" || fail "info on ${3##*/} does not say '$2'"
}

if ! can_wait; then
	echo "no TSC to wait by: no config can be valid here"
elif [ "$(conf_says schema "$conf" tmax)" -lt 4 ]; then
	echo "the library of this tree does not read levels yet: its config is not tried"
else
	if [ "$(conf_says usable "$conf" wait)" = yes ]; then
		info_says 0 "valid" "$conf"
	else
		info_says 3 "refused" "$conf"
	fi
	# What a longer run would have written.
	sed 's/^verdict = .*/verdict = pass/; s/^usable = .*/usable = yes/' "$conf" >"$dir/usable.conf"
	# On a machine with much else to do it may have found no level.
	[ "$(conf_says levels "$conf" wait)" != 0 ] || conf_of_here >"$dir/usable.conf"
	info_says 0 "valid" "$dir/usable.conf"
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
vendor Foreign
hypervisor Elsewhere
cpus 4096
tsc_khz 1
LIST
fi
