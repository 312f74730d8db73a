#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The command line: what help lists is what is taken, nonsense is refused with one line and
# status 64, and what is printed as JSON is what the schema says.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# --- help and options ---

expect 64 "$tmax"
complains 64 "'bogus'" "$tmax" bogus
complains 64 "'--bogus'" "$tmax" --bogus
complains 64 "''" "$tmax" ''
[ "$hint" = "tmax --help" ] || fail "'$hint' is where help is"
for option in help -h --help "help -h" "help --help"; do
	# shellcheck disable=SC2086 # one or two words
	expect 0 "$tmax" $option
	grep -q '^Usage: tmax COMMAND' "$dir/out" || fail "$option without usage"
done
mapfile -t commands < <(sed -nE 's/^  ([a-z]+) .*/\1/p' "$dir/out")
[ "${commands[*]}" = "calibrate verify conform info evidence report export merge fleet stress protocols gaps litmus bench" ] || fail "commands: ${commands[*]}"
for option in --version -V; do
	expect 0 "$tmax" $option
	[ "$(cat "$dir/out")" = "tmax ${PACKAGE_VERSION:?make check sets it}" ] || fail "$option"
done

# options_taken COMMAND - by getopt's own account: an abbreviation that fits several names is
# refused with a list of them, one that fits a single name is told by what its argument lacks.
options_taken()
{
	local letter

	for letter in {a..z}; do
		expect 64 "$tmax" "$1" "--$letter=x" --bogus
		sed -i '/^Try /d' "$dir/err"
		if grep -q ambiguous "$dir/err"; then
			sed 's/.*possibilities://' "$dir/err" | grep -oE -- '--[a-z-]+'
		elif grep -q "doesn't allow" "$dir/err"; then
			grep -oE -- "--[a-z-]+" "$dir/err" | sed -n 1p
		elif ! grep -q "unrecognized option '--$letter=x'" "$dir/err"; then
			complains 64 "requires an argument" "$tmax" "$1" "--$letter"
			grep -oE -- "--[a-z-]+" "$dir/err" | sed -n 1p
		fi
	done
}

complains 64 "'bogus'" "$tmax" help bogus
# What a command can be asked for is in its own help.
expect 0 "$tmax" help fleet report
grep -q '^Usage: tmax fleet' "$dir/out" || fail "help fleet report says $(head -1 "$dir/out")"
for command in "${commands[@]}"; do
	expect 0 "$tmax" "$command" --help
	cp "$dir/out" "$dir/help"
	awk 'length > 80 { exit 1 }' "$dir/help" || fail "$command --help is wider than 80 columns"
	expect 0 "$tmax" "$command" -h
	cmp -s "$dir/out" "$dir/help" || fail "$command -h is not --help"
	expect 0 "$tmax" help "$command"
	cmp -s "$dir/out" "$dir/help" || fail "help $command is not $command --help"
	[ ! -s "$dir/err" ] || fail "$command --help on stderr"
	grep -q "^Usage: tmax $command" "$dir/out" || fail "$command --help without usage"
	grep -q 'Exit status: 0' "$dir/out" || fail "$command --help without exit statuses"
	sed -nE 's/^  (--[a-z-]+)( [A-Z]+)?( .*)?$/\1\2/p' "$dir/out" >"$dir/listed"
	[ -s "$dir/listed" ] || fail "$command --help lists nothing"
	while read -r option argument; do
		if [ -n "$argument" ]; then
			complains 64 "$option" "$tmax" "$command" "$option"
		else
			complains 64 "$option" "$tmax" "$command" "$option=x"
		fi
		grep -qE "requires an argument|doesn't allow an argument" "$dir/err" ||
			fail "$command $option $argument is not what help says"
	done <"$dir/listed"
	cut -d' ' -f1 "$dir/listed" | sort >"$dir/names"
	options_taken "$command" | sort >"$dir/taken"
	diff "$dir/names" "$dir/taken" || fail "$command: help lists <, the program takes >"
	complains 64 "tmax $command: unrecognized option '--bogus'" "$tmax" "$command" --bogus
	[ "$hint" = "tmax $command --help" ] || fail "'$hint' is where help of $command is"
	case $command in
	bench) said=benchmark ;;
	report | merge) said=--output ;;
	fleet) said="report or export" ;;
	*) said=extra ;;
	esac
	complains 64 "$said" "$tmax" "$command" extra
done
complains 64 benchmark "$tmax" bench
complains 64 "benchmark 'toggle' is there twice" "$tmax" bench toggle latent toggle
complains 64 "'all' are all benchmarks" "$tmax" bench toggle all
complains 64 "no benchmark ''; there are toggle, throughput, " "$tmax" bench ''
complains 64 journal "$tmax" bench toggle --journal ''

# --- names that are nearly right, and lists of those that are ---

while IFS='|' read -r text arguments; do
	# shellcheck disable=SC2086 # words
	complains 64 "$text" "$tmax" $arguments
done <<'LIST'
no such command 'calibrat'; did you mean 'calibrate'?|calibrat
no such command 'verfiy'; did you mean 'verify'?|help verfiy
no such command 're'; did you mean 'report'?|re
no such command 'moon'; there are calibrate, verify, conform, info, |moon
--protocol 'atomc': no such name; did you mean 'atomic'?|stress --protocol atomc
--provoker 'cold': no such name; did you mean 'cold-back' or 'cold-front'?|stress --provoker cold
--placement 'moon': no such name; there are same-core, same-l2, same-l3, same-socket, cross-socket, kind-up, kind-down, spread, oversubscribed|gaps --placement moon
--plan 'quik': no such name; did you mean 'quick'?|calibrate --plan quik
--plan 'moon': no such name; there are quick, default, thorough|calibrate --plan moon
--only 'windw': no such name; did you mean 'window'?|calibrate --only windw
--format 'txt': no such name; did you mean 'text'?|verify --format txt
no promise 'flg'; did you mean 'flag'?|conform --only word,flg
no benchmark 'togle'; did you mean 'toggle'?|bench togle
no such action 'reprot'; did you mean 'report'?|fleet reprot a.db
no such action 'moon'; there are report, export, prior|fleet moon a.db
LIST
# hinted OPTION HINT COMMAND - of an option that there is not
hinted()
{
	expect 64 "$tmax" "$3" "$1"
	[ "$(tail -n 1 "$dir/err")" = "Try 'tmax $3 --help'$2" ] || fail "$3 $1: $(tail -n 1 "$dir/err")"
}
hinted --togles=3 "; did you mean '--toggles'?" stress
hinted --verbsoe "; did you mean '--verbose'?" evidence
hinted --moonshine . stress
hinted --s . stress
hinted --seed . stress
hinted --swap=1 . stress
hinted -x . stress

# --- absurd values ---

while read -r command option value; do
	complains 64 "tmax $command: $option" "$tmax" "$command" "$option" "$value"
	[ "$hint" = "tmax $command --help" ] || fail "$command $option $value: no word of help"
	[ ! -s "$dir/out" ] || fail "$command $option $value: something on stdout"
done <<'LIST'
stress --split 0
stress --split 16
stress --split -1
stress --split 1e0
stress --executors 0
stress --executors 5000
stress --executors 18446744073709551617
stress --first-wait -1
stress --first-wait 1000000001
stress --first-wait 18446744073709551616
stress --second-wait 18446744073709554616
stress --rest 99999999999999999999
stress --toggles 0
stress --toggles 1000000000001
stress --seconds -1
stress --seconds soon
stress --seconds nan
stress --stop-tears 18446744073709551615
stress --seed -1
stress --seed 9223372036854775808
stress --seed 0x10
stress --placement moon
stress --crossing 64
stress --pair nop-nop
stress --protocol hope
stress --oracle delphi
calibrate --budget 0
calibrate --budget -5s
calibrate --budget soon
calibrate --budget 1d
calibrate --budget 999999999999h
calibrate --budget 0x10
calibrate --require-p 0
calibrate --require-p 1
calibrate --require-p -1e-4
calibrate --require-p nan
calibrate --require-p 0x1p-9
calibrate --seed -1
calibrate --seed 9223372036854775808
verify --budget 0
verify --budget soon
verify --format yaml
verify --seed -1
verify --seed 9223372036854775808
bench --rounds 0
bench --rounds 10001
bench --seed -1
bench --seed 9223372036854775808
bench --executors 0
bench --executors 1025
bench --waits 3000
bench --waits 3000,
bench --waits ,3000
bench --waits 0,3000
bench --waits 3000,0
bench --waits 3000,1000000001
bench --waits 3000,3000,
bench --waits 3000,3000,65
bench --waits 3000,3000,4,4
bench --waits 3000;3000
LIST
complains 64 budget "$tmax" calibrate --budget 4s
complains 64 output "$tmax" calibrate --output ''
complains 64 journal "$tmax" calibrate --output "$dir/no" --journal ''
complains 64 evidence "$tmax" calibrate --output "$dir/no" --evidence ''
complains 64 "'--ceiling'" "$tmax" calibrate --ceiling 1000
complains 64 "'--target-p'" "$tmax" calibrate --target-p 1e-9
complains 64 "'--stretch'" "$tmax" calibrate --stretch 4
complains 64 "crossing none" "$tmax" stress --crossing none
complains 64 "atomic" "$tmax" stress --crossing line --protocol atomic
[ ! -e "$dir/no" ] || fail "a refused calibration wrote something"

# --- stress ---

tears()
{
	echo $(($(sed -E 's/.*"tears":\{([^}]*)\}.*/\1/; s/"[^"]*"://g; s/,/ + /g' "$dir/out")))
}

cell=(--crossing page --split 2 --pair call-nop --first-wait 70 --second-wait 50 --rest 300
	--toggles 2000 --seconds 20s --stop-tears 7 --seed 42)
expect "0 1" "$tmax" stress "${seat[@]}" "${cell[@]}" --json
[ "$rc" = "$(($(tears) > 0))" ] || fail "status $rc with $(tears) tears"
[ "$(wc -l <"$dir/out")" = 1 ] || fail "a record is one line"
cp "$dir/out" "$dir/record"
valid "$dir/record"
for want in crossing:page split:2 pair:call-nop first_wait:70 second_wait:50 rest:300 \
	stop_tears:7 seed:42 outcome:done; do
	[ "$(member "${want%:*}")" = "${want#*:}" ] || fail "record without $want"
done

# The command of a record runs the same cell.
read -ra again <<<"$(member command)"
[ "${again[*]:0:2}" = "tmax stress" ] || fail "command: ${again[*]}"
expect "0 1" "$tmax" "${again[@]:1}" --json
[ "$(member command)" = "${again[*]}" ] || fail "another command the second time"
[ "$(grep -oE '"cell":\{[^}]*\}' "$dir/out")" = "$(grep -oE '"cell":\{[^}]*\}' "$dir/record")" ] ||
	fail "another cell the second time"

expect "0 1" "$tmax" stress "${seat[@]}" "${cell[@]}" --journal "$dir/journal" --json
{
	in_journal "$dir/record"
	in_journal "$dir/out"
} >"$dir/records"
expect "0 1" "$tmax" stress "${seat[@]}" "${cell[@]}" --journal "$dir/journal"
grep -q '^again  *tmax stress ' "$dir/out" || fail "no command in the text"
[ "$(grep -c '"type":"cell"' "$dir/journal")" = 2 ] || fail "stress --journal appends a record"
grep -qxFf "$dir/records" "$dir/journal" || fail "the journal has not what was printed"
valid "$dir/journal"
complains 69 "executors" "$tmax" stress --placement same-core --executors 1024

# --- evidence ---

expect 3 "$tmax" evidence --evidence "$dir/none"
grep -q '^Nothing is known of these CPUs' "$dir/out" || fail "something is known of nothing"
grep -qF "$dir/none" "$dir/out" || fail "it does not say where it looked"
[ ! -e "$dir/none" ] || fail "to look made a store"
complains 69 "cannot read $dir/nothing" "$tmax" evidence --evidence "$dir/none" --import "$dir/nothing"
complains 69 "cannot read $dir" "$tmax" evidence --evidence "$dir"
complains 74 "cannot write $dir/no/store" "$tmax" evidence --evidence "$dir/no/store" --drop

# --- info ---

is_json()
{
	if command -v python3 >/dev/null; then
		python3 -m json.tool "$1" >/dev/null || fail "$1 is no JSON"
	fi
}

expect "0 3" "$tmax" info
for section in machine sync placements machine.conf; do
	grep -q "^$section" "$dir/out" || fail "info without $section"
done
expect "0 3" "$tmax" info --json
is_json "$dir/out"
for key in schema identity tsc runs_on membarrier placements machine_conf; do
	grep -q "\"$key\":" "$dir/out" || fail "info --json without $key"
done
for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down spread \
	oversubscribed; do
	grep -q "\"$placement\"" "$dir/out" || fail "info --json without $placement"
done

# refused FILE WORDS - by info, in both forms, with status 3
refused()
{
	PATCHCORE_MACHINE_CONF=$1 complains 3 "$2" "$tmax" info
	grep -q '^  verdict  *refused$' "$dir/out" || fail "info does not say that it refused $1"
	PATCHCORE_MACHINE_CONF=$1 complains 3 "$2" "$tmax" info --json
	is_json "$dir/out"
	grep -q '"verdict":"refused"' "$dir/out" || fail "--json does not say that it refused $1"
}

conf_of_here >"$dir/machine.conf"
refused "$dir/missing.conf" "No such file"
sed 's/^microcode = .*/microcode = 0xbadbad/' "$dir/machine.conf" >"$dir/foreign.conf"
refused "$dir/foreign.conf" "microcode differs"
cp "$dir/machine.conf" "$dir/open.conf"
chmod 666 "$dir/open.conf"
refused "$dir/open.conf" "can be written to by others (mode 0666): chmod go-w it"
mkdir -m 777 "$dir/shared"
cp "$dir/machine.conf" "$dir/shared/"
chmod 644 "$dir/shared/machine.conf"
refused "$dir/shared/machine.conf" "its folder can be written to by others"
sed 's/^verdict = .*/verdict = fail/' "$dir/machine.conf" >"$dir/failed.conf"
refused "$dir/failed.conf" "the verdict is not pass"
if can_wait; then
	sed 's/^usable = .*/usable = no/' "$dir/machine.conf" >"$dir/unusable.conf"
	refused "$dir/unusable.conf" "no wait that is safe"
	sed '/^\[scope\]/{n;s/.*/cpus = 8000/}' "$dir/machine.conf" >"$dir/elsewhere.conf"
	refused "$dir/elsewhere.conf" "it was not calibrated on CPU"
	export PATCHCORE_MACHINE_CONF=$dir/machine.conf
	expect 0 "$tmax" info
	[ ! -s "$dir/err" ] || fail "info complains of a good config"
	grep -q '^  verdict  *valid$' "$dir/out" || fail "info does not say that it is valid"
	expect 0 "$tmax" info --json
	grep -q '"verdict":"valid"' "$dir/out" || fail "info --json does not say that it is valid"
	for told in '"policy":"wait"' '"first_wait":3000' '"second_wait":2000'; do
		grep -q "$told" "$dir/out" || fail "info --json without $told"
	done
else
	echo "no TSC to wait by: no config can be valid here"
fi

# --- colours ---

# on_terminal COMMAND - with standard output on a terminal; what it shows goes to $dir/shown
on_terminal()
{
	rc=0
	script -qefc "$1" "$dir/shown" >/dev/null </dev/null || rc=$?
}
missing="'$tmax' verify --config '$dir/missing.conf'"
yellow=$(printf '\033\\[1;33mno config\033\\[0m')
if command -v script >/dev/null; then
	export TERM=xterm
	unset NO_COLOR
	on_terminal "$missing"
	[ "$rc" = 3 ] || fail "exit status $rc on a terminal"
	grep -q "$yellow" "$dir/shown" || fail "no colour on a terminal"
	on_terminal "NO_COLOR=1 $missing"
	if grep -q "$(printf '\033')" "$dir/shown"; then
		fail "colour in spite of NO_COLOR"
	fi
	on_terminal "TERM=dumb $missing"
	if grep -q "$(printf '\033')" "$dir/shown"; then
		fail "colour on a dumb terminal"
	fi
	expect 3 "$tmax" verify --config "$dir/missing.conf"
	grep -q '^Verdict:  no config: ' "$dir/out" || fail "colour where there is no terminal"
else
	echo "colours not tested: no script"
fi
