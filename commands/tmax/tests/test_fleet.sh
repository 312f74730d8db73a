#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Evidence of many machines, measured and simulated: merged, told, and nothing added twice.
# By hand: SIMULATED=10000 for the whole simulation.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

runs=$top/results/runs
db=$dir/fleet.db
sim=fleet/tests/simulate

# csv EXPRESSION - of the CSV in $dir/out, by a reader that is not ours: rows is a list of dicts
csv()
{
	command -v python3 >/dev/null || return 0
	python3 -c 'import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8")))
assert rows and all(None not in row and None not in row.values() for row in rows), "ragged"
assert eval(sys.argv[2]), sys.argv[2]' "$dir/out" "$1" 2>"$dir/err" || fail "CSV: $1"
}

# --- measured runs ---

expect 0 "$tmax" merge -o "$db" "$runs"/amd-25-17-1-kvm-ladder/machine.conf.evidence \
	"$runs"/intel-6-167-1-kvm-ladder/machine.conf.evidence
grep -qE '^2 runs added to .*, 0 known before, 0 lines set aside$' "$dir/out" || fail "two runs"
expect 0 "$tmax" merge -o "$db" "$runs"/amd-25-17-1-kvm-ladder/machine.conf.evidence
grep -q '^0 runs added .*, 1 known before' "$dir/out" || fail "a run twice"
expect 0 "$tmax" fleet report "$db"
[ "$(grep -c ' 1 machine, 1 run, ' "$dir/out")" = 2 ] || fail "two kinds of one machine"
grep -qE '^    1e-3  line .* [nu]s .* us .* 1 +1 ' "$dir/out" || fail "no ladder"
grep -q 'One machine alone: there is none to compare it with' "$dir/out" || fail "one machine judged"
grep -qE 'Never tested: .*cross-socket' "$dir/out" || fail "nothing of what was not tested"
expect 0 "$tmax" fleet export --csv "$db"
csv '{row["crossing"] for row in rows} == {"line", "page"}'
csv 'all(float(row["prior_p"]) >= min(1, float(row["upper_p"])) for row in rows)'
expect 0 "$tmax" fleet export "$db"
valid "$dir/out"
[ "$(wc -l <"$dir/out")" = 2 ] || fail "not a line per kind"

# What is none, beside what is.
echo "Dear machine," >"$dir/letter"
: >"$dir/empty"
for file in "$dir/letter" "$dir/empty"; do
	complains 69 "is no evidence" "$tmax" merge -o "$db" "$file" "$runs"/intel-6-167-1-kvm-ladder/machine.conf.evidence
	grep -q '^0 runs added .*, 1 known before, 0 lines set aside$' "$dir/out" || fail "it cost another file"
done
# The same store under two names.
expect 0 "$tmax" merge -o "$db" --machine another "$runs"/amd-25-17-1-kvm-ladder/machine.conf.evidence
expect 0 "$tmax" fleet report "$db"
[ "$(grep -c ' 1 machine, 1 run, ' "$dir/out")" = 2 ] || fail "two names are two machines"

# --- simulated: five of them marginal ---

"$sim" "$dir/sim" "${SIMULATED:-120}"
find "$dir/sim" -name '*.evidence' >"$dir/list"
"$tmax" merge -o "$dir/sim.db" --files-from <"$dir/list" >"$dir/out" || fail "merge --files-from"
expect 1 "$tmax" fleet report "$dir/sim.db"
grep -o 'WORSE THAN ITS KIND: [a-z]*' "$dir/out" | sort | uniq -c >"$dir/named"
[ "$(tr -s ' ' <"$dir/named")" = " 5 WORSE THAN ITS KIND: marginal" ] || fail "$(cat "$dir/named")"
grep -q 'MOVED BY microcode, 0x1 to 0x2: [4-7]' "$dir/out" || fail "the bad microcode is not told"
[ "$(grep -c 'MOVED BY' "$dir/out")" = 1 ] || fail "moved by something else"
sqlite3 "$dir/sim.db" .dump >"$dir/before" 2>/dev/null || true
"$tmax" merge -o "$dir/sim.db" --files-from <"$dir/list" >"$dir/out"
grep -q '^0 runs added' "$dir/out" || fail "a second merge"
sqlite3 "$dir/sim.db" .dump >"$dir/after" 2>/dev/null || true
cmp -s "$dir/before" "$dir/after" || fail "a second merge changes the database"

# --- hostile names and texts ---

names=('a"b' "x'); DROP TABLE run; --" '<script>alert(1)</script>' $'two\nlines' '../../up' $'\xff' 'ü' '.hidden')
"$sim" "$dir/odd" "${#names[@]}" 1 here
stores=("$dir"/odd/*.evidence)
for name in "${names[@]}"; do
	expect 0 "$tmax" merge -o "$dir/odd.db" --machine "$name" "${stores[0]}"
	stores=("${stores[@]:1}")
	grep -q '^1 run added' "$dir/out" || fail "$name is no machine of its own"
done
expect 0 "$tmax" fleet report "$dir/odd.db"
grep -q "^  ${#names[@]} machines, ${#names[@]} runs" "$dir/out" || fail "machines are lost"
expect 0 "$tmax" fleet report --page "$dir/page" "$dir/odd.db"
grep -q '<div class="verdict pass">' "$dir/page/fleet.html" || fail "no box of a fleet that is well"
expect 1 "$tmax" fleet report --page "$dir/bad" "$dir/sim.db"
grep -q '<div class="verdict fail">' "$dir/bad/fleet.html" || fail "no box of a fleet that is not"
[ "$(grep -o '<tr class="bad"><td>[a-z]*' "$dir/bad/fleet.html" | sort | uniq -c | tr -s ' ')" = ' 5 <tr class="bad"><td>marginal' ] ||
	fail "machines that are worse are not listed"
expect 0 "$tmax" fleet report --page "$dir/page" "$dir/odd.db"
mkdir "$dir/mine"
echo "<p>mine</p>" >"$dir/mine/fleet.html"
expect 74 "$tmax" fleet report --page "$dir/mine" "$dir/odd.db"
[ "$(cat "$dir/mine/fleet.html")" = "<p>mine</p>" ] || fail "a page of another program is written over"
[ "$(ls "$dir/mine")" = fleet.html ] || fail "a refused page leaves something: $(ls "$dir/mine")"
if command -v python3 >/dev/null; then
	python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' \
		"$dir/page/fleet.html" || fail "the page is no XML"
fi
if command -v gnuplot >/dev/null; then
	grep -q '<figure>' "$dir/page/fleet.html" || fail "no figure on the page"
	grep -qE 'aria-label="Tears per change' "$dir/page/fleet.html" ||
		fail "no text for readers that do not see the figure"
fi
expect 0 "$tmax" fleet export --textfile "$dir/prom" "$dir/odd.db"
[ "$(find "$dir" -name '*.prom' | wc -l)" = "${#names[@]}" ] || fail "not a file per machine"
[ "$(find "$dir/prom" -type f ! -name '.*' | wc -l)" = "${#names[@]}" ] || fail "other or hidden files"
grep -hqF 'machine="a\"b"' "$dir"/prom/*.prom || fail "a quote is not escaped"
grep -hqF 'machine="two\nlines"' "$dir"/prom/*.prom || fail "the end of a line is not escaped"

# --- metrics ---

expect 0 "$tmax" fleet export --textfile "$dir/metrics" "$dir/sim.db"
grep -qF '"} 1' "$dir"/metrics/marginal-0.prom || fail "no info"
[ "$(cat "$dir"/metrics/*.prom | grep -c '^tmax_machine_suspect{.*} 1$')" = 5 ] || fail "others are suspect"
cat "$dir"/metrics/*.prom "$dir"/prom/*.prom | grep -v '^#' | sed 's/ [^ ]*$//' | sort | uniq -d >"$dir/twice"
[ ! -s "$dir/twice" ] || fail "series that stand twice: $(head -n 3 "$dir/twice")"
! cat "$dir"/metrics/*.prom | grep -v '^#' | grep -qvE '^[a-z_]+\{[^}]*\} [0-9.e+-]+$' || fail "no metric, or a timestamp"
[ -z "$(find "$dir/metrics" -name '*.tmp')" ] || fail "something is left"
if command -v promtool >/dev/null; then
	for file in "$dir"/prom/*.prom "$dir/metrics/marginal-0.prom"; do
		promtool check metrics <"$file" >"$dir/out" 2>&1 || fail "promtool: $file"
	done
	# What it is to see, it sees.
	sed '/^# HELP/d' "$file" | promtool check metrics >"$dir/out" 2>&1 &&
		fail "promtool takes metrics without a word of help"
	cp "$top/fleet/export/tmax-fleet.rules.yml" "$top/fleet/export/tests/rules-test.yml" "$dir"
	(cd "$dir" && promtool test rules rules-test.yml >"$dir/out" 2>&1) || fail "the alerts"
	sed -i 's/tmax_machine_suspect == 1/tmax_machine_suspect == 2/' "$dir/tmax-fleet.rules.yml"
	(cd "$dir" && promtool test rules rules-test.yml >"$dir/out" 2>&1) && fail "an alert that cannot fire"
else
	echo "promtool is not installed: metrics and alerts are not checked"
fi

# --- a prior for this machine ---

conf=$dir/conf/machine.conf
"$sim" "$dir/here" 60 1 here
"$tmax" merge -o "$dir/here.db" "$dir"/here/*.evidence >"$dir/out"
expect 0 "$tmax" fleet export -o "$dir/here.prior" "$dir/here.db"
valid "$dir/here.prior"
expect 0 "$tmax" fleet prior "$dir/here.prior" -o "$conf"
grep -q '^Verdict: inconclusive' "$dir/out" || fail "60 machines exclude too much"
expect 0 "$tmax" fleet prior --require-p 0.2 "$dir/here.prior" -o "$conf"
grep -q '^Verdict: pass' "$dir/out" || fail "60 machines exclude nothing"
[ "$(conf_says source "$conf" tmax)" = fleet ] || fail "no word of the fleet"
awk '/_p = / && $1 != "require_p" && $3 < 3 / 60 * 0.97 { exit 1 }' "$conf" || fail "a bound below 3 / 60"
if can_wait; then
	PATCHCORE_MACHINE_CONF=$conf expect 0 "$tmax" info
	grep -qE '^  source +a fleet' "$dir/out" || fail "info does not tell of the fleet"
	PATCHCORE_MACHINE_CONF=$conf expect 0 "$tmax" info --json
	[ "$(member fleet)" = true ] || fail "info --json does not tell of the fleet"
fi
# What was measured stays; also where it would only be hidden; also what is damaged.
sed -i '/^source/s/fleet/calibration/' "$conf"
cp "$conf" "$dir/measured"
complains 73 "is no prior" "$tmax" fleet prior "$dir/here.prior" -o "$conf"
PATCHCORE_MACHINE_CONF=$conf complains 73 "is no prior" "$tmax" fleet prior "$dir/here.prior"
cmp -s "$conf" "$dir/measured" || fail "a measured config was changed"
echo nonsense >"$dir/other.conf"
complains 73 "is no prior" "$tmax" fleet prior "$dir/here.prior" -o "$dir/other.conf"
rm "$conf"
sed 's/"microcode":"[^"]*"/"microcode":"0xbad"/' "$dir/here.prior" >"$dir/other.prior"
complains 3 "no machines like this one" "$tmax" fleet prior "$dir/other.prior" -o "$conf"
sed 's/"tsc_khz":\[[0-9]*,[0-9]*\]/"tsc_khz":[1000,1000]/' "$dir/here.prior" >"$dir/other.prior"
complains 3 "another rate" "$tmax" fleet prior "$dir/other.prior" -o "$conf"
sed 's/"placements":\[[^]]*\]/"placements":[]/' "$dir/here.prior" >"$dir/other.prior"
complains 3 "calibrate" "$tmax" fleet prior "$dir/other.prior" -o "$conf"
sed 's/"upper_p":0[.0-9e-]*/"upper_p":1e-9/g' "$dir/here.prior" >"$dir/other.prior"
complains 69 "contradicts itself" "$tmax" fleet prior "$dir/other.prior" -o "$conf"
complains 69 "no table" "$tmax" fleet prior "$top/README.md" -o "$conf"
[ ! -e "$conf" ] || fail "a config all the same"

# --- what cannot be done ---

echo '{"type":"evidence"}' >"$dir/bad.evidence"
expect 0 "$tmax" merge -o "$db" "$dir/bad.evidence"
grep -q '1 line set aside' "$dir/out" || fail "a bad line is not told"
expect 69 "$tmax" merge -o "$db" "$dir/none.evidence" "$dir/bad.evidence"
complains 69 "no fleet's database" "$tmax" merge -o "$dir/bad.evidence" "$runs"/*/machine.conf.evidence
complains 69 "cannot read" "$tmax" fleet report "$dir/none.db"
expect 69 "$tmax" merge -o "$dir/none/db" "$dir/bad.evidence"
complains 64 "report or export" "$tmax" fleet "$db"
complains 64 "no such action" "$tmax" fleet draw "$db"
complains 64 "report has no --csv" "$tmax" fleet report --csv "$db"
complains 64 "goes with neither" "$tmax" fleet export --csv --textfile "$dir/x" "$db"
complains 64 "must be a probability" "$tmax" fleet prior --require-p 2 "$dir/here.prior"
complains 74 "cannot export" "$tmax" fleet export -o "$dir/none/x" "$db"
