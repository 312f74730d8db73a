#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The proof of a config: a program that knows only the installed library toggles
# straddlers at the waits of its level, and tears no more than it allows; then at
# a tenth of them. TMAX_STRESS_SCALE lengthens it: 200 makes 20 million toggles.
# Beyond 1 a calibration writes the config. A brief one mostly tells too little for
# that, so up to 1 the config has waits that no machine is known to tear at.
if [ "${SANITIZERS:-none}" != none ]; then
	echo "a library with sanitizers serves no ordinary program"
	exit 77
fi
# shellcheck source=calibrate/tests/common.sh
. "${srcdir:-.}/calibrate/tests/common.sh"

toggles=$(awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 100000 * s }')

# Not the libraries that need this one: to install them libtool links them anew in the build folder, where
# other tests use them.
make -s install-data install-libLTLIBRARIES install-binPROGRAMS lib_LTLIBRARIES=libpatchcore.la \
	bin_PROGRAMS=tmax DESTDIR="$dir/root" >"$dir/install.log" 2>&1 || {
	cat "$dir/install.log"
	exit 1
}
pc=$(find "$dir/root" -name patchcore.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$dir/root"
lib=$(find "$dir/root" -name libpatchcore.so.0)
LD_LIBRARY_PATH=${lib%/*}
export LD_LIBRARY_PATH
# shellcheck disable=SC2046 # lists of options
${CC:-cc} -O2 -pthread -o "$dir/proof" "$top/patchcore/tests/proof.c" \
	$(pkg-config --cflags --libs patchcore) -lm

tmax=$(find "$dir/root" -name tmax -type f -perm -u+x)
export PATCHCORE_MACHINE_CONF=$dir/machine.conf

echo "membarrier, no config needed:"
status=0
"$dir/proof" "$((toggles / 10 + 8))" membarrier || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit 1

calibrated()
{
	local status=0

	"$tmax" calibrate --quick --budget 30s --quiet --output "$PATCHCORE_MACHINE_CONF" \
		>"$dir/calibrate.log" 2>&1 || status=$?
	sed -n '/^Verdict/p; /^  below/p' "$dir/calibrate.log"
	if [ "$status" != 0 ]; then
		cat "$dir/calibrate.log"
		echo "no config to prove: calibrate exited with $status"
		[ "$status" = 1 ] || [ "$status" = 2 ] || exit 1
		exit 77
	fi
}

if ! can_wait; then
	echo "no TSC to wait by: no config applies here"
	exit 77
elif awk -v s="${TMAX_STRESS_SCALE:-1}" 'BEGIN { exit s <= 1 }'; then
	calibrated
else
	conf_of_here | sed -E 's/^(first|second) = .*/\1 = 20000/; s/_p = .*/_p = 1e-4/' \
		>"$PATCHCORE_MACHINE_CONF"
fi
"$dir/proof" "$toggles" wait || exit 1

awk '/^\[/ { level = $1 == "[level" }
	level && /^(first|second) = / { $3 = int($3 / 10) } { print }' \
	"$PATCHCORE_MACHINE_CONF" >"$dir/tenth.conf"
echo "a tenth of the waits (for the record; on a short run they may not tear):"
PATCHCORE_MACHINE_CONF=$dir/tenth.conf "$dir/proof" "$toggles" wait || true
