#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The example is built against an installed libfastinst: by hand with pkg-config, by CMake and by Meson,
# where they are here; it counts, and so does fastinst run. Without the flag there is nothing to count.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-agent.so
needs_patchable
command -v pkg-config >/dev/null || skip "no pkg-config"
prefix=$dir/usr
mkdir -p "$prefix"/{lib/pkgconfig,include} "$dir/examples"
cp -a .libs/libpatchcore.so* .libs/libfastinst.so* "$prefix/lib"
cp -r "$top"/probes/include/* "$top/patchcore/include/patchcore" "$prefix/include"
for name in patchcore/patchcore.pc probes/fastinst.pc; do
	sed "s,^prefix=.*,prefix=$prefix,; s,^libdir=.*,libdir=$prefix/lib,; s,^includedir=.*,includedir=$prefix/include," \
		"$name" >"$prefix/lib/pkgconfig/${name##*/}"
done
cp -r "$top"/probes/examples/* "$dir/examples"
chmod -R u+w "$dir"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS LDFLAGS

# try WHAT COMMAND...
try()
{
	local what=$1

	shift
	"$@" >"$dir/log" 2>&1 || wrong "$what: $(cat "$dir/log")"
}

# works PROGRAM - it counts, by itself and for fastinst, or says why this machine lets it not (77)
works()
{
	local status=0

	"$1" >"$dir/says" 2>&1 || status=$?
	[ $status != 77 ] || skip "$(cat "$dir/says")"
	[ $status = 0 ] || wrong "$1: status $status, $(cat "$dir/says")"
	timeout 60 "$fastinst" run --on parse --output "$dir/counts" -- "$1" >/dev/null 2>&1 || wrong "$1 under fastinst"
	cat "$dir/says"
}

read -ra compile <<<"$CC"
read -ra flags < <(pkg-config --cflags --libs fastinst)
try "by hand" "${compile[@]}" -g -O2 -fpatchable-function-entry=5 -o "$dir/count" "$dir/examples/count.c" "${flags[@]}"
works "$dir/count"
try "without the flag" "${compile[@]}" -O2 -o "$dir/none" "$dir/examples/count.c" "${flags[@]}"
if "$dir/none" >/dev/null; then
	wrong "without sites it counts"
fi
[ "$(pkg-config --modversion fastinst)" = "$("$fastinst" --version | sed 's/.* \(.*\))/\1/')" ] || wrong "another version"
[ -e "$(pkg-config --variable=includedir fastinst)/fastinst/compat/sys/sdt.h" ] || wrong "no sys/sdt.h where docs/markers.md says"

if command -v cmake >/dev/null; then
	try "cmake" cmake -S "$dir/examples/cmake" -B "$dir/cmake"
	try "cmake --build" cmake --build "$dir/cmake"
	works "$dir/cmake/count"
else
	echo "no cmake"
fi
if command -v meson >/dev/null && command -v ninja >/dev/null; then
	try "meson" meson setup "$dir/meson" "$dir/examples/meson"
	try "ninja" ninja -C "$dir/meson"
	works "$dir/meson/count"
else
	echo "no meson, or no ninja"
fi

exit $failed
