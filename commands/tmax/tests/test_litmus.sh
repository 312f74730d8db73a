#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax litmus: histograms in litmus7's form, JSON and JUnit; what a vendor forbids and a test shows is a failure; a file's
# errors have a line and a column.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

few=("$tmax" litmus SM SM+swapped --times 5000)

# --- as it is ---

expect 0 "${few[@]}"
for line in "Test SM Allowed" "Histogram (1 states)" "5120    :>0:r0=new;" "No" "Positive: 0, Negative: 5120" \
	"Condition exists (0:r0=old) is NOT validated" "Observation SM Never 0 5120" "5120    *>0:r0=old;" "Ok" \
	"Condition exists (0:r0=old) is validated" "Observation SM+swapped Always 5120 0" "Verdict: holds"; do
	grep -qxF -- "$line" "$dir/out" || fail "no line '$line'"
done
expect 0 "$tmax" litmus --list
[ "$(grep -c '^  AMD: ' "$dir/out")" = "$(find "${srcdir:-.}/conform/litmus" -name '*.litmus' | wc -l)" ] || fail "not all tests are listed"
expect 0 "${few[@]}" --format json
valid "$dir/out"
[ "$(member verdict)" = holds ] || fail "JSON without a verdict"
expect 0 "${few[@]}" --format junit
valid_junit "$dir/out"

# --- a test of one's own ---

# own VERDICT CODE - a test that always shows what it asks for
own()
{
	printf '%s\n' 'litmus own' "site s 8+0 $2" 'thread' 'fetch s r0' 'exists 0:r0=1' "amd $1 here" "intel $1 here" >"$dir/own.litmus"
}
own forbidden "b8 01 00 00 00 c3"
expect 1 "$tmax" litmus "$dir/own.litmus" --times 100
grep -qx 'Vendor forbidden' "$dir/out" || fail "no vendor"
grep -q '^Verdict: broken' "$dir/out" || fail "no verdict"
expect 1 "$tmax" litmus "$dir/own.litmus" --times 100 --format junit
valid_junit "$dir/out"
grep -q '<failure' "$dir/out" || fail "JUnit has no failure"
own unsaid "b8 01 00 00 00 c3"
expect 0 "$tmax" litmus "$dir/own.litmus" --times 100
own unsaid "0f 0b"
expect 2 "$tmax" litmus "$dir/own.litmus" --times 100
grep -q '^Not run to its end: crash, signal 4' "$dir/out" || fail "no word of a crash"
own unsaid "0f 0"
complains 64 "own.litmus:2:15: expected a byte of two hexadecimal digits" "$tmax" litmus "$dir/own.litmus"
complains 64 "no test 'hope'" "$tmax" litmus hope
complains 64 "CPUs that this process may use" "$tmax" litmus --cpus 8191

# --- interrupted ---

"$tmax" litmus CoFF --times 1000000000000 >"$dir/out" 2>"$dir/err" &
started+=($!)
has_child()
{
	[ -n "$(children "${started[-1]}")" ]
}
wait_for has_child || fail "no test is run"
kill -INT "${started[-1]}"
rc=0
wait "${started[-1]}" || rc=$?
[ "$rc" = 130 ] || fail "exit status $rc, not 130, when interrupted"
grep -q '^Not run to its end: interrupted' "$dir/out" || fail "it does not say that it was interrupted"
