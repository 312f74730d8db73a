#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Basic blocks and compares of a program, by gcc and by clang: fastinst counts each as often as a library does
# that the compiler calls at each; one more round shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so

# compile NAME COMPILER OPTION FLAG... - the program; it is linked without the option, for which clang would
# add a library
compile()
{
	local name=$1 compiler=$2 option=$3

	shift 3
	# shellcheck disable=SC2086 # CC may carry options
	$compiler "$@" "-fsanitize-coverage=$option" -c -o "$dir/$name.o" "$top/probes/providers/tests/blocked.c" || return 1
	# shellcheck disable=SC2086
	$CC "$@" -o "$dir/$name" "$dir/$name.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs" -pthread
}

# compare NAME - are the counts of fastinst those of the reference? A jump to the tracer comes back
# elsewhere, so the reference has those at places of calls that are no site; their sum must agree.
compare()
{
	nm -S "$dir/$1" | python3 -c '
import sys
functions = {}
for line in sys.stdin:
    field = line.split()
    if len(field) == 4 and field[2] in "tT":
        functions[field[3]] = int(field[0], 16)
sites, places = {}, {}
for line in open(sys.argv[1]):
    field = line.split()
    if len(field) == 5 and field[2] in ("block", "compare") and field[1] == "0":
        function, offset = field[3].split("+")
        sites[functions[function] + int(offset, 16)] = int(field[0])
for line in open(sys.argv[2]):
    place, count = line.split()
    places[int(place, 16)] = int(count)
calls = sites.keys() & places.keys()
jumps = sum(sites[site] for site in sites.keys() - calls)
others = sum(places[place] for place in places.keys() - calls)
wrong = [hex(site) for site in calls if sites[site] != places[site]]
if wrong or jumps != others or len(calls) < 15:
    sys.exit(f"{len(calls)} calls, wrong at {wrong}; jumps {jumps}, elsewhere {others}")
' "$dir/counts" "$dir/blocks"
}

# check NAME ROUNDS ARGUMENT... - with so many rounds for fastinst
check()
{
	local name=$1 rounds=$2

	shift 2
	BLOCKS=$dir/blocks LD_PRELOAD=$dir/reference.so "$dir/$name" 1000 "$@" >"$dir/is"
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/$name" "$rounds" "$@" >"$dir/says" 2>"$dir/errors" ||
		wrong "$name $*: $(cat "$dir/errors")"
	compare "$name"
}

# try COMPILER OPTION FLAG...
try()
{
	if ! compile program "$@" 2>"$dir/errors"; then
		echo "$*: skipped, $(head -1 "$dir/errors")"
		return
	fi
	compilers=$((compilers + 1))
	if check program 1001 2>/dev/null; then
		wrong "a round more was not seen"
	fi
	check program 1000 || wrong "$*: counts"
	check program 1000 threads || wrong "$*: counts of threads"
	diff "$dir/is" "$dir/says" || wrong "$*: it computes something else"
	[ "$2" = trace-pc ] || grep -q ' compare ' "$dir/counts" || wrong "$*: no compares"
}

# shellcheck disable=SC2086
$CC -O1 -shared -fPIC -o "$dir/reference.so" "$top/probes/providers/tests/reference.c"
compilers=0
for compiler in "$CC" clang; do
	for level in 1 2; do
		for way in "-fno-pie -no-pie" "-fPIE -pie -fcf-protection=full" "-fPIE -pie -fno-plt"; do
			# shellcheck disable=SC2086
			try "$compiler" trace-pc -O$level $way
			# shellcheck disable=SC2086
			try "$compiler" trace-pc,trace-cmp -O$level $way
		done
	done
done
if [ $compilers = 0 ]; then
	echo "no compiler has -fsanitize-coverage=trace-pc"
	exit 77
fi

exit $failed
