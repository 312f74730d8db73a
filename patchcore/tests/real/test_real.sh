#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs that know nothing of the library, with their hottest calls changed ten thousand times a
# second while they work: what they put out is what they put out untouched. With the changes made
# wrongly it is not. TMAX_STRESS_SCALE lengthens the work: 1 is a second or two for each program.
# shellcheck disable=SC2317 # the work is called by name
set -euo pipefail
export LC_ALL=C

here=$(cd "${srcdir:-.}/patchcore/tests/real" && pwd)
preload=$(realpath -m "${REAL_PRELOAD:-patchcore/tests/real/.libs/preload.so}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ulimit -c 0
unset PATCHCORE_MACHINE_CONF
export HOME=$dir XDG_CONFIG_HOME=$dir

if [ "${SANITIZERS:-none}" != none ]; then
	echo "a library with sanitizers cannot be preloaded into an ordinary program"
	exit 77
fi
if [ ! -e "$preload" ]; then
	echo "built without shared libraries, nothing to preload"
	exit 77
fi

# times COUNT - as the scale has it; below 1 there is no time to find hot calls
times()
{
	awk -v n="$1" -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", n * (s < 1 ? 1 : s) }'
}

failed=0
limit=$(times 60) # seconds; a program that needs longer hangs
with=()
rate=10000 # changes per second

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# --- the work: each writes its result to stdout ---

run_lua()
{
	timeout "$limit" "${with[@]}" lua5.4 "$here/load.lua" "$(times 800)"
}

run_sqlite3()
{
	timeout "$limit" "${with[@]}" sqlite3 -batch :memory: <"$dir/sql"
}

run_zstd()
{
	timeout "$limit" "${with[@]}" zstd -T2 -B1MiB -13 -q -c "$dir/data"
}

# Many times the same file, for it takes so little time.
run_unzstd()
{
	timeout "$limit" "${with[@]}" zstd -d -q -c "${packed[@]}"
}

for ((i = $(times 4); i > 0; i--)); do
	cat "$here/load.sql"
done >"$dir/sql"
awk -v lines="$(times 150000)" 'BEGIN {
	for (s = 1; i < lines; i++) {
		s = (s * 69069 + 12345) % 2147483648
		printf "%x %d%s", s, s % 1000 < 300 ? i : s % 100, s % 7 ? " " : " the quick brown fox\n"
	}
}' >"$dir/data"

# --- how it is run ---

# touched POLICY OBJECT BREAK WORK - with the hot calls changing
touched()
{
	rm -f "$dir/report"
	with=(env "LD_PRELOAD=$preload" "PC_REAL_REPORT=$dir/report" "PC_REAL_POLICY=$1"
		"PC_REAL_OBJECT=$2" "PC_REAL_BREAK=$3" "PC_REAL_RATE=$rate")
	"$4"
}

value()
{
	awk -v name="$1" '$1 == name { print $2 }' "$dir/report"
}

# changed - was every kind of site changed and run?
changed()
{
	local number

	for number in toggles straddler_toggles through; do
		[ "$(value $number)" -gt 0 ] || return
	done
}

# same NAME POLICY OBJECT WORK - untouched and touched put out the same. On a busy machine a short program may be
# over before the patcher has a CPU: then it runs again.
same()
{
	local name=$1 status=0 turn

	"$4" | cksum >"$dir/untouched"
	for turn in 1 2 3 4 5 6; do
		touched "$2" "$3" "" "$4" | cksum >"$dir/touched" || status=$?
		if [ "$status" != 0 ] || [ ! -e "$dir/report" ] || [ "$(value error)" != 0 ] || changed; then
			break
		fi
	done
	if [ -e "$dir/report" ] && [ "$(value error)" = -95 ]; then
		echo "skipped: $name: straddlers cannot be patched here with policy $2"
	elif [ "$status" != 0 ]; then
		wrong "$name: exit status $status"
	elif ! cmp -s "$dir/untouched" "$dir/touched"; then
		wrong "$name: other output than untouched"
	elif [ ! -e "$dir/report" ]; then
		wrong "$name: no report"
	else
		changed || wrong "$name: too little was changed, $turn times"
		[ "$(value error)" = 0 ] || wrong "$name: error $(value error)"
		echo "$name: $(tr '\n' ' ' <"$dir/report")"
	fi
}

# broken BREAK OBJECT WORK - touched and done wrong. True: it shows.
broken()
{
	local status=0

	"$3" | cksum >"$dir/untouched"
	touched auto "$2" "$1" "$3" 2>/dev/null | cksum >"$dir/touched" || status=$?
	[ "$status" != 0 ] || ! cmp -s "$dir/untouched" "$dir/touched"
}

# absent PROGRAM - says so
absent()
{
	command -v "$1" >/dev/null && return 1
	echo "skipped: $1 is not installed"
}

# library_of PROGRAM NAME - that name, if its calls are in a library and not in the program
library_of()
{
	if ldd "$(command -v "$1")" | grep -q "$2"; then
		echo "$2"
	fi
}

# --- the programs ---

if ! absent lua5.4; then
	same lua auto "$(library_of lua5.4 liblua)" run_lua
fi

if ! absent sqlite3; then
	same sqlite3 membarrier "$(library_of sqlite3 libsqlite3)" run_sqlite3
fi

if ! absent zstd; then
	same "zstd, two threads" auto "" run_zstd
	run_zstd >"$dir/data.zst"
	mapfile -t packed < <(yes "$dir/data.zst" | head -n "$(times 60)")
	same "zstd, unpacking" membarrier "" run_unzstd
	zstd -d -q -c "$dir/data.zst" | cmp - "$dir/data" || wrong "zstd: not what was packed"
fi

# --- the same, done wrongly ---

if command -v lua5.4 >/dev/null; then
	work=run_lua object=$(library_of lua5.4 liblua)
elif command -v sqlite3 >/dev/null; then
	work=run_sqlite3 object=$(library_of sqlite3 libsqlite3)
elif command -v zstd >/dev/null; then
	work=run_zstd object=
else
	echo "none of the programs is installed"
	exit 77
fi

for break in skip torn; do
	broken "$break" "$object" "$work" || wrong "calls changed wrongly ($break) and nothing shows"
done

# Here it takes an executor that comes by between two stores, so there are as many as can be.
rate=1000000 tries=10
for ((i = 1; i <= tries; i++)); do
	if broken bytewise "$object" "$work"; then
		echo "calls written byte by byte: shows in run $i"
		break
	fi
done
[ "$i" -le "$tries" ] || wrong "calls written byte by byte, and nothing shows in $tries runs"

exit "$failed"
