#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst trace shows of a program with known calls only those that its filters name: by duration, depth, call
# tree, thread, process, and values of arguments, each with its exit. Where exits cannot be seen, it says so.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
lines=
if python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null; then
	lines=yes
fi

# trace STATUS OPTION... - of $dir/tree; calls are in $dir/calls then, without times and lines
trace()
{
	local expected=$1 status=0

	shift
	timeout 60 "$fastinst" trace --output "$dir/trace" "$@" -- "$dir/tree" 2>"$dir/errors" || status=$?
	[ $status = "$expected" ] || wrong "$*: exit status $status, $(cat "$dir/errors")"
	cut -c34- "$dir/trace" | sed -e 's/  [^ ]*:[0-9]*$//' >"$dir/calls"
	[ -n "$lines" ] || sed -i -e 's/(.*/()/' -e 's/ = .*//' "$dir/calls"
}

# shows WHAT - are the calls those of standard input?
shows()
{
	[ -n "$lines" ] || {
		sed -e 's/(.*/()/' -e 's/ = .*//' >"$dir/is"
		diff "$dir/is" "$dir/calls" || wrong "$1: it should be <"
		return 0
	}
	diff - "$dir/calls" || wrong "$1: it should be <"
}

# shellcheck disable=SC2086 # CC may carry options
$CC -g -O1 -fpatchable-function-entry=5 -o "$dir/tree" "$top/commands/fastinst/tests/tree.c" -pthread
if [ -n "$lines" ]; then
	trace 0 --when 'n >= 77'
	shows "--when" <<'END'
> leaf(n=99, name="main")
> leaf(n=77, name="child")
END
	trace 0 --when 'name==two' --when 'n<=2'
	shows "two of them" <<'END'
> leaf(n=1, name="two")
> leaf(n=2, name="two")
END
	trace 0 --when 'p.x!=3'
	shows "a member" <<'END'
> scaled(x=2.5, p.x=5, p.y=6)
END
	trace 0 --when 'x<2' --when 'p.y=4'
	shows "a float" <<'END'
> scaled(x=1.5, p.x=3, p.y=4)
END
fi
trace 0 --no-children --on leaf
[ "$(wc -l <"$dir/calls")" = 17 ] || wrong "--no-children: $(cat "$dir/calls")"
[ "$(awk '{ print $2 }' "$dir/trace" | sort -u | wc -l)" = 1 ] || wrong "--no-children: $(cat "$dir/trace")"
trace 0 --tid 1
[ ! -s "$dir/trace" ] || wrong "--tid of none: $(cat "$dir/trace")"
for one in -t=10us -F=work -D=2; do
	trace 0 "${one%%=*}" "${one#*=}"
	grep -q 'exits of 7 functions cannot be seen' "$dir/errors" || wrong "$one, without exits: $(cat "$dir/errors")"
done
for one in --when=x --when='x<>3' --when='>3' --time-filter=soon --time-filter=0 --depth=0; do
	trace 64 "$one"
done

# shellcheck disable=SC2086
if ! $CC -g -O1 -fno-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return -c \
	-o "$dir/tree.o" "$top/commands/fastinst/tests/tree.c" 2>"$dir/errors"; then
	echo "$CC has no -minstrument-return=nop5: $(head -1 "$dir/errors")"
	exit "$failed"
fi
# shellcheck disable=SC2086
$CC -no-pie -o "$dir/tree" "$dir/tree.o" -pthread

trace 0 -D 2 -F work
shows "a call tree and its depth" <<'END'
> work()
  > middle(n=0)
  < middle = 3
  > middle(n=1)
  < middle = 5
  > middle(n=2)
  < middle = 7
  > middle(n=3)
  < middle = 9
  > middle(n=4)
  < middle = 11
  > scaled(x=1.5, p.x=3, p.y=4)
  < scaled = 3
  > scaled(x=2.5, p.x=5, p.y=6)
  < scaled = 5
< work
END
trace 0 --filter 'tree:wait*'
shows "one function's" <<'END'
> wait_for(ms=30)
< wait_for
END
trace 0 --filter 'other:wait*'
[ ! -s "$dir/trace" ] || wrong "another object: $(cat "$dir/trace")"
trace 0
cp "$dir/calls" "$dir/all"
[ "$(wc -l <"$dir/all")" = 64 ] || wrong "without a filter: $(wc -l <"$dir/all")"
trace 0 --time-filter 1
sort "$dir/all" | diff - <(sort "$dir/calls") || wrong "every call takes a nanosecond, the filter misses >"
trace 0 --time-filter 1000s
[ ! -s "$dir/trace" ] || wrong "no call takes so long: $(cat "$dir/trace")"
trace 0 --time-filter 10ms --limit 3
[ "$(wc -l <"$dir/trace")" = 3 ] || wrong "--limit: $(cat "$dir/trace")"
trace 0 --time-filter 10ms --format json
valid "$dir/trace"
python3 - "$dir/trace" <<'END' || wrong "durations: $(cat "$dir/trace")"
import json, sys
events = [event for event in map(json.loads, open(sys.argv[1])) if event["type"] == "event"]
inside, shown = {}, []
for event in events:
    stack = inside.setdefault(event["tid"], [])
    if event["event"] == "enter":
        stack.append(event)
        continue
    entry = stack.pop()
    assert entry["function"] == event["function"] and event["ns"] - entry["ns"] >= 10000000, event
    shown.append(event["function"])
assert not any(inside.values()), inside
for name in "wait_for", "middle", "work", "main":
    assert name in shown, shown
END
trace 0 --time-filter 10ms --format chrome
python3 - "$dir/trace" <<'END' || wrong "spans: $(cat "$dir/trace")"
import json, sys
depth = {}
for event in json.load(open(sys.argv[1]))["traceEvents"]:
    depth[event.get("tid")] = depth.get(event.get("tid"), 0) + {"B": 1, "E": -1}.get(event["ph"], 0)
    assert depth[event.get("tid")] >= 0, event
assert not any(depth.values()), depth
END
exit "$failed"
