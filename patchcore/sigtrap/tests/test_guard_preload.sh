#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The guard preloaded into programs that know nothing of it: one that patches, and some that do not.
set -euo pipefail

lib=$PWD/.libs/libpatchcore_guard.so
if [ "$SANITIZERS" != none ] || [ ! -e "$lib" ]; then
	echo "skipped: built with sanitizers, or without shared libraries"
	exit 77
fi
failed=0

# expect TEXT COMMAND... - its output has that line, and it succeeds
expect()
{
	local text=$1 out

	shift
	if ! out=$("$@" 2>&1) || ! grep -qxE "$text" <<<"$out"; then
		echo "WRONG: $* says:"
		echo "$out"
		failed=1
	fi
}

expect 'guarded: +no' ./patchcore/examples/signals
expect 'guarded: +yes' env LD_PRELOAD="$lib" ./patchcore/examples/signals
expect "traps of the program's own: 1" env LD_PRELOAD="$lib" ./patchcore/examples/signals

# Without the library a program keeps its own SIGTRAP.
# shellcheck disable=SC2016 # for the inner shell
expect 'mine' env LD_PRELOAD="$lib" bash -c 'trap "echo mine" TRAP; kill -TRAP $$'
# shellcheck disable=SC2016
expect '133' env LD_PRELOAD="$lib" bash -c '(ulimit -c 0; kill -TRAP $BASHPID); echo $?'

# --- The family: what libc has that sets a mask or a handler ---

# Each with why it is not wrapped; none: it is.
family='
sigaction
__sigaction
signal
bsd_signal
ssignal
sysv_signal
__sysv_signal
sigprocmask
pthread_sigmask
pthread_attr_setsigmask_np
sigpending
sigsuspend
ppoll
__ppoll_chk
pselect
epoll_pwait
epoll_pwait2
sigwait
sigwaitinfo
sigtimedwait
sigblock               pc_signals(3) says so: withdrawn
sigsetmask             the same
sighold                the same
sigrelse               the same
sigset                 the same
sigignore              the same
sigpause               the same
siggetmask             reads
siginterrupt           sets a flag of the handler that is there
sigaltstack            pc_signals(3) says so
sigstack               the same, withdrawn
sigreturn              sets what the kernel has put on the stack
setcontext             sets a mask that getcontext() has read, without SIGTRAP, unless the program adds it
swapcontext            the same
getcontext             reads
makecontext            sets no mask
siglongjmp             sets a mask that sigsetjmp() has read, without SIGTRAP
pthread_attr_getsigmask_np  reads
posix_spawnattr_setsigmask  of another program
posix_spawnattr_getsigmask  of another program
posix_spawnattr_setsigdefault  of another program
posix_spawnattr_getsigdefault  of another program
signalfd               names what it reads, and blocks nothing
sigqueue               sends
sigaddset              a set in memory
sigandset              a set in memory
sigdelset              a set in memory
sigemptyset            a set in memory
sigfillset             a set in memory
sigisemptyset          a set in memory
sigismember            a set in memory
sigorset               a set in memory
'
exported=$($NM -D --defined-only "$lib" | awk '$2 != "A" && $3 != "pc_guard_1" { print $3 }' | sort)
wrapped=$(awk 'NF == 1' <<<"$family" | sort)
if [ "$exported" != "$wrapped" ]; then
	echo "WRONG: wrapped by the guard (<) against the table (>):"
	diff <(echo "$exported") <(echo "$wrapped") || true
	failed=1
fi

# Functions with such an argument, or such a name, in the headers.
# shellcheck disable=SC2086 # CC may carry options
known=$(printf '#include <%s>\n' signal.h poll.h sys/epoll.h sys/select.h sys/signalfd.h spawn.h pthread.h ucontext.h setjmp.h |
	$CC -D_GNU_SOURCE -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -E -P - | tr -s '\n ' ' ' | sed 's/;/;\n/g' |
	grep -E '^ ?extern ' | sed -E 's/^ ?extern //; s/__attribute__.*//; s/ __asm__.*//' |
	grep -oE '\b[a-z_0-9A-Z]+ ?\(.*' | grep -E '^_*sig[a-z]+ ?\(|sigset_t|sighandler_t|struct sigaction|ucontext_t' |
	sed -E 's/ ?\(.*//' | grep -vE '^__ppoll_(alias|chk_warn)$|^__sigsetjmp' | sort -u)
while read -r name; do
	if ! awk '{ print $1 }' <<<"$family" | grep -qx "$name"; then
		echo "WRONG: $name is in libc's headers, and the table does not know it"
		failed=1
	fi
done <<<"$known"
if [ "$(grep -c . <<<"$known")" -lt 30 ]; then
	echo "WRONG: of libc's headers only this was seen: $known"
	failed=1
fi
exit "$failed"
