#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Journals, evidence and names of files that mean harm: no markup of theirs on the page, no command of
# theirs to shell or gnuplot, and nothing that a terminal obeys in what is printed.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

if ! command -v python3 >/dev/null; then
	echo "python3 is not installed, nothing was tried"
	exit 77
fi
if [ ! -d "$top/results/runs" ]; then
	echo "the measured runs are not in this package, nothing was tried"
	exit 77
fi
export PYTHONDONTWRITEBYTECODE=1
sample=$(realpath "${TMAX_REPORT_JOURNAL:-commands/report/tests/report_journal}")
hostile=$(realpath "$top")/calibrate/tests/hostile.py
runs=$(realpath "$top")/results/runs
cd "$dir"
mkdir bad pages printed

# harmless PAGE TEXT... - fails unless they are
harmless()
{
	python3 "$hostile" page "$1" >"$dir/faults" || fail "$(cat "$dir/faults")"
	shift
	python3 "$hostile" text "$@" >"$dir/faults" || fail "$(cat "$dir/faults")"
	[ ! -e pwned ] || fail "a text of a journal was run"
}

# --- the oracles see what they are to see ---

printf '<p>%s</p>\n' '<script>x</script>' >broken.html
printf '<p title="a" onload="x">a</p>\n' >broken2.html
printf 'a\033[2Jb\n' >broken.txt
printf 'a\302\233b\n' >broken2.txt
printf '<p><a href="javascript:x">a</a></p>\n' >broken3.html
for file in broken.html broken2.html broken3.html; do
	! python3 "$hostile" page "$file" >/dev/null || fail "$file passes for a page"
done
for file in broken.txt broken2.txt; do
	! python3 "$hostile" text "$file" >/dev/null || fail "$file passes for text"
done

# --- every string of a journal, one at a time ---

"$sample" all
# A benchmark of few rows.
{
	sed 1q all
	xz -dc "$runs/intel-6-167-1-kvm-bench/journal.jsonl.xz" | grep '"benchmark":"latent"'
} >bench
mkdir bad/cells bad/bench
places=$(($(python3 "$hostile" spoil all bad/cells) + $(python3 "$hostile" spoil bench bad/bench)))
[ "$places" -ge 60 ] || fail "only $places places of strings were found"
reports=0
for file in bad/*/*; do
	name=$(tr / . <<<"${file#bad/}")
	status=0
	TMAX_GNUPLOT=/nonexistent "$tmax" report "$file" -o pages/page >"printed/$name" 2>&1 || status=$?
	case $status in
	0) reports=$((reports + 1)) && mv pages/page/index.html "pages/$name.html" ;;
	64) ;; # no machine can be told
	*) fail "exit status $status of $name" ;;
	esac
done
[ "$reports" -ge $((2 * places)) ] || fail "only $reports reports of $places places"
python3 "$hostile" page pages/*.html >faults || fail "$(cat faults)"
python3 "$hostile" text printed/* pages/*.html pages/page/*.dat >faults || fail "$(cat faults)"
grep -qlF '&lt;script&gt;' pages/*.html || fail "no hostile text got as far as a page"
[ ! -e pwned ] || fail "a text of a journal was run"

# --- gnuplot: what a machine calls itself, and the name of the folder ---

# shellcheck disable=SC2016 # nothing is to be expanded
evil='`touch pwned`$(touch pwned)'
# It stands in single quotes, so that the shell leaves it alone.
# shellcheck disable=SC2016
sed -E 's/"(brand|microcode)":"([^"\\]|\\.)*"/"\1":"`touch pwned`'"'"'\\"@ARG1"/g' all >named
# shellcheck disable=SC2016
grep -qF '`touch pwned`' named || fail "no hostile name"
if command -v gnuplot >/dev/null; then
	folder="$evil'; system 'touch pwned' #\""
	expect 0 "$tmax" report named -o "$folder"
	[ -s "$folder/figure9.svg" ] || fail "no figure with a hostile name"
	harmless "$folder/index.html" "$folder"/*.dat "$folder"/*.svg
else
	echo "gnuplot is not installed, no figure was drawn"
fi

# --- evidence: what is not under its seal ---

sed 's/"date":"[^"]*"/"date":"\\u001b[2J\\u009b1m"/' \
	"$runs/amd-25-17-1-kvm-ladder/machine.conf.evidence" >spoilt.evidence
cp "$runs/amd-25-17-1-kvm-ladder/machine.conf.evidence" good.evidence
expect "0 3" "$tmax" evidence --evidence spoilt.evidence --verbose
python3 "$hostile" text out err >faults || fail "evidence: $(cat faults)"
expect "0 3" "$tmax" evidence --evidence spoilt.evidence --json
python3 "$hostile" text out err >faults || fail "evidence --json: $(cat faults)"

# --- a fleet: names of files, and lines that are set aside ---

# A file's name is a machine's name, up to the first dot.
name=$(printf "x\033[2J'); DROP TABLE run;--")
cp good.evidence "$name.evidence"
bash -c 'printf %s\\n "$1"' _ '{"type":"evidence","a":"'"'"'); DROP TABLE run;--\u001b[2J"}' >>"$name.evidence"
expect 0 "$tmax" merge -o fleet.db "$name.evidence"
python3 "$hostile" text out err >faults || fail "merge: $(cat faults)"
for command in "merge -o fleet.db" "report -o pages/page"; do
	read -ra words <<<"$command"
	expect 69 "$tmax" "${words[@]}" "$name.gone"
	python3 "$hostile" text out err >faults || fail "$command: $(cat faults)"
	grep -q 'cannot read x' err || fail "$command: does not name the file"
done
{ cat all && echo '{'; } >"$name.jsonl"
expect 0 env TMAX_GNUPLOT=/nonexistent "$tmax" report "$name.jsonl" -o pages/page
grep -q '1 line could not be read' err || fail "a bad line is not told"
python3 "$hostile" text out err >faults || fail "report: $(cat faults)"
expect 0 "$tmax" merge -o fleet.db good.evidence
grep -q ' 1 known before\|1 run added' out || fail "the table is gone: $(cat out)"
for way in report export "export --csv"; do
	read -ra words <<<"$way"
	expect "0 1" "$tmax" fleet "${words[@]}" fleet.db
	python3 "$hostile" text out >faults || fail "fleet: $(cat faults)"
done

# --- machine.conf: each value, each key ---

conf_of_here >good.conf
refused=0
for i in $(seq "$(wc -l <good.conf)"); do
	# Of the keys a few will do.
	sed "$i$([ $((i % 4)) = 0 ] && echo 's/^[^=]*/' || echo 's/= .*/= ')\\x1b[2J\\xc2\\x9b1m/" good.conf >spoilt.conf
	expect "0 3" env PATCHCORE_MACHINE_CONF=spoilt.conf "$tmax" info
	[ "$rc" = 0 ] || refused=$((refused + 1))
	cat out err >>printed/info
done
[ "$refused" -ge 10 ] || fail "only $refused hostile configs were refused"
python3 "$hostile" text printed/info >faults || fail "info: $(cat faults)"
