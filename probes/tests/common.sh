# SPDX-License-Identifier: MIT
# What shell tests of probes begin with, from the build folder: . "${srcdir:-.}/probes/tests/common.sh"
#   top       the source tree, as an absolute path
#   build     the build folder
#   fastinst  the program
#   dir       a folder that is gone at the end; control sockets are in it
#   failed    1 after wrong(): for exit at the end
# shellcheck shell=bash disable=SC2034
set -euo pipefail
export LC_ALL=C

top=$(cd "${srcdir:-.}" && pwd)
build=$PWD
fastinst=$(realpath "${FASTINST:-./fastinst}")
dir=$(mktemp -d)
# 7: a pipe on which programs of the test wait.
trap 'exec 7>&- 2>/dev/null || true; rm -rf "$dir"' EXIT
export XDG_RUNTIME_DIR=$dir
unset "${!FASTINST_@}" LD_PRELOAD PATCHCORE_MACHINE_CONF
CC=${CC:-gcc}
failed=0

wrong()
{
	echo "WRONG: $*"
	failed=1
}

skip()
{
	echo "$*"
	exit 77
}

# needs_shared LIBRARY - libfastinst-agent.so, say: it is put into programs that the test compiles
needs_shared()
{
	[ "${SANITIZERS:-none}" = none ] || skip "programs of this test have no runtime of the sanitizer, which the library needs"
	[ -e "$build/.libs/$1" ] || skip "built without shared libraries"
}

# valid FILE - each line is what the schema says
valid()
{
	local status=0

	PYTHONDONTWRITEBYTECODE=1 python3 "$top/results/tests/validate.py" \
		"$top/results/schema/fastinst-1.json" "$1" >"$dir/validated" 2>&1 || status=$?
	case $status in
	0) ;;
	77 | 127) echo "not validated, $(tail -n 1 "$dir/validated")" ;;
	*) wrong "$(cat "$dir/validated")" ;;
	esac
}

needs_patchable()
{
	echo 'int f(void); int f(void) { return 1; }' >"$dir/f.c"
	# shellcheck disable=SC2086 # CC may carry options
	$CC -fpatchable-function-entry=5 -c -o "$dir/f.o" "$dir/f.c" 2>/dev/null ||
		skip "$CC has no -fpatchable-function-entry"
}
