#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Programs whose loader, or whose sanitizer, cannot take the agent as others do. One of musl is refused by name; as a
# child it runs as without the agent, and so does one of 32 bits. gcc's AddressSanitizer has its runtime in front, in
# that program and in none of its children. What the user preloads stays.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# compile NAME COMPILER FLAG... - false: this compiler cannot
compile()
{
	local name=$1

	shift
	"$@" -O1 -w "$top/agent/counts/tests/starts.c" -o "$dir/$name" 2>"$dir/errors"
}

# shellcheck disable=SC2086 # CC may carry options
compile prog $CC -fpatchable-function-entry=5
ways="posix_spawn posix_spawnp execv execve execvp execvpe execl execle execlp fexecve vfork"

# counted NAME - how often the program of that name called its function
counted()
{
	awk -v object="$dir/$1" '$4 == "work" && $5 == object { n += $1 } END { print n + 0 }' "$dir/counts"
}

# starts NAME SAYS COUNT - started by another program in all ways, it is given that to preload, and counted
starts()
{
	local way

	for way in $ways; do
		PATH=$dir:$PATH timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/prog" "$way" "$dir/$1" \
			>"$dir/says" 2>"$dir/errors" || wrong "$1 by $way: exit status $?: $(cat "$dir/errors")"
		grep -qx "preload $2" "$dir/says" || wrong "$1 by $way: $(cat "$dir/says")"
		[ ! -s "$dir/errors" ] || wrong "$1 by $way: $(cat "$dir/errors")"
		[ "$(counted "$1")" = "$3" ] || wrong "$1 by $way: counted $(counted "$1") times"
	done
}

agent=$build/.libs/libfastinst-agent.so
cp "$dir/prog" "$dir/other"
starts other "::$agent" 1
if compile musl musl-gcc; then
	status=0
	"$fastinst" run -- "$dir/musl" >"$dir/says" 2>"$dir/errors" || status=$?
	[ $status = 69 ] || wrong "musl: exit status $status"
	[ ! -s "$dir/says" ] || wrong "musl ran"
	grep -q "musl is linked with musl" "$dir/errors" || wrong "musl: $(cat "$dir/errors")"
	starts musl "" 0
	printf '#! %s\n' "$dir/musl" >"$dir/script"
	chmod +x "$dir/script"
	starts script "" 0
	status=0
	printf 'int pause(void);\nint main(void) { return pause(); }\n' >"$dir/pauses.c"
	musl-gcc "$dir/pauses.c" -o "$dir/pauses" || wrong "musl-gcc compiles nothing"
	"$dir/pauses" &
	until grep -q libc.so "/proc/$!/maps"; do sleep 0.01; done
	"$fastinst" attach $! >"$dir/says" 2>"$dir/errors" || status=$?
	kill $!
	[ $status = 1 ] || wrong "attach to musl: exit status $status"
	grep -q "its C library is musl" "$dir/errors" || wrong "attach to musl: $(cat "$dir/errors")"
else
	echo "no musl-gcc"
fi
# shellcheck disable=SC2086
if compile wide32 $CC -m32; then
	starts wide32 "" 0
else
	echo "no programs of 32 bits"
fi
# shellcheck disable=SC2086
if compile asan $CC -fsanitize=address -fpatchable-function-entry=5 && ldd "$dir/asan" | grep -q libasan; then
	runtime=$(ldd "$dir/asan" | awk '/libasan/ { print $1 }')
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/asan" >"$dir/says" 2>"$dir/errors" ||
		wrong "asan: exit status $?: $(cat "$dir/errors")"
	[ "$(counted asan)" = 1 ] || wrong "asan: $(cat "$dir/counts")"
	starts asan "::$runtime:$agent" 1
	timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/asan" execve "$dir/prog" >"$dir/says" ||
		wrong "a child of asan: exit status $?"
	grep -qx "preload ::$agent" "$dir/says" || wrong "a child of asan: $(cat "$dir/says")"
	[ "$(counted asan) $(counted prog)" = "1 1" ] || wrong "a child of asan: $(cat "$dir/counts")"
	# One that has the runtime by the user's wish keeps it.
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime timeout 60 "$fastinst" run --output "$dir/counts" -- "$dir/prog" execve \
		"$dir/prog" >"$dir/says" || wrong "user's runtime: exit status $?"
	grep -qx "preload $runtime::$agent" "$dir/says" || wrong "user's runtime: $(cat "$dir/says")"
else
	echo "no AddressSanitizer in a library"
fi
exit $failed
