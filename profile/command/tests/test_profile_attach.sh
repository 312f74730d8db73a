#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process that runs is profiled for a time, twice, calls and edges: its counts and its output are its own, and
# afterwards its code and the protection of its pages are as they were. Looked at meanwhile they are
# not, so that can be seen. A process that cannot be attached to is refused with a reason.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
needs_patchable
cat >"$dir/runs.c" <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define N __attribute__((noinline))

static _Atomic int over;
static _Atomic unsigned long counted;

N unsigned long often(unsigned long x)
{
	for (int i = 0; i < 50; i++)
		x = x * 3 + (unsigned long)i;
	return x;
}

N static void seldom(void)
{
	counted = counted + 1;
}

N static void *work(void *data)
{
	unsigned long x = 1;

	while (!over) {
		for (int i = 0; i < 1000; i++)
			x = often(x);
		seldom();
	}
	counted = counted + !x;
	return data;
}

int main(void)
{
	pthread_t other;
	pid_t child = 0;
	char byte;

	pthread_create(&other, NULL, work, NULL);
	printf("%lx\n", (unsigned long)often);
	fflush(stdout);
	while (read(0, &byte, 1) > 0) {
		child = fork();
		if (child == 0) {
			alarm(300);
			work(NULL);
		}
		printf("%d\n", (int)child);
		fflush(stdout);
	}
	if (child)
		kill(child, SIGKILL);
	over = 1;
	pthread_join(other, NULL);
	puts(counted > 0 ? "it has worked" : "it has not");
	return 5;
}
C

# start PROGRAM - waits until descriptor 7 is closed
start()
{
	rm -f "$dir/in"
	# A file of its own: a program before may have left others that write to it.
	rm -f "$dir/says"
	: >"$dir/says"
	mkfifo "$dir/in"
	"$1" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	pid=$!
	exec 7>"$dir/in"
	for _ in $(seq 3000); do
		[ ! -s "$dir/says" ] || return 0
		sleep 0.01
	done
	wrong "it does not start"
}

finish()
{
	local status=0

	exec 7>&-
	wait "$pid" || status=$?
	[ $status = 5 ] || wrong "exit status $status"
	grep -q 'it has worked' "$dir/says" || wrong "it says $(cat "$dir/says")"
	[ ! -s "$dir/errors" ] || wrong "it said $(cat "$dir/errors")"
}

# state - the first bytes of often(), and how the program's pages are mapped
state()
{
	python3 -c 'import sys
with open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
    memory.seek(int(sys.argv[2], 16))
    # Five 1-byte NOPs become one when a probe is first turned on.
    print(memory.read(16).hex().replace("0f1f440000", "90" * 5))' "$pid" "$(head -n 1 "$dir/says")"
	pages "$1"
}

pages()
{
	awk -v name="$1" '$6 ~ name { print $2 }' "/proc/$pid/maps" | sort -u
}

# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -pthread -o "$dir/runs" "$dir/runs.c"
start "$dir/runs"
state runs >"$dir/before"
changed=
for time in 1 2; do
	timeout 60 "$fastinst" profile --pid "$pid" --for 2 --format json --output "$dir/p" 2>"$dir/log" 7>&- &
	tool=$!
	while kill -0 $tool 2>/dev/null; do
		pages runs >"$dir/now"
		tail -n +2 "$dir/before" | cmp -s - "$dir/now" || changed=yes
		sleep 0.02
	done
	wait $tool || {
		grep -q 'cannot attach.*ptrace' "$dir/log" && skip "ptrace is not allowed here"
		wrong "attach: $(cat "$dir/log")"
	}
	state runs >"$dir/after"
	cmp "$dir/before" "$dir/after" || wrong "it is not as it was: $(cat "$dir/after")"
	python3 - "$dir/p" <<'PY' || wrong "the profile, time $time"
import json, sys
profile = json.load(open(sys.argv[1]))
calls = {f["name"]: f for f in profile["functions"]}
assert profile["quality"]["processes"] == 1 and 0.3 < profile["quality"]["seconds"] < 40, profile["quality"]
assert calls["often"]["counted"] > 0 and calls["seldom"]["calls"] > 0, calls
assert profile["program"].endswith("/runs")
PY
done
[ -n "$changed" ] || wrong "while it was profiled nothing was changed"
# Its pages are not as they were.
await_watched()
{
	for _ in $(seq 3000); do
		pages runs >"$dir/now"
		tail -n +2 "$dir/before" | cmp -s - "$dir/now" || return 0
		sleep 0.01
	done
	wrong "nothing is watched: $(cat "$dir/log")"
}

# A command that is killed leaves the probes on; the next one ends what it has begun.
timeout 60 "$fastinst" profile --pid "$pid" --for 50 --output "$dir/p" 2>"$dir/log" 7>&- &
tool=$!
child=''
for _ in $(seq 3000); do
	read -r child _ <"/proc/$tool/task/$tool/children" || true
	[ "$(cat "/proc/${child:-none}/comm" 2>/dev/null || true)" != fastinst ] || break
	sleep 0.01
done
await_watched
kill -KILL "$child" || wrong "the command is not there: $(cat "$dir/log")"
wait $tool || true
timeout 60 "$fastinst" profile --pid "$pid" --for 0.5 --format json --output "$dir/p" 2>"$dir/log" 7>&- ||
	wrong "after one that was killed: $(cat "$dir/log")"
state runs >"$dir/after"
cmp "$dir/before" "$dir/after" || wrong "it is not as it was: $(cat "$dir/after")"
# One that ends meanwhile has left its profile.
timeout 60 "$fastinst" profile --pid "$pid" --format json --output "$dir/p" 2>"$dir/log" 7>&- &
tool=$!
await_watched
sleep 1
finish
wait $tool || wrong "it ended: $(cat "$dir/log")"
grep -q '"often"' "$dir/p" || wrong "no profile of one that ended: $(cat "$dir/log")"

if timeout 20 "$fastinst" profile --pid "$pid" --for 1 2>"$dir/log"; then
	wrong "a process that is gone"
fi
grep -q "there is no process" "$dir/log" || wrong "it says $(cat "$dir/log")"
status=0
"$fastinst" profile --for 1 true 2>/dev/null || status=$?
[ $status = 64 ] || wrong "--for of a program"

# Objects that the program closes meanwhile, and children that it has: a host of plugins.
cat >"$dir/plugin.c" <<'C'
int plugged(int x)
{
	return x + 1;
}
C
cat >"$dir/host.c" <<'C'
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int counted;

/* How the pages of the program's own code, and of the plugin, are mapped. */
static int pages(const char *name, const char *right)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int found = 0;

	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, name) && strstr(line, right);
	fclose(maps);
	return found;
}

int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
	int (*plugged)(int) = (int (*)(int))dlsym(plugin, "plugged");
	struct pollfd in = { .fd = 0, .events = POLLIN };
	int status;
	char byte;

	puts("ready");
	fflush(stdout);
	for (;;) {
		for (int i = 0; plugin && i < 100000; i++)
			counted = plugged(counted);
		if (poll(&in, 1, 1) < 1)
			continue;
		if (read(0, &byte, 1) < 1)
			break;
		if (plugin)
			dlclose(plugin);
		plugin = NULL;
		/* The child shares its code with no process. */
		if (fork() == 0)
			_exit(pages("/host", "rwxp"));
		wait(&status);
		printf("%s\n", status ? "writable" : "as it was");
		fflush(stdout);
	}
	puts(counted > 0 ? "it has worked" : "it has not");
	return 5;
}
C
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -shared -fPIC -o "$dir/plugin.so" "$dir/plugin.c"
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -o "$dir/host" "$dir/host.c" -ldl
cat >"$dir/hosts" <<C
#!/bin/sh
exec "$dir/host" "$dir/plugin.so"
C
chmod +x "$dir/hosts"
start "$dir/hosts"
timeout 60 "$fastinst" profile --pid "$pid" --for 3 --output "$dir/p" 2>"$dir/log" 7>&- &
tool=$!
# Once it is watched, the program unloads it, and has a child.
for _ in $(seq 3000); do
	! pages /plugin | grep -q rwxp || break
	kill -0 $tool 2>/dev/null || break
	sleep 0.001
done
echo >&7
for _ in $(seq 3000); do
	[ "$(wc -l <"$dir/says")" -lt 2 ] || break
	sleep 0.01
done
kill -0 $tool 2>/dev/null && [ -z "$(pages /plugin)" ] && wrong "what is watched was unloaded"
wait $tool || wrong "a host of plugins: $(cat "$dir/log")"
[ -z "$(pages /plugin)" ] || wrong "the plugin stays loaded"
timeout 60 "$fastinst" profile --pid "$pid" --for 0.2 --output "$dir/p" 2>"$dir/log" 7>&- ||
	wrong "a host of plugins, again: $(cat "$dir/log")"
finish
! grep -q writable "$dir/says" || wrong "a child keeps code that it can write to"

has_edges()
{
	python3 - "$dir/e" <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
sys.exit(not (profile["phases"] > 0 and any(e["from"]["block"].startswith("often") for e in profile["edges"])))
PY
}

# edges_of PID
edges_of()
{
	# A program that gets no CPU in any phase has no edges.
	for seconds in 0.5 2 8 32; do
		timeout 90 "$fastinst" profile --edges --pid "$1" --for $seconds --period 20 --format json --output "$dir/e" 2>"$dir/log" ||
			wrong "edges: $(cat "$dir/log")"
		! has_edges || return 0
	done
	wrong "no profile of edges: $(cat "$dir/log")"
}

# Edges, where they can be.
if $CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/blocks.o" "$dir/runs.c" 2>/dev/null; then
	# shellcheck disable=SC2086
	$CC -pthread -o "$dir/blocks" "$dir/blocks.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
	start "$dir/blocks"
	edges_of "$pid"
	# A child that begins meanwhile is not profiled, and can be.
	timeout 90 "$fastinst" profile --edges --pid "$pid" --for 50 --period 20 --format json --output "$dir/p" 2>"$dir/complaint" 7>&- &
	tool=$!
	for _ in $(seq 3000); do
		! grep -q 'libfastinst-edges' "/proc/$pid/maps" || break
		sleep 0.01
	done
	sleep 0.5
	echo >&7
	for _ in $(seq 3000); do
		[ "$(wc -l <"$dir/says")" -lt 2 ] || break
		sleep 0.01
	done
	edges_of "$(tail -n 1 "$dir/says")"
	kill -INT $tool
	wait $tool || wrong "edges of a program that forks: $(cat "$dir/complaint")"
	finish
fi
exit $failed
