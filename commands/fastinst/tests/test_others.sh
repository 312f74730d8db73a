#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program of another user: fastinst on, off, top, trace and attach are refused, with the reason, wherever they look for
# its socket; root that does not become that user among them. Nothing of it was changed. Its owner's are served.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
[ "$(id -u)" = 0 ] || skip "only root can be several users"
command -v setpriv >/dev/null || skip "no setpriv"
other=(setpriv --reuid 65534 --regid 65534 --clear-groups)
"${other[@]}" test -r "$build/.libs/libfastinst-agent.so" -a -x "$fastinst" || skip "another user cannot read $build"
chmod 755 "$dir"
mkdir "$dir/root" "$dir/other"
chown 65534 "$dir/other"
chmod 711 "$dir/root" "$dir/other"
cat >"$dir/program.c" <<'END'
#include <stdio.h>
__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}
static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}
int main(void)
{
	say("ready");
	for (int c; (c = getchar()) != EOF;) {
		leaf(c);
		if (c == '\n')
			say("line");
	}
	return 0;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 -o "$dir/program" "$dir/program.c"
mkfifo "$dir/in"
chmod 644 "$dir/in"

# said WORD
said()
{
	for _ in $(seq 300); do
		! grep -q "$1" "$dir/says" || return 0
		sleep 0.1
	done
	wrong "the program does not say $1: $(cat "$dir/errors")"
}

# start NAME PREFIX... - the program as that user, NAME's folder for its socket; it waits for descriptor 7, and is $pid
start()
{
	local name=$1

	shift
	: >"$dir/says"
	XDG_RUNTIME_DIR=$dir/$name "$@" timeout 60 "$fastinst" run --off -- "$dir/program" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	runner=$!
	exec 7>"$dir/in"
	said ready
	pid=$(basename "$dir/$name"/fastinst/*.sock .sock)
}

# refused STATUS TEXT FOLDER PREFIX... -- COMMAND...
refused()
{
	local want=$1 text=$2 folder=$3 status=0 prefix=()

	shift 3
	while [ "$1" != -- ]; do
		prefix+=("$1")
		shift
	done
	shift
	XDG_RUNTIME_DIR=$folder "${prefix[@]}" timeout 60 "$fastinst" "$@" >"$dir/log" 2>&1 || status=$?
	if [ $status != "$want" ] || ! grep -qE "$text" "$dir/log"; then
		wrong "${prefix[*]} $* is to be refused by \"$text\": $status, $(cat "$dir/log")"
	fi
}

# finish FOLDER PREFIX... - nothing was counted until its owner says so
finish()
{
	local folder=$1

	shift
	echo some >&7
	said line
	XDG_RUNTIME_DIR=$folder "$@" timeout 60 "$fastinst" on --pid "$pid" leaf >"$dir/log" 2>&1 || wrong "its owner: $(cat "$dir/log")"
	printf 'thing' >&7
	exec 7>&-
	wait "$runner" || wrong "the program failed: $(cat "$dir/errors")"
	grep -q '^ *5 *0 *entry *leaf ' "$dir/errors" || wrong "it counted $(cat "$dir/errors")"
}

start root env
whose="process $pid: it is a process of user 0; be that user"
mkdir "$dir/own"
chown 65534 "$dir/own"
for word in on off; do
	refused 69 "$whose" "$dir/own" "${other[@]}" -- $word --pid "$pid" leaf
	refused 69 'no such program listens' "$dir/own" "${other[@]}" -- $word leaf
	refused 1 "$dir/root/fastinst is not this user's alone, and not trusted" "$dir/root" "${other[@]}" -- $word --pid "$pid" leaf
done
refused 69 "$whose" "$dir/own" "${other[@]}" -- top --pid "$pid"
refused 69 "$whose" "$dir/own" "${other[@]}" -- trace --pid "$pid" --on leaf
refused 1 'it is a process of user 0; be that user' "$dir/own" "${other[@]}" -- attach "$pid"
finish "$dir/root" env

start other "${other[@]}"
whose="process $pid: it is a process of user 65534; be that user"
refused 69 "$whose" "$dir/root" env -- on --pid "$pid" leaf
refused 69 "$whose" "$dir/root" env -- off --pid "$pid" leaf
refused 1 'is not this user.s alone, and not trusted' "$dir/other" env -- on --pid "$pid" leaf
refused 1 'it is a process of user 65534; be that user' "$dir/root" env -- attach "$pid"
finish "$dir/other" "${other[@]}"

exit $failed
