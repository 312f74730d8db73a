#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What fastinst attach is refused, each by its own reason and with status 1, and goes on as before: what is
# undumpable, another user's, set-user-ID, traced, behind a seccomp filter, in another PID namespace or
# root folder, linked statically, 32-bit, a kernel thread. One that is none of these is attached to.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-attached.so
pids=()
trap 'exec 7>&- 2>/dev/null || true; kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$dir"' EXIT
chmod 755 "$dir"
mkfifo "$dir/in"

compile()
{
	local name=$1

	shift
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -o "$dir/$name" "$@" 2>"$dir/errors"
}

# start COMMAND... - the program that it becomes waits for descriptor 7, and is $pid; false: it cannot be had.
start()
{
	: >"$dir/says"
	"$@" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	child=$!
	pids+=("$child")
	exec 7>"$dir/in"
	for _ in $(seq 3000); do
		! grep -q ready "$dir/says" || break
		kill -0 "$child" 2>/dev/null || break
		sleep 0.01
	done
	pid=$child
	grep -q ready "$dir/says" && return 0
	exec 7>&-
	status=0
	wait "$child" || status=$?
	echo "$*: not here, status $status $(cat "$dir/errors")"
	return 1
}

# attach STATUS TEXT [PREFIX...] - to $pid, as another user where the prefix says so
attach()
{
	local want=$1 text=$2 status=0

	shift 2
	"$@" timeout 60 "$fastinst" attach "$pid" >/dev/null 2>"$dir/log" || status=$?
	if [ $status != "$want" ] || ! grep -qE "$text" "$dir/log"; then
		wrong "attach to $pid, which is to be refused by \"$text\": $status, $(cat "$dir/log")"
	fi
}

# It ends by itself, as if nothing had been.
finish()
{
	local status=0

	exec 7>&-
	wait "$child" || status=$?
	[ $status = 0 ] || wrong "exit status $status"
	[ ! -s "$dir/errors" ] || wrong "it said $(cat "$dir/errors")"
}

compile refused "$top/commands/fastinst/tests/refused.c" || { cat "$dir/errors"; exit 1; }
start "$dir/refused" plain
if ! timeout 60 "$fastinst" attach "$pid" 2>"$dir/log" && grep -qE 'does not let it be traced|ptrace' "$dir/log"; then
	skip "ptrace(2) is not allowed here: $(cat "$dir/log")"
fi
grep -q 'attached to process' "$dir/log" || wrong "attach: $(cat "$dir/log")"
finish

if start "$dir/refused" filtered; then
	attach 1 'it runs under seccomp, which may end it'
	finish
fi
if start "$dir/refused" traced; then
	attach 1 'process [0-9]+ traces it already'
	finish
fi

# --- users ---

other=()
if [ "$(id -u)" = 0 ]; then
	if ! command -v setpriv >/dev/null; then
		echo "other users: no setpriv"
	elif start setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/refused" plain; then
		other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
		attach 1 'it is a process of user 65534; be that user'
		finish
	fi
	cp "$dir/refused" "$dir/owned"
	chown 65534 "$dir/owned"
	chmod u+s "$dir/owned"
	if start "$dir/owned" plain; then
		# On a file system that is mounted so, the bit says nothing.
		if awk '$1 == "Uid:" { exit $2 == $3 }' "/proc/$pid/status"; then
			attach 1 'it is a set-user-ID program'
		else
			echo "set-user-ID: the bit has no effect on $dir"
		fi
		finish
	fi
else
	echo "another user, set-user-ID: not root"
	pid=1
	[ "$(stat -c %u /proc/1)" = "$(id -u)" ] || attach 1 'it is a process of user [0-9]+; be that user'
fi

# Who may trace everything may trace these, too.
if [ "$(id -u)" = 0 ] && [ ${#other[@]} = 0 ]; then
	echo "undumpable: no other user"
elif ! "${other[@]}" test -r "$build/.libs/libfastinst-attached.so" -a -x "$fastinst"; then
	echo "undumpable: another user cannot read $build"
elif start "${other[@]}" "$dir/refused" undumpable; then
	mkdir "$dir/runtime"
	[ ${#other[@]} = 0 ] || chown 65534 "$dir/runtime"
	attach 1 'does not let it be traced.*undumpable|ptrace_scope' "${other[@]}" env XDG_RUNTIME_DIR="$dir/runtime"
	finish
fi

# --- places ---

# unshare(1) is the parent of the process, which is the first of its namespace.
if start unshare --pid --fork "$dir/refused" plain; then
	read -r pid _ <"/proc/$child/task/$child/children" || true
	if [ -n "$pid" ]; then
		attach 1 'it is in another PID namespace'
	else
		echo "another PID namespace: no /proc/PID/task/PID/children"
	fi
	finish
fi
if compile static -static "$top/commands/fastinst/tests/refused.c"; then
	start "$dir/static" plain
	attach 1 'it is linked statically, and cannot load the agent'
	finish
	mkdir "$dir/cage"
	cp "$dir/static" "$dir/cage"
	if start chroot "$dir/cage" /static plain; then
		attach 1 'is not in its mount namespace \(a container, a chroot\)'
		finish
	fi
else
	echo "static, another root folder: $(tail -n 1 "$dir/errors")"
fi

# --- kinds ---

# What the agent meets there is said in words as well.
cat >"$dir/own.c" <<'C'
#include <patchcore/patchcore.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char byte;

	if (pc_init())
		return 1;
	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}
C
if compile own -I "$top/patchcore/include" "$dir/own.c" "$build/.libs/libpatchcore_internal.a" -linih -lm -pthread; then
	start "$dir/own"
	attach 1 'cannot attach to process [0-9]+: the program has a library of its own that changes code'
	finish
else
	echo "a program with libpatchcore in it: $(tail -n 1 "$dir/errors")"
fi

cat >"$dir/short.c" <<'C'
static int call(int number, int a, void *b, int c)
{
	__asm__ volatile("int $0x80" : "+a"(number) : "b"(a), "c"(b), "d"(c) : "memory");
	return number;
}
void _start(void)
{
	char bytes[] = "ready\n";

	call(4, 1, bytes, 6);
	while (call(3, 0, bytes, 1) > 0)
		;
	call(1, 0, 0, 0);
	for (;;)
		;
}
C
if compile short -m32 -ffreestanding -fno-stack-protector -fno-pie -no-pie -nostdlib -static "$dir/short.c"; then
	if start "$dir/short"; then
		attach 1 'it has no libc.so.6'
		finish
	fi
else
	echo "32-bit: $(tail -n 1 "$dir/errors")"
fi
pid=$(grep -lx kthreadd /proc/[0-9]*/comm 2>/dev/null | head -n 1 | tr -dc 0-9) || true
if [ -z "$pid" ]; then
	echo "kernel threads: none is seen"
elif [ "$(id -u)" = 0 ]; then
	# Behind a root folder of our own the agent is not where it looks from.
	attach 1 'it has no memory: a kernel thread|is not in its mount namespace'
else
	attach 1 'it is a process of user 0'
fi

exit $failed
