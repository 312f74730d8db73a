#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every file of the package says its licence (SPDX), but for those whose format has no place for that. A file
# without is seen by the same look.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# What was recorded stays as it is, figures are what a program drew, an alias of a manual page is one line,
# quilt's and dpkg's own files are read line by line. LICENSE holds for them.
without='^(LICENSE|debian/(changelog|source/format|.*\.(install|manpages|symbols|docs|examples)|not-installed|tests/control)|results/runs/.*\.(conf|cpuid|dat|evidence|xz|png|svg|txt)|(patchcore|stress)/tests/fixtures/.*)$'

# package - the files that make it: what git has, or in a tarball what is no product of autotools, bison, flex or make
package()
{
	if ! git -C "$top" ls-files 2>/dev/null | grep .; then
		(cd "$top" && find . \( -name 'build*' -o -name '_*' -o -name 'autom4te.cache' -o -name debian \) -prune -o \
			-type f -regex '.*\.\([chm1-9]\|sh\|md\|mk\|awk\|gp\|py\|rs\|sql\|css\|am\|ac\|map\|cells\)' -print) |
			sed 's,^\./,,' | grep -vE '^(aclocal\.m4|m4/l.*|config\.h.*|metrics/language/(grammar|words)\.[ch])$'
	fi
}

# silent - of the files that standard input names, those that say nothing in their first twenty lines
silent()
(
	cd "$1"
	grep -vE "$without" | while IFS= read -r file; do
		[ ! -f "$file" ] || printf '%s\0' "$file"
	done | xargs -0 -r awk '
		function tell() { if (name != "" && !said) print name }
		FNR == 1 { tell(); name = FILENAME; said = /^\.so/ }
		/SPDX-License-Identifier: MIT/ { said = 1 }
		FNR == 20 { nextfile }
		END { tell() }'
)

package >"$dir/files"
if [ "$(wc -l <"$dir/files")" -lt 400 ]; then
	echo "only $(wc -l <"$dir/files") files found"
	exit 1
fi
silent "$top" <"$dir/files" >"$dir/found"
if [ -s "$dir/found" ]; then
	echo "no line 'SPDX-License-Identifier: MIT' in the first twenty of:"
	cat "$dir/found"
	exit 1
fi

echo 'int main(void) { return 0; }' >"$dir/silent.c"
if [ "$(echo silent.c | silent "$dir")" != silent.c ]; then
	echo "a file that says nothing was not seen"
	exit 1
fi
wc -l <"$dir/files"
