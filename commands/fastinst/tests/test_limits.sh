#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A limit of the size of files, a disk that is full and a pipe without a reader end no program: its status and
# its output stay what they are, and the command tells what it lost.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
# /tmp is another one below.
work=$(mktemp -d "$build/limits.XXXXXX")
trap 'rm -rf "$dir" "$work"' EXIT

cat >"$work/program.c" <<'C'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Over a page of counts. */
#define F(n) __attribute__((noinline)) int a_function_with_a_name_that_is_long_##n(int x); \
	int a_function_with_a_name_that_is_long_##n(int x) { __asm__ volatile(""); return x + 1; }
#define C(n) sum += a_function_with_a_name_that_is_long_##n(sum);
#define TEN(M, n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7) M(n##8) M(n##9)
#define ALL(M) TEN(M, 1) TEN(M, 2) TEN(M, 3) TEN(M, 4)
ALL(F)

static void on_limit(int signal)
{
	static const char text[] = "the limit\n";

	(void)signal;
	write(STDOUT_FILENO, text, sizeof(text) - 1);
}

int main(int argc, char **argv)
{
	int sum = 0;

	if (argc > 2)
		signal(SIGXFSZ, on_limit);
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 1); i++) {
		sum = 0;
		ALL(C)
	}
	printf("%d\n", sum);
	return 5;
}
C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -w -fpatchable-function-entry=5 -o "$work/program" "$work/program.c"
says=$("$work/program" 1) || true

# told PATTERN COMMAND... - the program ends with 5 and says what it always does; of the command, PATTERN
told()
{
	local pattern=$1 status

	shift
	# Pipes: of files the limit would be the program's own.
	{
		{
			timeout 120 "$@" 2>&3 && echo 0 >"$work/status" || echo $? >"$work/status"
		} | cat >"$work/out"
	} 3>&1 | cat >"$work/errors"
	status=$(cat "$work/status")
	[ "$status $(cat "$work/out")" = "5 $says" ] || wrong "$*: status $status, it says $(cat "$work/out" "$work/errors")"
	grep -q "$pattern" "$work/errors" || wrong "$*: not said: $pattern, but: $(cat "$work/errors")"
	if grep -q 'linked statically\|trace-pc' "$work/errors"; then
		wrong "$*: another reason is told: $(cat "$work/errors")"
	fi
}

lost='not all that process [0-9]* had to report'
# shellcheck disable=SC2016 # the other shell expands it
limited='ulimit -f 0; exec "$0" "$@"'
told "$lost" "$fastinst" run --output "$work/counts" -- sh -c "$limited" "$work/program"
told "$lost" "$fastinst" run --output "$work/counts" -- sh -c "$limited" "$work/program" 1 handler
told "$lost" "$fastinst" trace --output "$work/trace" -- sh -c "$limited" "$work/program"
# A part of it: what is there counts.
told "$lost" "$fastinst" run --output "$work/counts" -- bash -c "ulimit -f 2; exec \"\$0\"" "$work/program"
n=$(grep -c ' a_function_with_a_name_that_is_long_[0-9][0-9] .*/program$' "$work/counts" || true)
((n > 4 && n < 40)) || wrong "of 40 counts $n are there"
told 1 "$fastinst" run -- "$work/program"
! grep -q "$lost" "$work/errors" || wrong "a loss is told where there is none"
if [ -e "$build/.libs/libfastinst-profile.so" ]; then
	told "$lost" "$fastinst" profile --output "$work/profile" -- sh -c "$limited" "$work/program" 10000
fi
# shellcheck disable=SC2086
if [ -e "$build/.libs/libfastinst-edges.so" ] &&
	$CC -O1 -w -fsanitize-coverage=trace-pc -c -o "$work/blocks.o" "$work/program.c"; then
	$CC -o "$work/blocks" "$work/blocks.o" -L.libs -lfastinst -lpatchcore "-Wl,-rpath,$PWD/.libs"
	told "$lost" "$fastinst" profile --edges --output "$work/profile" -- sh -c "$limited" "$work/blocks" 10000
fi

# The program's own signals are its own.
cat >"$work/large.c" <<'C'
#include <unistd.h>
int main(void) { return write(1, "x", 1) != 1; }
C
# shellcheck disable=SC2086
$CC -O1 -fpatchable-function-entry=5 -o "$work/large" "$work/large.c"
status=0
"$fastinst" run -- sh -c "$limited" "$work/large" >"$work/large.out" 2>"$work/errors" || status=$?
[ $status = 153 ] || wrong "a program that writes too much: status $status"

# No reader of what the agent says to standard error.
python3 - "$build/.libs/libfastinst-agent.so" "$work/program" <<'PY' || wrong "a pipe without a reader"
import os, subprocess, sys
read, write = os.pipe()
os.close(read)
done = subprocess.run([sys.argv[2]], stdout=subprocess.PIPE, stderr=write,
                      env={"LD_PRELOAD": sys.argv[1], "FASTINST_ON": "*", "FASTINST_CONTROL": "off"})
sys.exit(done.returncode != 5)
PY

# full COMMAND - what it could not write it complains of, with a status of its own
full()
{
	[ $status = 1 ] || wrong "$1 on a full disk: $status"
	grep -q 'No space left\|Input/output' "$work/errors" || wrong "$1 on a full disk: $(cat "$work/errors")"
}

for command in "run --output /dev/full" "run --json --output /dev/full" "trace --format json --output /dev/full"; do
	status=0
	# shellcheck disable=SC2086
	"$fastinst" $command -- /bin/true >/dev/null 2>"$work/errors" || status=$?
	full "$command"
done
status=0
"$fastinst" list "$work/program" >/dev/full 2>"$work/errors" || status=$?
full list
status=0
(ulimit -f 0; "$fastinst" list "$work/program" >"$work/list" 2>"$work/errors") || status=$?
[ $status = 1 ] || wrong "list beyond the limit: $status"

# Full disks, of namespaces of their own.
if unshare -rm true 2>/dev/null && unshare -rm mount -t tmpfs none /tmp 2>/dev/null; then
	# The build folder may be in /tmp.
	full=$(cat <<'SH'
mount --bind "$0" /mnt && mount -t tmpfs -o size=64k none "$1" && mkdir -p "$0" && mount --bind /mnt "$0" || exit 1
if [ "$1" = /tmp ]; then
	head -c 100000 /dev/zero >/tmp/fill 2>/dev/null
fi
shift
exec "$@"
SH
)
	told "$lost" unshare -rm sh -c "$full" "$build" /tmp "$fastinst" run --no-control --output "$work/counts" -- "$work/program"
	told 'events lost' unshare -rm sh -c "$full" "$build" /dev/shm "$fastinst" trace --no-control --output "$work/trace" -- \
		"$work/program" 1000
else
	echo "nothing can be mounted here: full disks were not tried"
fi
exit $failed
