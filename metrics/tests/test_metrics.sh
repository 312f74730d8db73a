#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst metrics gives the numbers that are known of a program: calls in threads, children and programs in
# their place, arguments, results, timers; and those that valgrind and strace give. What cannot be measured is
# refused. All that mdl(5) shows is run. A program that calls once more shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-metrics.so
needs_patchable
NM=${NM:-nm} OBJDUMP=${OBJDUMP:-objdump}

# compile NAME FLAG...
compile()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -g -O1 "$@" -o "$dir/$name" "$top/metrics/tests/measured.c" -pthread
}

# measure PROGRAM STATUS OPTION... [-- ARGUMENT...] - values to $dir/values; what else is said to $dir/says
measure()
{
	local program=$1 expected=$2 status=0 options=()

	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# = 0 ] || shift
	timeout 60 "$fastinst" metrics --output "$dir/values" "${options[@]}" -- "$dir/$program" "$@" \
		>"$dir/out" 2>"$dir/says" || status=$?
	[ $status = "$expected" ] || wrong "$program ${options[*]}: exit status $status, $(cat "$dir/says")"
}

# value NAME - as it was printed
value()
{
	awk -v name="$1" '$NF == name { print $1 }' "$dir/values"
}

# is NAME VALUE
is()
{
	[ "$(value "$1")" = "$2" ] || wrong "$1 is $(value "$1"), not $2: $(cat "$dir/says")"
}

# base NAME TYPE STATEMENT - a metric with that base
base()
{
	printf 'metric %s { counter n; base is %s { %s } }\n' "$1" "$2" "$3"
}

compile plain -fpatchable-function-entry=5
exits=
if compile exits -fno-pie -no-pie -pg -mfentry -mnop-mcount -mrecord-mcount -minstrument-return=nop5 -mrecord-return \
	-c 2>/dev/null && mv "$dir/exits" "$dir/exits.o"; then
	$CC -no-pie -o "$dir/exits" "$dir/exits.o" -pthread
	exits=yes
fi
compile hooks -finstrument-functions

# --- calls ---

# 4 threads: run(), work(), 25000 x leaf(); main(), 10 x send_msg(); fib(15) is 1973 calls
measure plain 0 -m calls
is calls $((4 * 25002 + 1 + 10 + 1973))
measure plain 0 -m calls --focus /Code/measured.c/leaf
is calls 100000
measure plain 0 -m calls --focus /Code/plain/fib
is calls 1973
measure plain 0 -m calls --focus /Code/measured.c
is calls $((4 * 25002 + 1 + 10 + 1973))
[ "$(value calls)" != $((4 * 25002 + 10 + 1973)) ] || wrong "one call less is the same"
measure plain 0 -m calls --focus '/Code/*/fib' --focus /Thread/nobody
is calls 0
measure plain 0 -m calls --focus '/Code/*/fib' --focus /Thread/plain
is calls 1973
# work(10) in the parent, work(100) in the child; work(5) before the program is executed again
measure plain 0 -m calls --focus '/Code/*/leaf' -- child
is calls 110
measure plain 0 -m calls --focus '/Code/*/leaf' -- exec
is calls 115
measure plain 137 -m calls --focus '/Code/*/leaf' -- kill
is calls 77
# Measuring begins in each process, and in each program that it executes.
begins='metric begins { base is counter { append preInsn $start.entry (* begins++; *) } }
	metric ends { base is counter { append preInsn $exit.entry (* ends++; *) } }'
measure plain 0 -e "$begins" -- child
is begins 2
is ends 2
measure plain 0 -e "$begins" -- exec
is begins 3
is ends 3
measure plain 137 -e "$begins" -- kill
is begins 1
is ends 0
# A library that is loaded later, and one of its functions that the metric names.
$CC -O1 -fPIC -shared -fpatchable-function-entry=5 -o "$dir/plugin.so" "$top/commands/fastinst/tests/plugin.c"
measure plain 0 -m calls --focus /Code/plugin.so/plugin_step -- "$dir/plugin.so" 321
is calls 321
! grep -q 'not measured' "$dir/says" || wrong "a library that is loaded: $(cat "$dir/says")"
measure plain 0 -m calls --focus '/Code/plugin.so' -- "$dir/plugin.so" 321
is calls 322
# More threads than one file of values has slots.
measure plain 0 -m calls --focus '/Code/*/work' -- many 1500
is calls 1500
aggregates=
for how in sum min max avg; do
	aggregates+="metric $how { aggregateOperator $how; base is counter { foreach f in \$procedures
		if (f.name == \"run\" || f.name == \"main\") append preInsn f.entry (* $how += 3; *) } } "
done
measure plain 0 -e "$aggregates" -- many 3
is sum 12
is min 3
is max 3
is avg 3

# --- code ---

measure plain 0 -e "$(base a counter 'foreach f in $procedures if (f.name == "leaf") append preInsn f.entry (* a += int($arg[0]); *)')" \
	-e "$(base b counter 'foreach f in $procedures if (f.name == "leaf") append preInsn f.entry (* b += $arg[1]; *)')" \
	-e "$(base c counter 'foreach f in $procedures if (f.name == "send_msg") append preInsn f.entry (* if (int($arg[1]) == 5) c += int($arg[2]); *)')" \
	-e "$(base d counter 'foreach f in $procedures if (f.name == "send_msg") append preInsn f.entry (* d += int($arg[6]); *)')" \
	-e "$(base e counter 'append preInsn $exit.entry (* e = 10 * readSymbol("limit") + readSymbol("small"); *)')" \
	-e "$(base g counter 'foreach f in $procedures if (f.name == "fib") append preInsn f.entry (* g += readAddress(1) == 0; *)')"
is a -100000
is b 20000000
is c 25000
is d 70
is e $((3000 - 56))
is g 1973
# Order at one point: append, prepend, post; and of two metrics.
measure plain 0 -e "$(base o counter 'foreach f in $procedures if (f.name == "send_msg") {
	append postInsn f.entry (* o = 10 * o + 4; *) append preInsn f.entry (* o = 10 * o + 2; *)
	append preInsn f.entry (* o = 10 * o + 3; *) prepend preInsn f.entry (* o = 1; *) }')"
is o 1234

# --- returns and timers ---

whole=$(base whole wallTimer 'append preInsn $start.entry (* startWallTimer(whole); *)
	append preInsn $exit.entry (* stopWallTimer(whole); *)')

measure plain 1 -m depth
is depth -
grep -q 'procedures left out' "$dir/says" || wrong "nothing is left out: $(cat "$dir/says")"
measure plain 1 -m time --focus '/Code/*/fib'
is time -
grep -q 'fib has no probes at .return' "$dir/says" || wrong "no exits: $(cat "$dir/says")"
for program in ${exits:+exits} hooks; do
	measure $program 0 -m calls_inside -m depth --focus '/Code/*/work'
	is calls_inside 100004
	is depth 0
	measure $program 0 -m calls_inside --focus /Code/measured.c --focus '/Code/*/fib'
	is calls_inside 1973
	# A timer runs from the outermost call on: it is less than the time of the process, and not 0.
	measure $program 0 -m time --focus '/Code/*/fib' --focus /Thread/nobody
	is time 0
	# The outermost call of a recursion is timed: it is not 0, and less than the time of the process.
	measure $program 0 -e "$whole" -e "$(base inside wallTimer 'foreach f in $procedures if (f.name == "fib") {
		append preInsn f.entry (* startWallTimer(inside); *) append preInsn f.return (* stopWallTimer(inside); *) }')"
	python3 -c "assert 0 < $(value inside) < $(value whole)" || wrong "times: $(cat "$dir/values")"
done
if [ -n "$exits" ]; then
	measure exits 0 -e "$(base r counter 'foreach f in $procedures if (f.name == "leaf") append preInsn f.return (* r += $return; *)')"
	is r $((100000 * -201))
fi
measure hooks 1 -e "$(base r counter 'foreach f in $procedures append preInsn f.return (* r += $return; *)')"
is r -
# main() does not return: its time is that until the end. Where a signal ends it, that is not known, and told.
for how in exit exec; do
	measure hooks 0 -m time --focus '/Code/*/main' -- $how
	python3 -c "assert $(value time) > 0" || wrong "main() does not return: $(cat "$dir/values")"
	[ ! -s "$dir/says" ] || wrong "main() does not return: $(cat "$dir/says")"
done
measure plain 0 -m cpu -m time -- exit
python3 -c "assert $(value cpu) > 0 and $(value time) > 0" || wrong "exit(): $(cat "$dir/values")"
measure plain 137 -m cpu -- kill
grep -q 'cpu: 1 timer was not stopped' "$dir/says" || wrong "killed: $(cat "$dir/says")"
# It begins before main(), and ends after it.
measure plain 0 -m cpu -- cpu
python3 -c "assert $(value cpu) >= $(cat "$dir/out")" || wrong "cpu is $(value cpu), main() used $(cat "$dir/out")"
measure plain 0 -m cpu --every 0.05 -- cpu
python3 - "$dir/values" <<'PYTHON' || wrong "lines of --every: $(cat "$dir/values")"
import sys
lines = [line.split() for line in open(sys.argv[1])]
between = [float(line[1]) for line in lines if line[0] != "end"]
end = [float(line[1]) for line in lines if line[0] == "end"]
assert len(end) == 1 and len(between) >= 2 and all(value >= 0 for value in between)
assert 0.2 <= end[0] and sum(between) <= end[0] + 1e-5, (between, end)
PYTHON

# --- things that are not ours ---

# functions FILE - of a profile by callgrind: how often each was called, but for recursion's own names
functions()
{
	awk '
		match($0, /^c?fn=\([0-9]+\)/) {
			id = substr($0, index($0, "("), index($0, ")") - index($0, "(") + 1)
			name = substr($0, index($0, ")") + 2)
			sub(/\047[0-9]+$/, "", name)
			if (name != "")
				known[id] = name
			called = /^cfn/ ? id : called
		}
		/^calls=/ { split($1, part, "="); count[called] += part[2] }
		END {
			for (id in count)
				sum[known[id]] += count[id]
			for (name in sum)
				print name, sum[name]
		}' "$1"
}
if command -v valgrind >/dev/null && valgrind --tool=callgrind --callgrind-out-file="$dir/callgrind" "$dir/plain" \
	>"$dir/valgrind" 2>&1; then
	functions "$dir/callgrind" >"$dir/called"
	for name in leaf fib work run send_msg; do
		measure plain 0 -m calls --focus "/Code/measured.c/$name"
		[ "$(value calls)" = "$(awk -v name=$name '$1 == name { print $2 }' "$dir/called")" ] ||
			wrong "$name: $(value calls) calls, callgrind has $(grep "^$name " "$dir/called")"
	done
else
	echo "not compared: callgrind does not run here"
fi
if [ -n "$exits" ] && command -v strace >/dev/null &&
	strace -o "$dir/strace" -e trace=write "$dir/exits" write >"$dir/out" 2>&1; then
	measure exits 0 -e 'list io is procedure { items { "write_all" }; }' \
		-e "$(base io_ops counter 'foreach f in io append preInsn f.entry (* io_ops++; *)')" \
		-e "$(base io_bytes counter 'foreach f in io append preInsn f.return (* io_bytes += $return; *)')" -- write
	is io_ops "$(grep -c '^write(' "$dir/strace")"
	is io_bytes "$(awk '/^write\(/ { sum += $NF } END { print sum }' "$dir/strace")"
else
	echo "not compared: strace does not run here"
fi

# --- what runs at a probe ---

# vectors OBJECT - what in it may change a vector register: such code, and functions that are not its own
vectors()
{
	$OBJDUMP -d --no-show-raw-insn "$1" | grep -oE '%[xyz]mm[0-9]+' | sort -u
	$NM -u "$1" | awk '$2 !~ /^(__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|read_clock)$/ { print $2 }'
}
for object in metrics/language/.libs/libfastinst_snippet_la-run.o metrics/agent/.libs/libfastinst_snippet_la-values_write.o; do
	[ -z "$(vectors $object)" ] || wrong "$object has $(vectors $object)"
done
[ -n "$(vectors metrics/language/.libs/plan.o)" ] || wrong "no vectors in what may have them"

# --- what is refused ---

# refused TEXT OPTION... - before the program runs
refused()
{
	local text=$1

	shift
	rm -f "$dir/values"
	measure plain 1 "$@"
	grep -qF -- "$text" "$dir/says" || wrong "$*: not refused by '$text', but $(cat "$dir/says")"
	[ ! -e "$dir/values" ] || wrong "$*: the program ran"
}
refused 'there is no metric nothing' -m nothing
refused "-e:1:12: expected aggregateOperator" -e 'metric a { zero; }'
refused "-e:2:9: m has no base" -e '
	metric m { }'
refused 'there is a metric calls already' -e 'metric calls { base is counter { } }'
refused 'calls cannot be limited to /File/x: it has no constraint for that' -m calls --focus /File/x
refused 'is not of the flavor pvm' -e 'metric a { flavor mpi; base is counter { } }' -m a --flavor pvm
printf 'metric a {\n\tbase is counter {\n\t\tappend preInsn $start.entry (* a = b; *)\n\t}\n}\n' >"$dir/wrong.mdl"
refused "$dir/wrong.mdl:3:38: there is no b here" -f "$dir/wrong.mdl"
grep -qx "$(printf '\t\t\t')  *^" "$dir/says" || wrong "no caret: $(cat "$dir/says")"
$CC -O1 -o "$dir/bare" "$top/metrics/tests/measured.c" -pthread
measure bare 1 -m calls
is calls -
grep -q 'no procedures with probes' "$dir/says" || wrong "no probes: $(cat "$dir/says")"
measure plain 1 -m calls --focus /Code/measured.c/nobody
grep -q 'no procedure is measured.c:nobody' "$dir/says" || wrong "nobody: $(cat "$dir/says")"
measure plain 0 --no-library -e "$(base calls counter 'append preInsn $start.entry (* calls = 3; *)')"
is calls 3
"$fastinst" metrics --list >"$dir/list"
[ "$(awk '{ print $1 }' "$dir/list" | xargs)" = "calls calls_inside cpu time depth" ] || wrong "$(cat "$dir/list")"

# --- mdl(5) ---

# Each block of the page is run; each word of the language is in one.
sed 's/\\-/-/g; s/\\e/\\/g' "$top/docs/man/mdl.5" | awk -v dir="$dir" '
	/^\.fi/ { on = 0 }
	on { print >(dir "/block" n) }
	/^\.nf/ { on = 1; n++ }'
[ -n "$exits" ] || echo "not run: blocks of mdl(5), as $CC leaves no exits"
for block in "$dir"/block*; do
	[ -n "$exits" ] || continue
	measure exits 0 --no-library -f "$block" --flavor mpi
	python3 - "$dir/values" "$block" <<'PYTHON' || wrong "$(cat "$block"): $(cat "$dir/values" "$dir/says")"
import re
import sys
values = [line.split()[-1] for line in open(sys.argv[1])]
assert values == re.findall(r"^metric (\w+)", open(sys.argv[2]).read(), re.M), values
PYTHON
done
sed -nE 's/^(<\*>)?"?([$A-Za-z]+)"?[[:space:]]+return [A-Z_]+;$/\2/p' "$top/metrics/language/words.l" >"$dir/words"
[ "$(wc -l <"$dir/words")" -ge 35 ] || wrong "too few words: $(xargs <"$dir/words")"
while read -r word; do
	grep -qF -- "$word" "$dir"/block* || wrong "mdl(5) has no example of $word"
done <"$dir/words"
exit $failed
