#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Read journals and stores of evidence of tmax, also packed as .xz, for notebooks. One file, standard library only.

    import tmax_journal
    data = tmax_journal.read("journal.jsonl", "machine.conf.evidence")
    pandas.DataFrame(data.cells())      # or .sums(), .levels(), .of_type("gaps")
    data.aside                          # lines that are no records: (file, line number, why)

As a program it prints a table as CSV:  tmax_journal.py [cells|sums|levels] FILE...

A record is a dict as journal-2.json describes it, with "file" and "line" of where it stood. A row of a table is a
dict without nested ones. Toggles and tears of one wait may be added up over rows; bounds may not, and tears come in
storms, so that the exact binomial bound of a sum is too low (see docs/methods.md).
"""
import csv
import json
import lzma
import os
import sys

SCHEMA = 2
IDENTITY = ("vendor", "family", "model", "stepping", "microcode", "hypervisor", "kernel")


class Data:
    """Records in the order of their lines, and what was set aside."""

    def __init__(self):
        self.records = []
        self.aside = []

    def of_type(self, kind):
        return [record for record in self.records if record["type"] == kind]

    def cells(self):
        """A row per cell: what was asked for, what was counted, the machine."""
        rows, identity = [], {}
        for record in self.records:
            if record["type"] == "run":
                identity = record["identity"]
            if record["type"] != "cell":
                continue
            result = record["result"]
            row = {name: record.get(name) for name in ("file", "line", "date", "stage", "key", "noisy", "command")}
            row.update(record["cell"])
            # What was asked for and what came of it have names in common.
            row["asked_toggles"], row["asked_seconds"] = row["toggles"], row["seconds"]
            row.update(_flat(result, skip=("events", "latency", "tears")))
            row.update(("tears_" + kind, n) for kind, n in result["tears"].items())
            row["tears"] = sum(result["tears"].values())
            row.update(_machine(identity))
            rows.append(row)
        return rows

    def sums(self):
        """A row per sum of a store of evidence: a rung, crossing and placement of a run."""
        rows = []
        for record in self.of_type("evidence"):
            for one in record["sums"]:
                row = {name: record.get(name) for name in ("file", "line", "date", "time", "boot", "source", "cpus")}
                row.update(_flat(one))
                row.update(_machine(record["identity"]))
                rows.append(row)
        return rows

    def levels(self):
        """A row per level and crossing of an estimate: the ladder, with its bounds."""
        rows = []
        for record in self.of_type("estimate"):
            for level in record.get("levels", []):
                for claim in level["claims"]:
                    row = {name: record.get(name) for name in ("file", "line", "date", "verdict", "scope", "runs")}
                    row.update((name, level[name]) for name in ("first", "second", "stretch", "ticks"))
                    row.update(_flat(claim))
                    rows.append(row)
        return rows


def _flat(values, skip=()):
    return {name: value for name, value in values.items()
            if name not in skip and not isinstance(value, (dict, list))}


def _machine(identity):
    return {name: identity.get(name) for name in IDENTITY}


def _record(text):
    """The record of a line, or the reason why there is none."""
    try:
        # A number that is none (NaN) is in no journal.
        record = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return None, "no JSON, or cut off"
    if not isinstance(record, dict) or not isinstance(record.get("type"), str):
        return None, "no record"
    if not isinstance(record.get("schema"), int) or record["schema"] > SCHEMA:
        return None, "of a newer schema"
    needed = {"run": ("identity",), "cell": ("cell", "result"), "evidence": ("identity", "sums")}
    if any(name not in record for name in needed.get(record["type"], ())):
        return None, "incomplete"
    return record, None


def read(*paths):
    """Data of all files, in their order. A line that is no record costs no other."""
    data = Data()
    for path in paths:
        with (lzma.open if os.fspath(path).endswith(".xz") else open)(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                record, why = _record(line.decode("utf-8", "replace"))
                if record is None:
                    data.aside.append((os.fspath(path), number, why))
                    continue
                record["file"], record["line"] = os.fspath(path), number
                data.records.append(record)
    return data


def main(arguments):
    table = arguments.pop(0) if arguments and arguments[0] in ("cells", "sums", "levels") else "cells"
    if not arguments or arguments[0].startswith("-"):
        print("usage: tmax_journal.py [cells|sums|levels] FILE...", file=sys.stderr)
        return 64
    try:
        data = read(*arguments)
    except OSError as error:
        print("tmax_journal.py: cannot read %s: %s" % (error.filename, error.strerror), file=sys.stderr)
        return 69
    rows = getattr(data, table)()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for path, number, why in data.aside:
        print("%s:%d: set aside: %s" % (path, number, why), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
