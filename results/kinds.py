#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: results/kinds.py [FOLDER]

Prints results/kinds.tsv: single stores inside a cache line on each kind of processor, from the stores of evidence
below FOLDER (default: results/runs). "make machines" in a build writes the table.
Exit status: 0, 64 usage, 69 there is no evidence.
"""
import collections
import json
import lzma
import math
import pathlib
import sys

SPREAD = 16  # WINDOW_SPREAD in calibrate/statistics/estimate.h
BOUNDARIES = (8, 16, 32)
COLUMNS = "vendor family model window stores one_in runs hours machines torn_8 torn_16 torn_32"
HEAD = f"""# SPDX-License-Identifier: MIT
# Single stores to part of a cache line, by kind of processor. Made by results/kinds.py from results/runs: do not edit it.
# The window is the widest of 8, 16, 32 and 64 aligned bytes inside which no store tore; stores, runs and hours are of
# the boundary inside it that has fewest. At most one store in one_in tears there (95 %, the run is the unit).
# It is a prior: counted on other machines of the kind.
{COLUMNS.replace(" ", chr(9))}"""


def evidence_below(folder):
    """Each line of evidence once, however many stores have it."""
    seen = set()
    for path in sorted(pathlib.Path(folder).glob("*/*.evidence*")):
        if path.suffix not in (".evidence", ".xz"):
            continue
        with lzma.open(path) if path.suffix == ".xz" else open(path, "rb") as file:
            for line in map(json.loads, file):
                if line["type"] == "evidence" and line["checksum"] not in seen:
                    seen.add(line["checksum"])
                    yield line


class Boundary:
    """Stores across it, and runs that saw any."""

    def __init__(self):
        self.runs, self.torn, self.hours, self.machines = [], 0, set(), set()

    def add(self, line, stores, torn):
        self.torn += torn
        if stores:
            machine = json.dumps({name: value for name, value in line["identity"].items() if name != "kernel"})
            self.runs.append(stores)
            self.hours.add((machine, line["time"] // 3600))
            self.machines.add(machine)

    def one_in(self):
        """As bound_unseen(): how many stores there are to one that tears, at least."""
        low, high = 0.0, math.log(1e18)
        for _ in range(50):
            middle = (low + high) / 2
            chance = sum(math.log1p(SPREAD * math.exp(-middle) * stores) for stores in self.runs) / SPREAD
            low, high = (middle, high) if chance >= -math.log(0.05) else (low, middle)
        return int(math.exp(low))


def row(kind, boundary):
    inside, window = [], 8
    for bytes_ in BOUNDARIES:
        if boundary[bytes_].torn or not boundary[bytes_].runs:
            break
        inside.append(boundary[bytes_])
        window *= 2
    counts = [min(map(count, inside), default=0) for count in (
        lambda b: sum(b.runs), Boundary.one_in, lambda b: len(b.runs), lambda b: len(b.hours), lambda b: len(b.machines))]
    return [*kind, window, *counts, *(boundary[bytes_].torn for bytes_ in BOUNDARIES)]


def main(folder=pathlib.Path(__file__).resolve().parent / "runs"):
    kinds = collections.defaultdict(lambda: {bytes_: Boundary() for bytes_ in BOUNDARIES})
    for line in evidence_below(folder):
        kind = kinds[tuple(str(line["identity"][name]) for name in ("vendor", "family", "model"))]
        for bytes_ in BOUNDARIES:
            across = [s for s in line["sums"] if s["kind"] == "store" and s["crossing"] == str(bytes_)]
            kind[bytes_].add(line, sum(s["toggles"] for s in across), sum(s["tears"] for s in across))
    if not kinds:
        return 69
    print(HEAD)
    for kind in sorted(kinds, key=lambda kind: (kind[0], int(kind[1]), int(kind[2]))):
        print(*row(kind, kinds[kind]), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) <= 2 else 64)
