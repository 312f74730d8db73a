#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst trace shows the value of an argument that the caller gave, also where only one file calls the
# function: clang leaves out arguments that are not used, and those behind move up. What is not known is a
# question mark. A program that tells another value shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
[ -e probes/source/source.lo ] || skip "built without libdw"
python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null || skip "no libdw"

# compare LEAST - the trace with what the program has told; so many values at least are shown
compare() { python3 "$top/probes/command/tests/compare_args.py" "$dir/told" "$dir/trace" "$1" known all_used; }

compiled=0
for compiler in "${CXX:-g++}" clang++; do
	command -v "${compiler%% *}" >/dev/null || continue
	for flags in "-O0 -gdwarf-5" "-O1 -gdwarf-4" "-O2 -gdwarf-5" "-O2 -gdwarf-4 -fcf-protection" "-O3 -gdwarf-5" "-O2 -gdwarf-5 -flto"; do
		# shellcheck disable=SC2086 # several flags
		$compiler $flags -w -fpatchable-function-entry=5 -o "$dir/handed" "$top/probes/command/tests/handed.cc" \
			2>"$dir/errors" || continue
		compiled=$((compiled + 1))
		"$fastinst" trace --format json --output "$dir/trace" -- "$dir/handed" >"$dir/told" 2>"$dir/errors" ||
			wrong "$compiler $flags: $(cat "$dir/errors")"
		compare 7 >"$dir/differ" || wrong "$compiler $flags: $(cat "$dir/differ")"
	done
done
[ $compiled -gt 0 ] || skip "no compiler has -fpatchable-function-entry"
sed -i 's/known_2=[0-9]*/known_2=77/' "$dir/told"
compare 7 >"$dir/differ" && wrong "another value is not seen"
grep -q 'known_2 is 77' "$dir/differ" || wrong "another value: $(cat "$dir/differ")"
exit "$failed"
