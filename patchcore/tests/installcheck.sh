#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Build and run a program against the installed library, found by pkg-config alone: shared, then static.
set -euo pipefail

if [ "$SANITIZERS" != none ]; then
	echo "installcheck: skipped, a library with sanitizers serves no ordinary program"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/user.c" <<'C'
#include <patchcore/async.h>
#include <patchcore/batch.h>
#include <patchcore/call.h>
#include <patchcore/merge.h>
#include <patchcore/patchcore.h>
#include <patchcore/signals.h>

int main(void)
{
	struct pc_status status;

	return pc_init() == 0 && pc_get_status(&status) == 0 && pc_drain() == 0 ? pc_fini() : 1;
}
C

# Some versions of pkg-config put the sysroot in front of a variable, some do not.
libdir=${PKG_CONFIG_SYSROOT_DIR:-}$(env -u PKG_CONFIG_SYSROOT_DIR "$PKG_CONFIG" --variable=libdir patchcore)
if [ -e "$libdir/libpatchcore.so" ]; then
	flags=$($PKG_CONFIG --cflags --libs patchcore)
	# shellcheck disable=SC2086 # lists of options
	$CC -o "$dir/shared" "$dir/user.c" $flags
	LD_LIBRARY_PATH=$libdir "$dir/shared"
fi
if [ -e "$libdir/libpatchcore.a" ]; then
	flags=$($PKG_CONFIG --cflags --libs --static patchcore)
	# shellcheck disable=SC2086
	$CC -o "$dir/static" "$dir/user.c" ${flags/-lpatchcore/"$libdir/libpatchcore.a"}
	"$dir/static"
fi
