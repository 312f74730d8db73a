#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a hostile journal may hold, and what must not come of it.

usage: hostile.py spoil JOURNAL FOLDER   a journal for each place of a string and each text of TEXTS
       hostile.py page FILE...           are these pages of tmax report, with no markup of others?
       hostile.py text FILE...           is there nothing that a terminal obeys?
"""
import json
import os
import sys
from html.parser import HTMLParser

# Long and short, since many fields have little room.
TEXTS = [
    "\"'><script>x</script><img src=x onerror=x>`touch pwned`$(touch pwned)&lt;",
    "<u>\"'`&",
    "\x1b]0;x\x07\x1b[2J\x9b1m\r\x00",
    "\x1b[2J",
]

ELEMENTS = set("""html head meta title style body h1 h2 h3 p section nav a figure figcaption div table tr th td
    dl dt dd span strong small code pre ul li details summary svg g path text tspan defs clippath rect circle polygon
    line polyline use desc br filter feflood fecomposite""".split())


def places(value, path=()):
    """Of all strings below: their paths, with a * for any member of a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, path + (key,))
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, path + ("*",))
    elif isinstance(value, str):
        yield path


def put(value, path, text):
    if not path:
        return text if isinstance(value, str) else value
    if isinstance(value, dict) and path[0] in value:
        return {k: put(v, path[1:], text) if k == path[0] else v for k, v in value.items()}
    if isinstance(value, list) and path[0] == "*":
        return [put(v, path[1:], text) for v in value]
    return value


def spoil(journal, folder):
    with open(journal, encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream]
    # The same line again says nothing new, and a report of few lines is quick.
    some, seen = [], {}
    for line in lines:
        kind = (line["type"], line.get("name"), line.get("stage"))
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= 3:
            some.append(line)
    found = sorted({(line["type"], path) for line in some for path in places(line) if path != ("type",)})
    for i, (kind, path) in enumerate(found):
        for j, text in enumerate(TEXTS):
            name = os.path.join(folder, "%03d-%d.%s" % (i, j, "-".join((kind,) + path).replace("*", "n")))
            with open(name, "w", encoding="utf-8") as out:
                for line in some:
                    if line["type"] == kind:
                        line = put(line, path, text)
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")
    print(len(found))


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.faults = []

    def handle_starttag(self, tag, attrs):
        if tag not in ELEMENTS:
            self.faults.append("element <%s>" % tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("src", "style", "action", "srcdoc"):
                self.faults.append("attribute %s of <%s>" % (name, tag))
            # To a file beside the page, or to a place on it.
            if name.endswith("href") and ("/" in value or ":" in value):
                self.faults.append("link to %s" % value)


def page_faults(text):
    page = Page()
    page.feed(text)
    return page.faults


def text_faults(text):
    bad = {c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c <= "\x9f"}
    return ["character U+%04X" % ord(c) for c in sorted(bad)]


def look(faults_of, paths):
    bad = False
    for path in paths:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            for fault in faults_of(stream.read()):
                print("%s: %s" % (path, fault))
                bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    if sys.argv[1] == "spoil":
        spoil(*sys.argv[2:])
        sys.exit(0)
    sys.exit(look(page_faults if sys.argv[1] == "page" else text_faults, sys.argv[2:]))
