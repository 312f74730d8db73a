#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What runs while an INT3 stands or SIGTRAP is blocked is the library's own: no branch of the code
# in section patchcore_nopatch leaves that section, neither in the shared library nor in the
# objects of the static one. What is broken on purpose is found by the same means.
# shellcheck disable=SC2317 # what looks is called by name
set -euo pipefail

here=$(cd "${srcdir:-.}/patchcore/tests" && pwd)
include=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

if [ "${SANITIZERS:-none}" != none ]; then
	echo "sanitizers add calls of their own"
	exit 77
fi

# Functions whose indirect calls are as they should be, and why.
allowed=(
	trap_chain # the program's own handler of SIGTRAP, or the guard's
	# What these are given by code of the section is in the section, as its address is looked at.
	table_each_in  # for each entry
	sites_each # for each site
	task_list # for each thread
	ask_thread # is that thread asleep where it may be?
	on_look_signal # what a look does in each thread
)

# look LINKED FILE [ALLOWED] - LINKED 1: a branch leads where it says; 0: it may have a relocation
look()
{
	"${OBJDUMP:-objdump}" -t "$2" >"$dir/symbols"
	"${OBJDUMP:-objdump}" -dr --no-show-raw-insn -j patchcore_nopatch "$2" >"$dir/listing" \
		2>"$dir/errors" || true
	awk -v allowed="${3-}" -v symbols="$dir/symbols" -v linked="$1" -f "$here/own_code.awk" \
		"$dir/listing"
}

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# --- the library ---

found=0
for lib in .libs/libpatchcore.so .libs/libpatchcore_internal.a; do
	[ -e "$lib" ] || continue
	found=1
	case $lib in *.so) linked=1 ;; *) linked=0 ;; esac
	echo "$lib:"
	look $linked "$lib" "${allowed[*]}" || wrong "code of $lib leaves the section"
done
if [ $found = 0 ]; then
	echo "no library to look at"
	exit 77
fi

# --- the same eyes on what is broken on purpose ---

# must_see NAME WHAT FLAGS... <CODE - build it; WHAT is to be found in the object and when linked
must_see()
{
	local name=$1 what=$2 how file

	shift 2
	{
		echo '#include "patchcore/syscall/sys.h"'
		echo '#include <string.h>'
		cat
	} >"$dir/$name.c"
	# shellcheck disable=SC2086 # CC may carry options
	$CC -std=gnu11 -O2 -fPIC -fvisibility=hidden "$@" -I"$include" -c -o "$dir/$name.o" "$dir/$name.c"
	# shellcheck disable=SC2086 # the same
	$CC -shared -o "$dir/$name.so" "$dir/$name.o"
	for how in 0 1; do
		case $how in 0) file=$name.o ;; 1) file=$name.so ;; esac
		if look $how "$dir/$file" "${allow-}" >"$dir/out" 2>&1; then
			[ -z "$what" ] || wrong "not seen in $file: $what"
		elif [ -z "$what" ]; then
			wrong "found in $file, where nothing is: $(cat "$dir/out")"
		elif ! grep -q -- "$what" "$dir/out"; then
			wrong "found in $file instead of '$what': $(cat "$dir/out")"
		fi
	done
}

sound='
NOPATCH int own_one(int n) { return n * 3; }
static NOPATCH __attribute__((noinline)) int own_two(int n) { return own_one(n) - 1; }
NOPATCH int own_three(int n) { return n > 4 ? own_two(n) : own_two(n + 1) + (int)sys_call(SYS_getpid); }
'
must_see sound '' <<<"$sound"
must_see calls_libc 'own_four+: .*memcpy' <<<"$sound
NOPATCH void own_four(void *to, void *from, unsigned long n) { memcpy(to, from, n); own_one(1); }"
must_see clears 'own_four+: .*memset' <<<"$sound
NOPATCH int own_four(char *to, unsigned long n) {
	for (unsigned long i = 0; i < n; i++) to[i] = 0;
	return own_one(1);
}"
must_see calls_out 'own_four+: .*strange' <<<"$sound
__attribute__((noinline)) int strange(int n) { __asm__ volatile(\"\"); return n; }
NOPATCH int own_four(int n) { return strange(n) + own_one(n); }"
must_see jumps_out 'own_four+: .*strange' <<<"$sound
__attribute__((noinline)) int strange(int n) { __asm__ volatile(\"\"); return n; }
NOPATCH int own_four(int n) { return n ? strange(n) : own_one(n); }"
must_see calls_static 'own_four+: .*' <<<"$sound
static __attribute__((noinline)) int strange(int n) { __asm__ volatile(\"\"); return n; }
NOPATCH int own_four(int n) { return strange(n) + own_one(n); }"
indirect="$sound
NOPATCH int own_four(int (*fn)(int)) { return fn(1) + own_one(2); }"
must_see indirect 'own_four+: call \*' <<<"$indirect"
allow=own_four must_see indirect_allowed '' <<<"$indirect"
allow=own_one must_see none_allowed 'own_one: allowed an indirect call' <<<"$sound"
must_see address 'own_four+: takes the address of strange' <<<"$sound
__attribute__((noinline)) int strange(int n) { __asm__ volatile(\"\"); return n; }
NOPATCH void own_four(int (**fn)(int)) { *fn = strange; own_one(1); }"
must_see no_section '^0 functions' <<<"int strange(int n) { return n; }"
# As systems build that harden what they build: nothing may be added to such a function.
must_see hardened '' -fstack-protector-all -fcf-protection=full -pg -fpatchable-function-entry=5 \
	-D_FORTIFY_SOURCE=2 <<<"$sound
NOPATCH int own_four(int n) { volatile char array[64]; array[n] = 1; return array[0]; }"

[ $failed = 0 ] && echo "what is broken on purpose was found"
exit $failed
