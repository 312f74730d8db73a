#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst trace shows the calls of a program that makes known ones: arguments by debug information, in
# signal handlers, threads, children and programs in their place; as text, JSON and for Perfetto. What
# is lost is counted, all of it. A program that calls once more shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
lines=
if python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null; then
	lines=yes
fi

# compile NAME COMPILER FLAG...
compile()
{
	local name=$1 compiler=$2

	shift 2
	# shellcheck disable=SC2086 # CC may carry options
	$compiler -g -O1 "$@" -o "$dir/$name" "$top/commands/fastinst/tests/traced.c" -pthread
}

# trace NAME STATUS OPTION... [-- ARGUMENT...] - to $dir/trace; what it says goes to $dir/errors
trace()
{
	local name=$1 expected=$2 status=0 options=()

	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# = 0 ] || shift
	timeout 60 "$fastinst" trace --output "$dir/trace" "${options[@]}" -- "$dir/$name" "$@" \
		>"$dir/says" 2>"$dir/errors" || status=$?
	[ $status = "$expected" ] || wrong "$name ${options[*]}: exit status $status, $(cat "$dir/errors")"
}

# calls - the trace without times, numbers of processes and threads, pointers and lines
calls()
{
	cut -c34- "$dir/trace" | sed -e 's/  [^ ]*:[0-9]*$//' -e 's/0x[0-9a-f]\{5,\}/PTR/g'
}

# expected ARGUMENTS? - what calls() must give
expected()
{
	cat <<'END'
> main(argc=1, argv=PTR)
> add(a=-5, b=7)
> greet(name="a \"b\"\n", n=200, flag=true, letter='x')
> greet(name=0x0, n=1, flag=false, letter='y')
> greet(name=0x10, n=1, flag=false, letter=0)
> greet(name="sixty-four bytes of a string are taken along; what comes behind "..., n=0, flag=false, letter=0)
END
	printf '> greet(name="\xff\xfe", n=0, flag=false, letter=0)\n'
	cat <<'END'
> seven(a='a', b=-2, c=3, d=-4, e=0x0, f=18446744073709551615, g=7)
> mixed(x=1, i=2, y=3, text="mixed")
> huge(a=1, b.a=1, b.b=2, b.c=3, color=-1)
> little(s.a=1, s.b=2, x=3)
> deep(depth=2)
> deep(depth=1)
> deep(depth=0)
> add(a=1, b=2)
> on_signal(number=10)
> nothing()
> threads(n=1, calls=3)
> in_thread(arg=0x3)
> add(a=0, b=9)
> add(a=1, b=9)
> add(a=2, b=9)
> add(a=100, b=200)
> main(argc=2, argv=PTR)
> add(a=1000, b=2000)
END
}

expected >"$dir/is"
if [ -z "$lines" ]; then
	echo "without libdw: no arguments, no lines"
	sed -i 's/(.*)$/(...)/' "$dir/is"
fi
for compiler in "$CC" clang; do
	command -v "${compiler%% *}" >/dev/null || continue
	for format in -gdwarf-4 -gdwarf-5; do
		compile program "$compiler" $format -fpatchable-function-entry=5 || continue
		trace program 3
		[ "$(cat "$dir/says")" = "done" ] || wrong "the program says $(cat "$dir/says")"
		[ ! -s "$dir/errors" ] || wrong "$compiler $format: $(cat "$dir/errors")"
		calls | diff "$dir/is" - || wrong "$compiler $format: it should be <, fastinst shows >"
		[ -z "$lines" ] || grep -q ' nothing()  .*traced.c:[1-9][0-9]*$' "$dir/trace" || wrong "$compiler: no line"
	done
done
compile program "$CC" -fpatchable-function-entry=5
[ "$(awk '{ print $2 }' "$dir/trace" | sort -u | wc -l)" = 3 ] || wrong "not three processes"
[ "$(awk '{ print $3 }' "$dir/trace" | sort -u | wc -l)" = 4 ] || wrong "not four threads"
sort -c "$dir/trace" || wrong "not in order of time"

trace program 3 --on deep --on 'program:nothing'
calls | sed 's/(.*//' | sort | uniq -c | awk '{ print $1, $3 }' >"$dir/is"
[ "$(tr '\n' ' ' <"$dir/is")" = "3 deep 1 nothing " ] || wrong "patterns: $(cat "$dir/trace")"
trace program 3 --limit 4
[ "$(wc -l <"$dir/trace")" = 4 ] || wrong "--limit: $(cat "$dir/trace")"
grep -q '4 events shown; --limit' "$dir/errors" || wrong "--limit says nothing"
trace program 3 --no-control --on add --format json
valid "$dir/trace"
python3 - "$dir/trace" "$lines" <<'END' || wrong "JSON: $(cat "$dir/trace")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["type"] for line in lines] == ["trace"] + 7 * ["event"] + ["end"]
assert lines[-1]["events"] == 7 and lines[-1]["lost"] == 0 and not lines[-1]["limited"]
assert lines[-1]["functions"] == []
assert all(line["function"] == "add" and line["event"] == "enter" for line in lines[1:-1])
if sys.argv[2]:
    sums = [sum(arg["value"] for arg in line["args"]) for line in lines[1:-1]]
    assert sums == [2, 3, 9, 10, 11, 300, 3000], sums
    assert all(line["file"].endswith("traced.c") and line["line"] > 1 for line in lines[1:-1])
END
trace program 3 --format chrome --on '*'
python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/trace" || wrong "not JSON for Perfetto"

# --- exits ---

if compile exits "$CC" -fno-pie -no-pie -fpatchable-function-entry=0 -pg -mfentry -mnop-mcount \
	-mrecord-mcount -minstrument-return=nop5 -mrecord-return -c 2>"$dir/errors"; then
	mv "$dir/exits" "$dir/exits.o"
	# shellcheck disable=SC2086
	$CC -no-pie -o "$dir/exits" "$dir/exits.o" -pthread
	trace exits 3 --on deep
	calls >"$dir/shown"
	printf '%s\n' "> deep(depth=2)" "  > deep(depth=1)" "    > deep(depth=0)" "    < deep = 3" "  < deep = 4" \
		"< deep = 5" >"$dir/is"
	[ -n "$lines" ] || sed -i -e 's/(.*/(...)/' -e 's/ = .//' "$dir/is"
	diff "$dir/is" "$dir/shown" || wrong "exits: it should be <"
	trace exits 3 --format chrome
	python3 - "$dir/trace" <<'END' || wrong "spans: $(cat "$dir/trace")"
import json, sys
depth, spans = {}, 0
for event in json.load(open(sys.argv[1]))["traceEvents"]:
    thread = event["pid"], event.get("tid")
    change = {"B": 1, "E": -1}.get(event["ph"], 0)
    spans += change == 1
    depth[thread] = depth.get(thread, 0) + change
    assert depth[thread] >= 0, event
assert not any(depth.values()) and spans > 20, (depth, spans)
END
else
	echo "$CC has no -minstrument-return=nop5: $(head -1 "$dir/errors")"
fi

# --- what is lost is counted ---

# known N CALLS - are there so many of add() in the trace, shown or lost?
known()
{
	awk -v n="$1" '/ add\(/ { shown++ } $4 == "!" { lost += $5 } END { print shown + 0, lost + 0; exit shown + lost != n }' "$dir/trace"
}
trace program 0 --on add -- often 200000
known 800000 || wrong "not every call is shown or counted as lost"
if known 800001 >/dev/null; then
	wrong "a call more was not missed"
fi
if grep -q ' ! ' "$dir/trace"; then
	grep -q 'add: [0-9]* of 800000 events lost' "$dir/errors" || wrong "lost, and of which: $(cat "$dir/errors")"
fi

# --- a process that runs ---

mkfifo "$dir/lines"
timeout 60 "$fastinst" run --off -- "$dir/program" wait <"$dir/lines" >"$dir/pid" 2>/dev/null &
runner=$!
exec 7>"$dir/lines"
for ((i = 0; i < 300; i++)); do
	[ ! -s "$dir/pid" ] || break
	sleep 0.1
done
for ((i = 0; i < 2; i++)); do
	timeout 60 "$fastinst" trace --pid "$(cat "$dir/pid")" --on nothing --limit 3 --output "$dir/trace" \
		2>"$dir/errors" || wrong "--pid: $(cat "$dir/errors")"
	[ "$(grep -c ' > nothing(' "$dir/trace")" = 3 ] || wrong "--pid: $(cat "$dir/trace")"
done
exec 7>&-
wait "$runner" || wrong "the program that was traced failed"

# The command is stopped while the process calls: of what has no room it is known which function lost it.
rm "$dir/lines"
mkfifo "$dir/lines"
: >"$dir/pid"
timeout 60 "$fastinst" run --off -- "$dir/program" batches <"$dir/lines" >"$dir/pid" 2>/dev/null &
runner=$!
exec 7>"$dir/lines"
# until COMMAND... - it succeeds within 30 s
until_it()
{
	for ((i = 0; i < 300; i++)); do
		! "$@" >/dev/null || return 0
		sleep 0.1
	done
	wrong "not within 30 s: $*"
}
until_it test -s "$dir/pid"
: >"$dir/trace"
"$fastinst" trace --pid "$(head -n 1 "$dir/pid")" --on add --on nothing --format json --output "$dir/trace" 2>"$dir/errors" &
tracer=$!
# shellcheck disable=SC2317 # until_it calls it
is_on()
{
	"$fastinst" top --pid "$(head -n 1 "$dir/pid")" --once 2>/dev/null | grep " add "
}
until_it is_on
kill -STOP $tracer
echo -n x >&7
until_it grep batch "$dir/pid"
kill -CONT $tracer
kill -TERM $tracer
wait $tracer || wrong "--pid, stopped: $(cat "$dir/errors")"
exec 7>&-
wait "$runner" || wrong "the program that lost events failed"
{ head -n 2000 "$dir/trace" && tail -n 2000 "$dir/trace"; } >"$dir/part"
valid "$dir/part"
python3 - "$dir/trace" <<'END' || wrong "what was lost of a process: $(tail -n 1 "$dir/trace"), $(cat "$dir/errors")"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
end = lines[-1]
assert end["type"] == "end" and end["lost"] > 0 and end["events"] + end["lost"] == 100000, end
assert [(one["function"], one["count"], one["lost"]) for one in end["functions"]] == [("add", 100000, end["lost"])], end
END
grep -q "add: [0-9]* of 100000 events lost" "$dir/errors" || wrong "of which function: $(cat "$dir/errors")"
status=0
"$fastinst" trace --pid "$(head -n 1 "$dir/pid")" 2>"$dir/errors" || status=$?
[ $status = 69 ] || wrong "--pid of none: $status"
status=0
"$fastinst" trace --pid 1 /bin/true 2>/dev/null || status=$?
[ $status = 64 ] || wrong "both --pid and a program: $status"
timeout 60 "$fastinst" trace /bin/true 2>"$dir/errors" || wrong "/bin/true"
grep -q -- -fpatchable-function-entry=5 "$dir/errors" || wrong "nothing was said of /bin/true"

exit $failed
