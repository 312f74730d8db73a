#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose lines are run in known proportions is profiled by phases, and the profile of its lines is
# held against these; clang takes it. gcov's JSON is held against what gcov says of a whole run, and AutoFDO's
# tool makes the same lines of AutoFDO's text. Other proportions, and a program without lines, are noticed.
set -euo pipefail
export LC_ALL=C

fastinst=$(realpath "${FASTINST:-./fastinst}")
libs=$PWD/.libs
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset FASTINST_OUTPUT LD_PRELOAD PATCHCORE_MACHINE_CONF

if [ "${SANITIZERS:-none}" != none ]; then
	echo "the agent cannot be loaded into a program without the sanitizer's runtime"
	exit 77
fi
if [ ! -e .libs/libfastinst-edges.so ]; then
	echo "built without shared libraries"
	exit 77
fi
for need in clang llvm-profdata python3; do
	command -v $need >/dev/null || {
		echo "$need is not here"
		exit 77
	}
done
program=$(realpath "${srcdir:-.}/profile/command/tests/lined.c")
cd "$dir"

fail()
{
	echo "WRONG: $*"
	exit 1
}

cp "$program" lined.c
flags="-O2 -gline-tables-only -fdebug-info-for-profiling -Werror"
# shellcheck disable=SC2086 # flags
clang $flags -fsanitize-coverage=trace-pc,no-prune -c -o lined.o lined.c || {
	echo "this clang has not these options"
	exit 77
}
link="-L$libs -Wl,-rpath,$libs -lfastinst -lpatchcore"
# shellcheck disable=SC2086 # flags
gcc -pthread -o lined lined.o $link

cat >judge.py <<'PY'
"""judge.py PROFILE EVERY - 0: seldom is run every EVERY rounds; 1: it is not; 2: too little was seen."""
import re, sys

spots, function, inlined = {}, None, 0
for line in open(sys.argv[1]):
    if m := re.match(r"(\w+):\d+:\d+", line):
        function = m[1]
    elif m := re.match(r" (\d+)(?:\.\d+)?: inlined:(\d+)", line):
        inlined = max(inlined, int(m[2]))
    elif m := re.match(r" (\d+)(?:\.\d+)?: (\d+)", line):
        spot = function, int(m[1])
        spots[spot] = max(spots.get(spot, 0), int(m[2]))
# Lines from the first of work().
often, seldom = inlined, spots.get(("work", 7), 0)
if often < 20000:
    sys.exit(2)
print(often, seldom, spots)
sys.exit(not 0.8 < often / max(seldom, 1) / int(sys.argv[2]) < 1.25)
PY

# Until enough of it was in phases: a thread that gets no CPU comes late.
for rounds in 100000 400000 1600000 6400000; do
	timeout 120 "$fastinst" profile --edges --period 10 --phase 4 --format llvm --output p ./lined $rounds >out 2>err || {
		cat err
		grep -q 'without libdw' err && exit 77
		fail "no profile"
	}
	status=0
	python3 judge.py p 16 || status=$?
	[ "$status" = 2 ] || break
done
[ "$status" = 0 ] || fail "lines: $(cat p)"
! python3 judge.py p 4 || fail "any proportion is taken for right"

# clang believes it: what is seldom run is less likely in its branches.
llvm-profdata show --sample p | grep -q 'Function: work' || fail "llvm-profdata does not read it"
# shellcheck disable=SC2086 # flags
clang $flags -fprofile-sample-use=p -S -emit-llvm -o lined.ll lined.c
grep -q '"branch_weights", i32 [0-9]*, i32 [0-9]*' lined.ll || fail "clang has no weights from it"
# shellcheck disable=SC2086 # flags
clang $flags -S -emit-llvm -o plain.ll lined.c
! grep -q '"branch_weights"' plain.ll || fail "clang has weights without it"

# gcov's JSON has gcov's members, and its lines are run as often as each other.
cat >gcov.py <<'PY'
"""gcov.py OURS GCOV - 0: shares of lines agree; 1: they do not; else a member is missing."""
import json, sys

def same(ours, theirs, where):
    if type(ours) is not type(theirs):
        sys.exit(f"{where}: {ours}, {theirs}")
    if isinstance(theirs, dict):
        if set(ours) != set(theirs):
            print(where, set(ours) ^ set(theirs))
            sys.exit(2)
        for key in theirs:
            same(ours[key], theirs[key], where + [key])
    if isinstance(theirs, list) and theirs and ours:
        same(ours[0], theirs[0], where)

ours, theirs = (json.loads(open(path).readline()) for path in sys.argv[1:3])

def work(document):
    return {line["line_number"]: line for file in document["files"] for line in file["lines"]
            if line.get("function_name") == "work"}

a, b = work(ours), work(theirs)
# A line of gcov's without a function is one at which none begins: of ours there are none.
same(next(iter(a.values())), next(iter(b.values())), ["lines"])
for one in ours, theirs:
    for file in one["files"]:
        file["lines"] = []
same(ours, theirs, [])
both = [line for line in a if line in b]
if len(both) < 4:
    sys.exit(f"{a} {b}")
share = [sum(x[line]["count"] for line in both) for x in (a, b)]
common = sum(min(a[line]["count"] / share[0], b[line]["count"] / share[1]) for line in both)
print({n: (a[n]["count"], b[n]["count"]) for n in both}, common)
sys.exit(common < 0.9)
PY
if command -v gcov >/dev/null && gcc -O1 --coverage -c -o covered.o lined.c 2>/dev/null; then
	gcc --coverage -o covered covered.o
	./covered 1000 >/dev/null
	gcov -j -t covered.gcda >theirs
	# What comes late in its phases has too few lines.
	for times in 1 4 16; do
		timeout 300 "$fastinst" profile --edges --period 10 --phase 4 --format gcov --output q \
			./lined $((times * rounds)) >out 2>err || fail "no gcov: $(cat err)"
		python3 gcov.py q theirs && break
		[ $times != 16 ] || fail "gcov says something else"
	done
	sed 's/seldom = seldom + 1/for (int j = 0; j < 40; j++) seldom = seldom + 1/' lined.c >other.c
	rm covered.gc*
	gcc -O1 --coverage -c -o covered.o other.c
	gcc --coverage -o covered covered.o
	./covered 1000 >/dev/null
	gcov -j -t covered.gcda >theirs
	status=0
	python3 gcov.py q theirs || status=$?
	[ $status = 1 ] || fail "any lines are taken for right"
else
	echo "gcov is not here: not tried"
fi

# AutoFDO's own tool, which knows DWARF 4. Of what is inlined it loses the name.
if command -v create_llvm_prof >/dev/null; then
	# shellcheck disable=SC2086 # flags
	clang $flags -gdwarf-4 -fPIE -fsanitize-coverage=trace-pc,no-prune -c -o lined4.o lined.c
	# shellcheck disable=SC2086 # flags
	gcc -pthread -pie -o lined4 lined4.o $link
	# On a starved machine work() does not run in any phase of the first.
	for times in 1 4 16; do
		timeout 300 "$fastinst" profile --edges --period 10 --phase 4 --format autofdo,llvm --output r \
			./lined4 $((times * rounds)) >out
		sed -n '/^work/,/^main/s/^ \([1-9.]*: [0-9]*\)$/\1/p' r.llvm >lines
		[ ! -s lines ] || break
	done
	create_llvm_prof --binary=./lined4 --profile=r.autofdo --profiler=text --format=text --out=created 2>log
	[ -s lines ] || fail "there are no lines of work()"
	while read -r line; do
		grep -aqxF " $line" created || fail "create_llvm_prof makes something else of it: $line, $(cat created log)"
	done <lines
	sed 's/:[0-9]*$/:7/' r.autofdo >wrong
	create_llvm_prof --binary=./lined4 --profile=wrong --profiler=text --format=text --out=created 2>log
	! grep -aqxF " $(head -n 1 lines)" created || fail "create_llvm_prof takes anything"
else
	echo "create_llvm_prof is not here: not tried"
fi

# Without lines it says what to do.
clang -O2 -fsanitize-coverage=trace-pc,no-prune -c -o bare.o lined.c
# shellcheck disable=SC2086 # flags
gcc -pthread -o bare bare.o $link
! timeout 60 "$fastinst" profile --edges --format llvm --output p ./bare "$rounds" >out 2>err || fail "lines of nothing"
grep -q 'fdebug-info-for-profiling' err || fail "it does not say what is missing: $(cat err)"
