#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each picture is well-formed, says what it shows, has a light ground, and stands in a page with an alternative text. The ladder has the
# numbers of the measured run that it shows.
set -euo pipefail
export LC_ALL=C

top=$(realpath "${srcdir:-.}")

fail()
{
	echo "FAILED: $*"
	exit 1
}

command -v python3 >/dev/null || {
	echo "skipped: there is no python3"
	exit 77
}
for picture in "$top"/docs/pictures/*.svg; do
	name=${picture##*/}
	python3 - "$picture" <<'PYTHON' || fail "$name"
import sys
import xml.etree.ElementTree as tree
svg = tree.parse(sys.argv[1]).getroot()
name = "{http://www.w3.org/2000/svg}"
assert svg.tag == name + "svg"
title, description, ground = (svg.findall(name + tag)[0] for tag in ("title", "desc", "rect"))
assert len(title.text) > 10 and len(description.text) > 40
assert ground.get("fill") == "#ffffff", "no ground of its own"
assert not [e for e in svg.iter() if e.tag in (name + "script", name + "image")]
PYTHON
	grep -qE "^!\[[^]]{40,}\]\((docs/)?pictures/$name\)" "$top"/README.md "$top"/docs/*.md || fail "$name is in no page"
done
conf=$top/results/runs/amd-25-17-1-kvm-ladder/machine.conf
if [ ! -e "$conf" ]; then
	echo "skipped: the ladder of the picture is not in this package"
	exit 77
fi
python3 - "$top/docs/pictures/ladder.svg" "$conf" <<'PYTHON' || fail "ladder.svg is not the ladder of $conf"
import configparser
import math
import sys
import xml.etree.ElementTree as tree
svg, conf = tree.parse(sys.argv[1]).getroot(), configparser.ConfigParser()
conf.read(sys.argv[2])
name = "{http://www.w3.org/2000/svg}"
levels = sorted((conf[s] for s in conf.sections() if s.startswith("level ")), key=lambda level: int(level["first"]))
# Dots of the legend stand above the axis; 1e-3 is at 91.67, each decade takes 83.33.
at = {"line_p": [float(e.get("cy")) for e in svg.findall(name + "circle") if float(e.get("cy")) > 50],
      "page_p": [float(e.get("y")) + 5 for e in svg.findall(name + "rect") if float(e.get("width")) == 10 and float(e.get("y")) > 50]}
for key, drawn in at.items():
    wanted = [91.667 + 83.333 * (-3 - math.log10(float(level[key]))) for level in levels]
    assert len(drawn) == len(wanted) and all(abs(a - b) < 0.1 for a, b in zip(drawn, wanted)), (key, drawn, wanted)
words = [e.text for e in svg.findall(name + "text")]
for level in levels:
    assert f"{level['first']} x{level['stretch']}" in words, level["first"]
    assert f"{int(level['ticks']) / 1000:.1f}" in words, level["ticks"]
assert any(f"{int(conf['wait']['membarrier_ticks']) / 1000:.1f} by membarrier" in text for text in words)
PYTHON
