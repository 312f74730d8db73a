#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The libraries that fastinst puts into a program call libc, and none of the program's functions of the same
# name: a program that defines every function which they import, with a probe in each, has none of them called
# under run, trace, profile, attach, on and off, and its calls are counted. So has one with a mmap() of its own
# that comes first. What is imported and may be the program's is listed here. A call of a library that is not
# ours shows that one would be seen.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
libraries=("$build"/.libs/lib{patchcore,fastinst}.so "$build"/.libs/libfastinst-{agent,attached,profile,edges}.so)
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT

# Allocation is one for all; a sanitizer has to know of threads; what the loader and libc look up by themselves.
readonly programs_own='malloc|calloc|realloc|free|reallocarray|aligned_alloc|pthread_create|__cyg_.*|(__)?environ'
# Asked before the libraries are bound, and how.
readonly binds='dlmopen|dlvsym|strlen|strcmp|strncmp|strrchr'

for library in "${libraries[@]}"; do
	readelf -W --dyn-syms "$library"
done | awk '$7 == "UND" && $4 == "FUNC" && $8 ~ /@GLIBC/ { sub(/@.*/, "", $8); print $8 }' | sort -u |
	grep -vxE "$programs_own|$binds|__tls_get_addr|_dl_find_object|__cxa_finalize" >"$dir/names"
[ "$(wc -l <"$dir/names")" -gt 100 ] || wrong "only $(wc -l <"$dir/names") functions are imported"

# Each asks check() who called, and goes on in libc.
# shellcheck disable=SC2016 # of the assembler
{
	echo '.text'
	while read -r name; do
		printf '%s\n' ".globl $name" ".type $name, @function" ".p2align 4" "$name:" '1: .fill 5, 1, 0x90' \
			'push %rax; push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %r10; push %rbp' \
			'mov %rsp, %rbp; sub $144, %rsp; and $-16, %rsp' \
			'.irp i,0,1,2,3,4,5,6,7; movaps %xmm\i, 16*\i(%rsp); .endr' \
			"mov 72(%rbp), %rdi; lea 2f(%rip), %rsi; lea 3f(%rip), %rdx; call check" \
			'.irp i,0,1,2,3,4,5,6,7; movaps 16*\i(%rsp), %xmm\i; .endr' 'mov %rbp, %rsp' \
			'pop %rbp; pop %r10; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi; pop %rax' \
			"jmp *3f(%rip)" ".size $name, . - $name" \
			".section .rodata; 2: .string \"$name\"; .data; .p2align 3; 3: .quad 0; .text" \
			'.section __patchable_function_entries, "awo", @progbits, .text; .quad 1b; .text'
	done <"$dir/names"
	echo '.section .note.GNU-stack, "", @progbits'
} >"$dir/all.s"
cat >"$dir/main.c" <<'END_C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BARE __attribute__((patchable_function_entry(0)))
BARE static void say(const char *text)
{
	const char *end = text;
	long ret;

	while (*end)
		end++;
	__asm__ volatile("syscall" : "=a"(ret) : "0"(SYS_write), "D"(2), "S"(text), "d"(end - text) : "rcx", "r11", "memory");
}
BARE static int contains(const char *text, const char *part)
{
	for (; *text; text++) {
		size_t i = 0;
		while (part[i] && text[i] == part[i])
			i++;
		if (!part[i])
			return 1;
	}
	return 0;
}
static void *(*look_up)(void *, const char *); /* the loader's own, as all others are ours */
BARE void check(uintptr_t caller, const char *name, void **real)
{
	struct dl_find_object found;

	if (!look_up)
		look_up = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!*real)
		*real = look_up(RTLD_NEXT, name);
	if (_dl_find_object((void *)caller, &found) || (!contains(found.dlfo_link_map->l_name, "libfastinst") &&
	    !contains(found.dlfo_link_map->l_name, "libpatchcore") && !contains(found.dlfo_link_map->l_name, STRANGER)))
		return;
	say("CALLED ");
	say(name);
	say("\n");
}
__attribute__((noinline, noclone)) int work(int i)
{
	__asm__ volatile("");
	return i + 1;
}
int main(int argc, char **argv)
{
	char line[16];
	int sum = 0;

	(void)argv;
	if (argc > 1)
		say("ready\n");
	do
		for (int i = 0; i < 1000; i++)
			sum = work(sum);
	while (argc > 1 && fgets(line, sizeof(line), stdin));
	printf("done %d\n", sum);
	return 0;
}
END_C
# shellcheck disable=SC2086 # CC may carry options
build_interposed() { $CC -g -O1 -fpatchable-function-entry=5 "-DSTRANGER=\"$1\"" -rdynamic -o "$dir/$2" "$dir/main.c" "$dir/all.s" -pthread; }
echo '#include <dlfcn.h>' >"$dir/f.c"
echo 'int main(void) { struct dl_find_object found; return _dl_find_object(0, &found) != -1; }' >>"$dir/f.c"
$CC -D_GNU_SOURCE -o "$dir/f" "$dir/f.c" 2>/dev/null || skip "a libc without _dl_find_object()"
build_interposed none/ program
build_interposed libstranger other

# expect WHAT - nothing was called of the program's, and the output is its own
expect()
{
	sed -n 's/.*CALLED //p' "$dir/errors" | sort | uniq -c >"$dir/called"
	[ ! -s "$dir/called" ] || wrong "$1: calls of the program's functions: $(cat "$dir/called")"
	grep -qx "done $2" "$dir/out" || wrong "$1: the program: $(cat "$dir/out" "$dir/errors")"
}

run() { "$fastinst" "$@" "$dir/program" >"$dir/out" 2>"$dir/errors" || wrong "$* ends with $?: $(head -c 300 "$dir/errors")"; }

run run --on '*' --
expect "run --on '*'" 1000
grep -Eq '^ *1000 +0 .* work ' "$dir/errors" || wrong "run: work() is not counted: $(cat "$dir/out" "$dir/errors")"
run run --
expect run 1000
run trace --on 'work' --on 'm*map' --
expect trace 1000
run profile --
expect profile 1000

# A program that runs: on, off, trace.
rounds=1
mkfifo "$dir/in"
"$dir/program" wait <"$dir/in" >"$dir/out" 2>"$dir/errors" &
pid=$!
pids+=("$pid")
exec 7>"$dir/in"
until grep -q ready "$dir/errors"; do sleep 0.01; done
another_round() { echo >&7 && rounds=$((rounds + 1)); }

"$fastinst" attach "$pid" >"$dir/said" 2>&1 || wrong "attach: $(cat "$dir/said")"
"$fastinst" on --pid "$pid" '*' >"$dir/said" 2>&1 || wrong "on: $(cat "$dir/said")"
another_round
"$fastinst" top --once --pid "$pid" >"$dir/said" 2>&1 || wrong "top: $(cat "$dir/said")"
"$fastinst" off --pid "$pid" '*' >"$dir/said" 2>&1 || wrong "off: $(cat "$dir/said")"
another_round
"$fastinst" trace --pid "$pid" --on work --output "$dir/events" 2>"$dir/said" 7>&- &
tracer=$!
pids+=("$tracer")
while kill -0 "$tracer" 2>/dev/null && ! grep -qs work "$dir/events"; do
	another_round
	sleep 0.01
done
exec 7>&-
wait "$pid" || wrong "the program ends with $? after attach"
wait "$tracer" || wrong "trace --pid: $(cat "$dir/said")"
grep -q work "$dir/events" || wrong "trace --pid: no events: $(cat "$dir/said")"
expect attach "$((rounds * 1000))"

# A sanitizer defines half of libc, and is not ready when the agent starts.
$CC -g -O1 -fsanitize=thread -fpatchable-function-entry=5 '-DSTRANGER="none/"' -o "$dir/sanitized" "$dir/main.c" -pthread 2>/dev/null || true
if [ -x "$dir/sanitized" ] && "$dir/sanitized" >/dev/null 2>&1; then
	for command in 'run --on *' 'trace --on work --limit 5'; do
		# shellcheck disable=SC2086 # words
		(set -f; exec "$fastinst" $command "$dir/sanitized") >"$dir/out" 2>"$dir/errors" ||
			wrong "$command of a program with ThreadSanitizer ends with $?: $(head -c 300 "$dir/errors")"
		expect "ThreadSanitizer: $command" 1000
	done
fi

# A call is seen.
echo 'void stranger(void); void stranger(void) { __asm__ volatile(""); extern int getpid(void); getpid(); }
__attribute__((constructor)) static void start(void) { stranger(); }' >"$dir/stranger.c"
$CC -shared -fPIC -O0 -o "$dir/libstranger.so" "$dir/stranger.c"
LD_PRELOAD=$dir/libstranger.so "$dir/other" >"$dir/out" 2>"$dir/errors"
grep -qx 'CALLED getpid' "$dir/errors" || wrong "a call by another library is not seen: $(cat "$dir/errors")"
exit "$failed"
