#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Patterns name functions of C++ and Rust as their source does or as the symbol is called, and functions of
# source files; they may have blanks wherever a pattern may stand. One that matches nothing is exit status 1
# and the names that are near. Names are printed as in the source, and JSON has both.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
mkdir -p "$dir/src/net"
cp "$top/commands/fastinst/tests/named.c" "$dir/src/net/named.c"
echo 'int elsewhere(int x); __attribute__((noinline)) int elsewhere(int x) { return x + 2; }' >"$dir/src/elsewhere.c"
# shellcheck disable=SC2086 # CC may carry options
(cd "$dir" && $CC -O1 -g -fpatchable-function-entry=5 -o named src/net/named.c src/elsewhere.c)
prog=$dir/named
"$fastinst" list "$prog" >"$dir/list" 2>"$dir/log"
grep -q 'shop::Cart::add(int)' "$dir/list" || wrong "list: $(cat "$dir/list" "$dir/log")"

# counted - the functions of a table of counts, each with its count; the last two columns are paths
counted()
{
	sed -nE 's/^ *([0-9]+) +0  entry    (.*[^ ])  +\/.*/\1 \2/p' "$1" | sort | paste -sd';'
}

# takes PATTERN WANT... - run by it counts these functions, ten times each
takes()
{
	local pattern=$1 want got

	shift
	want=$(printf '10 %s\n' "$@" | sort | paste -sd';')
	"$fastinst" run --on "$pattern" --output "$dir/counts" -- "$prog" >/dev/null 2>"$dir/log" ||
		wrong "$pattern: status $?, $(cat "$dir/log")"
	got=$(counted "$dir/counts")
	[ "$got" = "$want" ] || wrong "$pattern takes $got, not $want"
}

both=('shop::Cart::add(int)' 'shop::Cart::add(int, char const*)')
takes 'shop::Cart::add' "${both[@]}"
takes 'shop::Cart::add(int)' 'shop::Cart::add(int)'
takes 'shop::Cart::add(int, char const*)' 'shop::Cart::add(int, char const*)'
takes 'shop::Cart::add(int,\ char const*)' 'shop::Cart::add(int, char const*)'
takes '*::add*' "${both[@]}"
takes 'named:*Cart*' "${both[@]}" 'shop::Cart::operator[](int)'
takes 'shop::Cart::operator[]' 'shop::Cart::operator[](int)'
takes '_ZN4shop4Cart3addE*' "${both[@]}"
takes 'mycrate::cart::*' mycrate::cart::total mycrate::cart::render
takes '/:shop::Cart::add\(int, char/' 'shop::Cart::add(int, char const*)'
takes '/named:pla.n$/' plain
takes '_ZN4sho[p]' _ZN4shop
if [ -e "$build/probes/dwarf/libdw.lo" ]; then
	takes 'elsewhere.c:*' elsewhere
	takes 'src/*.c:else*' elsewhere
	takes 'net/named.c:*::add' "${both[@]}"
fi

# Several, by options and by the environment, of which one has blanks.
timeout 60 "$fastinst" run --on plain --on "${both[1]}" --output "$dir/counts" -- "$prog" >/dev/null
[ "$(counted "$dir/counts")" = "10 plain;10 ${both[1]}" ] || wrong "two patterns: $(cat "$dir/counts")"
FASTINST_ON='plain shop::Cart::add(int,\ char\ const*)' FASTINST_CONTROL=off LD_PRELOAD=$build/.libs/libfastinst-agent.so \
	"$prog" 2>"$dir/log" >/dev/null
[ "$(cut -f 4 "$dir/log" | sort | paste -sd' ')" = "_ZN4shop4Cart3addEiPKc plain" ] || wrong "the environment: $(cat "$dir/log")"

# --- What is printed ---

"$fastinst" list --json "$prog" >"$dir/json"
valid "$dir/json"
grep -q '"function":"_ZN4shop4Cart3addEi","demangled":"shop::Cart::add(int)"' "$dir/json" || wrong "list --json: $(cat "$dir/json")"
! grep -q '"function":"plain","demangled"' "$dir/json" || wrong "list --json: plain is demangled"
"$fastinst" run --json --output "$dir/json" -- "$prog" >/dev/null
valid "$dir/json"
grep -q '"function":"_RNvNtC7mycrate4cart5total","demangled":"mycrate::cart::total"' "$dir/json" || wrong "run --json: $(cat "$dir/json")"
"$fastinst" trace --on 'shop::*' --output "$dir/trace" -- "$prog" >/dev/null
grep -q '> shop::Cart::add(.*)' "$dir/trace" || wrong "trace: $(head -n 5 "$dir/trace")"
"$fastinst" trace --on 'shop::*' --format json --output "$dir/json" -- "$prog" >/dev/null
valid "$dir/json"
grep -q '"demangled":"shop::Cart::operator\[\](int)"' "$dir/json" || wrong "trace --format json: $(head -n 5 "$dir/json")"
if [ -e "$build/.libs/libfastinst-profile.so" ]; then
	"$fastinst" profile --on 'shop::Cart::add(int, char const*)' --on plain --overhead 50% \
		--format table,json,collapsed,llvm,pprof --output "$dir/p" -- "$prog" >/dev/null
	grep -q ' shop::Cart::add(int, char const\*)$' "$dir/p.table" || wrong "profile: $(cat "$dir/p.table")"
	valid "$dir/p.json"
	grep -q '"name":"_ZN4shop4Cart3addEiPKc","demangled":"shop::Cart::add(int, char const\*)"' "$dir/p.json" || wrong "profile: $(cat "$dir/p.json")"
	grep -q 'shop::Cart::add(int,_char_const\*) 10$' "$dir/p.collapsed" || wrong "profile: $(cat "$dir/p.collapsed")"
	grep -q '^_ZN4shop4Cart3addEiPKc:10:10$' "$dir/p.llvm" || wrong "profile: $(cat "$dir/p.llvm")"
	for name in _ZN4shop4Cart3addEiPKc 'shop::Cart::add(int, char const*)'; do
		grep -qaF -- "$name" "$dir/p.pprof" || wrong "pprof has no $name"
	done
fi

# --- None ---

# none TEXT ARGUMENT... - exit status 1, and the text
none()
{
	local text=$1 status=0

	shift
	timeout 60 "$fastinst" "$@" >"$dir/out" 2>"$dir/log" || status=$?
	[ $status = 1 ] || wrong "$*: status $status"
	grep -qF -- "$text" "$dir/log" || wrong "$*: not said: $text, but: $(cat "$dir/log")"
}

none "no probe of $prog matches 'plian'; did you mean 'plain'?" run --on plian -- "$prog"
none "did you mean 'shop::Cart::add'" run --on 'shop::Cart::ad' -- "$prog"
none "matches 'elswhere'; did you mean 'elsewhere'?" run --on plain --on elswhere -- "$prog"
none "matches 'qqq*': \"fastinst list\" tells" run --on 'qqq*' -- "$prog"
none "did you mean 'plain'?" trace --on plian -- "$prog"
[ ! -e "$build/.libs/libfastinst-profile.so" ] || none 'no function that matches plian' profile --on plian -- "$prog"
none 'this is no regular expression' run --on '/(/' -- "$prog"
# Another program of the same run has it.
timeout 60 "$fastinst" run --on plain --output "$dir/counts" -- sh -c "true; '$prog'; true" >/dev/null 2>"$dir/log" ||
	wrong "a pattern of a child's: $? $(cat "$dir/log")"

"$prog" 600 >"$dir/says" &
pid=$!
until grep -q ready "$dir/says"; do sleep 0.01; done # before, it may have no libc yet
if ! timeout 60 "$fastinst" attach "$pid" 2>"$dir/log"; then
	kill "$pid"
	grep -q ptrace "$dir/log" || wrong "attach: $(cat "$dir/log")"
	echo "ptrace(2) is not allowed here: no process was attached to"
	exit $failed
fi
none "did you mean 'plain'?" on --pid "$pid" plian
none "did you mean 'plain'?" off plian
none "did you mean 'plain'?" attach --for 1 --on plian "$pid"
none "did you mean 'plain'?" trace --pid "$pid" --on plian
none 'this is no regular expression' on '/(/'
none 'no static branch' on --branch nothing
"$fastinst" on --pid "$pid" "${both[1]}" >"$dir/out" 2>&1 || wrong "on: $(cat "$dir/out")"
grep -q ': 1 probe$' "$dir/out" || wrong "on, with blanks: $(cat "$dir/out")"
"$fastinst" top --once >"$dir/out"
grep -qF "${both[1]}" "$dir/out" || wrong "top: $(cat "$dir/out")"
timeout 60 "$fastinst" attach --for 0.2 --on "${both[0]}" --on plain "$pid" >/dev/null 2>"$dir/log" || wrong "attach --for: $(cat "$dir/log")"
grep -qF "${both[0]}" "$dir/log" || wrong "attach --for: $(cat "$dir/log")"
timeout 60 "$fastinst" trace --pid "$pid" --limit 40 --on "${both[0]}" --on plain >/dev/null 2>"$dir/log" || wrong "trace --pid: $(cat "$dir/log")"
for name in 'shop::Cart::add(' 'plain('; do
	grep -qF "> $name" "$dir/log" || wrong "trace --pid has no $name: $(cat "$dir/log")"
done
kill "$pid"
exit $failed
