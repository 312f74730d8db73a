#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pages of measured runs fit a small screen and are not endless, each chart tells its numbers where the
# pointer rests, and no section is empty. By a rule for sizes; where there is a chromium, it measures them too.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

runs=$top/results/runs
for needed in python3 gnuplot; do
	command -v $needed >/dev/null || {
		echo "skipped: there is no $needed"
		exit 77
	}
done
if [ ! -d "$runs" ]; then
	echo "skipped: the measured runs are not in this package"
	exit 77
fi
# Pixels, at most: the longest page is that of the benchmarks.
height=6000

cat >"$dir/fits.py" <<'PYTHON'
"""usage: fits.py PAGE HEIGHT - what is wrong with a page, a line each."""
import math
import re
import sys
from html.parser import HTMLParser

# On a wide screen: of the column, of a line of text, of a row of a table.
WIDE, PROSE, LINE, ROW = 960, 736, 24, 27
EMPTY = "area base br col hr img input link meta source wbr".split()


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.wrong, self.open, self.titles = [], [], []
        self.height = 0
        self.text = ""

    def closed(self):
        """Inside of what is folded."""
        return any(tag == "details" and "open" not in attrs for tag, attrs in self.open)

    def within(self, tag, **wanted):
        return any(t == tag and all(a.get(k) == v for k, v in wanted.items()) for t, a in self.open)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in EMPTY:
            return
        if tag == "table" and not self.within("div", **{"class": "scroll"}):
            self.wrong.append("a table that does not scroll")
        if tag == "svg":
            self.titles.append([])
            if not (self.within("figure") and self.within("div")):
                self.wrong.append("a chart that does not scroll")
            wide, high = (float(x) for x in attrs["viewbox"].split()[2:])
            if not self.closed():
                self.height += high * min(WIDE, 608 if wide == 440 else WIDE) / wide
        if tag == "section":
            self.height += 60
            self.text = ""
        self.open.append((tag, attrs))
        if tag in ("p", "h2", "h3", "li", "summary", "pre", "figcaption", "title"):
            self.text = ""

    def handle_endtag(self, tag):
        while self.open and self.open[-1][0] != tag:
            self.open.pop()
        if not self.closed() or tag == "summary" and not self.folded_above():
            if tag in ("p", "li", "summary", "figcaption", "pre", "h2"):
                self.height += LINE * math.ceil((len(self.text) * 8 or 1) / PROSE) + 12
            if tag == "tr":
                self.height += ROW
        if tag == "title" and self.within("svg"):
            self.titles[-1].append(self.text.strip())
        if tag == "section" and not self.text.strip():
            self.wrong.append("an empty section")
        if self.open:
            self.open.pop()

    def folded_above(self):
        return sum(tag == "details" and "open" not in attrs for tag, attrs in self.open) > 1

    def handle_data(self, data):
        self.text += data


page = Page()
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
page.feed(text)
for titles in page.titles:
    told = [title for title in titles if re.search(r"\d", title)]
    if not told:
        page.wrong.append("a chart without titles")
    page.wrong += [f"a title of gnuplot: {title}" for title in titles if re.search(r"gnuplot|DATA|using", title)]
for rule in (r"\.scroll \{[^}]*overflow-x: auto", r"figure div \{[^}]*overflow-x: auto", r"pre \{[^}]*overflow-wrap: anywhere",
             r"body \{[^}]*overflow-wrap: break-word", r"figure svg \{[^}]*width: 100%"):
    if not re.search(rule, text):
        page.wrong.append(f"no style {rule}")
if "ticks<" in re.sub(r"<pre>.*?</pre>", "", text, flags=re.S):
    page.wrong.append("a unit is ticks")
if page.height > int(sys.argv[2]):
    page.wrong.append(f"{page.height:.0f} pixels tall")
print("\n".join(page.wrong))
print(f"# about {page.height:.0f} pixels tall, {len(page.titles)} charts", file=sys.stderr)
sys.exit(bool(page.wrong))
PYTHON

# measured PAGE - its width and height where the window is 390 and 1000 pixels wide
measured()
{
	cat >"$dir/frames.html" <<HTML
<iframe src="$1" style="width:390px"></iframe><iframe src="$1" style="width:1000px"></iframe><p></p>
<script>onload = () => { document.querySelector("p").textContent = "SIZES " + [...document.querySelectorAll("iframe")]
	.map(f => f.contentDocument.documentElement).map(d => d.scrollWidth - d.clientWidth + " " + d.scrollHeight).join(" ") }</script>
HTML
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --allow-file-access-from-files \
		--user-data-dir="$dir/profile" --dump-dom "file://$dir/frames.html" 2>/dev/null |
		sed -nE 's/.*>SIZES ([-0-9 ]+)<.*/\1/p'
}

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || echo "there is no chromium, nothing is measured"

# fits PAGE
fits()
{
	local beyond tall

	python3 "$dir/fits.py" "$1" $height || fail "$1"
	[ -n "$browser" ] || return 0
	read -r beyond _ _ tall < <(measured "$1") || {
		echo "$browser cannot measure here"
		return 0
	}
	echo "$1: $beyond pixels beyond 390, $tall tall"
	[ "$beyond" = 0 ] || fail "$1 is wider than a small screen"
	[ "$tall" -le $height ] || fail "$1 is $tall pixels tall"
}

for run in intel-6-167-1-kvm-bench/journal intel-6-167-1-kvm-ladder/journal intel-6-167-1-kvm-gaps/gaps amd-25-17-1-kvm-paper/paper; do
	expect 0 "$tmax" report "$runs/$run.jsonl.xz" -o "$dir/page"
	fits "$dir/page/index.html"
	rm -r "$dir/page"
done
expect 0 "$tmax" merge -o "$dir/fleet.db" "$runs"/*-ladder/machine.conf.evidence
expect 0 "$tmax" fleet report --page "$dir/page" "$dir/fleet.db"
fits "$dir/page/fleet.html"

# One point is a figure, too. The scripts of a build stand in one folder.
printf '64 0 26 27 1 745664\n' >"$dir/gap"
expect 0 gnuplot -d -c "${TMAX_DATADIR:-data}/gaps.gp" svg "$dir/gap.svg" "$dir/gap" 64 2600
printf '64 1 100 1 1000\n' >"$dir/point"
expect 0 gnuplot -d -c "${TMAX_DATADIR:-data}/figure9.gp" svg "$dir/point.svg" "$dir/point" title count 64 1 "" 2600

# A page that does not is seen.
page=$dir/page/fleet.html
seen()
{
	! python3 "$dir/fits.py" "$dir/bad" $height >/dev/null 2>&1 || fail "not seen: $1"
}
sed "s/class=.scroll.//" "$page" >"$dir/bad"
seen "a wide table"
sed 's/<title>[^<]*<\/title>//g' "$page" >"$dir/bad"
seen "charts without titles"
sed 's/<h1>/<section><h2><\/h2><\/section><h1>/' "$page" >"$dir/bad"
seen "an empty section"
{ cat "$page"; for ((i = 0; i < 300; i++)); do echo "<p>again</p>"; done; } >"$dir/bad"
seen "an endless page"
