#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What reads files and counts, under valgrind: no invalid access, nothing lost. What patches code
# cannot run there: valgrind runs a translation, and knows nothing of the code that others change.
set -euo pipefail

if [ "${SANITIZERS:-none}" != none ]; then
	echo "sanitizers and valgrind do not go together"
	exit 77
fi
if [ ! -x patchcore/machine/tests/test_conf ]; then
	echo "built without cmocka"
	exit 77
fi
if ! command -v valgrind >/dev/null; then
	echo "valgrind is not installed"
	exit 77
fi
# glibc has memmove and memcpy with a checked length at one address; valgrind takes it for memcpy.
supp=$(mktemp)
trap 'rm -f "$supp"' EXIT
cat >"$supp" <<'SUPP'
{
   memmove
   Memcheck:Overlap
   fun:__memcpy_chk
   fun:memmove
}
SUPP
for test in test_conf test_conf_file test_conf_places test_conf_rules test_identity_fields test_sync; do
	echo "$test"
	./libtool --mode=execute valgrind -q --error-exitcode=99 --leak-check=full \
		--suppressions="$supp" \
		"patchcore/machine/tests/$test" >valgrind.log 2>&1 || {
		cat valgrind.log
		exit 1
	}
	if grep -q 'definitely lost' valgrind.log; then
		cat valgrind.log
		exit 1
	fi
done
