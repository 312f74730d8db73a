#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: overlap.py PROGRAM PROFILE COUNTED PROFDATA

How much a sample profile, as "fastinst profile --edges --format llvm" writes it of PROGRAM, has in common with the
counts of all lines by clang's own counters: COUNTED is built with -fprofile-instr-generate -fcoverage-mapping,
PROFDATA is merged from what it wrote. Both become sample profiles of the same shape, and llvm-profdata compares them:
its "similarity" is by lines as shares of the whole program. It is told with the raw weights of both.

Counters of clang know no copies, so what was inlined counts for the function that it is from, and a line for the
most of its discriminators. Compared are lines that PROGRAM has code of; files are known by their names without folders.

Exit status: 0 done, 1 a tool failed, 64 usage.
"""
import bisect
import collections
import os
import re
import subprocess
import sys
import tempfile


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def functions(program):
    """By file, sorted: (line of the declaration, name)."""
    found, die = collections.defaultdict(set), {}
    for line in run("llvm-dwarfdump", "--debug-info", program).splitlines() + ["0x0: DW_TAG_end"]:
        if "DW_TAG_" in line or line.endswith("NULL"):
            if die.get("subprogram") and "decl_file" in die and "decl_line" in die and "name" in die:
                found[die["decl_file"]].add((die["decl_line"], die.get("linkage_name", die["name"])))
            die = {"subprogram": "DW_TAG_subprogram" in line}
        elif m := re.match(r'\s+DW_AT_(decl_file|name|linkage_name)\s+\("(.*)"\)$', line):
            die[m[1]] = os.path.basename(m[2]) if m[1] == "decl_file" else m[2]
        elif m := re.match(r"\s+DW_AT_decl_line\s+\((\d+)\)$", line):
            die["decl_line"] = int(m[1])
    return {file: sorted(those) for file, those in found.items()}


def with_code(program):
    """(file, line) of all lines."""
    lines = re.findall(r"^(\S+)\s+(\d+)\s+0x", run("objdump", "--dwarf=decodedline", "--wide", program), re.M)
    return {(os.path.basename(file), int(line)) for file, line in lines}


def counted(program, profdata, known, code):
    """What clang's counters say: by function and line from its declaration."""
    truth, file = collections.defaultdict(dict), None
    for line in run("llvm-cov", "export", "-format=lcov", "-instr-profile=" + profdata, program).splitlines():
        if m := re.match(r"SF:(.*)", line):
            file = os.path.basename(m[1])
        elif m := re.match(r"DA:(\d+),(\d+)", line):
            at, count = int(m[1]), int(m[2])
            i = bisect.bisect_right([begin for begin, _ in known.get(file, [])], at) - 1
            if i >= 0 and count and (file, at) in code:
                begin, name = known[file][i]
                truth[name][at - begin] = count
    return truth


def phases(profile):
    """What phases say, the same way."""
    told, stack = collections.defaultdict(collections.Counter), []

    def end(depth):
        while len(stack) > depth:
            name, lines = stack.pop()
            told[name].update(lines)

    for line in open(profile):
        depth = len(line) - len(line.lstrip(" "))
        end(depth)
        if not depth:
            stack.append((line.split(":")[0], {}))
        elif m := re.match(r" +(-?\d+)(?:\.\d+)?: (\d+)(?: .*)?$", line):
            lines = stack[-1][1]
            lines[int(m[1])] = max(lines.get(int(m[1]), 0), int(m[2]))
        elif m := re.match(r" +-?\d+(?:\.\d+)?: (.*):\d+$", line):
            stack.append((m[1], {}))
    end(0)
    return told


def write(path, profile):
    with open(path, "w") as out:
        for name, lines in sorted(profile.items()):
            out.write(f"{name}:{sum(lines.values())}:0\n")
            out.writelines(f" {at}: {count}\n" for at, count in sorted(lines.items()))
    return sum(sum(lines.values()) for lines in profile.values())


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 64
    program, profile, with_counters, profdata = sys.argv[1:]
    known, code = functions(program), with_code(program)
    begins = {name: (file, begin) for file, those in known.items() for begin, name in those}
    truth, told = counted(with_counters, profdata, known, code), collections.defaultdict(dict)
    for name, lines in phases(profile).items():
        file, begin = begins.get(name, (None, 0))
        for at, count in lines.items():
            if count and at >= 0 and (file, begin + at) in code:
                told[name][at] = count
    with tempfile.TemporaryDirectory() as folder:
        paths = os.path.join(folder, "counted"), os.path.join(folder, "told")
        weight = [write(path, what) for path, what in zip(paths, (truth, told))]
        said = run("llvm-profdata", "overlap", "--sample", *paths)
    similar = re.search(r"Whole program profile similarity: ([0-9.]+)%", said)
    if not similar:
        sys.exit("overlap.py: llvm-profdata tells no similarity: " + said)
    print(f"lines of {len(truth)} functions counted, of {len(told)} told: similarity {float(similar[1]):.1f} %; "
          f"raw weights {weight[0]:.4g} and {weight[1]:.4g}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"overlap.py: {error}")
