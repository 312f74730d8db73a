#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tmax conform: this machine keeps its promises, and with any fault each oracle that has to see it does.
# A fault comes with the third chance for it and once in 17 after that, so that a cell of a few trials has one.
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

# ends "STATUS..." COMMAND... - on a starved machine a cell has but a few trials, which say nothing: then a longer run
ends()
{
	local want=$1

	shift
	for budget in 2s 8s 32s 128s; do
		expect "$want 2" "$@" --budget $budget
		[ "$rc" = 2 ] || return 0
	done
	fail "too little to say: $*"
}

# --- as it is ---

ends 0 "$tmax" conform --seed 1 --how-long
[ "$(grep -c '^holds ' "$dir/out")" = 10 ] || fail "not all promises hold"
[ "$(grep -cE '^  [a-z0-9]+ +[0-9].* (y|d|h|min|s)$' "$dir/out")" = 10 ] || fail "no table of times"
grep -q '^Verdict: conforms$' "$dir/out" || fail "no verdict"

# --- broken on purpose ---

while read -r fault promises; do
	# On a starved machine a cell has but a few trials: then a longer run.
	for budget in 1s 4s 16s; do
		expect "0 1 2" "$tmax" conform --budget $budget --seed 1 --broken "$fault"
		[ "$rc $(grep -c '^BROKEN ' "$dir/out")" != "1 $promises" ] || break
	done
	[ "$rc" = 1 ] || fail "exit status $rc, not 1, with $fault"
	[ "$(grep -c '^BROKEN ' "$dir/out")" = "$promises" ] || fail "$fault is not seen by all $promises"
	! grep -q '^holds ' "$dir/out" || fail "a promise holds in spite of $fault"
	grep -q '^Suspect: no CPU stands out' "$dir/out" || fail "a CPU is named for what they all do"
done <<'LIST'
stale 7
lost 8
unsynced 2
torn 3
exchanged 1
LIST
# What is printed runs the same again, and says where it was.
read -ra again <<<"$(sed -nE '/wanted/s/.*: tmax (conform .*) # [^,]+, microcode [^,]+, hypervisor .*$/\1/p' "$dir/out" | head -n 1)"
ends 1 "$tmax" "${again[@]}"
grep -qF "tmax ${again[*]} #" "$dir/out" || fail "another cell when it is run again"
# Whether it shows that nothing serialises is the machine's affair: docs/conform.md.
ends "0 1" "$tmax" conform --broken unserialized
# A bad CPU is named, and no other.
if [ "${#allowed[@]}" -gt 1 ]; then
	for budget in 5s 20s 60s; do
		expect "0 1 2" "$tmax" conform --only flag,self,membarrier,executable --budget $budget \
			--broken stale --broken-on "${allowed[1]}"
		! grep -q "^Suspect: CPU ${allowed[1]} " "$dir/out" || break
	done
	[ "$rc" = 1 ] || fail "exit status $rc, not 1, with a bad CPU"
	[ "$(sed -nE 's/^Suspect: (CPU [0-9]+) .*/\1/p' "$dir/out")" = "CPU ${allowed[1]}" ] || fail "the bad CPU is not the one that is named"
fi
complains 64 "does not apply" "$tmax" conform --only self --broken torn
complains 64 "no promise 'hope'" "$tmax" conform --only flag,hope
complains 64 "'flag' is there twice" "$tmax" conform --only flag,self,flag
complains 64 "the number of a CPU" "$tmax" conform --cpus "${allowed[0]},"
complains 64 "two at most" "$tmax" conform --cpus "${allowed[0]},${allowed[0]},${allowed[0]}"
complains 64 "is there twice" "$tmax" conform --cpus "${allowed[0]},${allowed[0]}"
complains 64 "the number of a CPU" "$tmax" conform --load some
complains 64 "of which fault" "$tmax" conform --broken-on 0
# No CPU that is not there: no machine has that many.
complains 64 "--cpus: there is no CPU 8191" "$tmax" conform --cpus "${allowed[0]},8191"
complains 64 "--load: there is no CPU 8191" "$tmax" conform --load 8191
complains 64 "CPU 8191 is not tried" "$tmax" conform --broken stale --broken-on 8191

# --- interrupted ---

"$tmax" conform --budget 600s >"$dir/out" 2>"$dir/err" &
started+=($!)
has_child()
{
	[ -n "$(children "${started[-1]}")" ]
}
wait_for has_child || fail "no promise is tried"
kill -INT "${started[-1]}"
rc=0
wait "${started[-1]}" || rc=$?
[ "$rc" = 130 ] || fail "exit status $rc, not 130, when interrupted"
grep -q '^Interrupted: ' "$dir/out" || fail "it does not say that it was interrupted"
grep -q '^not tried .* its turn did not come$' "$dir/out" || fail "nothing of what was not tried"

# --- formats ---

short=("$tmax" conform --only "self,flag" --seed 2 --budget 1s)

# breaks COUNT WORDS FORMAT - so many lines of that format have these words when each promise is broken
breaks()
{
	for budget in 1s 4s 16s; do
		expect "1 2" "${short[@]}" --broken stale --format "$3" --budget $budget
		[ "$rc $(grep -c "$2" "$dir/out")" != "1 $1" ] || return 0
	done
	fail "$3: not $1 times '$2', or exit status $rc"
}

breaks 1 '"verdict":"broken"' json
valid "$dir/out"
[ "$(member verdict)" = broken ] || fail "JSON without a verdict"
breaks 2 '<failure' junit
valid_junit "$dir/out"
if command -v python3 >/dev/null; then
	python3 - "$dir/out" <<'PYTHON' || fail "JUnit"
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
cases = suite.findall("testcase")
assert len(cases) == 2 and suite.get("failures") == "2"
assert all("tmax conform --only" in case.find("system-out").text for case in cases)
PYTHON
fi
for fault in none stale; do
	ends "0 1" "${short[@]}" --broken "$fault" --format opendcdiag
	python3 -c 'import yaml' 2>/dev/null || continue
	python3 - "$dir/out" "$rc" <<'PYTHON' || fail "YAML of $fault"
import sys, yaml
log = yaml.safe_load(open(sys.argv[1]))
broken = sys.argv[2] == "1"
for key in "command-line", "version", "os", "runtime", "cpu-info", "timing", "test-plans", "exit":
    assert key in log, key
assert log["exit"] == ("fail" if broken else "pass")
assert log["virtualization-state"]["vm"] and log["cpu-info"][0]["logical"] >= 0
assert [test["test"] for test in log["tests"]] == ["self", "flag"]
for test in log["tests"]:
    assert test["result"] == log["exit"] and test["details"]["quality"] == "production"
    assert test["time-at-end"]["elapsed"] >= test["time-at-start"]["elapsed"] and test["test-runtime"] > 0
    assert ("fail" in test) == broken
    if broken:
        assert test["fail"]["time-to-fail"] > 0 and 0 < test["fail"]["reproduction-rate"] <= 1
        assert test["threads"][0]["state"] == "failed" and test["threads"][0]["time-to-fail"] > 0
PYTHON
done

# --- one CPU ---

if command -v taskset >/dev/null; then
	ends 0 taskset -c "${allowed[0]}" "$tmax" conform
	grep -q '^Verdict: conforms' "$dir/out" || fail "one CPU"
fi
