#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# usage: test_abi.sh [renew]
#
# The libraries have the interface that their dumps (patchcore/patchcore.abi, probes/fastinst.abi) say: functions with
# symbol versions, types, sizes, offsets. "make abi" renews the dumps after a change that is meant. Damaged dumps show
# that a difference is seen. What defines exported functions is compiled here, with the debug information that a build
# may lack.
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

command -v abidiff >/dev/null || {
	echo "skipped: abidiff is not installed (Debian: abigail-tools)"
	exit 77
}

# build MAP TREE - $dir/TREE.so: the sources that define what the map exports
build()
{
	local names sources

	names=$(sed -nE 's/^\t(\w+);$/\1/p' "$top/$1" | paste -sd'|')
	mapfile -t sources < <(cd "$top" && grep -rlE --include='*.c' --exclude-dir={tests,examples,real} \
		"^[a-z].*\b($names)\(|^\w+\(($names|\w+), |__sanitizer_cov_" "$2")
	(
		cd "$top"
		# shellcheck disable=SC2086 # CC may carry options
		${CC:-cc} -std=gnu11 -g -O1 -fPIC '-Dvisibility(kind)=unused' -shared -w -D_GNU_SOURCE= -DSYSCONFDIR='""' -DLOCALSTATEDIR='""' \
			-DPKGDATADIR='""' -DPACKAGE_STRING='""' -I. -Ipatchcore/include -Iprobes/include \
			-Wl,--version-script="$1" -Wl,-soname="lib$2.so.0" -o "$dir/$2.so" "${sources[@]}"
	)
}

# compare DUMP LIBRARY HEADERS - what differs, or nothing
compare()
{
	local status=0

	abidiff --headers-dir1 "$3" --headers-dir2 "$3" --drop-private-types --no-show-locs "$1" "$2" 2>&1 || status=$?
	((status == 0 || status & 4)) || echo "abidiff ends with $status"
}

# check DUMP LIBRARY HEADERS TYPE - an interface that has a function fewer, or a type of another size, is seen
check()
{
	local dump=$top/$1 library=$2 headers=$top/$3 type=$4

	if [ "$renew" ]; then
		abidw --headers-dir "$headers" --no-corpus-path --no-comp-dir-path --no-elf-needed --drop-private-types \
			--exported-interfaces-only "$library" |
			sed '1a <!-- SPDX-License-Identifier: MIT -->' >"$dump"
		return
	fi
	compare "$dump" "$library" "$headers" >"$dir/differs"
	if [ -s "$dir/differs" ]; then
		echo "the library is not what $1 says; if that is meant: make abi"
		cat "$dir/differs"
		failed=1
	fi
	sed '0,/elf-symbol name=/{/elf-symbol name=/d}' "$dump" >"$dir/fewer.abi"
	compare "$dir/fewer.abi" "$library" "$headers" | grep -q '1 Added function' || {
		echo "a function that $1 has not is not seen"
		failed=1
	}
	sed "s/\(name='$type' size-in-bits='\)/\18/" "$dump" >"$dir/size.abi"
	compare "$dir/size.abi" "$library" "$headers" | grep -q 'size changed' || {
		echo "another size of struct $type is not seen"
		failed=1
	}
}

renew=
[ $# = 0 ] || renew=$1
build patchcore/patchcore.map patchcore
build probes/fastinst.map probes
check patchcore/patchcore.abi "$dir/patchcore.so" patchcore/include pc_status
check probes/fastinst.abi "$dir/probes.so" probes/include fi_probe
exit "$failed"
