#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The code in README.md compiles, and the links of README.md, CONTRIBUTING.md and docs/ lead to files.
# The two lists of pages lead to every page, and a tarball has all of them.
set -euo pipefail
export LC_ALL=C

top=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# The block of C.
awk '/^```/ { open = /^```c$/ && !seen++; next } open' "$top/README.md" >"$dir/readme.c"
grep -q pc_init "$dir/readme.c" || wrong "README.md has no code"
${CC:-cc} -O2 -Wall -Wextra -Werror -I "$top/patchcore/include" -c -o "$dir/readme.o" "$dir/readme.c" ||
	wrong "the code of README.md does not compile"

for path in "$top"/README.md "$top"/CONTRIBUTING.md "$top"/SECURITY.md "$top"/docs/*.md "$top"/docs/lab/*.md; do
	while read -r link; do
		[ "$link" = https ] || [ -e "$(dirname "$path")/$link" ] || wrong "$path: there is no $link"
	done < <(grep -oE '\]\([^)#:]+' "$path" | cut -c3-)
done

# T_max means one thing.
for path in README.md docs/methods.md docs/man/tmax.1 docs/man/tmax.7 docs/man/patchcore.7 \
	commands/tmax/calibrate_cmd.c commands/report/report.c; do
	[ -f "$top/$path" ] || continue # a folder of the pages alone
	sed 's/\\n//g' "$top/$path" | tr -d '[:space:]"*' |
		grep -q longesttimebywhichaninstructionfetchmaylagbehindastore ||
		wrong "$path: T_max is defined otherwise"
done

# What it shows of a calibration has the words that are printed.
printed=$(tr -d '\n\t' <"$top/calibrate/verify/summary.c" 2>/dev/null | sed 's/" *"//g')
while [ -n "$printed" ] && read -r line; do
	[[ $printed == *"$line"* ]] || wrong "README.md: calibrate does not print '$line'"
done < <(sed -nE 's/^    (Tears: .*)/\1/p; s/^    (A change of code [^(]*\().*/\1/p; s/^    (Sure:) .*/\1/p; s/^    Next: +([^(]*\().*/\1/p' "$top/README.md")
[ -z "$printed" ] || grep -q '^    A change of code' "$top/README.md" || wrong "README.md shows no calibration"

# A newcomer finds every page, and a tarball has it.
for path in "$top"/docs/*.md; do
	page=${path##*/}
	[ "$page" = README.md ] || grep -q "($page)" "$top/docs/README.md" || wrong "docs/README.md leads to no $page"
done
for path in "$top"/docs/lab/*.md; do
	page=${path##*/}
	[ "$page" = README.md ] || grep -q "($page)" "$top/docs/lab/README.md" || wrong "docs/lab/README.md leads to no $page"
done
for path in "$top"/docs/*.md "$top"/docs/lab/*.md "$top"/docs/pictures/*; do
	path=${path#"$top"/}
	grep -qE "	$path( |\$)" "$top/docs/local.mk" || wrong "$path is in no tarball"
done
exit "$failed"
