#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# results/machines.md is what scripts/machines makes of results/runs/, and results/kinds.tsv what results/kinds.py makes
# of the evidence there; neither would be of other runs.
set -euo pipefail
export LC_ALL=C

top=$(realpath "${srcdir:-.}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAILED: $*"
	exit 1
}

# is_made_of RUNS - is the page made of these?
is_made_of()
{
	python3 "$top/scripts/machines" "$1" >"$dir/page"
	diff "$top/results/machines.md" "$dir/page"
}

command -v python3 >/dev/null || {
	echo "skipped: there is no python3"
	exit 77
}
if [ ! -d "$top/results/runs/amd-25-17-1-kvm-paper" ]; then
	echo "skipped: the measured runs are not in this package"
	exit 77
fi
is_made_of "$top/results/runs" || fail "results/machines.md is not up to date: make machines"

# --- a run that counted something else, or is missing, is seen ---

runs=$dir/runs
copy()
{
	rm -rf "$runs"
	mkdir "$runs"
	for run in "$top"/results/runs/*/; do
		run=${run%/}
		mkdir "$runs/${run##*/}"
		for file in "$run"/{machine.conf,*.jsonl.xz,*.evidence.xz}; do
			[ ! -e "$file" ] || cp "$file" "$runs/${run##*/}"
		done
	done
	chmod -R u+w "$runs"
}
copy
is_made_of "$runs" || fail "a copy gives another page"
sed -i 's/^line_p = .*/line_p = 0.5/' "$runs/amd-25-17-1-kvm-ladder/machine.conf"
! is_made_of "$runs" >/dev/null || fail "other bounds give the same page"
copy
rm -r "$runs/amd-25-17-1-kvm-paper"
! is_made_of "$runs" >/dev/null || fail "fewer runs give the same page"

# --- what a machine calls itself is no markup ---

copy
sed -i 's/^brand = .*/brand = <script>|`[a](b)/' "$runs"/*/machine.conf
python3 "$top/scripts/machines" "$runs" >"$dir/page"
grep -q '^## &lt;script>???a?(b) ' "$dir/page" || fail "markup of a machine: $(grep '^## ' "$dir/page")"

rc=0
mkdir "$dir/none"
python3 "$top/scripts/machines" "$dir/none" >"$dir/page" || rc=$?
[ "$rc" = 69 ] || fail "exit status $rc without a run"

# --- kinds of processors ---

kinds()
{
	python3 "$top/results/kinds.py" "$1" >"$dir/kinds"
	diff "$top/results/kinds.tsv" "$dir/kinds"
}
kinds "$top/results/runs" || fail "results/kinds.tsv is not up to date: make machines"
rm -rf "$runs"
mkdir "$runs"
for store in "$top"/results/runs/*/*.evidence{,.xz}; do
	run=${store%/*}
	mkdir -p "$runs/${run##*/}" "$runs/copy-of-${run##*/}"
	cp "$store" "$runs/${run##*/}"
	cp "$store" "$runs/copy-of-${run##*/}"
done
chmod -R u+w "$runs"
kinds "$runs" || fail "evidence that is there twice counts twice"
sed -i '$d' "$runs"/*amd-25-17-1-kvm-window/machine.conf.evidence
! kinds "$runs" >/dev/null || fail "fewer runs give the same kinds"
# One store that tore, of 500 million, makes the window smaller.
sed 's/"time": *[0-9]*/"time": 1/; s/"checksum": *"[^"]*"/"checksum": "x"/
	s/\("crossing":"16"[^}]*"tears":\)0/\11/' "$top/results/runs/amd-25-17-1-kvm-window/machine.conf.evidence" \
	>>"$runs/amd-25-17-1-kvm-window/machine.conf.evidence"
! kinds "$runs" >/dev/null || fail "a store that tore gives the same kinds"
awk '$2 == 25 { exit $4 != 16 || $11 == 0 }' "$dir/kinds" || fail "a tear across 16 bytes: $(grep "	25	" "$dir/kinds")"
rc=0
python3 "$top/results/kinds.py" "$dir/none" >"$dir/page" || rc=$?
[ "$rc" = 69 ] || fail "exit status $rc without evidence"
