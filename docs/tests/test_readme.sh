#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The code in README.md compiles, and the links of README.md, CONTRIBUTING.md and docs/ lead to files; docs/README.md leads to every page.
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

# From its first line to the brace that ends the function.
sed -n '/^    #include/,/^    }$/s/^    //p' "$top/README.md" >"$dir/readme.c"
grep -q pc_patch "$dir/readme.c" || wrong "README.md has no code"
${CC:-cc} -Wall -Wextra -Werror -I "$top/patchcore/include" -c -o "$dir/readme.o" "$dir/readme.c" ||
	wrong "the code of README.md does not compile"

for path in "$top"/README.md "$top"/CONTRIBUTING.md "$top"/docs/*.md; do
	while read -r link; do
		[ -e "$(dirname "$path")/$link" ] || wrong "$path: there is no $link"
	done < <(grep -oE '\]\([^)#:]+' "$path" | cut -c3-)
done

# A newcomer finds every page, and a tarball has it.
for path in "$top"/docs/*.md; do
	page=${path##*/}
	[ "$page" = README.md ] || grep -q "($page)" "$top/docs/README.md" || wrong "docs/README.md leads to no $page"
	grep -q "docs/$page " "$top/docs/local.mk" || wrong "docs/$page is in no tarball"
done
exit "$failed"
