#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Another machine's journal, config or topology, rubbish in the place of either, a single
# CPU: one line on stderr, and the status that is documented.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

brief=("$tmax" calibrate --quick --quiet --budget 5s)

# --- another machine ---

for describe in HWLOC_SYNTHETIC="pack:2 core:2 pu:1" HWLOC_XMLFILE=/nonexistent.xml; do
	for command in "stress --toggles 64" "bench toggle" "calibrate --output $dir/no.conf"; do
		read -ra words <<<"$command"
		complains 69 "" env "$describe" "$tmax" "${words[@]}"
	done
done
[ ! -e "$dir/no.conf" ] || fail "a machine that is not here was calibrated"
expect "0 3" env HWLOC_SYNTHETIC="pack:2 core:2 pu:1" "$tmax" info
grep -q 'described machine' "$dir/out" || fail "info takes a described machine for this one"

"$tmax" stress "${seat[@]}" --toggles 64 --journal "$dir/here" >/dev/null || [ $? = 1 ]
sed 's/"microcode":"[^"]*"/"microcode":"0xbadbad"/' "$dir/here" >"$dir/elsewhere"
! cmp -s "$dir/here" "$dir/elsewhere" || fail "the journal names no machine"
cp "$dir/elsewhere" "$dir/before"
complains 64 "microcode differs" "${brief[@]}" --output "$dir/no.conf" --resume \
	--journal "$dir/elsewhere"
cat "$dir/here" >>"$dir/elsewhere"
complains 64 "of another machine" "${brief[@]}" --output "$dir/no.conf" --resume \
	--journal "$dir/elsewhere"
cat "$dir/here" >>"$dir/before"
cmp -s "$dir/before" "$dir/elsewhere" || fail "the journal of another machine was written to"
[ ! -e "$dir/no.conf" ] || fail "resumed on another machine's journal"

# --- a journal of rubbish: the calibration stands ---

# What it knows of this machine is before it.
record
replay "$dir/rubbish" 1
lines=$(wc -l <"$dir/rubbish")
# To every byte its newline now and then, so that there are many lines.
{
	awk 'BEGIN { srand(1); for (i = 0; i < 20000; i++) printf "%c", 1 + int(rand() * 255) }'
	printf '%s\n' '{"type":"cell","schema":1}' '{"type":"run","schema":1,"identity":[]}' '[[[[' '{'
} | head -c -1 >>"$dir/rubbish"
expect "0 1 2" "${brief[@]}" --output "$dir/plain.conf" --journal "$dir/rubbish" --resume
[ "$(grep -c 'unreadable lines\? skipped' "$dir/err")" = 1 ] || fail "rubbish is not told"
[ "$(wc -l <"$dir/err")" = 1 ] || fail "more is told than that"
grep -q '^usable = ' "$dir/plain.conf" || fail "no config behind rubbish"
sed "1,${lines}d" "$dir/rubbish" | sed -n '/^{"type":"run","schema":2,"date":/,$p' >"$dir/sound"
has_cells "$dir/sound" 1 || fail "the run is not in the journal of rubbish"
valid "$dir/sound"

# --- machine.conf that is none ---

mkdir "$dir/folder"
mkfifo "$dir/pipe"
conf_of_here >"$dir/good.conf"
head -c 300 "$dir/good.conf" >"$dir/cut.conf"
head -n 12 "$dir/good.conf" >"$dir/short.conf"
head -c 70000 /dev/zero | tr '\0' '#' >"$dir/big.conf"
head -c 5000 /dev/zero >"$dir/zero.conf"
: >"$dir/empty.conf"
tr '\n' ' ' <"$dir/good.conf" >"$dir/line.conf"
sed 's/^first = .*/first = -1/' "$dir/good.conf" >"$dir/negative.conf"
sed 's/^first = .*/first = 99999999999999999999/' "$dir/good.conf" >"$dir/overflow.conf"
sed 's/^upper_p = .*/upper_p = nan/' "$dir/good.conf" >"$dir/nan.conf"
sed 's/^schema = .*/schema = 5/' "$dir/good.conf" >"$dir/newer.conf"
sed 's/^first = .*/&\n&/' "$dir/good.conf" >"$dir/twice.conf"
ln -s loop.conf "$dir/loop.conf"
for bad in cut.conf:refused short.conf:missing big.conf:larger zero.conf:NUL \
	empty.conf:missing line.conf:refused \
	negative.conf:first overflow.conf:first nan.conf:upper_p newer.conf:schema \
	twice.conf:twice loop.conf:symbolic none.conf:"No such" folder:regular pipe:regular; do
	PATCHCORE_MACHINE_CONF=$dir/${bad%%:*} complains 3 "${bad#*:}" "$tmax" info
	grep -q '^  verdict  *refused$' "$dir/out" || fail "$bad is not refused"
done

# --- a cpuset of one CPU ---

if command -v taskset >/dev/null; then
	expect 2 taskset -c "${allowed[0]}" "${brief[@]}" --output "$dir/one.conf" \
		--journal "$dir/one" --verbose
	valid "$dir/one"
	has_cells "$dir/one" 1 || fail "nothing was tried"
	grep -q '^reason = only one CPU was allowed' "$dir/one.conf" || fail "it is not told why"
	if grep '"type":"cell"' "$dir/one" | grep -v '"placement":"oversubscribed"'; then
		fail "more than one CPU was used"
	fi
	for placement in same-core same-l2 same-l3 same-socket cross-socket kind-up kind-down \
		spread; do
		sed '1,/^\[untested\]/d' "$dir/one.conf" | grep "^$placement = ." >/dev/null ||
			fail "$placement is not among the untested"
		grep -q "^  $placement  *not tested: ." "$dir/out" || fail "$placement is not told"
	done
	# Nothing was seen, so nothing is added, and what was known stays.
	[ ! -e "$dir/one.conf.evidence" ] || fail "evidence of a run that saw nothing"
	echo old >"$dir/one.conf"
	grep -v '"type":"estimate"' "$dir/one" >"$dir/recorded"
	replay "$dir/one"
	expect 2 taskset -c "${allowed[0]}" "${brief[@]}" --output "$dir/one.conf" \
		--journal "$dir/one" --resume
	[ "$(cat "$dir/one.conf")" = old ] || fail "a run that saw nothing replaced the config"
	grep -q "^Config:  $dir/one.conf, as it was" "$dir/out" || fail "it does not say so"
	complains 69 "with 1 executor: only one CPU" taskset -c "${allowed[0]}" "$tmax" stress
else
	echo "a cpuset of one CPU not tested: no taskset"
fi
