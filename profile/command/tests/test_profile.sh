#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that knows its own counts runs under "fastinst profile": its output and status stay what they
# are, rare calls are counted exactly or marked, and what is said without a mark of others holds. What was merely
# counted, taken for all calls, shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
needs_patchable
rounds=${PROFILE_ROUNDS:-3000000}
cd "$dir"

fail()
{
	echo "WRONG: $*"
	exit 1
}

# status COMMAND... - its exit status
status()
{
	local status=0

	"$@" || status=$?
	echo "$status"
}

# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -o profiled \
	"$top/profile/command/tests/profiled.c" -pthread

./profiled "$rounds" >plain && fail "the program ends with 0"
got=0
timeout 120 "$fastinst" profile --format json,table,collapsed,speedscope,callgrind,llvm,chrome \
	--output p ./profiled "$rounds" 2>err >profiled.out || got=$?
cat err
[ ! -s err ] || fail "it says something"
[ "$got" = 3 ] || fail "the exit status is $got"
valid p.json
[ "$failed" = 0 ] || fail "JSON"
diff plain profiled.out || fail "the output changed"
cat p.table
for format in json collapsed speedscope callgrind llvm chrome; do
	[ -s "p.$format" ] || fail "no $format"
done

cat >judge.py <<'PY'
"""judge.py PROFILE COUNTS FIELD - whether FIELD of each function agrees with what the program counted."""
import json, sys

truth = {}
for line in open(sys.argv[2]):
    name, count = line.split()[:2]
    if name != "sum":
        truth[name] = int(count)
functions = {f["name"]: f for f in json.load(open(sys.argv[1]))["functions"]}
bad = 0
for name, count in truth.items():
    f = functions[name]
    if f["low"] == f["high"]:
        good = abs(f["calls"] - count) < 0.5
    elif name in ("rare", "jumps", "task"):
        # Where the program was not run for long at its start, windows may have become short.
        good = "problem" in f or abs(f["calls"] - count) < 0.5
    elif sys.argv[3] == "calls":
        # Twice as wide as it says: what remains is no chance.
        good = "problem" in f or f["low"] / 2 <= count <= f["high"] * 2
    else:
        good = f["counted"] >= count / 2
    if not good:
        print(name, "was called", count, "times:", f)
        bad += 1
sys.exit(bad > 0)
PY
# Where other programs keep this one from its CPU, a short window may miss rare calls: then once more.
for try in 1 2 3; do
	! python3 judge.py p.json plain calls || break
	[ "$try" != 3 ] || fail "counts"
	timeout 120 "$fastinst" profile --format json --output p.json ./profiled "$rounds" >profiled.out || true
done
! python3 judge.py p.json plain counted >/dev/null || fail "everything was counted: nothing was sampled"

# Callers and what they call, and in children.
python3 - <<'PY'
import json
profile = json.load(open("p.json"))
name = [f["name"] for f in profile["functions"]]
edges = {tuple(name[f] for f in s["frames"]) for s in profile["stacks"]}
for edge in ("task", "often"), ("often", "mixed"), ("deep", "deep"), ("rare", "jumps"), ("child", "rare"):
    assert edge in edges or edge == ("child", "rare"), (edge, edges)
assert profile["quality"]["processes"] == 2
PY

# It ends before the first epoch does: all calls were counted, and the cost is reported.
cat >brief.c <<'C'
__attribute__((noinline)) static void step(void)
{
	__asm__ volatile("");
}

int main(void)
{
	for (int i = 0; i < 8; i++)
		step();
	return 0;
}
C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -o brief brief.c
"$fastinst" profile --epoch 1000 --format json --output brief.json ./brief
python3 - <<'PY'
import json
profile = json.load(open("brief.json"))
counts = {f["name"]: (f["calls"], f["low"], f["high"]) for f in profile["functions"] if f["calls"]}
assert counts == {"step": (8, 8, 8), "main": (1, 1, 1)}, counts
assert 0 < profile["quality"]["toggling"] < profile["quality"]["cost"] <= 1, profile["quality"]
PY

# A program as it came has counts and callers in one step.
sed -i 's/__asm__ volatile("")/static volatile int steps; steps += 3/' brief.c
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -o brief brief.c
"$fastinst" profile --entries --on step --on main --format json,collapsed --output entries ./brief
python3 -c 'import json
functions = json.load(open("entries.json"))["functions"]
counts = {f["name"]: (f["calls"], f["low"], f["high"]) for f in functions if f["calls"]}
assert counts["step"] == (8, 8, 8), counts'
grep -qx 'main;step 8' entries.collapsed || fail "callers: $(cat entries.collapsed)"

# What cannot be.
[ "$(status "$fastinst" profile --format nonsense true 2>/dev/null)" = 64 ] || fail "a format"
[ "$(status "$fastinst" profile --overhead 0 true 2>/dev/null)" = 64 ] || fail "a budget of nothing"
[ "$(status "$fastinst" profile 2>/dev/null)" = 64 ] || fail "no program"
[ "$(status "$fastinst" profile ./none 2>/dev/null)" = 127 ] || fail "a program that is not there"
"$fastinst" profile true 2>err
grep -q 'compiled with -fpatchable-function-entry' err || fail "nothing is said of a program without probes"
