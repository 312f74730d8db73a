#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fastinst detach leaves a program as it was before attach: its code, mappings of files, threads, descriptors and what it
# does with SIGTRAP, also where threads run probes all the time, and once more, and again. A word on a stack that leads
# into the agent's code keeps that there, which is said. A library that stays loaded shows that this is seen.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-attached.so
needs_patchable
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

cat >"$dir/program.c" <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int over;
static _Atomic int begun;

__attribute__((noinline)) static int fib(int n)
{
	__asm__ volatile("");
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void *compute(void *data)
{
	begun++;
	while (!over)
		if (fib(12) != 144)
			abort();
	return data;
}

static void *end_at_once(void *data)
{
	return fib(5) == 5 ? data : NULL;
}

static void once(void)
{
	pthread_t thread;
	pid_t child;
	int status;

	pthread_create(&thread, NULL, end_at_once, NULL);
	pthread_join(thread, NULL);
	child = fork();
	if (!child)
		_exit(fib(10) != 55);
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

/* Into the agent's code. */
static void *an_address(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	void *found = NULL;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "r-xp") && strstr(line, "/libfastinst.so"))
			found = (void *)(strtoul(line, NULL, 16) + 64);
	fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	void *volatile kept = NULL;
	pthread_t thread[3];
	char line[64];

	(void)argv;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; argc > 1 && i < 3; i++)
		pthread_create(&thread[i], NULL, compute, NULL);
	/* A thread that libc has still to begin blocks all signals. */
	while (argc > 1 && begun < 3)
		usleep(1000);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		once();
		kept = *line == 'k' ? an_address() : NULL;
		puts(kept ? "kept" : "done");
	}
	over = 1;
	for (int i = 0; argc > 1 && i < 3; i++)
		pthread_join(thread[i], NULL);
	puts("end");
	return 0;
}
C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -o "$dir/plain" "$dir/program.c" -pthread
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -o "$dir/sites" "$dir/program.c" -pthread

# start PROGRAM... - waits for lines on descriptor 7
start()
{
	rm -f "$dir/in"
	: >"$dir/says"
	mkfifo "$dir/in"
	"$@" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	pid=$!
	pids+=("$pid")
	exec 7>"$dir/in"
	wait_for ready 1
}

# wait_for TEXT TIMES - until it is said so often
wait_for()
{
	for _ in $(seq 3000); do
		[ "$(grep -c "$1" "$dir/says")" -lt "$2" ] || return 0
		sleep 0.01
	done
	wrong "\"$1\" was not said"
}

finish()
{
	status=0
	exec 7>&-
	wait "$pid" || status=$?
	[ $status = 0 ] || wrong "exit status $status"
	[ ! -s "$dir/errors" ] || wrong "it said $(cat "$dir/errors")"
}

# await_threads - one that is asked to end may still be seen
await_threads()
{
	for _ in $(seq 500); do
		[ "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)" -gt "$threads" ] || break
		sleep 0.01
	done
}

# state FILE - what the process has
state()
{
	{
		awk '$6 ~ /^\// { print $2, $6 }' "/proc/$pid/maps" | sort -u
		find "/proc/$pid/fd" -printf '%f %l\n' | sort
		find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l
		awk '/^SigCgt/ { print int(substr($2, 9, 8)) % 100 }' "/proc/$pid/status"
	} >"$1"
	python3 - "$pid" "$1.code" <<'END'
import sys
pid, to = sys.argv[1:]
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem, open(to, "wb") as out:
    for line in maps:
        part = line.split()
        if len(part) > 5 and part[5].startswith("/") and "x" in part[1] and "libfastinst" not in line:
            start, end = (int(x, 16) for x in part[0].split("-"))
            mem.seek(start)
            out.write(mem.read(end - start))
END
}

attach()
{
	timeout 60 "$fastinst" attach "$@" "$pid" >/dev/null 2>"$dir/log" || wrong "attach: $(cat "$dir/log")"
}

detach()
{
	timeout 60 "$fastinst" detach "$pid" >/dev/null 2>"$dir/log" || wrong "detach: $(cat "$dir/log")"
	[ ! -e "$dir/fastinst/$pid.sock" ] || wrong "its socket is still there"
}

threads=1
start "$dir/plain"
if ! timeout 60 "$fastinst" attach "$pid" 2>"$dir/log" && grep -qE 'does not let it be traced|ptrace' "$dir/log"; then
	cat "$dir/log"
	echo "ptrace(2) is not allowed here"
	exit 77
fi
finish

for program in "plain" "sites" "plain threads" "sites threads"; do
	threads=1
	[ "$program" = "${program% *}" ] || threads=4
	# shellcheck disable=SC2086 # a word, or two
	start "$dir/"$program
	echo >&7
	wait_for "done" 1
	state "$dir/before"
	for round in 1 2 3 4 5; do
		if [ "$round" = 2 ]; then
			attach --entries --on '*' --keep-writable
			grep -q "rwxp .*/${program% *}$" "/proc/$pid/maps" || wrong "$program: its code is not kept writable"
		else
			attach --entries --on '*'
			! grep "rwxp .*/${program% *}$" "/proc/$pid/maps" || wrong "$program: its code stays writable"
		fi
		[ "$round" != 1 ] || state "$dir/attached"
		echo >&7
		wait_for "done" $((2 * round))
		detach
		grep -q '^detached' "$dir/log" || wrong "$program: detach says $(cat "$dir/log")"
		echo >&7
		wait_for "done" $((2 * round + 1))
	done
	await_threads
	state "$dir/after"
	diff "$dir/before" "$dir/after" || wrong "$program: something is left"
	! cmp -s "$dir/before" "$dir/attached" || wrong "$program: the agent was not seen"
	case $program in
	plain*)
		cmp "$dir/before.code" "$dir/after.code" || wrong "$program: code is another"
		! awk '$2 ~ /x/ && NF < 6' "/proc/$pid/maps" | grep . || wrong "$program: there is code"
		;;
	esac
	finish
done

# --- what leads there ---

threads=1
start "$dir/plain"
attach --entries --on '*'
echo k >&7
wait_for kept 1
detach
grep -q "code stays, as thread $pid " "$dir/log" || wrong "detach says $(cat "$dir/log")"
grep -q libfastinst-attached "/proc/$pid/maps" || wrong "what is on a stack was unloaded"
attach --entries --on '*'
echo >&7
wait_for "done" 1
detach
! grep libfastinst "/proc/$pid/maps" || wrong "it is still loaded"

# --- attach --for, and where there is none ---

attach --entries --for 0.05 --output "$dir/counts"
! grep libfastinst "/proc/$pid/maps" || wrong "attach --for left the agent"
attach --entries --for 0.05 --stay --output "$dir/counts"
grep -q libfastinst "/proc/$pid/maps" || wrong "attach --for --stay took the agent out"
detach
status=0
timeout 60 "$fastinst" detach "$pid" 2>"$dir/log" || status=$?
[ $status = 69 ] || wrong "detach, where none is: $status, $(cat "$dir/log")"
! grep libfastinst "/proc/$pid/maps" || wrong "detach, where none is, left the agent"
finish

exit $failed
