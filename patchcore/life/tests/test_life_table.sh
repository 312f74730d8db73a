#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The table in docs/guarantees.md is the one that test_life_matrix tests.
#
# usage: bash patchcore/life/tests/test_life_table.sh [--write]      in the build folder
#   --write  put the table into the document
set -euo pipefail

matrix=${LIFE_MATRIX:-patchcore/life/tests/test_life_matrix}
document=${srcdir:-..}/docs/guarantees.md
mark='<!-- test_life_matrix --table:'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$matrix" --table >"$dir/table"
# The document, with that table between its marks.
awk -v mark="$mark" -v table="$dir/table" '
	$0 == mark " end -->" { inside = 0; ends++ }
	!inside
	$0 == mark " begin -->" {
		inside = 1; begins++
		print ""
		while ((getline line <table) > 0)
			print line
		print ""
	}
	END { exit begins != 1 || ends != 1 }' "$document" >"$dir/document" || {
	echo "$document has no place for the table, or more than one"
	exit 1
}
if [ "${1:-}" = --write ]; then
	cp "$dir/document" "$document"
	exit
fi
if ! diff -u "$document" "$dir/document"; then
	echo "to write it: cd build && bash $0 --write"
	exit 1
fi
