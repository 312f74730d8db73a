#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Users of the library other than cc with pkg-config: C++ by its headers, CMake by its package, Meson by
# pkg-config. Each is tried where its tool is here, against a copy laid out as it is installed.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
build=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tried=0

fail()
{
	echo "FAILED: $1"
	tail -n 30 "$dir/log" 2>/dev/null || true
	exit 1
}

# try WHAT COMMAND... - with its output kept
try()
{
	local what=$1

	shift
	"$@" >"$dir/log" 2>&1 </dev/null || fail "$what"
}

if [ "${SANITIZERS:-none}" != none ] || [ ! -e .libs/libpatchcore.so ]; then
	echo "no shared library without sanitizers"
	exit 77
fi
prefix=$dir/usr
mkdir -p "$prefix"/{lib/pkgconfig,lib/cmake/patchcore,include}
cp -a .libs/libpatchcore.so* "$prefix/lib"
cp -r "$top/patchcore/include/patchcore" "$prefix/include"
sed "s,^prefix=.*,prefix=$prefix,; s,^libdir=.*,libdir=$prefix/lib," patchcore/patchcore.pc \
	>"$prefix/lib/pkgconfig/patchcore.pc"
cp "$top/patchcore/bindings/patchcoreConfig.cmake" patchcore/bindings/patchcoreConfigVersion.cmake \
	"$prefix/lib/cmake/patchcore"
mkdir "$dir/examples"
cp -r "$top"/patchcore/examples/{patch.c,example.h,cmake,meson} "$dir/examples"
chmod -R u+w "$dir"
unset MAKEFLAGS MFLAGS MAKELEVEL CFLAGS CXXFLAGS LDFLAGS

# works PROGRAM - it patches, or says why this machine lets it not (77)
works()
{
	local status=0

	"$1" >"$dir/log" 2>&1 || status=$?
	[ $status = 0 ] || [ $status = 77 ] || fail "exit status $status of $1"
}

# --- C++ ---

for cxx in g++ clang++; do
	command -v $cxx >/dev/null || continue
	tried=$((tried + 1))
	for header in "$top"/patchcore/include/patchcore/*.h; do
		printf '#include <patchcore/%s>\n' "${header##*/}" >"$dir/one.cc"
		try "$cxx does not take $header" $cxx -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
			-I "$prefix/include" "$dir/one.cc"
	done
	cat >"$dir/user.cc" <<'CC'
#include <patchcore/batch.h>
#include <patchcore/call.h>
#include <patchcore/patchcore.h>

int main()
{
	pc_status status{};

	return pc_init() == 0 && pc_get_status(&status) == 0 && pc_set_policy(PC_POLICY_AUTO) <= 0 ? pc_fini() : 1;
}
CC
	try "$cxx does not link" $cxx -std=c++17 -Wall -Wextra -Werror -I "$prefix/include" -o "$dir/user" \
		"$dir/user.cc" -L"$prefix/lib" -lpatchcore "-Wl,-rpath,$prefix/lib"
	works "$dir/user"
	echo "$cxx"
done

# --- CMake ---

if command -v cmake >/dev/null; then
	tried=$((tried + 1))
	try "cmake finds no patchcore" cmake -S "$dir/examples/cmake" -B "$dir/cmake" "-DCMAKE_PREFIX_PATH=$prefix"
	try "cmake builds nothing" cmake --build "$dir/cmake"
	works "$dir/cmake/patch"
	# What is asked for and is not there is not found: a part, another version.
	for wrong in 's/patchcore 0.1/patchcore 0.1 COMPONENTS check/' 's/patchcore 0.1/patchcore 7.1/'; do
		mkdir -p "$dir/wrong"
		sed "$wrong" "$dir/examples/cmake/CMakeLists.txt" >"$dir/wrong/CMakeLists.txt"
		rm -rf "$dir/wrong/build"
		! cmake -S "$dir/wrong" -B "$dir/wrong/build" "-DCMAKE_PREFIX_PATH=$prefix" \
			>"$dir/log" 2>&1 || fail "cmake: $wrong was found"
	done
	echo "cmake"
fi

# --- Meson ---

if command -v meson >/dev/null && command -v ninja >/dev/null; then
	tried=$((tried + 1))
	export PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
	try "meson finds no patchcore" meson setup "$dir/meson" "$dir/examples/meson"
	try "meson builds nothing" ninja -C "$dir/meson"
	works "$dir/meson/patch"
	echo "meson"
fi

cd "$build"
if [ $tried = 0 ]; then
	echo "neither a C++ compiler nor cmake nor meson is here"
	exit 77
fi
