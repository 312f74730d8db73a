#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax report: a page of its own with its figures, from one journal or several; what it refuses.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

sample=${TMAX_REPORT_JOURNAL:-commands/report/tests/report_journal}
"$sample" "$dir/all"
"$sample" "$dir/empty" machine
# What the page is made of is what tmax writes.
valid "$dir/all"
page=$dir/page/index.html

# well_formed FILE - as XML, where something here can tell
well_formed()
{
	if command -v xmllint >/dev/null; then
		xmllint --noout "$1" 2>"$dir/err" || fail "$1 is not well formed"
	elif command -v python3 >/dev/null; then
		python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$1" \
			2>"$dir/err" || fail "$1 is not well formed"
	else
		echo "neither xmllint nor python3 is installed, form not checked"
	fi
}

# has TEXT... - the page does
has()
{
	local text

	for text in "$@"; do
		grep -qF -- "$text" "$page" || fail "nothing of '$text' on the page"
	done
}

# alone FILE - it needs no other host: what looks like one only names an XML namespace
alone()
{
	if grep -oE '[a-z]+="?.?(https?:)?//[^" >]*' "$1" | grep -vE '^(xmlns|xlink)=.http://www\.w3\.org/'; then
		fail "$1 points to another host"
	fi
	! grep -qiE '<(script|link|iframe|object|embed|img)|@import|url\((http|//)' "$1" ||
		fail "$1 loads something"
}

# unique_ids FILE
unique_ids()
{
	local twice

	twice=$(grep -oE "[[:space:]]id=[\"'][^\"']+[\"']" "$1" | tr -d "\"' \t" | sort | uniq -d)
	[ -z "$twice" ] || fail "ids that $1 has twice: $twice"
}

# --- a page with all that there is ---

sections=$(sed -nE 's/^\t\{ "([a-z0-9]+)", .*, section_.*/\1/p' "$top/commands/report/report.c")
[ "$(wc -w <<<"$sections")" = 8 ] || fail "sections: $sections"
# No protocol was on trial in this journal.
sections=${sections/protocols/}

expect 0 "$tmax" report "$dir/all" -o "$dir/page"
[ "$(cat "$dir/out")" = "$dir/page/index.html" ] || fail "does not tell where the page is"
well_formed "$page"
alone "$page"
unique_ids "$page"
for section in $sections; do
	has "<h2 id=\"$section\">" "<a href=\"#$section\">"
done
has '<meta name="viewport"' 'charset="utf-8"' 'Sample &lt;i&gt;'
! grep -qE '<(i|b)>' "$page" || fail "markup of the journal is markup on the page"
[ ! -e "$page.new" ] || fail "a half-written page is left"

has "prefers-color-scheme: dark"
has 'aria-label="Tears per change against the wait."' 'of 28 cells are marked as noisy'

# --- its figures ---

figures="figure9 figure9-crash ladder gaps"
for figure in $figures; do
	[ -s "$dir/page/$figure.dat" ] || fail "no data of $figure"
	has "href=\"$figure.dat\""
done
if command -v gnuplot >/dev/null; then
	[ ! -s "$dir/err" ] || fail "gnuplot complains"
	for figure in $figures; do
		[ -s "$dir/page/$figure.svg" ] || fail "no $figure.svg"
		[ "$(head -c 8 "$dir/page/$figure.png" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] ||
			fail "$figure.png is no PNG"
		has "href=\"$figure.png\"" "id='$figure-gpPt0'"
	done
	! grep -qE '<title>[^<]*DATA' "$page" || fail "gnuplot's own titles are on the page"
	has "<title>wait of "
	[ "$(grep -c '<svg' "$page")" = 4 ] || fail "not four figures on the page"
	# A program in its build tree knows where its scripts are.
	expect 0 env -u TMAX_DATADIR "$tmax" report "$dir/all" -o "$dir/page"
	[ "$(grep -c '<svg' "$page")" = 4 ] || fail "figures are missing without TMAX_DATADIR"
	(cd / && env -u TMAX_DATADIR "$tmax" report "$dir/all" -o "$dir/page") >/dev/null ||
		fail "report fails in another folder"
	[ "$(grep -c '<svg' "$page")" = 4 ] || fail "figures are missing in another folder"
	# Benchmarks: an axis has its title, which gnuplot leaves out where numbers take its room.
	# The package has no measured runs.
	if [ -d "$top/results/runs" ]; then
		expect 0 "$tmax" report "$top/results/runs/intel-6-167-1-kvm-bench/journal.jsonl.xz" -o "$dir/bench"
		page=$dir/bench/index.html
		for title in "share of untouched" "toggles per second" ns us; do
			has ">$title<"
		done
		page=$dir/page/index.html
	fi
	has ">tears per change (logarithmic)<" ">tears per million toggles<" ">gaps per million stores<"
else
	echo "gnuplot is not installed, pictures not checked"
fi

# What is claimed stands beside what was counted.
grep -qE '^line 0 [0-9.]+ 1.2e-06 [0-9]+ [0-9]+ [0-9.]+ ' "$dir/page/ladder.dat" || fail "no bound in ladder.dat"
grep -q '^page 1 ' "$dir/page/ladder.dat" || fail "no constant wait in ladder.dat"
# Buckets: of both kinds, and none of the control's stores.
grep -q '^64 0 128 256 2500 20000000$' "$dir/page/gaps.dat" || fail "gaps.dat has no bucket"
grep -q '^4096 3 ' "$dir/page/gaps.dat" || fail "gaps.dat has no provoked page"

# --- without gnuplot ---

expect 0 env TMAX_GNUPLOT=/nonexistent "$tmax" report --output "$dir/plain" "$dir/all"
page=$dir/plain/index.html
grep -qF "4 figures are missing: cannot run /nonexistent" "$dir/err" || fail "says nothing of gnuplot"
has "This figure was not drawn: cannot run /nonexistent" "Its data are in ladder.dat."
! grep -q '<svg' "$page" || fail "a figure that was not drawn is on the page"
for figure in $figures; do
	[ -s "$dir/plain/$figure.dat" ] || fail "no data of $figure without gnuplot"
done
well_formed "$page"
alone "$page"

# --- little or nothing to tell ---

expect 0 "$tmax" report "$dir/empty" -o "$dir/plain"
well_formed "$page"
has "so there is no verdict"
! grep -q 'id="gaps"' "$page" || fail "a section with nothing in it"

# Journals of one machine merge, and lines that cannot be read are told.
{
	grep -m 1 '"type":"run"' "$dir/all"
	echo 'cut off {'
} >"$dir/shard"
expect 0 env TMAX_GNUPLOT=/nonexistent "$tmax" report "$dir/shard" "$dir/all" -o "$dir/plain"
grep -qF "$dir/shard: 1 line could not be read" "$dir/err" || fail "says nothing of the cut line"
has "28 cells and 0 benchmarks of 2 journals" "1 line could not be read"

# --- refused ---

expect 0 env TMAX_GNUPLOT=/nonexistent "$tmax" report "$dir/all" -o "$dir/plain"
mkdir "$dir/theirs"
echo '<html>mine</html>' >"$dir/theirs/index.html"
complains 73 "$dir/theirs/index.html was not written by" "$tmax" report "$dir/all" -o "$dir/theirs"
[ "$(cat "$dir/theirs/index.html")" = '<html>mine</html>' ] || fail "a page of others was written over"
[ "$(ls "$dir/theirs")" = index.html ] || fail "figures beside a page of others"

sed 's/"stepping":"8"/"stepping":"9"/' "$dir/empty" >"$dir/other"
complains 64 "different machines" "$tmax" report "$dir/all" "$dir/other" -o "$dir/mixed"
grep -v '"type":"run"' "$dir/all" >"$dir/anonymous"
complains 64 "name no machine" "$tmax" report "$dir/anonymous" -o "$dir/mixed"
complains 69 "cannot read $dir/none" "$tmax" report "$dir/none" -o "$dir/mixed"
[ ! -e "$dir/mixed" ] || fail "a folder was made for nothing"
complains 64 "name the journals" "$tmax" report -o "$dir/mixed"
complains 64 "say where to" "$tmax" report "$dir/all"
complains 73 "there is a file of that name" "$tmax" report "$dir/all" -o "$dir/all"
complains 73 "cannot make" "$tmax" report "$dir/all" -o "$dir/none/none"

# A page that cannot be written does not cost the one that is there.
cp "$page" "$dir/before"
mkdir "$dir/plain/index.html.new"
complains 74 "cannot write the page" env TMAX_GNUPLOT=/nonexistent "$tmax" report "$dir/all" -o "$dir/plain"
cmp -s "$page" "$dir/before" || fail "the old page is gone"
