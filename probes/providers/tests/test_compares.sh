#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares that are known, of each size, by gcc and by clang: found, counted exactly with what was
# compared, and not run when they are off. fastinst run, list and trace tell the same of them, and
# profile --edges takes none for a block. Where the program has such a function itself, it is called.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so

# compile COMPILER OPTION FLAG... - linked without the option, for which clang would add a library
compile()
{
	local compiler=$1 option=$2

	shift 2
	# shellcheck disable=SC2086 # CC may carry options
	$compiler "$@" "-fsanitize-coverage=$option" -c -o "$dir/compared.o" "$top/probes/providers/tests/compared.c" || return 1
	# shellcheck disable=SC2086
	$CC "$@" -I "$top/probes/include" -o "$dir/compares" "$dir/compared.o" "$top/probes/providers/tests/compares.c" \
		-L.libs -lfastinst -lpatchcore "-Wl,-rpath,$build/.libs"
	nm "$dir/compared.o" | grep -q '__sanitizer_cov_trace_const_cmp8$' && return
	echo "it calls no function for compares" >&2
	return 1
}

# by_fastinst - what the command tells of the program; each function runs 1000 times
by_fastinst()
{
	local names=(chosen4 chosen8 is1 is2 is4 is8 same1 same2 same4 same8)

	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/compares" rounds 2>"$dir/errors" ||
		wrong "run: $(cat "$dir/errors")"
	printf '1000 0 %s\n' "${names[@]}" >"$dir/is"
	awk '$3 == "compare" && $1 != 1 { sub(/\+.*/, "", $4); print $1, $2, $4 }' "$dir/counts" | sort -k3 |
		diff "$dir/is" - || wrong "run counts otherwise"
	"$fastinst" list --json "$dir/compares" >"$dir/json"
	valid "$dir/json"
	python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
names = {s["function"].split("+")[0] for s in report["list"] if s["kind"] == "compare" and s["usable"]}
missing = set(sys.argv[2:]) - names
sys.exit(f"not listed: {missing}" if missing else 0)' "$dir/json" "${names[@]}" || wrong "list"
	timeout 60 "$fastinst" trace --format json --output "$dir/trace" --on 'is[48]*' -- "$dir/compares" rounds 2>"$dir/errors" ||
		wrong "trace: $(cat "$dir/errors")"
	valid "$dir/trace"
	python3 -c '
import json, sys
wanted = {"is4": [1000000000, -5], "is8": [10 ** 18, -2 ** 63]}
seen = {name: 0 for name in wanted}
for event in map(json.loads, open(sys.argv[1])):
    if event["type"] == "event" and event["event"] == "compare":
        name = event["function"].split("+")[0]
        assert [arg["value"] for arg in event["args"]] == wanted[name], event
        seen[name] += 1
assert all(n == 1000 for n in seen.values()), seen' "$dir/trace" || wrong "trace"
	timeout 60 "$fastinst" trace --output "$dir/trace" --on 'same2*' -- "$dir/compares" rounds 2>"$dir/errors" ||
		wrong "trace as text: $(cat "$dir/errors")"
	[ "$(grep -c ' = same2+0x[0-9a-f]*(-500, 20000)' "$dir/trace")" = 1000 ] || wrong "trace as text: $(head -2 "$dir/trace")"
	grep -q '__sanitizer_cov_trace_cmpd$' <(nm "$dir/compared.o") || return 0
	timeout 60 "$fastinst" trace --output "$dir/trace" --on 'same_*' -- "$dir/compares" rounds 2>"$dir/errors" ||
		wrong "trace of floats: $(cat "$dir/errors")"
	sed -n 's/.* = \(same_[a-z]*\)+0x[0-9a-f]*(/\1(/p' "$dir/trace" | sed 's/  .*//' >"$dir/shown"
	printf '%s\n' 'same_float(0.1, -2)' 'same_double(0.1, 1e+300)' | diff - "$dir/shown" || wrong "trace of floats shows >"
}

tried=0
for compiler in "$CC" clang; do
	for option in trace-cmp trace-pc,trace-cmp; do
		for way in "-O1 -fno-pie -no-pie" "-O2 -fPIE -pie -fcf-protection=full" "-O2 -fPIE -pie -fno-plt"; do
			# shellcheck disable=SC2086
			if ! compile "$compiler" "$option" $way >"$dir/errors" 2>&1; then
				echo "$compiler $option $way: skipped, $(tail -1 "$dir/errors")"
				continue
			fi
			tried=$((tried + 1))
			"$dir/compares" >"$dir/out" || wrong "$compiler $option $way: $(cat "$dir/out")"
		done
	done
done
[ $tried != 0 ] || skip "no compiler has -fsanitize-coverage=trace-cmp"

option=
for option in trace-cmp trace-pc,trace-cmp; do
	! compile "$CC" $option -O2 2>/dev/null || break
done
by_fastinst

# Compares alone are no blocks.
if compile "$CC" trace-cmp -O2 2>/dev/null; then
	timeout 60 "$fastinst" profile --edges -- "$dir/compares" rounds >"$dir/out" 2>"$dir/errors" || true
	grep -q 'trace-pc' "$dir/errors" || wrong "compares are taken for blocks: $(cat "$dir/out" "$dir/errors")"
fi

# A function of the program's own, of that one name.
cat >"$dir/own.c" <<'END'
#include <stdio.h>
static unsigned calls;
void own(void) __asm__("__sanitizer_cov_trace_const_cmp8");
void own(void)
{
	calls++;
}
__attribute__((destructor)) static void tell(void)
{
	printf("called %u\n", calls);
}
END
if compile "$CC" $option -O2 2>/dev/null; then
	# shellcheck disable=SC2086
	$CC -I "$top/probes/include" -o "$dir/compares" "$dir/compared.o" "$dir/own.c" "$top/probes/providers/tests/compares.c" \
		-L.libs -lfastinst -lpatchcore "-Wl,-rpath,$build/.libs"
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/compares" rounds >"$dir/out" 2>"$dir/errors" ||
		wrong "run: $(cat "$dir/errors")"
	grep -q '^called 1000$' "$dir/out" || wrong "the program's own function was not called: $(cat "$dir/out")"
	if grep -q ' compare  *is8+' "$dir/counts"; then
		wrong "and it is a probe"
	fi
	grep -q ' compare  *is4+' "$dir/counts" || wrong "all are refused for it"
fi

exit $failed
