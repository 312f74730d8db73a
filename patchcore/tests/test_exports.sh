#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the shared library exports is what its public headers declare, and what the Debian packages list; it needs libc
# and inih only.
set -euo pipefail

include=${srcdir:?make check sets it}/patchcore/include
lib=.libs/libpatchcore.so
if [ ! -e "$lib" ]; then
	echo "built without a shared library"
	exit 77
fi

# shellcheck disable=SC2086 # CC may carry options
declared=$(for h in "$include"/patchcore/*.h; do
	# check.h is another library's.
	case $h in */check.h) ;; *) $CC -E -P -I"$include" "$h" ;; esac
done | grep -oE '\bpc_[a-z0-9_]+[[:space:]]*\(' | tr -d ' \t(' | sort -u)
exported=$($NM -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
if [ -z "$declared" ] || [ "$declared" != "$exported" ]; then
	echo "declared in the header (<) against exported by the library (>):"
	diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported")
	exit 1
fi

# The tarball has no debian/.
for pair in patchcore/patchcore.map:libpatchcore0 probes/fastinst.map:libfastinst0; do
	symbols=$srcdir/debian/${pair#*:}.symbols
	[ ! -e "$symbols" ] || diff <(sed -nE 's/^\t(\w+);$/\1/p' "$srcdir/${pair%:*}" | sort) \
		<(sed -nE 's/^ ((pc|fi|__sanitizer)_\w+)@[A-Z_]+_[0-9]+ .*/\1/p' "$symbols" | grep -v pc_guard | sort)
done

# Sanitizers bring libraries of their own.
[ "$SANITIZERS" = none ] || exit 0
strangers=$($OBJDUMP -p "$lib" | awk '$1 == "NEEDED" { print $2 }' |
	grep -vE '^(libc|libm|libinih|ld-linux-x86-64)\.so\.' || true)
if [ -n "$strangers" ]; then
	echo "the library needs more than libc and inih: $strangers"
	exit 1
fi
