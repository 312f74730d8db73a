#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Threads load libraries of their own at the same time: of several patterns each is on in each of them, before
# dlopen() returns. A constructor that loads another library, or forks, with the loader's lock, does not wait for
# another thread that asks the loader about what it has found. What "fastinst off" turned off stays off.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# build NAME FLAG...
build()
{
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 "$top/probes/tests/loads.c" -o "$dir/$1" "${@:2}" -pthread -ldl
}

build loads
for i in 1 2 3 4; do
	build $i.so -DLIBRARY -shared -fPIC -fpatchable-function-entry=5
done
build nested.so -DLIBRARY -DOPENS="\"$dir/4.so\"" -shared -fPIC -fpatchable-function-entry=5
build forking.so -DLIBRARY -DFORKS -shared -fPIC -fpatchable-function-entry=5

timeout 120 "$fastinst" run --on first_run --on last_run --output "$dir/counts" -- \
	"$dir/loads" 100 "$dir"/{1,2,3,4}.so >"$dir/says" || wrong "exit status $?"
for name in first_run last_run; do
	n=$(awk -v name=$name '$4 == name { n += $1 } END { print n + 0 }' "$dir/counts")
	[ "$n" = "$(cat "$dir/says")" ] || wrong "$n calls of $name, not $(cat "$dir/says")"
done

# What the agent says would be that it could not ask the command, or waited in vain; signals of patches come in
# between.
for library in nested forking; do
	for _ in 1 2 3 4 5; do
		timeout 120 "$fastinst" trace --on '*_run' --output "$dir/trace" -- \
			"$dir/loads" 10 "$dir/$library.so" "$dir"/{1,2,3}.so >"$dir/says" 2>"$dir/errors" ||
			wrong "$library: exit status $?"
		[ ! -s "$dir/errors" ] || wrong "$library: $(cat "$dir/errors")"
		n=$(wc -l <"$dir/trace")
		[ "$n" = $((2 * $(cat "$dir/says"))) ] || wrong "$library: $n events of $(cat "$dir/says") libraries"
	done
done

# Their probes are turned on and off while they are unloaded: what stands behind an exit is read of what may have gone.
for i in 1 2 3; do
	build hooked$i.so -DLIBRARY -shared -fPIC -finstrument-functions
done
timeout 120 "$fastinst" trace --on '*_run' --output "$dir/trace" -- "$dir/loads" 1000 "$dir"/hooked{1,2,3}.so "$dir/1.so" \
	>"$dir/says" 2>"$dir/errors" &
while [ -e /proc/$! ]; do
	"$fastinst" off '*_run' >/dev/null 2>&1 || true
	"$fastinst" on '*_run' >/dev/null 2>&1 || true
done
wait $! || wrong "unloaded meanwhile: exit status $?: $(cat "$dir/errors")"

cat >"$dir/late.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
__attribute__((noinline)) void work(void) { __asm__ volatile(""); }
int main(int argc, char **argv)
{
	work();
	puts("ready");
	fflush(stdout);
	getchar();
	if (!dlopen(argv[argc - 1], RTLD_NOW))
		return 1;
	work();
	return 0;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -fpatchable-function-entry=5 "$dir/late.c" -o "$dir/late" -ldl
mkfifo "$dir/lines" "$dir/answers"
timeout 120 "$fastinst" run --output "$dir/counts" -- "$dir/late" "$dir/1.so" <"$dir/lines" >"$dir/answers" &
exec 7>"$dir/lines"
head -n 1 "$dir/answers" >/dev/null
"$fastinst" off work >/dev/null
echo >&7
wait $! || wrong "late: exit status $?"
[ "$(awk '$4 == "work" { print $1 }' "$dir/counts")" = 1 ] || wrong "turned on again: $(cat "$dir/counts")"
exit $failed
