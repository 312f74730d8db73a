#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pictures are those that docs/pictures/draw.py draws. Each is well-formed, says what it shows, has a light ground, and stands in a
# page with an alternative text.
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
if [ ! -e "$top/results/runs/amd-25-17-1-kvm-ladder/machine.conf" ]; then
	echo "skipped: the ladder of the picture is not in this package"
	exit 77
fi
python3 "$top/docs/pictures/draw.py" "$dir"
for picture in "$dir"/*.svg; do
	cmp "$picture" "$top/docs/pictures/${picture##*/}" || fail "${picture##*/}: draw it anew: docs/pictures/draw.py docs/pictures"
done
[ "$(find "$top/docs/pictures" -name '*.svg' | wc -l)" = "$(find "$dir" -name '*.svg' | wc -l)" ] || fail "a picture that nothing draws"
