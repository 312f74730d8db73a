#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose main thread has ended is over when its last thread is, without a call of exit(); so is a child
# that a thread has forked. An agent's thread does not keep it, and what was counted is told. A thread that
# does not look shows that it would.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
cat >"$dir/last.c" <<'END_C'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *task(void *child)
{
	int status = 0;
	pid_t pid = fork();
	if (!pid)
		return child;
	waitpid(pid, &status, 0);
	printf("child %d\n", status);
	return child;
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, task, NULL);
	pthread_detach(thread);
	pthread_exit(NULL);
}
END_C
cat >"$dir/keeps.c" <<'END_C'
#include <pthread.h>
#include <unistd.h>
static void *sleeps(void *data) { return pause(), data; }
__attribute__((constructor)) static void start(void) { pthread_t thread; pthread_create(&thread, NULL, sleeps, NULL); }
END_C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -pthread -o "$dir/last" "$dir/last.c"
# shellcheck disable=SC2086
$CC -shared -fPIC -pthread -o "$dir/keeps.so" "$dir/keeps.c"

# ends COMMAND... - it does, and says the same as ever
ends() { timeout "$patience" "$@" >"$dir/out" 2>"$dir/err" && [ "$(cat "$dir/out")" = "child 0" ]; }

patience=50
ends "$dir/last" || wrong "alone it does not end: $(cat "$dir/out")"
ends "$fastinst" run -o "$dir/counts" -- "$dir/last" || wrong "with probes it does not end: $(cat "$dir/out" "$dir/err")"
grep -qE '^ +1 .* task ' "$dir/counts" || wrong "not counted: $(cat "$dir/counts")"
ends "$fastinst" profile -o "$dir/profile" -- "$dir/last" || wrong "with a profile it does not end: $(cat "$dir/out" "$dir/err")"
grep -q ' task$' "$dir/profile" || wrong "not profiled: $(cat "$dir/profile")"
# shellcheck disable=SC2086
if $CC -O1 -fsanitize-coverage=trace-pc -pthread -c -o "$dir/blocks.o" "$dir/last.c" 2>/dev/null &&
	$CC -pthread -o "$dir/blocks" "$dir/blocks.o" -L"$build/.libs" -Wl,-rpath,"$build/.libs" -lfastinst -lpatchcore; then
	ends "$fastinst" profile --edges --period 20 -o "$dir/edges" -- "$dir/blocks" ||
		wrong "with phases it does not end: $(cat "$dir/out" "$dir/err")"
	grep -q 'phases' "$dir/edges" || wrong "no phases: $(cat "$dir/edges")"
fi
patience=5
! ends env LD_PRELOAD="$dir/keeps.so" "$dir/last" || wrong "a thread that pauses does not keep the process"
exit $failed
