#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A plugin whose functions were probe functions is unloaded when the grace period is over: no thread is in them, or on its way
# there. Unloaded without one, it is.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst.so
needs_patchable

cat >"$dir/plugin.c" <<'END'
#include <fastinst.h>

extern _Atomic unsigned long grace_calls;
void on_call(uint32_t id, void *site, const struct fi_regs *regs, void *data);

/* Long, so that threads are in it. */
void on_call(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	(void)id;
	(void)site;
	(void)regs;
	(void)data;
	grace_calls++;
	for (volatile int i = 0; i < 500; i++)
		;
}
END
# shellcheck disable=SC2086 # CC may carry options
$CC -O1 -shared -fPIC -I"$top/probes/include" -o "$dir/plugin.so" "$dir/plugin.c"

# build NAME FLAG... - the program
build()
{
	# shellcheck disable=SC2086
	$CC -O1 -rdynamic -fpatchable-function-entry=5 "${@:2}" -I"$top/probes/include" -o "$dir/$1" "$top/probes/core/tests/grace.c" \
		-pthread -ldl -L "$build/.libs" -lfastinst -lpatchcore "-Wl,-rpath,$build/.libs"
}

build grace
turns=$(awk -v scale="${TMAX_STRESS_SCALE:-1}" 'BEGIN { printf "%d", 400 * scale + 1 }')
status=0
timeout 120 "$dir/grace" "$dir/plugin.so" "$turns" || status=$?
[ $status != 77 ] || skip "probes cannot be used here"
[ $status = 0 ] || wrong "with a grace period: exit status $status"

build graceless -DGRACELESS
status=0
(ulimit -c 0; timeout 120 "$dir/graceless" "$dir/plugin.so" 100000) >/dev/null 2>&1 || status=$?
[ $status -gt 128 ] || wrong "without one it lives: exit status $status"

exit $failed
