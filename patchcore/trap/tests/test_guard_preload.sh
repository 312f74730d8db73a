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

# What the guard exports are the functions that it wraps, and its own object.
if $NM -D --defined-only "$lib" | awk '$2 != "A" { print $3 }' | grep -vxE \
	'pc_guard_1|sig(action|nal|procmask|pending|suspend|wait|waitinfo|timedwait)|signal|(__)?sysv_signal|pthread_sigmask|ppoll|pselect|epoll_pwait'; then
	echo "WRONG: the guard exports more than it wraps"
	failed=1
fi
exit "$failed"
