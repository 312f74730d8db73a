#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# configure --enable-library-only wants inih and no other package; what it builds and installs is the
# library, its guard, headers and pages; and a program that knows nothing but pkg-config links with it.
set -euo pipefail

top=$(cd "${srcdir:?make check sets it}" && pwd)
if [ -e "$top/config.status" ]; then
	echo "the source folder is a build folder itself, and serves no other"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR TMAX_DATADIR

fail()
{
	echo "$1"
	exit 1
}

# All other packages are hidden: pkg-config does not know them, their headers cannot be included.
real=$(command -v pkg-config) || fail "there is no pkg-config"
cat >"$dir/pkg-config" <<SH
#!/bin/sh
for word; do
	case \$word in
	-* | [0-9]* | inih | patchcore | patchcore.pc) ;;
	*) echo "\$word" >>"$dir/asked"; exit 1 ;;
	esac
done
exec "$real" "\$@"
SH
chmod +x "$dir/pkg-config"
mkdir -p "$dir/hidden/gsl" "$dir/hidden/libcpuid" "$dir/hidden/Zydis" "$dir/build"
for header in cmocka.h gsl/gsl_cdf.h hwloc.h jansson.h libcpuid/libcpuid.h Zydis/Zydis.h; do
	echo "#error $header is hidden" >"$dir/hidden/$header"
done

cd "$dir/build"
{
	"$top/configure" --enable-library-only --prefix="$dir/usr" CC="${CC:-cc}" CFLAGS=-O0 \
		CPPFLAGS="-I$dir/hidden" PKG_CONFIG="$dir/pkg-config" &&
		make -j2 install
} >"$dir/log" 2>&1 || {
	tail -n 40 "$dir/log"
	fail "the library alone was not built and installed"
}
[ ! -e "$dir/asked" ] || fail "pkg-config was asked for $(sort -u "$dir/asked" | paste -sd' ')"

# --- what is installed: what the library has, and no more ---

(cd "$dir/usr" && find . ! -type d ! -path './share/man/*' | sed -E 's/\.so(\.[0-9]+)+$/.so/' |
	LC_ALL=C sort -u) >"$dir/is"
{
	printf './lib/%s\n' libpatchcore.{a,la,so} libpatchcore_guard.{a,la,so} pkgconfig/patchcore.pc
	cd "$top/patchcore"
	printf './%s\n' include/patchcore/*.h
	cd examples
	find . -type f ! -name local.mk | sed 's,^\.,./share/doc/tmax/examples,'
	echo ./share/tmax/kinds.tsv
	printf './lib/cmake/patchcore/patchcoreConfig%s.cmake\n' '' Version
} | grep -v '/check\.[ch]$' | LC_ALL=C sort >"$dir/expected"
diff "$dir/is" "$dir/expected" || fail "installed (<) is not what the library has (>)"
(cd "$dir/usr/share/man" && find . ! -type d | sed 's,.*/,,' | LC_ALL=C sort) >"$dir/is"
(cd "$top/docs/man" && printf '%s\n' ./*.[1-9] | sed 's,^\./,,') | grep -vE '^(tmax.*|mdl\.5|fastinst.*|fi_.*|libfastinst\.3|pc_check_site\.3)$' |
	LC_ALL=C sort >"$dir/expected"
diff "$dir/is" "$dir/expected" || fail "installed pages (<) are not those of the library (>)"

# --- a program that uses it ---

make installcheck >"$dir/log" 2>&1 || {
	tail -n 20 "$dir/log"
	fail "a program could not use the library that was installed"
}
