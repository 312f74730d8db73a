#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dlopen() and dlmopen() find what they find without the agent, and say the same where they fail: by RPATH and
# RUNPATH of their caller, with $ORIGIN and $LIB, by LD_LIBRARY_PATH, the cache of the loader, names that an object
# has already. What is loaded is counted from its constructors on, also where nothing asks for a symbol of it.
# shellcheck disable=SC2016 # $ORIGIN and $LIB are the loader's
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable

# library FILE FLAG... - one that says its own path
library()
{
	mkdir -p "$dir/${1%/*}"
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -w -shared -fPIC "-DLIBRARY=\"$1\"" "$top/agent/counts/tests/opens.c" -o "$dir/$1" "${@:2}" -ldl
}

lib=$($CC -print-multiarch)
library sub/liborigin.so
library sub/libdst.so
library "sub/lib/$lib/libfamily.so"
library sub/libhwcaps.so
library sub/glibc-hwcaps/x86-64-v2/libhwcaps.so
library path/libpath.so
library cached/libpcprofile.so
library sub/liblinked.so -Wl,-soname,libnamed.so.1
ln -s liblinked.so "$dir/sub/liblink.so"
# Its caller has folders of its own, in which another file of the name lies.
library own/libwanted.so
library sub/libwanted.so
library sub/libcaller.so '-DOPENS="libwanted.so"' '-Wl,-rpath,$ORIGIN/../own'
library own/libearlier.so
library sub/libearly.so '-DOPENS="libearlier.so"' -DEARLY '-Wl,-rpath,$ORIGIN/../own'
library sub/libnotloaded.so
library sub/libbase.so
library gone/libgone.so
library sub/libneedy.so -Wl,--no-as-needed "-L$dir/gone" -lgone
rm "$dir/gone/libgone.so"
echo "no library" >"$dir/sub/libbroken.so"
library sub/libcalls.so -DCALLS -fpatchable-function-entry=5

# The C library has a file of this name in /lib, where the cache of the loader names another one.
printf '%s\n' "$dir/cached" >"$dir/conf"
cat /etc/ld.so.conf >>"$dir/conf" 2>/dev/null || true
cached=()
if ldconfig -X -f "$dir/conf" -C "$dir/cache" 2>/dev/null &&
	unshare -m mount --bind "$dir/cache" /etc/ld.so.cache 2>/dev/null; then
	printf 'mount --bind "%s" /etc/ld.so.cache && exec "$@"\n' "$dir/cache" >"$dir/cached.sh"
	cached=(unshare -m sh "$dir/cached.sh")
else
	echo "no namespace of mounts: the cache of the loader is not tried"
fi

# compare NAME FLAG... - the program, linked so
compare()
{
	local name=$1 status=0

	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -w "$top/agent/counts/tests/opens.c" -o "$dir/$name" "${@:2}" \
		-Wl,--export-dynamic-symbol=handed_over -ldl
	LD_LIBRARY_PATH=$dir/path "${cached[@]}" "$dir/$name" >"$dir/without" 2>&1 || wrong "$name fails without"
	LD_LIBRARY_PATH=$dir/path timeout 60 "${cached[@]}" "$fastinst" run --output "$dir/counts" -- "$dir/$name" \
		>"$dir/with" 2>&1 || status=$?
	[ $status = 0 ] || wrong "$name: exit status $status"
	diff "$dir/without" "$dir/with" >"$dir/differ" || wrong "$name finds something else: $(cat "$dir/differ")"
	[ "$(awk '$4 == "called" { print $1 }' "$dir/counts")" = 101 ] || wrong "$name: not counted: $(cat "$dir/counts")"
}

compare runpath -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/sub:$ORIGIN/sub/$LIB'
compare rpath -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/sub:$ORIGIN/sub/$LIB'
# Where the program has a function that profilers call, as gprof's does.
compare gprof -pg -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/sub:$ORIGIN/sub/$LIB'
exit $failed
