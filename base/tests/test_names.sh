#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose functions and folder have names of control characters, of backslashes and of bytes that
# are no UTF-8: each command and each format tells of them, JSON is JSON, and no line is spoiled.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
command -v objcopy >/dev/null || skip "objcopy is not here: no program can be given such names"

odd=$'bad\xff\tna\nme\\x41\x7f'
escaped='bad\xff\x09na\x0ame\x5cx41\x7f'
place=$dir/$'d\xfe\ti\nr\x1b[7m'
mkdir "$place"
cat >"$dir/odd.c" <<'C'
#include <stdlib.h>

int odd(int n);
int odd_too(int n);
int odd_long(int n);

__attribute__((noinline)) int odd_long(int n)
{
	return n + 1;
}

__attribute__((noinline)) int odd_too(int n)
{
	return n & 1 ? n * 3 + 1 : n / 2;
}

__attribute__((noinline)) int odd(int n)
{
	return n & 2 ? odd_too(n) + 1 : odd_too(n + 1);
}

int main(int argc, char **argv)
{
	int sum = odd_long(argc);

	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++)
		sum += odd(i + sum);
	return sum == 4711;
}
C
long=$(printf 'l%.0s' {1..9000})

# build NAME FLAG... - with odd names in place of odd and odd_too
build()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -g "$@" -c -o "$dir/$name.o" "$dir/odd.c"
	objcopy --redefine-sym odd="$odd" --redefine-sym odd_too="too$odd" --redefine-sym odd_long="$long" "$dir/$name.o"
	# shellcheck disable=SC2086
	$CC -o "$place/$name" "$dir/$name.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
}

# clean FILE - lines of text for terminals
clean()
{
	python3 - "$1" <<'PY' || wrong "$(basename "$1"): $(cat -v "$1")"
import sys
text = open(sys.argv[1], "rb").read().decode()
sys.exit(any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in text))
PY
}

# named FILE - all names are in it, escaped
named()
{
	clean "$1"
	[ "$(grep -cF -e " $escaped" -e "too$escaped" "$1")" -ge 2 ] || wrong "$(basename "$1") has not the names: $(cat -v "$1")"
}

# json FILE EXPRESSION - of "text", the JSON, line by line, and of "odd" and "place"
json()
{
	python3 - "$1" "$2" <<'PY' || wrong "$(basename "$1") is not $2: $(cat -v "$1" | head -c 3000)"
import json, sys
data = open(sys.argv[1], "rb").read().decode()
try:
    text = [json.loads(data)]
except json.JSONDecodeError:
    text = [json.loads(line) for line in data.splitlines()]
odd = "bad\ufffd\tna\nme\\x41\x7f"
place = "/d\ufffd\ti\nr\x1b[7m/"
def named(rows, key="function"):
    return {odd, "too" + odd} <= {row[key] for row in rows} and all(place in row["object"] for row in rows if row[key] == odd)
sys.exit(not eval(sys.argv[2]))
PY
}

fastinst()
{
	timeout 120 "$fastinst" "$@" 2>"$dir/errors" >"$dir/out" || wrong "$*: $(cat -v "$dir/errors")"
}

build entries -fpatchable-function-entry=5
fastinst list "$place/entries"
named "$dir/out"
fastinst list --json "$place/entries"
valid "$dir/out"
json "$dir/out" 'place in text[0]["object"] and {odd, "too" + odd} <= {row["function"] for row in text[0]["list"]}'
fastinst run --output "$dir/run" -- "$place/entries" 10
named "$dir/run"
grep -F -- " $escaped" "$dir/run" | grep -Eq '^ *10 ' || wrong "run counts something else: $(cat -v "$dir/run")"
grep -q " $long " "$dir/run" || wrong "a long name was not counted"
fastinst run --json --output "$dir/json" -- "$place/entries" 10
valid "$dir/json"
json "$dir/json" 'named(text[0]["probes"]) and {p["count"] for p in text[0]["probes"] if p["function"] == odd} == {10}'
# A glob has backslashes of its own.
pattern=${odd//\\/\\\\}
fastinst run --on "$pattern" --output "$dir/run" -- "$place/entries" 10
[ "$(grep -cF -- "$escaped" "$dir/run")" = 1 ] || wrong "a name as a pattern: $(cat -v "$dir/run")"
fastinst trace --output "$dir/trace" -- "$place/entries" 3
named "$dir/trace"
fastinst trace --format json --output "$dir/json" -- "$place/entries" 3
valid "$dir/json"
json "$dir/json" 'place in text[0]["program"] and named([e for e in text if e["type"] == "event"])'
fastinst trace --format chrome --output "$dir/json" -- "$place/entries" 3
json "$dir/json" '{odd, "too" + odd} <= {e["name"] for e in text[0]["traceEvents"]}'

# Told to one that runs.
timeout 120 "$fastinst" run --off -- "$place/entries" 2000000000 2>"$dir/errors" &
runner=$!
for _ in {1..600}; do
	! "$fastinst" on "$pattern" >"$dir/out" 2>"$dir/errors" || break
	sleep 0.05
done
grep -q ': 1 probe$' "$dir/out" || wrong "a name told to a program: $(cat -v "$dir/out" "$dir/errors")"
fastinst top --once
clean "$dir/out"
grep -qF -- " $escaped" "$dir/out" || wrong "top: $(cat -v "$dir/out")"
pid=$(sed -n 's/^process \([0-9]*\):.*/\1/p' <("$fastinst" on "$pattern"))
if [ -e "$build/.libs/libfastinst-profile.so" ]; then
	timeout 120 "$fastinst" profile --overhead 50% --pid "$pid" --for 1 --on "$pattern" --output "$dir/p.pid" 2>"$dir/log" || true
	if grep -q ptrace "$dir/log"; then
		echo "ptrace(2) is not allowed here: profile --pid was not tried"
	else
		clean "$dir/p.pid"
		grep -qF -- " $escaped" "$dir/p.pid" || wrong "profile --pid: $(cat -v "$dir/p.pid" "$dir/log")"
	fi
fi
kill "$pid"
wait "$runner" || true

if [ -e "$build/.libs/libfastinst-profile.so" ]; then
	formats=table,json,collapsed,speedscope,callgrind,llvm,pprof,html,chrome
	fastinst profile --overhead 50% --format $formats --output "$dir/p" -- "$place/entries" 300000
	named "$dir/p.table"
	valid "$dir/p.json"
	json "$dir/p.json" 'place in text[0]["program"] and named(text[0]["functions"], "name")'
	json "$dir/p.speedscope" '{odd, "too" + odd} <= {f["name"] for f in text[0]["shared"]["frames"]}'
	json "$dir/p.chrome" 'place in text[0]["traceEvents"][0]["args"]["name"]'
	# Bytes are left to these, as they say nothing of what they are.
	for format in collapsed callgrind llvm; do
		tr '\377\376' '??' <"$dir/p.$format" >"$dir/$format"
		clean "$dir/$format"
		grep -q 'toobad?_na_me\\x41_' "$dir/$format" || wrong "$format: $(cat -v "$dir/$format")"
	done
	python3 -c 'import sys; data = open(sys.argv[1], "rb").read(); sys.exit("too" + "bad\ufffd\tna\nme\\x41" not in data.decode(errors="ignore"))' \
		"$dir/p.pprof" || wrong "pprof"
	python3 -c 'import re, sys; print(re.search(r"<script id=told[^>]*>(.*?)</script>", open(sys.argv[1]).read(), re.S)[1])' \
		"$dir/p.html" >"$dir/told"
	json "$dir/told" 'named(text[0]["functions"], "name")'
fi

if build blocks -fsanitize-coverage=trace-pc 2>/dev/null && [ -e "$build/.libs/libfastinst-edges.so" ]; then
	formats=table,json,html,chrome,autofdo,llvm,gcov
	for rounds in 3 30 300; do
		fastinst profile --edges --period 6 --phase 2 --format $formats --output "$dir/e" "$place/blocks" ${rounds}000000
		[ "$(grep -cF -- '->' "$dir/e.table" || true)" -lt 3 ] || break
	done
	valid "$dir/e.json"
	json "$dir/e.json" 'place in text[0]["program"] and any(e["from"]["block"].startswith("too" + odd + "+") and place in e["to"]["object"] for e in text[0]["edges"])'
	json "$dir/e.chrome" 'place in text[0]["traceEvents"][0]["args"]["name"]'
	clean "$dir/e.table"
	grep -qF -- "too$escaped+" "$dir/e.table" || wrong "edges: $(cat -v "$dir/e.table")"
	# Without its object it would have no ranges.
	[ "$(head -n 1 "$dir/e.autofdo")" -gt 2 ] || wrong "autofdo: $(cat -v "$dir/e.autofdo")"
	if [ -e "$dir/e.gcov" ]; then
		json "$dir/e.gcov" 'place in text[0]["data_file"] and any(f["name"] == "main" and f["execution_count"] == 0 or f["blocks"] > 0 for f in text[0]["files"][0]["functions"])'
		grep -q '^main:' "$dir/e.llvm" || wrong "llvm: $(cat -v "$dir/e.llvm")"
	fi
fi
exit $failed
