#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The checking library exports what its header declares, and it alone needs the decoder.
set -euo pipefail

header=${srcdir:?make check sets it}/patchcore/include/patchcore/check.h
lib=.libs/libpatchcore_check.so
core=.libs/libpatchcore.so
if [ ! -e "$lib" ]; then
	echo "built without a shared library"
	exit 77
fi

needed()
{
	$OBJDUMP -p "$1" | awk '$1 == "NEEDED" { print $2 }'
}

# shellcheck disable=SC2086 # CC may carry options
declared=$($CC -E -P "$header" | grep -oE '\bpc_[a-z0-9_]+[[:space:]]*\(' | tr -d ' \t(' | sort -u)
exported=$($NM -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
if [ -z "$declared" ] || [ "$declared" != "$exported" ]; then
	echo "declared in the header (<) against exported by the library (>):"
	diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported")
	exit 1
fi
if ! needed "$lib" | grep -q '^libZydis\.so'; then
	echo "the checking library does not say that it needs Zydis"
	exit 1
fi
if needed "$core" | grep -qE '^lib(Zydis|Zycore)\.so'; then
	echo "the core library needs Zydis"
	exit 1
fi

# --- the manual page says what the header says ---

page()
{
	sed 's/\\-/-/g' "${srcdir}/docs/man/pc_check_site.3"
}

members()
{
	sed -n '/^struct pc_check {/,/^};/p' | sed -nE 's/^[[:space:]]+([a-z0-9_]+ [a-z_]+(\[[0-9]+\])?);.*/\1/p'
}

failed=0
same()
{
	if [ -z "$2" ] || [ "$2" != "$3" ]; then
		echo "$1: the header (<), the manual page (>):"
		diff <(printf '%s\n' "$2") <(printf '%s\n' "$3")
		failed=1
	fi
}

same members "$(members <"$header")" "$(page | members)"
same errors "$(grep -oE ' -E[A-Z0-9]+' "$header" | sort -u)" \
	"$(page | sed -n 's/^\.B \(-E[A-Z0-9]*\)$/ \1/p' | sort -u)"
exit "$failed"
