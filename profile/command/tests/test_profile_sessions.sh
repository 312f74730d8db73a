#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A process is profiled twice. What it calls between the first report and the moment in which nothing is probed
# any more is in neither profile. Pages that could not be closed are reported, and the next session closes
# them. The program puts functions of its own into tables of calls, the agent's and libfastinst's, to be asked at these
# moments.
# shellcheck source=probes/tests/common.sh
. "${srcdir:-.}/probes/tests/common.sh"

needs_shared libfastinst-profile.so
needs_patchable
cat >"$dir/runs.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N __attribute__((noinline))

static volatile unsigned long counted, late_ones;

N static void seldom(void)
{
	counted = counted + 1;
}

N static void early(void)
{
	seldom();
	counted = counted + 1;
}

N static void late(void)
{
	for (int i = 0; i < 8; i++)
		seldom();
	late_ones = late_ones + 1;
}

/* The first session is over, and its probes are on. */
static FILE *open_report(int fd, const char *mode)
{
	if (!late_ones)
		late();
	return fdopen(fd, mode);
}

/* The first, as where a membarrier finds no memory: the pages are still open. */
static int close_pages(void *addr, size_t len)
{
	static int failed;
	void *library = dlopen("libpatchcore.so.0", RTLD_NOW | RTLD_NOLOAD);
	int (*close)(void *, size_t) = dlsym(library, "pc_text_close");

	return FAILS && !failed++ ? -ENOMEM : close(addr, len);
}

static void *dynamic(const struct link_map *map, long tag)
{
	const ElfW(Dyn) *d = map->l_ld;

	while (d->d_tag && d->d_tag != tag)
		d++;
	return (void *)d->d_un.d_ptr;
}

static int bind_table(const struct link_map *map, long table, long size, const char *name, void *to)
{
	const ElfW(Rela) *rela = dynamic(map, table);
	const ElfW(Sym) *symbols = dynamic(map, DT_SYMTAB);
	const char *names = dynamic(map, DT_STRTAB);
	int n = 0;

	for (size_t i = 0; i < (size_t)dynamic(map, size) / sizeof(*rela); i++) {
		char *slot = (char *)map->l_addr + rela[i].r_offset;

		if (strcmp(names + symbols[ELF64_R_SYM(rela[i].r_info)].st_name, name))
			continue;
		mprotect(slot - (size_t)slot % 4096, 4096, PROT_READ | PROT_WRITE);
		*(void **)slot = to;
		n++;
	}
	return n;
}

static int bind_calls(const char *library, const char *name, void *to)
{
	const struct link_map *map = _r_debug.r_map;

	while (map && !strstr(map->l_name, library))
		map = map->l_next;
	return map && bind_table(map, DT_JMPREL, DT_PLTRELSZ, name, to) +
			      bind_table(map, DT_RELA, DT_RELASZ, name, to);
}

/* Until it has both. */
static int bind_agent(void)
{
	return bind_calls("libfastinst.so", "pc_text_close", close_pages) &&
	       bind_calls("libfastinst-profile.so", "fdopen", open_report);
}

int main(void)
{
	int bound = 0;
	char byte;

	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 3000 && access(GO_ON, F_OK) == 0; i++) {
		early();
		/* Again and again: the loader, and the agent itself, bind its calls as it is loaded. */
		bound |= bind_agent();
		usleep(20000);
	}
	return !bound || !late_ones || read(0, &byte, 1) > 0;
}
C

# start FAILS - waits until descriptor 7 is closed
start()
{
	rm -f "$dir/in"
	: >"$dir/says"
	: >"$dir/go_on"
	mkfifo "$dir/in"
	# shellcheck disable=SC2086 # CC may carry options
	$CC -O1 -fpatchable-function-entry=5 -rdynamic "-DFAILS=$1" "-DGO_ON=\"$dir/go_on\"" -o "$dir/runs" "$dir/runs.c" -ldl
	"$dir/runs" <"$dir/in" >"$dir/says" 2>"$dir/errors" &
	pid=$!
	exec 7>"$dir/in"
	for _ in $(seq 3000); do
		[ ! -s "$dir/says" ] || return 0
		sleep 0.01
	done
	wrong "it does not start"
}

finish()
{
	rm -f "$dir/go_on"
	exec 7>&-
	wait "$pid" || wrong "exit status $?: $(cat "$dir/errors")"
}

# profile NAME - its exit status
profile()
{
	local status=0

	timeout 60 "$fastinst" profile --pid "$pid" --for 1 --samples 1000 --format json --output "$dir/$1" 2>"$dir/log" 7>&- || status=$?
	! grep -q 'cannot attach.*ptrace' "$dir/log" || skip "ptrace is not allowed here"
	return $status
}

pages()
{
	awk '$6 ~ /runs$/ { print $2 }' "/proc/$pid/maps" | sort -u
}

# callers PROFILE - of seldom(), with their calls
callers()
{
	python3 - "$dir/$1" <<'PY'
import json, sys
profile = json.load(open(sys.argv[1]))
for stack in profile["stacks"]:
    names = [profile["functions"][frame]["name"] for frame in stack["frames"]]
    if names[-1] == "seldom":
        print(*names, round(stack["calls"], 1))
PY
}

start 0
profile first || wrong "the first: $(cat "$dir/log")"
profile second || wrong "the second: $(cat "$dir/log")"
finish
callers second >"$dir/callers"
grep -q '^early seldom' "$dir/callers" || wrong "early() is not seen: $(cat "$dir/callers")"
! grep -q '^late' "$dir/callers" || wrong "the second has calls of the first: $(cat "$dir/callers")"

start 1
pages >"$dir/before"
! profile first || wrong "nothing is said of pages that stay open"
grep -q 'the process has no memory left' "$dir/log" || wrong "it says $(cat "$dir/log")"
profile second || wrong "the next: $(cat "$dir/log")"
pages >"$dir/after"
cmp "$dir/before" "$dir/after" || wrong "pages stay as they were in the first: $(cat "$dir/after")"
finish
exit $failed
