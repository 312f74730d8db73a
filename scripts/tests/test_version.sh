#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The version stands in configure.ac, and what cannot take it from there says the same: the public header, NEWS, the
# Debian packages. Meson takes it from there.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
failed=0

# says PLACE VERSION
says()
{
	[ "$2" = "$version" ] && return
	echo "$1 says version '$2', configure.ac '$version'"
	failed=1
}

# the same words as in meson.build
version=$(sed -n 's/^AC_INIT(\[tmax\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || {
	echo "configure.ac has no version"
	exit 1
}
says "the package" "${PACKAGE_VERSION:?make check sets it}"
says patchcore.h "$(sed -n 's/^#define PC_VERSION_[A-Z]* \([0-9]*\)$/\1/p' \
	"$top/patchcore/include/patchcore/patchcore.h" | paste -sd.)"
says NEWS "$(sed -n 's/^tmax \([0-9.]*\) .*/\1/p' "$top/NEWS" | head -n 1)"
says patchcore.wrap "$(sed -n 's/^directory = tmax-//p' "$top/patchcore/examples/meson/subprojects/patchcore.wrap")"
grep -q "version: run_command('sed', '-n', 's/^AC_INIT" "$top/meson.build" || says meson.build "of its own"
# The tarball has no debian/.
if [ -e "$top/debian/changelog" ]; then
	says debian/changelog "$(sed -n '1s/^tmax (\(.*\)-[0-9]*).*/\1/p' "$top/debian/changelog")"
fi
for program in tmax fastinst; do
	says "$program --version" "$("./$program" --version | grep -oE '[0-9]+(\.[0-9]+)+')"
done
exit $failed
