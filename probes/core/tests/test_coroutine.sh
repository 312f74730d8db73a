#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program whose functions run on stacks of 512 bytes above a page that is not there goes on under run, trace,
# profile and --entries, and each call is counted or shown: in the main thread, and in threads whose first probe it
# is. test_stack has the need in bytes.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
cat >"$dir/small.c" <<'END_C'
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline, patchable_function_entry(5))) int work(int i) { __asm__ volatile(""); return i + 1; }
void call_on(void *top, void (*function)(void));
__asm__("call_on: push %rbp; mov %rsp, %rbp; mov %rdi, %rsp; call *%rsi; mov %rbp, %rsp; pop %rbp; ret");
static int sum;
static void go_on(void)
{
	for (int i = 0; i < 100; i++)
		sum = work(sum);
}
static void *thread(void *data)
{
	char *stack = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(stack, 4096, PROT_NONE);
	call_on(stack + 4096 + 512, go_on);
	return data;
}
int main(void)
{
	pthread_t t;
	thread(NULL);
	for (int i = 0; i < 9; i++) {
		pthread_create(&t, NULL, thread, NULL);
		pthread_join(t, NULL);
	}
	printf("done %d\n", sum);
	return 0;
}
END_C
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -o "$dir/small" "$dir/small.c" -pthread

# go COMMAND... - the program ends as it would alone
go()
{
	"$fastinst" "$@" "$dir/small" >"$dir/out" 2>"$dir/errors" || wrong "$* ends with $?: $(tail -n 2 "$dir/errors")"
	grep -qx 'done 1000' "$dir/out" || wrong "$*: the program says $(cat "$dir/out")"
}

go run --on work
grep -Eq '^ *1000 +0 +entry +work ' "$dir/errors" || wrong "run: $(cat "$dir/errors")"
go trace --on work
[ "$(grep -c '> work(' "$dir/errors")" = 1000 ] || wrong "trace shows $(grep -c '> work(' "$dir/errors") calls"
go profile
go run --entries --on '*'
exit "$failed"
