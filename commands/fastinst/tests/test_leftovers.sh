#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What each command of fastinst leaves behind, however it ends: nothing; but killed by SIGKILL, what the
# next one removes. A folder whose command lives, held by a lock, stays.
# shellcheck source=probes/tests/common.sh disable=SC2016,SC2317
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
mkfifo "$dir/hold"
exec 7<>"$dir/hold"

# The program: tells its folders and number, and waits to be ended, or until the pipe says so.
cat >"$dir/p.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void work(void)
{
	__asm__ volatile("");
}

int main(void)
{
	const char *names[] = { "FASTINST_OUTPUT", "FASTINST_TRACE" };
	FILE *out = fopen(getenv("TELL"), "w");
	char c;

	work();
	for (int i = 0; i < 2; i++)
		if (getenv(names[i]))
			fprintf(out, "%s\n", getenv(names[i]));
	fprintf(out, "pid %d\n", (int)getpid());
	fclose(out);
	rename(getenv("TELL"), getenv("TOLD"));
	return read(7, &c, 1) != 1;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -o "$dir/p" "$dir/p.c"
export TELL=$dir/tell TOLD=$dir/told

# wait_until SECONDS CONDITION...
wait_until()
{
	local tries=$((10 * $1))

	shift
	until "$@"; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

gone()
{
	! kill -0 "$1" 2>/dev/null
}

child_of()
{
	cut -d' ' -f1 "/proc/$1/task/$1/children"
}

# folder_of JOB - the one that its command has locked
folder_of()
{
	# A descriptor may be closed meanwhile.
	{ readlink "/proc/$(child_of "$1")/fd/"* 2>/dev/null || true; } | grep -m1 /fastinst-trace-
}

find_folder()
{
	folder_of "$1" >/dev/null
}

folders()
{
	grep -v '^pid' "$TOLD"
}

left()
{
	local path

	for path in $(folders) "$dir/fastinst"/*; do
		[ ! -e "$path" ] || echo "$path"
	done
}

# The command of another test may be about to remove it.
nothing_left()
{
	wait_until 30 is_nothing_left
}

is_nothing_left()
{
	[ -z "$(left)" ]
}

# begin COMMAND... - in the background, as from a terminal, until its program waits
begin()
{
	rm -f "$TOLD"
	timeout -k 1 60 env --default-signal=HUP,INT,QUIT,TERM "$@" 7<>"$dir/hold" >"$dir/says" 2>"$dir/errors" &
	job=$!
	wait_until 30 test -e "$TOLD" || wrong "$*: its program does not start: $(cat "$dir/errors")"
	command=$(child_of "$job")
	pid=$(sed -n 's/^pid //p' "$TOLD")
}

finish()
{
	wait "$job" || true
	wait_until 30 gone "$pid" || wrong "$1: its program lives"
}

# ends NAME END... - the end by each of these; none but the last of these leaves anything
ends()
{
	local name=$1 how
	shift

	for how in normal HUP INT QUIT TERM; do
		begin "$@"
		case $how in
		normal) echo >&7 ;;
		*) kill -s "$how" "$command" ;;
		esac
		finish "$name $how"
		# The program ends by that signal, and says nothing to its socket.
		[ "$how" = normal ] || rm -f "$dir/fastinst/$pid.sock"
		nothing_left || wrong "$name, $how: left behind: $(left)"
	done
}

ends run "$fastinst" run -- "$dir/p"
ends trace "$fastinst" trace --output "$dir/trace" -- "$dir/p"
[ ! -e "$build/.libs/libfastinst-profile.so" ] || ends profile "$fastinst" profile -- "$dir/p"

# It gets a signal once, also where it ends by itself upon it, and its status is the command's.
begin "$fastinst" run -- sh -c 'trap "echo got; exit 3" TERM; "$0" & wait' "$dir/p"
kill -TERM "$command"
status=0
wait "$job" || status=$?
echo >&7
[ "$status $(grep -c got "$dir/says")" = "3 1" ] ||
	wrong "a program that ends by itself upon SIGTERM: $status, $(cat "$dir/says")"
wait_until 30 gone "$pid" || wrong "its child lives"

# A daemon closes all that it does not know, and gets the number of the agent's socket for one of its own.
cat >"$dir/daemon.c" <<'END'
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(name);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	/* The kernel gives it a name that is free. */
	if (bind(listener, (void *)&name, sizeof(sa_family_t)) || getsockname(listener, (void *)&name, &len) ||
	    listen(listener, 8))
		return 2;
	/* All but this one, which is then all of them. */
	for (int fd = 3; fd < 64; fd++)
		if (fd != listener)
			dup2(listener, fd);
	for (int i = 0; i < 30; i++) {
		struct pollfd call = { .fd = listener, .events = POLLIN };
		int client = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(client, (void *)&name, len))
			return 3;
		usleep(100000);
		if (poll(&call, 1, 0) != 1)
			return 4;
		close(accept(listener, NULL, NULL));
		close(client);
	}
	return 0;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -o "$dir/daemon" "$dir/daemon.c"
status=0
timeout 60 "$fastinst" run -- "$dir/daemon" 2>"$dir/errors" || status=$?
[ $status = 0 ] || wrong "the agent takes the program's own calls: $status"

# Of a program that runs.
begin "$fastinst" run --off -- "$dir/p"
watched=$pid kept=$TOLD.kept
cp "$TOLD" "$kept"
for how in HUP INT QUIT TERM; do
	timeout 60 env --default-signal=HUP,INT,QUIT,TERM "$fastinst" trace --pid "$watched" --output "$dir/trace" 2>"$dir/errors" &
	tracer=$!
	wait_until 30 find_folder "$tracer" || wrong "trace --pid: no folder"
	mine=$(folder_of "$tracer") || wrong "trace --pid: its folder is gone"
	kill -s "$how" "$(child_of "$tracer")"
	wait "$tracer" || true
	[ ! -e "${mine:-/}" ] || wrong "trace --pid, $how: left behind: $mine"
done
[ -S "$dir/fastinst/$watched.sock" ] || wrong "the socket of a live program is gone"

# Before it is the command, the child is timeout, which catches SIGTERM, and env.
find_ender()
{
	ender=$(child_of "$job" 2>/dev/null) && [ -n "$ender" ] && [[ $(cat "/proc/$ender/comm") = *fastinst ]]
}

# has MASK BIT - /proc/STATUS of $ender: the command takes signals as it means to once SIGTERM is caught
has()
{
	local mask

	mask=$(sed -n "s/^$1:[[:space:]]*//p" "/proc/$ender/status")
	((0x$mask >> ($2 - 1) & 1))
}

# What is ignored at the start stays so, also in commands that note signals.
for what in "trace --output $dir/trace --pid" "attach --output $dir/counts --for 60"; do
	# shellcheck disable=SC2086 # words
	timeout 60 env --default-signal=INT,QUIT,TERM --ignore-signal=HUP "$fastinst" $what "$watched" 2>"$dir/errors" &
	job=$!
	wait_until 30 find_ender || wrong "$what: does not start"
	wait_until 30 has SigCgt 15 || wrong "$what: never catches SIGTERM: $(cat "$dir/errors")"
	has SigIgn 1 || wrong "$what: SIGHUP was ignored, and is not any more"
	kill -TERM "$ender"
	wait "$job" || wrong "$what, SIGTERM: $?: $(cat "$dir/errors")"
done
echo >&7
cp "$kept" "$TOLD"
finish "the one that was watched"
nothing_left || wrong "left behind: $(left)"

# Killed: they stay, and the next start removes them, be it that of another test; also the socket of a program
# that was killed. What is locked is in use.
begin "$fastinst" trace --output "$dir/trace" -- "$dir/p"
kill -KILL "$command" "$pid"
finish "killed"
[ -n "$(left)" ] || wrong "killed, and nothing is left"
cp "$TOLD" "$kept"
# Another test's fastinst may remove it before it is locked.
until live=$(mktemp -d /tmp/fastinst-run-XXXXXX) && exec 8<"$live" && flock -n 8 && [ -d "$live" ]; do
	:
done
"$fastinst" trace --output "$dir/trace" -- true 2>"$dir/errors" || wrong "after one that was killed: $(cat "$dir/errors")"
cp "$kept" "$TOLD"
nothing_left || wrong "the next start left $(left)"
[ -d "$live" ] || wrong "the folder of a command that lives is removed"
exec 8<&-
"$fastinst" run -- true 2>"$dir/errors" || wrong "$(cat "$dir/errors")"
wait_until 30 test ! -d "$live" || wrong "the folder of a command that is gone stays"
exit "$failed"
