#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A program that is linked statically with the library, without Zydis: entries of its functions are counted exactly
# in all its threads, markers, branches and calls do what they do elsewhere, and lines of the source are told of as not to be had.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

[ "${SANITIZERS:-none}" = none ] || skip "sanitizers cannot be linked statically"
[ -e "$build/.libs/libfastinst_internal.a" ] || skip "there is no archive of the library"
needs_patchable

cat >"$dir/static.c" <<'END'
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include <fastinst.h>
#include <fastinst/args.h>
#include <fastinst/branch.h>
#include <fastinst/marker.h>

#define CALLS 10000

__attribute__((noinline)) int work(int x)
{
	FI_MARKER(shop, sold, x);
	return fi_branch(net, trace) ? x + 1000 : x + 1;
}

static int add_one(int x) { return x + 1; }
static int add_two(int x) { return x + 2; }
FI_CALL_DEFINE(add, add_one);

static _Atomic long sold;

static void on_sold(uint32_t id, void *site, const struct fi_regs *regs, void *data)
{
	int64_t value;

	(void)site;
	(void)data;
	if (!fi_marker_arg(id, regs, 0, &value))
		sold += value;
}

static void *run(void *data)
{
	for (int i = 0; i < CALLS; i++)
		work(3);
	return data;
}

#define MUST(x) do { if (!(x)) { printf("not: %s\n", #x); return 1; } } while (0)

int main(void)
{
	pthread_t threads[4];
	uint32_t entry, marker;
	const char *file;
	unsigned line;
	int ret = fi_init();

	if (ret == -ENOTSUP || ret == -ENOSYS || ret == -EACCES)
		return 77;
	MUST(!ret);
	MUST(fi_find("work", &entry, 1) == 1 && fi_find("shop.sold", &marker, 1) == 1);
	MUST(!fi_activate(entry, NULL) && !fi_activate(marker, on_sold));
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	MUST(fi_count(entry) == 4 * CALLS && fi_count(marker) == 4 * CALLS && sold == 12 * CALLS);
	MUST(!fi_deactivate(entry) && !fi_deactivate(marker) && !fi_synchronize());
	MUST(work(1) == 2 && fi_branch_on("net.*") == 1 && work(1) == 1001);
	MUST(fi_call(add, 1) == 2 && !fi_call_set(add, add_two) && fi_call(add, 1) == 3);
	MUST(fi_count(entry) == 4 * CALLS);
	MUST(fi_source(entry, &file, &line) == -ENODATA);
	return 0;
}
END
for place in -static -static-pie; do
	# shellcheck disable=SC2086 # CC may carry options
	$CC -g -O2 -w -D_GNU_SOURCE -fpatchable-function-entry=5 $place -I "$top" -I "$top/probes/include" -I "$top/patchcore/include" \
		-o "$dir/static" "$dir/static.c" "$top/probes/tests/no_insn.c" "$build/.libs/libfastinst_internal.a" \
		-liberty "$build/.libs/libpatchcore_internal.a" -linih -lm -pthread 2>"$dir/errors" || skip "it cannot be linked: $(cat "$dir/errors")"
	status=0
	timeout 60 "$dir/static" >"$dir/log" 2>&1 || status=$?
	[ $status != 77 ] || skip "probes cannot be used here"
	[ $status = 0 ] || wrong "$place: status $status, $(cat "$dir/log")"
done

exit $failed
