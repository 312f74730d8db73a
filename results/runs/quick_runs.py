#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
usage: quick_runs.py NUMBER FOLDER

Makes quick runs of tmax until FOLDER has so many, each with a store of evidence of its own, and tells
how many keep 1e-4, and whether the tears of the others break a bound that one of them states.
TMAX names the program.
"""
import json
import os
import pathlib
import subprocess
import sys


def make_run(at):
    files = [f"--{what}={at}.{end}" for what, end in
             (("output", "conf"), ("journal", "jsonl"), ("evidence", "evidence"))]
    ran = subprocess.run([os.environ.get("TMAX", "tmax"), "calibrate", "--quick", "--quiet", "--json", *files],
                         stdout=subprocess.PIPE, check=False)
    # Pass, fail and inconclusive all have an estimate.
    if ran.returncode > 2:
        sys.exit(f"{at}: tmax ended with {ran.returncode}; what it wrote there is no run: remove it")
    pathlib.Path(f"{at}.json").write_bytes(ran.stdout)


def sections_of(run):
    """(rung, crossing, placement) -> (bound, tears, toggles), and crossings over all placements."""
    found = {}
    for level in run["levels"]:
        if not level["stretch"]:
            continue
        for claim in level["claims"]:
            for part in [claim, *claim["sections"]]:
                key = level["first"], claim["crossing"], part.get("placement", "all")
                found[key] = part["upper_p"], part["tears"], part["toggles"]
    return found


def tell(runs):
    sections = [sections_of(run) for run in runs]
    best = sorted(min(level["upper_p"] for level in run["levels"] if level["stretch"]) for run in runs)
    stated = broken = 0

    print(f"{sum(p <= 1e-4 for p in best)} of {len(runs)} keep 1e-4, {sum(p <= 1e-5 for p in best)} 1e-5;",
          "the best bound of each:", " ".join(f"{p:.1e}" for p in best))
    for number, mine in enumerate(sections):
        for key, (bound, _, _) in mine.items():
            others = [s[key] for i, s in enumerate(sections) if i != number and key in s]
            toggles = sum(o[2] for o in others)
            if bound >= 1 or not toggles:
                continue
            stated += 1
            rate = sum(o[1] for o in others) / toggles
            if rate > bound:
                broken += 1
                print(f"run {number + 1}: {key[0]} x4, {key[1]}, {key[2]}: below {bound:.1e}; others {rate:.1e}")
    print(f"{broken} of {stated} bounds below 1 are below the rate of the other runs")
    for number, run in enumerate(runs):
        window = run["window"]["bytes"]
        narrower = sum(other["window"]["bytes"] < window for other in runs)
        if narrower:
            print(f"run {number + 1}: a window of {window} bytes below {run['window']['upper_p']:.1e};",
                  f"{narrower} other runs saw stores inside it tear")


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, int(sys.argv[1]) + 1):
        if not (folder / f"{number:02}.json").exists():
            make_run(folder / f"{number:02}")
    tell([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])


if __name__ == "__main__":
    main()
