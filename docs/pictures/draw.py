#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: draw.py FOLDER

Draws the pictures of the guides into FOLDER, as SVG: stores, crossing, ladder, policy, house. The ladder is that of
results/runs/amd-25-17-1-kvm-ladder. A picture has its own light ground, so that it can be read on a dark page.
"""
import configparser
import math
import pathlib
import sys
from xml.sax.saxutils import escape

TOP = pathlib.Path(__file__).resolve().parents[2]
INK, SOFT, LINE, GROUND = "#1f2328", "#57606a", "#8c959f", "#ffffff"
OLD, NEW, TRAP, GOOD = "#b6d4f2", "#ffd58a", "#ff9d95", "#c6ebc9"


class Picture:
    """Elements of one picture, which is as wide as a page on GitHub."""

    def __init__(self, title, description, height, width=800):
        self.size = width, height
        self.parts = [f'<title>{escape(title)}</title>', f'<desc>{escape(description)}</desc>',
                      f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8" fill="{GROUND}" stroke="{LINE}"/>']

    def text(self, x, y, words, size=14, fill=INK, anchor="start", weight="normal"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
                          f'font-weight="{weight}">{escape(words)}</text>')

    def box(self, x, y, width, height, fill, words=(), stroke=INK, size=14):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="{stroke}"/>')
        words = [words] if isinstance(words, str) else words
        for i, line in enumerate(words):
            self.text(x + width / 2, y + height / 2 + 5 + (i - (len(words) - 1) / 2) * 17, line, size, anchor="middle")

    def line(self, x1, y1, x2, y2, stroke=INK, width=1.5, dash="", arrow=False):
        more = f' stroke-dasharray="{dash}"' if dash else ""
        more += ' marker-end="url(#arrow)"' if arrow else ""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" stroke-width="{width}"{more}/>')

    def dot(self, x, y, fill, square=False):
        shape = (f'<rect x="{x - 5:g}" y="{y - 5:g}" width="10" height="10"' if square
                 else f'<circle cx="{x:g}" cy="{y:g}" r="6"')
        self.parts.append(f'{shape} fill="{fill}" stroke="{INK}"/>')

    def __str__(self):
        width, height = self.size
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
            '<!-- SPDX-License-Identifier: MIT -->',
            '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>', *self.parts, '</svg>', ''])


def stores():
    """The three stores of a change across a boundary, and the two fetches that they can come between."""
    p = Picture("The three stores of a change across a cache line",
                "A call of five bytes lies across a cache line. The patcher stores INT3 on its first byte, waits, stores the part "
                "behind the boundary, waits, and stores the part before it. A thread that fetched one part before a store and the "
                "other part after it runs a mix, if the time between its two fetches is longer than the wait.", 370)
    first, half, boundary = 150, 48, 150 + 2 * 48
    rows = [(70, "old call", "E8 A0", OLD, OLD, ""), (150, "1. INT3", "CC A0", TRAP, OLD, "wait"),
            (230, "2. back part", "CC A0", TRAP, NEW, "wait"), (310, "3. front part", "E8 B0", NEW, NEW, "")]
    p.text(boundary - 8, 36, "one line", 13, SOFT, "end")
    p.text(boundary + 8, 36, "the next line", 13, SOFT)
    p.line(boundary, 22, boundary, 356, SOFT, 2, "6 4")
    for y, name, front, of_front, of_back, wait in rows:
        p.text(24, y + 20, name, 15, weight="bold")
        for i, byte in enumerate(front.split()):
            p.box(first + i * half, y, half, 30, of_front if i == 0 or of_front != TRAP else OLD, byte)
        for i in range(3):
            p.box(boundary + i * half, y, half, 30, of_back, ("00 10 20" if of_back == OLD else "05 15 25").split()[i])
        if wait:
            p.text(boundary - 14, y + 60, wait, 14, SOFT, "end")
            p.line(boundary - 6, y + 36, boundary - 6, y + 74, SOFT, 1.5, arrow=True)
    for x, top, bottom, title, begin, end in (
            (440, 85, 245, "Wait 1 too short:", "front fetched: old", "back fetched: new"),
            (620, 165, 325, "Wait 2 too short:", "back fetched: old", "front fetched: new")):
        p.line(x, top, x, bottom, INK, 2, arrow=True)
        p.dot(x, top, OLD)
        p.dot(x, bottom + 6, NEW)
        p.text(x + 14, top + 5, begin)
        p.text(x + 14, (top + bottom) / 2, title, 14, weight="bold")
        p.text(x + 14, (top + bottom) / 2 + 18, "the thread runs a mix")
        p.text(x + 14, bottom + 11, end)
    p.text(440, 40, "Two fetches of one instruction, on another CPU", 14, SOFT)
    return p


def crossing():
    """What a change of five bytes may cross."""
    p = Picture("What a change can cross",
                "Five bytes inside 8 aligned bytes are changed by one store. Across 8, 16 or 32 bytes inside one cache line one store "
                "does if the machine was measured to allow it. Across a line or a page three stores are needed.", 300)
    left, byte, top = 40, 720 / 192, 62
    for line in range(3):
        p.box(left + line * 64 * byte, top, 64 * byte, 46, "#f6f8fa", (), INK)
        p.text(left + (line * 64 + 32) * byte, top - 10, "64-byte line", 12, SOFT, "middle")
        for word in range(1, 8):
            x = left + (line * 64 + word * 8) * byte
            p.line(x, top, x, top + 46, LINE, 1, "" if word % 4 == 0 else "3 3")
    page = left + 128 * byte
    p.line(page, 20, page, 122, INK, 3)
    p.text(page - 8, 30, "page", 13, INK, "end")
    p.text(page + 8, 30, "the next page", 13)
    sites = [(10, GOOD, 20, ("inside 8 bytes:", "one store")),
             (46, NEW, 215, ("across 8 to 32, one line:", "one store if measured", "(Zen 5: never across 32)")),
             (62, TRAP, 440, ("across a line:", "three stores")), (126, TRAP, 610, ("across a page:", "three stores, two", "translations"))]
    for at, fill, x, words in sites:
        p.box(left + at * byte, top + 8, 5 * byte, 30, fill, (), INK)
        middle = left + (at + 2.5) * byte
        p.line(middle, top + 38, x + 70, 178, SOFT, 1.2)
        for i, line in enumerate(words):
            p.text(x, 198 + i * 19, line, 14, weight="bold" if i == 0 else "normal")
    p.text(24, 280, "Coloured: calls of five bytes. Three stores are kept apart by membarrier (a system call) or by measured waits.", 13, SOFT)
    return p


def ladder():
    """Bounds on tears by wait, of one machine."""
    conf = configparser.ConfigParser()
    conf.read(TOP / "results/runs/amd-25-17-1-kvm-ladder/machine.conf")
    levels = sorted((conf[name] for name in conf.sections() if name.startswith("level ")), key=lambda level: int(level["first"]))
    p = Picture("The ladder of one machine",
                "Upper bounds on tears per change, for each wait from 0 to 25600 ticks, each at least four times the slowest store. "
                "At 0 both bounds are below 1e-4, at 3200 below 1e-5; longer waits were tried in too few slices to say more.", 400)
    left, right, top, bottom, high, low = 90, 760, 50, 300, -2.5, -5.5
    put = lambda bound: top + (high - math.log10(bound)) / (high - low) * (bottom - top)
    for power in (-3, -4, -5):
        y = put(10.0 ** power)
        p.line(left, y, right, y, LINE, 1, "4 4")
        p.text(left - 10, y + 5, f"1e{power}", 13, SOFT, "end")
    p.line(left, top, left, bottom)
    p.line(left, bottom, right, bottom)
    step = (right - left) / len(levels)
    for i, level in enumerate(levels):
        x = left + (i + 0.5) * step
        p.text(x, bottom + 22, f"{level['first']} x{level['stretch']}", 13, anchor="middle")
        p.text(x, bottom + 42, f"{int(level['ticks']) / 1000:.1f}", 13, SOFT, "middle")
        p.dot(x - 7, put(float(level["line_p"])), NEW)
        p.dot(x + 7, put(float(level["page_p"])), OLD, square=True)
    p.text(24, bottom + 22, "wait", 13)
    p.text(24, bottom + 42, "change", 13, SOFT)
    p.text(24, bottom + 66, "Wait: ticks before each of the two later stores, at least 4 times the slowest store. "
           "Above 3200: few slices.", 13, SOFT)
    p.text(24, bottom + 85, "Change: thousands of ticks that a change takes; "
           f"{int(conf['wait']['membarrier_ticks']) / 1000:.1f} by membarrier.", 13, SOFT)
    p.text(left - 60, 30, "Upper bound on tears per change, 95 %", 14, weight="bold")
    p.dot(490, 26, NEW)
    p.text(502, 31, "across a line")
    p.dot(620, 26, OLD, square=True)
    p.text(632, 31, "across a page")
    return p


def policy():
    """Which policy to take."""
    p = Picture("Which policy to take",
                "Calls that are turned on and off, and changes inside 8 aligned bytes, need no policy. Many sites go into one batch; "
                "a caller that must not stand still starts a change and finishes it later. Else auto, which is membarrier unless "
                "the caller accepts tears.", 430)
    questions = [("a call, to be turned on and off?", ("pc_activate_call(), pc_deactivate_call()", "one store, no policy"), GOOD),
                 ("inside 8 aligned bytes?", ("pc_patch()", "one store, no policy"), GOOD),
                 ("many sites at once?", ("pc_patch_batch(), policy auto", "the syncs are shared"), NEW),
                 ("must the caller not stand still?", ("pc_start_patch(), pc_finish_patch()", "policy auto"), NEW),
                 ("may one change in 1/p run a mix?", ("calibrate; pc_set_accept_p(p)", "policy auto waits"), TRAP)]
    for i, (question, answer, fill) in enumerate(questions):
        y = 20 + i * 74
        p.box(30, y, 300, 44, "#f6f8fa", question)
        p.line(330, y + 22, 440, y + 22, arrow=True)
        p.text(380, y + 16, "yes", 13, SOFT, "middle")
        p.box(442, y - 4, 330, 52, fill, answer)
        if i + 1 < len(questions):
            p.line(180, y + 44, 180, y + 74, arrow=True)
            p.text(190, y + 64, "no", 13, SOFT)
    p.text(190, 382, "no", 13, SOFT)
    p.line(180, 360, 180, 402)
    p.line(180, 402, 440, 402, arrow=True)
    p.box(442, 382, 330, 40, GOOD, "policy auto, as it comes: membarrier")
    return p


def house():
    """The trees of the source, and what stands on what."""
    p = Picture("The house: trees of the source",
                "The programs tmax and fastinst are the tree commands. Below tmax stand calibrate, bench, conform and fleet, on results and stress. "
                "Below fastinst stand profile, agent and probes. All of them stand on base and patchcore.", 394)
    p.box(30, 324, 740, 48, GOOD, "patchcore: the library; changes instructions while they run")
    p.box(30, 260, 740, 48, OLD, "base: options, numbers, names, child processes")
    p.box(30, 196, 470, 48, OLD, "stress: one site that is changed while others run it")
    p.box(30, 132, 470, 48, OLD, "results: journals, schemas, figures, measured runs")
    for i, (name, what) in enumerate((("calibrate", "finds waits"), ("bench", "costs"), ("conform", "promises"), ("fleet", "many machines"))):
        p.box(30 + i * 119, 58, 113, 58, OLD, (name, what), size=13)
    p.box(530, 58, 240, 58, OLD, ("profile: counts,", "times and edges"), size=13)
    p.box(530, 132, 240, 48, OLD, "agent: inside the program")
    p.box(530, 196, 240, 48, OLD, "probes: libfastinst")
    p.box(30, 10, 470, 36, NEW, "commands: tmax")
    p.box(530, 10, 240, 36, NEW, "commands: fastinst")
    return p


def main():
    folder = pathlib.Path(sys.argv[1])
    for draw in (stores, crossing, ladder, policy, house):
        (folder / f"{draw.__name__}.svg").write_text(str(draw()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    main()
