#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reader for notebooks sees what the journals hold: as many records of each type as there are lines, and the
# toggles and tears that tmax's own sums have; a line that is none costs no other.
set -euo pipefail
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

top=${srcdir:-.}
reader=$top/results/journal/tmax_journal.py
sample=${TMAX_SAMPLE_JOURNAL:-results/journal/tests/sample_journal}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail()
{
	echo "FAILED: $*"
	exit 1
}

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null; then
	echo "python3 is not installed"
	exit 77
fi

# --- what the program writes today, and what it wrote when it was measured with ---

"$sample" "$dir/sample.jsonl"
files=("$dir/sample.jsonl")
for file in "$top"/results/runs/*/{journal,paper,tail,verify}.jsonl.xz "$top"/results/runs/*/*.evidence; do
	[ ! -e "$file" ] || files+=("$file")
done
cat >"$dir/look.py" <<'PY'
import collections
import sys

sys.path.insert(0, sys.argv[1])
import tmax_journal

for path in sys.argv[2:]:
    data = tmax_journal.read(path)
    types = collections.Counter(record["type"] for record in data.records)
    cells, sums = data.cells(), data.sums()
    print(types["run"], types["cell"], types["evidence"], types["estimate"], types["gaps"],
          len(cells), sum(row["tears"] for row in cells), sum(row["tears"] for row in sums),
          sum(row["toggles"] for row in sums), len(data.aside), path)
    assert all(not isinstance(value, (dict, list)) for row in cells + sums + data.levels() for value in row.values())
    assert not data.of_type("evidence") or sums
PY
python3 "$dir/look.py" "$(dirname "$reader")" "${files[@]}" >"$dir/read"

# The same by plain text: no JSON is understood here.
for file in "${files[@]}"; do
	awk -v path="$file" '
		function number(text, name) {
			return match(text, "\"" name "\":[0-9]+") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : 0
		}
		match($0, /^\{"type":"[a-z]+"/) { type = substr($0, 10, RLENGTH - 10); n[type]++ }
		type == "cell" {
			match($0, /"tears":\{[^}]*\}/)
			part = substr($0, RSTART, RLENGTH)
			tears += number(part, "old_front_new_back") + number(part, "new_front_old_back") + number(part, "other")
		}
		type == "evidence" {
			# Of the same slices.
			gsub(/,"(near|far)":\{[^}]*\}/, "")
			many = split(substr($0, index($0, "\"sums\":")), sum, /\{/)
			for (i = 2; i <= many; i++) {
				store_tears += number(sum[i], "tears")
				store_toggles += number(sum[i], "toggles")
			}
		}
		END {
			printf "%d %d %d %d %d %d %.0f %.0f %.0f 0 %s\n", n["run"], n["cell"], n["evidence"], n["estimate"],
				n["gaps"], n["cell"], tears, store_tears, store_toggles, path
		}' < <(if [[ $file = *.xz ]]; then xz -dc "$file"; else cat "$file"; fi)
done >"$dir/counted"
diff "$dir/read" "$dir/counted" || fail "the reader's (<) and the lines' (>)"
awk '{ cells += $2; tears += $7 } END { exit cells < 10 || tears < 1 }' "$dir/read" || fail "nothing to compare"

# --- lines that are none ---

{
	cat "$dir/sample.jsonl"
	printf '%s\n' 'no json' '[1]' '{"type":"cell","schema":9}' '{"type":"cell","schema":2}' '{"type":"run","schema":NaN}' ''
	printf '\377\376\n'
	printf '{"type":"cell","schema":2,"cell":{"placem'
} >"$dir/broken.jsonl"
python3 "$dir/look.py" "$(dirname "$reader")" "$dir/broken.jsonl" >"$dir/read"
[ "$(awk '{ print $2, $10 }' "$dir/read")" = "$(awk 'NR == 1 { print $2, 7 }' "$dir/counted")" ] ||
	fail "of a journal with seven broken lines: $(cat "$dir/read")"

# --- as a program ---

python3 "$reader" cells "$dir/broken.jsonl" >"$dir/csv" 2>"$dir/errors"
[ "$(wc -l <"$dir/csv")" = $(($(grep -c '^{"type":"cell"' "$dir/sample.jsonl") + 1)) ] || fail "$(head -n 3 "$dir/csv")"
[ "$(grep -c 'broken.jsonl:[0-9]*: set aside: ' "$dir/errors")" = 7 ] || fail "$(cat "$dir/errors")"
rc=0
python3 "$reader" "$dir/none" 2>"$dir/errors" || rc=$?
[ $rc = 69 ] || fail "exit status $rc of a file that is not there"
awk '{ print $2, "cells,", $3, "runs of evidence:", $NF }' "$dir/counted"
