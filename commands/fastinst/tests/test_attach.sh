#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst attach: a program that was started without the agent, and one in which it lies dormant,
# have their calls counted from then on, with compiled-in sites and without (--entries). Its output and
# exit status are its own. What cannot be attached to is told why. A program that lies about its calls
# shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-attached.so
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

# build NAME FLAG... - the program; no sites unless asked for
build()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 "$@" -o "$dir/$name" "$top/commands/fastinst/tests/counted.c" -pthread -ldl 2>"$dir/errors" ||
		{ cat "$dir/errors"; return 1; }
}

# start PROGRAM - waits for lines on descriptor 7
start()
{
	rm -f "$dir/in"
	# A file of its own: a program before may have left others that write to it.
	rm -f "$dir/says"
	: >"$dir/says"
	mkfifo "$dir/in"
	"$@" wait <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	pid=$!
	pids+=("$pid")
	exec 7>"$dir/in"
	wait_for ready
}

# wait_for TEXT [TIMES] - until it is said so often
wait_for()
{
	for _ in $(seq 3000); do
		[ "$(grep -c "$1" "$dir/says")" -lt "${2:-1}" ] || return 0
		sleep 0.01
	done
	wrong "\"$1\" was not said"
}

# turn_on - all probes; a thread that gets no CPU for a second has not answered, and is asked again
turn_on()
{
	for _ in $(seq 20); do
		! timeout 60 "$fastinst" on --pid "$pid" '*' >/dev/null 2>"$dir/log" || return 0
	done
	wrong "on: $(cat "$dir/log")"
}

finish()
{
	status=0
	exec 7>&-
	wait "$pid" || status=$?
	[ $status = 0 ] || wrong "exit status $status"
	[ ! -s "$dir/errors" ] || wrong "it said $(cat "$dir/errors")"
}

# counts - "function count" of those that the program knows of, for N rounds
counts()
{
	timeout 60 "$fastinst" top --pid "$pid" --once --lines 100 >"$dir/top"
	awk '$4 ~ /^(leaf|even|fib)$/ { print $4, $1 }' "$dir/top" | sort >"$dir/counted"
	printf 'even %d\nfib %d\nleaf %d\n' $((1000 * $1)) $((177 * $1)) $((1500 * $1)) |
		diff - "$dir/counted" || wrong "there were $1 rounds"
}

build plain
build sites -fpatchable-function-entry=5 || { echo "no -fpatchable-function-entry"; exit 77; }

# --- into a program that runs ---

start "$dir/sites"
if ! timeout 60 "$fastinst" attach "$pid" 2>"$dir/log" && grep -qE 'does not let it be traced|ptrace' "$dir/log"; then
	cat "$dir/log"
	echo "ptrace(2) is not allowed here"
	exit 77
fi
cat "$dir/log"
grep -q 'stopped for' "$dir/log" || wrong "attach says $(cat "$dir/log")"
echo >&7
wait_for "one round" 1
turn_on
for n in 1 2 3; do
	echo >&7
	wait_for "one round" $((n + 1))
done
counts 3
timeout 60 "$fastinst" off --pid "$pid" '*' >/dev/null
echo >&7
wait_for "one round" 5
counts 3
# The agent is there now.
timeout 60 "$fastinst" attach --on leaf "$pid" >/dev/null 2>"$dir/log"
grep -q already "$dir/log" || wrong "the second attach says $(cat "$dir/log")"
finish
[ ! -e "$dir/fastinst/$pid.sock" ] || wrong "its socket is still there"

# --- without sites ---

timeout 60 "$fastinst" list --entries --json "$dir/plain" >"$dir/list" 2>"$dir/log" || wrong "list --entries: $(cat "$dir/log")"
valid "$dir/list"
grep -q '"usable":[1-9]' "$dir/list" || wrong "list --entries says $(cat "$dir/list")"
for flags in -fcf-protection=none "-fcf-protection=full -falign-functions=1" "-fno-pie -no-pie"; do
	# shellcheck disable=SC2086
	build plain $flags
	start "$dir/plain"
	timeout 60 "$fastinst" attach --entries "$pid" >/dev/null 2>"$dir/log" ||
		wrong "attach --entries: $(cat "$dir/log")"
	turn_on
	for n in 1 2; do
		echo >&7
		wait_for "one round" $n
	done
	counts 2
	finish

	# Asked for when the agent is there already; once more changes nothing.
	start "$dir/plain"
	timeout 60 "$fastinst" attach "$pid" >/dev/null 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
	! "$fastinst" on leaf >/dev/null 2>"$dir/log" || wrong "on, where there are no sites: status 0"
	grep -q 'try --entries' "$dir/log" || wrong "on, where there are no sites, says $(cat "$dir/log")"
	for n in 1 2; do
		timeout 60 "$fastinst" attach --entries "$pid" >"$dir/log" 2>&1 || wrong "attach --entries: $(cat "$dir/log")"
	done
	grep -q ': 0 probes' "$dir/log" || wrong "the second attach --entries says $(cat "$dir/log")"
	turn_on
	for n in 1 2; do
		echo >&7
		wait_for "one round" $n
	done
	counts 2
	finish

	for what in once threads fork; do
		timeout 60 "$fastinst" run --entries --output "$dir/counts" -- "$dir/plain" $what >"$dir/says" 2>"$dir/errors" ||
			wrong "run --entries: $(cat "$dir/errors")"
		awk '$4 ~ /^(leaf|even|fib)$/ { print $4, $1 }' "$dir/counts" | sort >"$dir/counted"
		sort "$dir/says" | diff - "$dir/counted" || wrong "$flags $what: the program says <, fastinst >"
	done
done
# The comparison can fail.
build liar -DLIAR
timeout 60 "$fastinst" run --entries --output "$dir/counts" -- "$dir/liar" once >"$dir/says"
awk '$4 ~ /^(leaf|even|fib)$/ { print $4, $1 }' "$dir/counts" | sort >"$dir/counted"
! sort "$dir/says" | cmp -s - "$dir/counted" || wrong "a wrong count was not seen"
# Without names: each by its address.
if command -v strip >/dev/null; then
	strip -o "$dir/bare" "$dir/plain"
	timeout 60 "$fastinst" run --entries --output "$dir/counts" -- "$dir/bare" once >/dev/null
	for n in 1500 1000 177; do
		awk -v n=$n '$1 == n && $4 ~ /^0x/ { found = 1 } END { exit !found }' "$dir/counts" ||
			wrong "stripped: no function was called $n times"
	done
fi

# --- what it unloads ---

cat >"$dir/host.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char line[8];

	(void)argc;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (;;) {
		void *plugin = dlopen(argv[0], RTLD_NOW);

		puts("loaded");
		if (!plugin || !fgets(line, sizeof(line), stdin))
			return !plugin;
		dlclose(plugin);
		puts("unloaded");
		if (!fgets(line, sizeof(line), stdin))
			return 0;
	}
}
C
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -fPIC -shared -o "$dir/plugin.so" "$top/commands/fastinst/tests/plugin.c"
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -o "$dir/host" "$dir/host.c" -ldl
# shellcheck disable=SC2016 # that shell expands them
start bash -c 'exec -a "$1" "$2"' - "$dir/plugin.so" "$dir/host"
wait_for loaded
timeout 60 "$fastinst" attach "$pid" >/dev/null 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
for round in 1 2; do
	turn_on
	echo >&7
	wait_for unloaded $round
	timeout 60 "$fastinst" off --pid "$pid" '*' >/dev/null 2>"$dir/log" ||
		wrong "off, of what was unloaded: $(cat "$dir/log")"
	turn_on
	echo >&7
	wait_for '^loaded' $((round + 1))
done
finish

# --- for a time: what came in it, of what was asked for ---

# told COUNT... - of leaf and even
told()
{
	awk '$4 ~ /^(leaf|even|fib)$/ { print $4, $1 }' "$dir/counts" | sort >"$dir/counted"
	printf '%s\n' "$@" | diff - "$dir/counted" || wrong "attach --for says <, not >"
}

# is_counting - $command has turned its probes on and waits for its end: it takes the signals that end it
is_counting()
{
	local tool caught

	timeout 60 "$fastinst" top --once --lines 100 --pid "$pid" 2>/dev/null | grep -q " leaf " || return 1
	read -r tool _ <"/proc/$command/task/$command/children" || true
	caught=$(awk '/^SigCgt/ { print $2 }' "/proc/${tool:-none}/status" 2>/dev/null || true)
	[ $((0x${caught:-0} & 1 << 14)) != 0 ]
}

# begin_for ARGUMENT... - attach --for, as $command, once it counts leaf, which was off
begin_for()
{
	timeout 60 "$fastinst" reset --pid "$pid" '*' >"$dir/log" 2>&1 || true
	timeout 60 "$fastinst" attach --for 60 --output "$dir/counts" "$@" "$pid" >"$dir/log" 2>"$dir/log.2" 7>&- &
	command=$!
	for _ in $(seq 3000); do
		! is_counting || return 0
		sleep 0.01
	done
	wrong "attach --for does not begin: $(cat "$dir/log.2")"
}

start "$dir/sites"
timeout 60 "$fastinst" attach --on '*' "$pid" >/dev/null 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
echo >&7
wait_for "one round" 1
timeout 60 "$fastinst" off --pid "$pid" 'lea*' >/dev/null
timeout 60 "$fastinst" reset --pid "$pid" leaf >/dev/null || wrong "reset"
timeout 60 "$fastinst" top --once --pid "$pid" --lines 100 >"$dir/counts"
told "even 1000" "fib 177"
begin_for --on leaf
echo >&7
wait_for "one round" 2
kill -INT "$command"
wait "$command" || wrong "attach --for: $(cat "$dir/log.2")"
told "leaf 1500"
# The program ends first.
begin_for --on leaf --on fib
echo >&7
wait_for "one round" 3
finish
wait "$command" || wrong "attach --for of what ends: $(cat "$dir/log.2")"
told "fib 177" "leaf 1500"
start "$dir/sites"
begin_for --on leaf
kill -9 "$pid"
wait "$command" || wrong "attach --for of what is killed: $(cat "$dir/log.2")"
grep -q 'last second is not counted' "$dir/log.2" || wrong "attach --for of what is killed says $(cat "$dir/log.2")"

# --- whose file is another ---

cp "$dir/sites" "$dir/replaced"
start "$dir/replaced"
rm "$dir/replaced"
timeout 60 "$fastinst" attach "$pid" >/dev/null 2>"$dir/log"
grep -q "$dir/replaced was replaced or deleted" "$dir/log" || wrong "attach to what was deleted says $(cat "$dir/log")"
finish

# --- for a time, too ---

start "$dir/sites"
timeout 60 "$fastinst" attach "$pid" >/dev/null 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
turn_on
timeout 60 "$fastinst" attach --for 0.3 --json --output "$dir/counts" "$pid" >/dev/null 2>"$dir/log" ||
	wrong "attach --for: $(cat "$dir/log")"
valid "$dir/counts"
grep -q '"processes":1,' "$dir/counts" || wrong "attach --for says $(cat "$dir/counts")"
# What cannot be turned on as a whole is off again.
timeout 60 "$fastinst" off --pid "$pid" '*' >/dev/null
! timeout 60 "$fastinst" attach --for 60 --on '*' --on '/[' "$pid" >/dev/null 2>"$dir/log" ||
	wrong "attach --for takes a bad pattern"
timeout 60 "$fastinst" top --pid "$pid" --once --lines 100 >"$dir/before"
echo >&7
wait_for "one round" 1
timeout 60 "$fastinst" top --pid "$pid" --once --lines 100 >"$dir/top"
diff <(awk '{ print $4, $1 }' "$dir/before" | sort) <(awk '{ print $4, $1 }' "$dir/top" | sort) ||
	wrong "attach --for failed, and left probes on"
finish

# A process that has ended is over, though its parent does not wait for it.
mkfifo "$dir/unreaped"
: >"$dir/says"
bash -c '"$0" wait <"$1" >"$3" & echo $! >"$2"; exec sleep 600' "$dir/sites" "$dir/unreaped" "$dir/pid" "$dir/says" &
pids+=("$!")
exec 8>"$dir/unreaped"
wait_for ready
pid=$(cat "$dir/pid")
for what in attach\ --for\ 60 profile\ --pid; do
	# shellcheck disable=SC2086 # words
	timeout -s INT 50 "$fastinst" $what "$pid" >/dev/null 2>"$dir/log" 8>&- &
	command=$!
	[ "$what" = "profile --pid" ] || {
		for _ in $(seq 3000); do
			! grep -q 'attached to\|is in process' "$dir/log" || break
			sleep 0.01
		done
		exec 8>&-
	}
	began=$SECONDS
	wait "$command" || true
	[ $((SECONDS - began)) -lt 40 ] || wrong "$what waits for a process that has ended: $(cat "$dir/log")"
done
grep -q '^State:.*Z' "/proc/$pid/status" || wrong "it was to be a zombie"

# --- what cannot be attached to; see test_refused.sh, too ---

# refused PID TEXT
refused()
{
	status=0
	timeout 60 "$fastinst" attach "$1" >/dev/null 2>"$dir/log" || status=$?
	if [ $status != 1 ] || ! grep -q "$2" "$dir/log"; then
		wrong "attach to $1: $status, $(cat "$dir/log")"
	fi
}

refused 999999999 "no such process"
start "$dir/sites"
kill -STOP "$pid"
for _ in $(seq 500); do
	! grep -q '^State:.*T' "/proc/$pid/status" || break
	sleep 0.01
done
refused "$pid" "it is stopped"
kill -CONT "$pid"
finish
exit $failed
