#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where debug information has arguments where they are not, or does not tell enough, fastinst trace shows no
# wrong value: with sites and without, with names of functions and without. A program that tells another value
# shows that the comparison can fail, and debug information that leads in a circle ends nothing but the search.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null || skip "no libdw"
here=$top/commands/fastinst/tests

# build COMPILER FLAGS SOURCE
build()
{
	# shellcheck disable=SC2086 # several flags
	case $3 in
	odd.c) $1 $2 -g -w -o "$dir/odd" "$here/odd.c" ;;
	odd.cc) $1 $2 -g -w -std=c++17 -c -DOTHER_FILE -o "$dir/other.o" "$here/odd.cc" &&
		$1 $2 -g -w -std=c++17 -o "$dir/odd" "$here/odd.cc" "$dir/other.o" ;;
	esac 2>"$dir/errors"
}

# shows LEAST [OPTION]... - what the program in odd tells is what the trace shows
shows()
{
	timeout 60 "$fastinst" trace "${@:2}" --format json --output "$dir/trace" -- "$dir/odd" >"$dir/told" 2>"$dir/errors" ||
		wrong "$what: status $?, $(cat "$dir/errors")"
	python3 "$here/compare_args.py" "$dir/told" "$dir/trace" "$1" >"$dir/differ" || wrong "$what: $(cat "$dir/differ")"
}

compiled=0
# try SOURCE LEAST COMPILER FLAGS...
try()
{
	local source=$1 least=$2 compiler=$3 flags what before=$compiled

	command -v "${compiler%% *}" >/dev/null || return 0
	for flags in "${@:4}"; do
		what="$compiler $flags $source"
		if build "$compiler" "$flags -fpatchable-function-entry=5" "$source"; then
			compiled=$((compiled + 1))
			shows "$least"
			# Names of local functions are gone.
			objcopy --strip-unneeded --keep-section='.debug_*' "$dir/odd" "$dir/odd.stripped"
			mv "$dir/odd.stripped" "$dir/odd"
			what="$what, stripped"
			shows 0
		else
			echo "not built: $what: $(grep -m 1 error "$dir/errors")"
		fi
		what="$compiler $flags $source, without NOPs"
		! build "$compiler" "$flags" "$source" || shows "$least" --entries
	done
	[ $compiled -gt $before ] || wrong "$compiler has built nothing of $source: $(cat "$dir/errors")"
}

try odd.c 14 "$CC" -O0 -O1 -O2 "-O2 -gdwarf-4 -DDWARF_4 -funsigned-char"
# gcc makes copies of all of them.
try odd.c 0 "$CC" "-O2 -flto"
try odd.c 14 clang -O0 -O1 -O2 "-O2 -gdwarf-4 -DDWARF_4 -funsigned-char"
try odd.c 6 clang "-O2 -flto"
try odd.cc 3 "${CXX:-g++}" -O0 -O2 "-O0 -fdebug-types-section" "-O2 -gdwarf-4"
try odd.cc 3 clang++ -O0 -O2 "-O2 -gdwarf-4"
try odd.cc 0 "${CXX:-g++}" "-O0 -gdwarf-4 -gstrict-dwarf"
try odd.cc 0 clang++ "-O0 -gdwarf-4 -gstrict-dwarf"
[ $compiled -gt 0 ] || skip "no compiler has -fpatchable-function-entry"

# A library is loaded from where the program has gone to, and another of that name lies where the tool is.
mkdir "$dir/here" "$dir/here/there"
cat >"$dir/loads.c" <<'END'
#include <dlfcn.h>
#include <unistd.h>
int main(void)
{
	void *library = chdir("there") ? 0 : dlopen("./plugin.so", RTLD_NOW);
	int (*plugged)(int, double) = library ? (int (*)(int, double))dlsym(library, "plugged") : 0;
	return plugged ? plugged(71, 2.5) != 73 : 2;
}
END
echo 'int plugged(int right, double other) { return right + (int)other; }' >"$dir/right.c"
echo 'int plugged(double wrong, int another) { return another + (int)wrong; }' >"$dir/wrong.c"
# shellcheck disable=SC2086 # CC may carry options
$CC -o "$dir/here/loads" "$dir/loads.c" -ldl
# shellcheck disable=SC2086
$CC -g -fpatchable-function-entry=5 -shared -fPIC -o "$dir/here/there/plugin.so" "$dir/right.c"
# shellcheck disable=SC2086
$CC -g -fpatchable-function-entry=5 -shared -fPIC -o "$dir/here/plugin.so" "$dir/wrong.c"
(cd "$dir/here" && timeout 60 "$fastinst" trace --output "$dir/trace" -- ./loads 2>"$dir/errors") || wrong "a relative path: status $?, $(cat "$dir/errors")"
grep -q 'plugged(right=71, other=2.5)' "$dir/trace" || wrong "a relative path: $(cat "$dir/trace")"

# Each member of a struct is the struct.
cat >"$dir/circle.c" <<'END'
typedef int circle;
struct whole { circle a, b, c, d, e, f, g, h; };
__attribute__((noinline)) void taken(struct whole *whole, struct whole value) { whole->a = value.b; }
int main(void) { struct whole whole = { 0 }; taken(&whole, whole); return whole.a; }
END
# shellcheck disable=SC2086 # CC may carry options
$CC -g -gdwarf-4 -O0 -fpatchable-function-entry=5 -S -dA -o "$dir/circle.s" "$dir/circle.c"
awk '
	/DIE \(0x[0-9a-f]+\) DW_TAG/ { tag = $NF }
	FNR == NR { if (tag ~ /structure_type/ && match($0, /DIE \(0x[0-9a-f]+/)) at = substr($0, RSTART + 5, RLENGTH - 5); next }
	tag ~ /typedef/ && /# DW_AT_type/ { sub(/0x[0-9a-f]+/, at) }
	{ print }' "$dir/circle.s" "$dir/circle.s" >"$dir/circled.s"
if ! cmp -s "$dir/circle.s" "$dir/circled.s" && $CC -o "$dir/circle" "$dir/circled.s" 2>"$dir/errors"; then
	timeout 30 "$fastinst" trace --output "$dir/trace" -- "$dir/circle" 2>"$dir/errors" || wrong "a circle: status $?, $(cat "$dir/errors")"
	grep -q 'taken(' "$dir/trace" || wrong "a circle: no event of taken() in $(cat "$dir/trace")"
else
	echo "no circle: the compiler writes no such assembly"
fi

what=$CC
build "$CC" "-O0 -fpatchable-function-entry=5" odd.c && shows 14
sed -i 's/chars_b=[0-9]*/chars_b=77/' "$dir/told"
python3 "$here/compare_args.py" "$dir/told" "$dir/trace" 14 >"$dir/differ" && wrong "another value is not seen"
grep -q 'chars_b is 77' "$dir/differ" || wrong "another value: $(cat "$dir/differ")"
exit "$failed"
