#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each format, read by a program that is made to read it where one is here.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

write=profile/command/tests/write_sample
work=$dir

fail()
{
	echo "$*" >&2
	exit 1
}

# expect FILE LINE... - each stands in it
expect()
{
	local file=$1 line

	shift
	for line in "$@"; do
		grep -qF -- "$line" "$file" || {
			cat "$file"
			fail "$file: there is no \"$line\""
		}
	done
}

for format in table json collapsed speedscope callgrind llvm pprof html chrome; do
	"$write" "$format" >"$work/$format"
done
! "$write" nonsense || fail "a format that there is not"

valid "$work/json"
[ "$failed" = 0 ] || fail "JSON"
for spoil in 's/"type":"profile"/"type":"dream"/' 's/"schema":1/"schema":2/' 's/"tool":"tmax /"tool":"/' \
	's/"date":"[^"]*",//' 's/"unit":/"extra":1,"unit":/' 's/"calls":[0-9.]*/"calls":-1/'; do
	sed "$spoil" "$work/json" >"$work/spoiled"
	! cmp -s "$work/json" "$work/spoiled" || fail "changes nothing: $spoil"
	(valid "$work/spoiled"; exit "$failed") >"$work/said" && ! grep -q '^not validated' "$work/said" &&
		fail "valid all the same: $spoil"
done

expect "$work/table" '1000000  9e+05 .. 1.1e+06        ! #################### sum;of two' \
	'20000  exact' '! 1 of 3'
! grep -q $'\033' "$work/table" || fail "colours in a file"
! grep -q never "$work/table" || fail "a function without calls"

printf '%s\n' 'main 1' 'main;work 20000' 'work;sum_of_two 1000000' >"$work/want"
diff "$work/want" "$work/collapsed"

python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
profile = json.load(open(work + "/json"))
assert [f["name"] for f in profile["functions"]] == ["sum;of two", "work", "main", "never"]
assert profile["functions"][0]["problem"] == "calls come in bursts"
assert profile["stacks"][2]["frames"] == [1, 0]
scope = json.load(open(work + "/speedscope"))
one = scope["profiles"][0]
# What speedscope's reader asserts of a sampled profile.
assert one["type"] == "sampled" and len(one["samples"]) == len(one["weights"]) == 3
assert all(0 <= f < len(scope["shared"]["frames"]) for s in one["samples"] for f in s)
assert sum(one["weights"]) == one["endValue"] - one["startValue"]
events = json.load(open(work + "/chrome"))["traceEvents"]
assert [e["ts"] for e in events if e["name"] == "calls per second"] == [0, 5e5]
PY

# A reader of protocol buffers of its own; pprof itself was tried by hand.
cat >"$work/read.py" <<'PY'
import sys
data = open(sys.argv[1], "rb").read()

def number(b, i):
    value = shift = 0
    while True:
        value |= (b[i] & 0x7F) << shift
        shift += 7
        i += 1
        if b[i - 1] < 0x80:
            return value, i

def fields(b):
    i, out = 0, []
    while i < len(b):
        key, i = number(b, i)
        value, i = number(b, i)
        if key & 7 == 2:
            assert i + value <= len(b), "cut off"
            value, i = b[i:i + value], i + value
        else:
            assert key & 7 == 0, "wire type"
        out.append((key >> 3, value))
    return out

all_ = fields(data)
strings = [v.decode() for k, v in all_ if k == 6]
assert strings[0] == "" and "calls" in strings
functions = {dict(fields(v))[1]: strings[dict(fields(v))[2]] for k, v in all_ if k == 5}
places = {}
for k, v in all_:
    if k == 4:
        place = dict(fields(v))
        places[place[1]] = functions[dict(fields(place[4]))[1]]
stacks = {}
for k, v in all_:
    if k == 2:
        sample = fields(v)
        stacks[";".join(places[f] for k, f in sample if k == 1)] = [f for k, f in sample if k == 2]
assert stacks == {"main": [1], "work;main": [20000], "sum;of two;work": [1000000]}, stacks
PY
python3 "$work/read.py" "$work/pprof"
head -c 60 "$work/pprof" >"$work/short"
! python3 "$work/read.py" "$work/short" 2>"$work/err" || fail "the reader of pprof takes anything"

# With times: these are the weights then.
for format in table json collapsed speedscope callgrind pprof html; do
	"$write" "$format" timed >"$work/timed.$format"
done
expect "$work/timed.table" '2.0000  1 .. 4' '2.7500' '#################### sum;of two'
expect "$work/table" 'no times: exits cannot be seen'
printf '%s\n' 'main 250000' 'main;work 500000' 'work;sum_of_two 2000000' 'never;sum_of_two 500000' >"$work/want"
diff "$work/want" "$work/timed.collapsed"
sed -i 's/"main": \[1\]/"main": [1, 250000000]/; s/\[20000\]/[20000, 500000000]/; s/\[1000000\]/[1000000, 2000000000]/
	s/^\(assert stacks == .*\)}/\1, "sum;of two;never": [0, 500000000]}/' "$work/read.py"
python3 "$work/read.py" "$work/timed.pprof"
python3 - "$work" <<'PY'
import json, sys
work = sys.argv[1]
times = json.load(open(work + "/timed.json"))["functions"][0]["times"]
assert times["self"] == {"seconds": 2, "low": 1, "high": 4} and times["wall"] == 3, times
assert times["torn"] == 2 and times["timed"] == 10, times
assert "times" not in json.load(open(work + "/timed.json"))["functions"][3]
one = json.load(open(work + "/timed.speedscope"))["profiles"][0]
assert one["unit"] == "seconds" and sum(one["weights"]) == one["endValue"] == 3.25, one
PY

# All of the page is in it, and nothing is fetched.
expect "$work/html" '<script id=told' 'sum;of two'
! grep -Eq '(src|href)=|https?:' "$work/html" || fail "the page fetches something"

if command -v callgrind_annotate >/dev/null; then
	callgrind_annotate --threshold=100 "$work/callgrind" >"$work/annotated"
	grep -Eq '^1,000,000 \(98\.04%\) .*sum;of two' "$work/annotated" || {
		cat "$work/annotated"
		fail "callgrind_annotate reads another count"
	}
	callgrind_annotate --threshold=100 "$work/timed.callgrind" >"$work/annotated"
	grep -Eq '^2,000,000,000 \(72\.73%\) 1,000,000 .*sum;of two' "$work/annotated" || {
		cat "$work/annotated"
		fail "callgrind_annotate reads another time"
	}
	callgrind_annotate --threshold=100 --inclusive=yes "$work/timed.callgrind" >"$work/annotated"
	grep -Eq '^2,750,000,000 .*main' "$work/annotated" || {
		cat "$work/annotated"
		fail "callgrind_annotate reads another time of all that main calls"
	}
	grep -Eq '^ *500,000,000 .*never' "$work/annotated" || {
		cat "$work/annotated"
		fail "callgrind_annotate does not read the time of a call that was not counted"
	}
else
	echo "callgrind_annotate is not here: not tried"
fi

if command -v llvm-profdata >/dev/null; then
	llvm-profdata show --sample "$work/llvm" >"$work/shown"
	expect "$work/shown" 'Function: work: 20000, 20000' 'calls: sum;of_two:1000000'
	# The reader refuses what is no profile.
	! llvm-profdata show --sample "$work/json" >"$work/shown" 2>&1 || fail "it reads anything"
else
	echo "llvm-profdata is not here: not tried"
fi

if command -v clang >/dev/null; then
	printf '%s\n' 'int sum(int x) { return x * 3; }' 'int work(int x) { return sum(x) + 1; }' \
		'int main(int n, char **v) { (void)v; return work(n); }' >"$work/c.c"
	clang -O2 -g -Werror -fprofile-sample-use="$work/llvm" -S -emit-llvm -o "$work/c.ll" "$work/c.c"
	# It keeps a few for what it inlines.
	grep -Eq 'function_entry_count", i64 (199|200)[0-9]{2}}' "$work/c.ll" ||
		fail "clang takes another count from the profile"
else
	echo "clang is not here: not tried"
fi
