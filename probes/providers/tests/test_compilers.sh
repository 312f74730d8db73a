#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Markers, branches and calls in C and C++, by each compiler here, at several levels and standards, in
# programs that can be moved and that cannot, and in libraries. What readelf and gdb see of them.
# shellcheck disable=SC2016 # the dollars are gdb's
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
source=$top/probes
tried=0

# try LANGUAGE LINK LINKER-FLAG COMPILER [FLAG]... - LINK: object, library
try()
{
	local language=$1 link=$2 link_flags=$3 out

	shift 3
	# shellcheck disable=SC2206 # none, or one
	local linked=(${link_flags:-})
	local compile=("$@" -x "$language" -Wall -Wextra -Werror -I "$source/include")
	local libs=(-L "$build/.libs" -lfastinst "-Wl,-rpath,$build/.libs")

	tried=$((tried + 1))
	if [ "$link" = library ]; then
		"${compile[@]}" -fPIC -shared "$source/providers/tests/marker_sample.c" -o "$dir/libother.so"
		"${compile[@]}" -DMAIN "$source/providers/tests/marker_sample.c" -x none "${linked[@]}" -o "$dir/sample" \
			-L "$dir" -lother "-Wl,-rpath,$dir" "${libs[@]}"
	else
		"${compile[@]}" -c "$source/providers/tests/marker_sample.c" -o "$dir/other.o"
		"${compile[@]}" -DMAIN "$source/providers/tests/marker_sample.c" -x none "${linked[@]}" "$dir/other.o" \
			-o "$dir/sample" "${libs[@]}"
	fi || {
		wrong "$*: is not compiled"
		return
	}
	out=$(timeout 60 "$dir/sample" 2>&1) || wrong "$language $link $*: $out"
}

# floating LANGUAGE COMPILER FLAG... - what a probe function, readelf and gdb see of floating-point constants
floating()
{
	local language=$1 out

	shift
	tried=$((tried + 1))
	"$@" -x "$language" -Wall -Wextra -Werror -I "$source/include/fastinst/compat" -I "$source/include" \
		"$source/providers/tests/floating.c" -x none -o "$dir/floating" -L "$build/.libs" -lfastinst \
		"-Wl,-rpath,$build/.libs" || {
		wrong "$*: is not compiled"
		return
	}
	out=$(timeout 60 "$dir/floating" 2>&1) || wrong "floating $*: $out"
	if command -v readelf >/dev/null; then
		readelf -n "$dir/floating" >"$dir/notes"
		grep -q 'Name: constants' "$dir/notes" || wrong "$*: readelf -n shows no marker"
		! grep 'Arguments:.*\.LC' "$dir/notes" || wrong "$*: a constant by a label that no file has"
	fi
	command -v gdb >/dev/null || return 0
	gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'break -probe-stap floating:constants' -ex run \
		-ex 'printf "bits %lx %lx\n", $_probe_arg0, $_probe_arg1' -ex kill "$dir/floating" >"$dir/gdb" 2>&1 || true
	grep -q 'Cannot.*ptrace\|Operation not permitted' "$dir/gdb" ||
		grep -q '^bits 3ff8000000000000 c004000000000000$' "$dir/gdb" || wrong "$*: gdb: $(cat "$dir/gdb")"
}

# What a day needs; TMAX_STRESS_SCALE=1 and more have all.
levels=(-O0 -O2) standards=(c++98 c++20)
if awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { exit s < 1 }'; then
	levels=(-O0 -O1 -O2 -O3) standards=(c++98 c++11 c++17 c++20)
fi
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	for level in "${levels[@]}"; do
		try c object '' $cc "$level"
		floating c $cc "$level"
	done
	floating c $cc -O2 -std=c99 -fno-pie -no-pie
	try c object -no-pie $cc -O2 -fno-pie
	try c object -Wl,--gc-sections $cc -O2 -ffunction-sections
	try c library '' $cc -O2
	try c library '' $cc -O0 -fcf-protection=full
done
for cc in g++ clang++; do
	command -v $cc >/dev/null || continue
	for standard in "${standards[@]}"; do
		try c++ object '' $cc -O2 "-std=$standard"
		floating c++ $cc -O2 "-std=$standard"
	done
	floating c++ $cc -O0
	try c++ object '' $cc -O0
	try c++ object -no-pie $cc -O2 -fno-pie
	try c++ library '' $cc -O1
	try c++ library -Wl,--gc-sections $cc -O3 -ffunction-sections
done
echo "$tried programs"

# --- the same markers by others ---

read -ra compile <<<"$CC"
"${compile[@]}" -g -O2 -I "$source/include" -DMAIN "$source/providers/tests/marker_sample.c" -c -o "$dir/main.o"
"${compile[@]}" -g -O2 -I "$source/include" "$source/providers/tests/marker_sample.c" -c -o "$dir/other.o"
"${compile[@]}" "$dir/main.o" "$dir/other.o" -o "$dir/sample" -L "$build/.libs" -lfastinst \
	"-Wl,-rpath,$build/.libs"

if command -v readelf >/dev/null; then
	readelf -n "$dir/sample" >"$dir/notes"
	for word in 'Provider: sample' 'Name: inlined' 'Name: other' 'Arguments: -4@'; do
		grep -q -- "$word" "$dir/notes" || wrong "readelf -n does not show $word"
	done
	! grep -q 'Provider: nothing' "$dir/notes" || wrong "readelf -n shows everything"
else
	echo "no readelf"
fi
if command -v gdb >/dev/null; then
	gdb -batch -nx -ex 'info probes stap sample' -ex 'break -probe-stap sample:other' \
		-ex 'set debuginfod enabled off' -ex run -ex 'print $_probe_arg0' -ex kill \
		"$dir/sample" >"$dir/gdb" 2>&1 || true
	grep -q 'sample *inlined' "$dir/gdb" || wrong "gdb's info probes: $(cat "$dir/gdb")"
	if grep -q 'Cannot.*ptrace\|Operation not permitted' "$dir/gdb"; then
		echo "gdb may not trace here"
	else
		grep -q '^\$1 = 3$' "$dir/gdb" || wrong "gdb's breakpoint: $(cat "$dir/gdb")"
	fi
else
	echo "no gdb"
fi
exit $failed
