#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is installed is hardened: addresses drawn at its start, tables of the linker read-only before any
# code runs, stacks and string functions checked. libpatchcore needs no GSL, whose licence (GPL) would
# be that of every program that links it. What is built without all that is seen by the same look.
set -euo pipefail
export LC_ALL=C

# What configure chose.
chosen=${HARDENED:-yes -fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wl,-z,relro -Wl,-z,now}
if [[ $chosen != yes* ]] || [ "${SANITIZERS:-none}" != none ]; then
	echo "configured without hardening: $chosen"
	exit 77
fi
if ! command -v readelf >/dev/null; then
	echo "readelf is not installed (Debian: binutils)"
	exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

wrong()
{
	echo "WRONG: $*"
	failed=1
}

# lacks FILE - what it is not hardened by, word by word
lacks()
{
	readelf -W -h -l -d "$1" >"$dir/elf"
	grep -q 'Type: *DYN' "$dir/elf" || echo pie
	grep -q '^  GNU_RELRO ' "$dir/elf" || echo relro
	grep -qE '\((BIND_NOW|FLAGS_1)\).*(BIND_NOW|NOW)|\(BIND_NOW\)' "$dir/elf" || echo now
	grep -qE '^  GNU_STACK .* RW +0x' "$dir/elf" || echo stack
	! grep -q '(TEXTREL)' "$dir/elf" || echo textrel
}

# calls FILE NAME - does it call libc's function?
calls()
{
	readelf -W --dyn-syms "$1" >"$dir/symbols"
	grep -qE " UND $2(@|\$)" "$dir/symbols"
}

seen=0
for file in tmax fastinst .libs/{tmax,fastinst} .libs/lib{patchcore{,_check,_guard},fastinst{,-agent}}.so; do
	# libtool's script stands for a program that it has still to link.
	if [ ! -e "$file" ] || ! readelf -h "$file" >/dev/null 2>&1; then
		continue
	fi
	seen=$((seen + 1))
	[ -z "$(lacks "$file")" ] || wrong "$file lacks $(lacks "$file" | paste -sd' ')"
	echo "$file"
done
if [ $seen = 0 ]; then
	echo "built without a shared library"
	exit 77
fi

lib=.libs/libpatchcore.so
if [ -e $lib ]; then
	[[ $chosen != *-fstack-protector* ]] || calls $lib __stack_chk_fail || wrong "no stack of $lib is checked"
	readelf -W -d $lib >"$dir/elf"
	if grep -E '\(NEEDED\).*(gsl|cblas|jansson|hwloc|cpuid|sqlite)' "$dir/elf"; then
		wrong "$lib needs what only the program may"
	fi
	grep -q '(NEEDED).*libinih' "$dir/elf" || wrong "$lib: nothing is seen of what it needs"
fi
if [ -e tmax ] && [[ $chosen == *-D_FORTIFY_SOURCE* ]]; then
	calls tmax '__(sn|vsn|f)?printf_chk' || wrong "no string of tmax is checked"
fi

# --- the same eyes on what is built without ---

echo '#include <stdio.h>
int main(int n, char **v) { char t[8]; return sprintf(t, "%s", v[n - 1]); }' >"$dir/soft.c"
# shellcheck disable=SC2086 # CC may carry options
${CC:-cc} -O0 -no-pie -fno-stack-protector -U_FORTIFY_SOURCE -Wl,-z,norelro -Wl,-z,lazy -Wl,-z,execstack \
	-o "$dir/soft" "$dir/soft.c" 2>"$dir/errors" || wrong "$(cat "$dir/errors")"
[ "$(lacks "$dir/soft" | paste -sd' ')" = "pie relro now stack" ] ||
	wrong "seen of a program without hardening: $(lacks "$dir/soft" | paste -sd' ')"
calls "$dir/soft" __stack_chk_fail && wrong "a check is seen where there is none"
calls "$dir/soft" sprintf || wrong "a call is not seen"
exit $failed
