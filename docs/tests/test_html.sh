#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/html renders every manual page: whole, with an index, and with links that lead to pages.
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

rc=0
bash "$top/scripts/html" "$dir/html" 2>"$dir/err" || rc=$?
if [ "$rc" = 69 ]; then
	echo "skipped: $(cat "$dir/err")"
	exit 77
fi
[ "$rc" = 0 ] || fail "exit status $rc: $(cat "$dir/err")"

# leads FOLDER - every link of its pages does
leads()
{
	local from to

	while IFS=: read -r from to; do
		to=${to#*\"} to=${to%\"}
		[ -z "$to" ] || [ "${to#\#}" != "$to" ] || [ -e "$1/$to" ] || {
			echo "$from: there is no $to"
			return 1
		}
	done < <(cd "$1" && grep -oE 'href="[^"]*"' ./*.html)
}

# words FILE - its text in one line, without tags
words()
{
	tr '\n' ' ' <"$1" | sed 's/<[^>]*>//g' | tr -s ' '
}

for page in "$top"/docs/man/*.[1-9]; do
	name=${page##*/}
	html=$dir/html/$name.html
	grep -q '</html>' "$html" || fail "$name.html is not whole"
	grep -q "href=\"$name.html\"" "$dir/html/index.html" || fail "$name is not in the index"
	# Each heading of the source, also of a page under another name.
	! grep -q '^\.so ' "$page" || page=$top/docs/man/$(sed -n 's|^\.so man[1-9]/||p' "$page")
	words "$html" >"$dir/words"
	while read -r heading; do
		grep -qF -- "$heading" "$dir/words" || fail "$name.html has no $heading"
	done < <(sed -n 's/^\.SH "\{0,1\}\([A-Z ]*\)"\{0,1\}$/\1/p' "$page")
done
leads "$dir/html" || fail "a link leads nowhere"
grep -q '<a href="machine.conf.5.html">' "$dir/html/tmax.1.html" || fail "tmax(1) has no link to machine.conf(5)"
grep -q '<a href="tmax-stress.1.html">' "$dir/html/tmax.1.html" || fail "tmax(1) has no link to tmax-stress(1)"
words "$dir/html/tmax-calibrate.1.html" >"$dir/words"
while read -r option; do
	grep -qE -- "$option([^a-z-]|\$)" "$dir/words" || fail "tmax-calibrate.1.html has no $option"
done < <("${TMAX:-./tmax}" calibrate --help | grep -oE '^  --[a-z-]+' | grep -v help)

# A page that is gone is seen.
rm "$dir/html/machine.conf.5.html"
! leads "$dir/html" >/dev/null || fail "a link to a page that is gone passes"

rc=0
bash "$top/scripts/html" 2>/dev/null || rc=$?
[ "$rc" = 64 ] || fail "exit status $rc without a folder"
