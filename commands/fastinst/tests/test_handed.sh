#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst trace shows the value of an argument that the caller gave, also where only one file calls the
# function: clang leaves out arguments that are not used, and those behind move up. What is not known is a
# question mark; so is what a function that other files may call makes no use of, since clang's callers do not set
# it. A program that tells another value shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null || skip "no libdw"

# compare LEAST FUNCTION... - the trace with what the program has told; so many values at least are shown, and
# of these functions all
compare() { python3 "$top/commands/fastinst/tests/compare_args.py" "$dir/told" "$dir/trace" "$@"; }

# traced COMPILER FLAGS SOURCE LEAST FUNCTION... - are its arguments what it was given?
traced()
{
	local compiler=$1 flags=$2 source=$3

	shift 3
	# shellcheck disable=SC2086 # several flags
	$compiler $flags -w -fpatchable-function-entry=5 -o "$dir/handed" "$top/commands/fastinst/tests/$source" \
		2>"$dir/errors" || return 0
	compiled=$((compiled + 1))
	"$fastinst" trace --format json --output "$dir/trace" -- "$dir/handed" >"$dir/told" 2>"$dir/errors" ||
		wrong "$compiler $flags: $(cat "$dir/errors")"
	compare "$@" >"$dir/differ" || wrong "$compiler $flags: $(cat "$dir/differ")"
}

compiled=0
for compiler in "${CXX:-g++}" clang++; do
	command -v "${compiler%% *}" >/dev/null || continue
	for flags in "-O0 -gdwarf-5" "-O1 -gdwarf-4" "-O2 -gdwarf-5" "-O2 -gdwarf-4 -fcf-protection" "-O3 -gdwarf-5" "-O2 -gdwarf-5 -flto"; do
		traced "$compiler" "$flags" handed.cc 7 known all_used
	done
done
# What clang's callers set of these 32 functions, and all that gcc's do.
for flags in "-O0 -gdwarf-5" "-O2 -gdwarf-5" "-Os -gdwarf-4" "-O2 -gdwarf-5 -fPIC -fcf-protection"; do
	traced "$CC" "$flags -fno-ipa-cp" exported.c 50 many_all few_all
	! command -v clang >/dev/null || traced clang "$flags" exported.c 50 many_all few_all
done
traced "${CXX:-g++}" "-O0 -g" handed.cc 7 known all_used
[ $compiled -gt 0 ] || skip "no compiler has -fpatchable-function-entry"
sed -i 's/known_2=[0-9]*/known_2=77/' "$dir/told"
compare 7 >"$dir/differ" && wrong "another value is not seen"
grep -q 'known_2 is 77' "$dir/differ" || wrong "another value: $(cat "$dir/differ")"
exit "$failed"
