#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of basic blocks under "fastinst profile --edges": it computes the same, and each edge of the
# profile is one that a library saw which the compiler calls at each block of a whole run. A run of
# one round, which lacks most of them, shows that the comparison can fail.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-edges.so
rounds=1000000

# A jump to the tracer would come back elsewhere, for the reference.
# shellcheck disable=SC2086 # CC may carry options
if ! $CC -O1 -fno-optimize-sibling-calls -fsanitize-coverage=trace-pc -c -o "$dir/program.o" "$top/probes/providers/tests/blocked.c"; then
	echo "$CC has no -fsanitize-coverage=trace-pc"
	exit 77
fi
# shellcheck disable=SC2086
$CC -o "$dir/program" "$dir/program.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs" -pthread
# shellcheck disable=SC2086
$CC -O1 -shared -fPIC -o "$dir/reference.so" "$top/probes/providers/tests/reference.c"
EDGES=$dir/few LD_PRELOAD=$dir/reference.so "$dir/program" 1 threads >/dev/null
EDGES=$dir/all LD_PRELOAD=$dir/reference.so "$dir/program" 3000 threads >/dev/null

# judge FILE - are all edges of the profile in it, and are there any?
judge()
{
	nm -S "$dir/program" | python3 -c '
import json, sys
functions = {}
for line in sys.stdin:
    field = line.split()
    if len(field) == 4 and field[2] in "tT":
        functions[field[3]] = int(field[0], 16)
def place(block):
    function, offset = block["block"].split("+")
    return functions[function] + int(offset, 16)
profile = json.load(open(sys.argv[1]))
known = {tuple(int(place, 16) for place in line.split()) for line in open(sys.argv[2])}
edges = {(place(edge["from"]), place(edge["to"])) for edge in profile["edges"]}
assert 0 <= profile["agreement_of_halves"] <= 1.0001 and profile["lost"] == 0
assert all(edge["count"] == edge["odd"] + edge["even"] > 0 for edge in profile["edges"])
print(len(edges), "edges in", profile["phases"], "phases")
moments = profile["over_time"]
assert sum(m["phases"] for m in moments) == profile["phases"] == len(moments)
assert abs(sum(m["on"] for m in moments) - profile["seconds_in_phases"]) < 1e-6
# Each run is in one phase.
assert sum(m["entries"] for m in moments) >= sum(edge["seen"] for edge in profile["edges"])
counts, seen = (sum(edge[key] for edge in profile["edges"]) for key in ("count", "seen"))
assert abs(counts - seen) <= len(edges), (counts, seen)
assert all(a["start"] + a["length"] <= b["start"] + 1e-6 for a, b in zip(moments, moments[1:]))
assert all(0 < m["on"] < m["length"] and m["share"] > 0 for m in moments[:-1])
if not edges:
    sys.exit(2)
sys.exit(not edges <= known)
' "$dir/profile" "$1"
}

"$dir/program" $rounds threads >"$dir/is"
for attempt in 1 2 3; do
	timeout 120 "$fastinst" profile --edges --period 6 --phase 2 --format json --output "$dir/profile" \
		"$dir/program" $rounds threads >"$dir/says" 2>"$dir/errors" || wrong "it failed: $(cat "$dir/errors")"
	valid "$dir/profile"
	diff "$dir/is" "$dir/says" || wrong "it computes something else"
	status=0
	judge "$dir/all" || status=$?
	[ "$status" != 2 ] || continue
	[ ! -s "$dir/errors" ] || wrong "it says $(cat "$dir/errors")"
	[ "$status" = 0 ] || wrong "an edge that no run has"
	if judge "$dir/few" >"$dir/log"; then
		wrong "edges that are not known were not seen"
	fi
	break
done
if [ "$status" = 2 ]; then
	skip "in $attempt runs no phase met the program: the machine is too busy"
fi

# As a trace, and as a page: of these slices each phase is one.
for times in 1 10 100; do
	timeout 300 "$fastinst" profile --edges --period 6 --phase 2 --format json,chrome,html --output "$dir/over" \
		"$dir/program" $((times * rounds)) threads >"$dir/says"
	! python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["over_time"])' "$dir/over.json" || break
done
python3 - "$dir/over" <<'PY' || wrong "the trace is not that of the phases"
import json, sys
events = json.load(open(sys.argv[1] + ".chrome"))["traceEvents"]
moments = json.load(open(sys.argv[1] + ".json"))["over_time"]
slices = [e for e in events if e["ph"] == "X"]
assert len(slices) == len(moments) > 0
for e, m in zip(slices, moments):
    assert abs(e["ts"] / 1e6 - m["start"]) < 1e-9 and e["dur"] / 1e6 >= m["on"] and e["args"]["entries"] == m["entries"]
for a, b in zip(slices, slices[1:]):
    assert a["ts"] + a["dur"] <= b["ts"]
assert {e["name"] for e in events if e["ph"] == "C"} == {"blocks per second in phases", "time in phases, %"}
PY
grep -q '"over_time"' "$dir/over.html" || wrong "the page has no phases"

# One that ends soon: a first phase is early, and where nothing was counted it says so and not that there are no blocks.
timeout 60 "$fastinst" profile --edges --output "$dir/soon" "$dir/program" 1 >/dev/null 2>"$dir/errors" || wrong "a short run failed"
grep -Eq '^[1-9][0-9]* blocks' "$dir/soon" || grep -q 'before its blocks were on for the first time' "$dir/errors" ||
	wrong "a short run: $(cat "$dir/soon" "$dir/errors")"
if grep -q 'trace-pc' "$dir/errors"; then
	wrong "it says that the program has no blocks"
fi
if ! grep -q -- '->' "$dir/soon"; then
	grep -q 'nothing was counted' "$dir/errors" || wrong "nothing is said of nothing: $(cat "$dir/errors")"
fi

# Blocks that were never run stay on. One that is run between phases for the first time is turned off, and a child of fork()
# has none on.
cat >"$dir/forks.c" <<'C'
#include <fastinst.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int sum;

static int blocks_on(const char *pattern)
{
	struct fi_probe probe;
	uint32_t ids[64];
	int on = 0;

	for (long n = fi_find(pattern, ids, 64); n > 0; n--)
		on += !fi_get(ids[n - 1], &probe) && probe.kind == FI_BLOCK && probe.state == FI_ON;
	return on;
}

__attribute__((noinline)) static void fresh(void)
{
	for (int i = 0; i < 1000; i++)
		sum += i % 3 ? i : -i;
}

__attribute__((noinline)) static void never(void)
{
	for (int i = 0; i < sum; i++)
		sum -= i % 5;
}

static int goes_off(void)
{
	while (blocks_on("fresh+*") && clock() < 40 * CLOCKS_PER_SEC)
		fresh();
	return !blocks_on("fresh+*");
}

int main(int argc, char **argv)
{
	int status = 0;

	(void)argv;
	/* Until a phase is over, and has left some on. */
	while ((!blocks_on("fresh+*") || blocks_on("blocks_on+*")) && clock() < 20 * CLOCKS_PER_SEC)
		;
	if (!blocks_on("never+*"))
		return 2;
	if (!goes_off())
		return 3;
	if (argc > 1)
		never();
	if (!fork())
		_exit(blocks_on("*") ? 1 : 0);
	wait(&status);
	return status ? 4 : 0;
}
C
# shellcheck disable=SC2086
$CC -O1 -I"$top/probes/include" -fsanitize-coverage=trace-pc -c -o "$dir/forks.o" "$dir/forks.c"
# shellcheck disable=SC2086
$CC -o "$dir/forks" "$dir/forks.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
status=0
timeout 60 "$fastinst" profile --edges --period 90000 --format json --output "$dir/forked" "$dir/forks" 2>"$dir/errors" || status=$?
[ $status = 0 ] || wrong "blocks that stay on: status $status (2: none was left on, 3: one stays on that is run, 4: a child has some): $(cat "$dir/errors")"

# A library with blocks that the program unloads does not end the phases.
cat >"$dir/host.c" <<'C'
#include <dlfcn.h>
#include <time.h>

#ifdef PLUGIN
int work(int n);

int work(int n)
{
	return n & 1 ? n * 3 + 1 : n / 2;
}
#else
static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[argc - 1], RTLD_NOW);
	int (*work)(int) = (int (*)(int))dlsym(plugin, "work");
	double start = now();
	int n = 27;

	while (now() < start + 0.5)
		n = work(n) + 27;
	dlclose(plugin);
	while (now() < start + 3)
		n = n & 1 ? n * 3 + 1 : n / 2 + 27;
	return n == 4711;
}
#endif
C
# shellcheck disable=SC2086
$CC -O1 -fsanitize-coverage=trace-pc -shared -fPIC -DPLUGIN -o "$dir/plugin.so" "$dir/host.c" -L.libs -lfastinst "-Wl,-rpath,$PWD/.libs"
# shellcheck disable=SC2086
$CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/host.o" "$dir/host.c"
# shellcheck disable=SC2086
$CC -o "$dir/host" "$dir/host.o" -ldl -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
timeout 60 "$fastinst" profile --edges --period 20 --format json --output "$dir/host.json" "$dir/host" "$dir/plugin.so" 2>"$dir/errors" ||
	wrong "a host of plugins: $(cat "$dir/errors")"
python3 - "$dir/host.json" <<'PY' || wrong "nothing was counted once a library was unloaded"
import json, sys
moments = json.load(open(sys.argv[1]))["over_time"]
sys.exit(not any(m["start"] > 1 and m["entries"] for m in moments))
PY

# A constructor, which has the loader's lock, closes a library while another thread closes one, which began to
# in the first phase, before that constructor.
cat >"$dir/crossed.c" <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#ifdef PLUGIN
__attribute__((constructor)) static void come(void)
{
	usleep(600000);
	dlclose(dlopen("libm.so.6", RTLD_LAZY));
}
#else
static void *open_it(void *path)
{
	usleep(150000);
	return dlopen(path, RTLD_NOW);
}

int main(int argc, char **argv)
{
	void *other = dlopen(argv[argc - 1], RTLD_LAZY);
	pthread_t thread;

	pthread_create(&thread, NULL, open_it, argv[argc - 2]);
	usleep(50000);
	dlclose(other);
	pthread_join(thread, NULL);
	return 5;
}
#endif
C
# shellcheck disable=SC2086
$CC -O1 -shared -fPIC -DPLUGIN -o "$dir/crossed.so" "$dir/crossed.c" -ldl
# shellcheck disable=SC2086
$CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/crossed.o" "$dir/crossed.c"
# shellcheck disable=SC2086
$CC -o "$dir/crossed" "$dir/crossed.o" -ldl -pthread -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
for command in "profile --edges --period 800 --phase 400" profile run; do
	status=0
	# shellcheck disable=SC2086
	timeout -s KILL 20 "$fastinst" $command "$dir/crossed" "$dir/crossed.so" "$dir/plugin.so" 2>"$dir/errors" || status=$?
	[ $status = 5 ] || wrong "$command: dlclose() in a constructor and beside it: status $status"
done

# A phase cannot begin while a thread has SIGTRAP blocked, as each new one has for a moment. It is tried again
# soon: the next one would come when the program is over.
cat >"$dir/blocks.c" <<'C'
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *block_trap(void *unused)
{
	unsigned long set = 1ul << (5 - 1);

	syscall(SYS_rt_sigprocmask, 0, &set, 0, sizeof(set));
	usleep(300000);
	return unused;
}

static volatile int done;

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, block_trap, 0);
	pthread_detach(thread);
}

int main(void)
{
	while (clock() < 2 * CLOCKS_PER_SEC)
		done = done * 3 + 1;
	return 0;
}
C
# shellcheck disable=SC2086
$CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/blocks.o" "$dir/blocks.c"
# shellcheck disable=SC2086
$CC -o "$dir/blocks" "$dir/blocks.o" -pthread -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
timeout 60 "$fastinst" profile --edges --period 60000 --format json --output "$dir/blocks.json" "$dir/blocks" 2>"$dir/errors" ||
	wrong "SIGTRAP blocked for a while: $(cat "$dir/errors")"
grep -q '"phases": *1\(\.0\)\?,' "$dir/blocks.json" || wrong "no second try: $(cut -c 1-400 "$dir/blocks.json")"

# The time of day may be set while a program runs, or be another one in it: phases last as long as before, and there is a profile.
cat >"$dir/clock.c" <<'C'
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int ret = (int)syscall(SYS_clock_gettime, clock, time);

	if (clock == CLOCK_REALTIME)
		time->tv_sec -= 1000000;
	return ret;
}

int main(void)
{
	static volatile unsigned long sum;

	while (clock() < CLOCKS_PER_SEC / 2)
		for (int i = 0; i < 1000; i++)
			sum = sum + (unsigned long)i;
	return 0;
}
C
# shellcheck disable=SC2086
$CC -O1 -fsanitize-coverage=trace-pc -c -o "$dir/clock.o" "$dir/clock.c"
# shellcheck disable=SC2086
$CC -rdynamic -o "$dir/clock" "$dir/clock.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
timeout 60 "$fastinst" profile --edges --period 40 --format json --output "$dir/clocked" "$dir/clock" 2>"$dir/errors" ||
	wrong "another time of day: $(cat "$dir/errors")"
python3 - "$dir/clocked" <<'PY' || wrong "another time of day: $(cat "$dir/errors")"
import json, sys
profile = json.load(open(sys.argv[1]))
print(profile["phases"], "phases in", profile["seconds"], "s")
assert 1 <= profile["phases"] <= 2 + profile["seconds"] / 0.02
PY

"$fastinst" profile --edges /bin/true 2>"$dir/errors"
grep -q -- '-fsanitize-coverage=trace-pc' "$dir/errors" || wrong "nothing is said of a program without blocks"
if "$fastinst" profile --edges --phase 80 /bin/true 2>/dev/null; then
	wrong "a phase of nearly a period"
fi
exit $failed
