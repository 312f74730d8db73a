/* SPDX-License-Identifier: MIT */
/*
 * The stack that a probe function runs on.
 *
 * As a rule it is that of the thread, which the program or the C library has made large. Coroutines
 * and goroutines have stacks of a few KiB. So the bounds of the thread's own stack are looked up
 * once, and a thread that is elsewhere, or near the end of it, changes to the stack of its block.
 *
 * Not in a handler on an alternate signal stack: the kernel takes a thread that has left it for one
 * that is done there, and would put the frame of the next signal over this one.
 *
 * In any signal handler, before vectors are saved: no vector, no function of another library.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "patchcore/syscall/sys.h"
#include "probes/core/entry.h"

#define ROOM (UINT64_C(64) << 10) /* that a probe function has at least */
#define MAIN (UINT64_C(64) << 20) /* the kernel keeps more free for the main thread's */

/* Reads /proc/self/maps byte by byte: START-END ... */
struct maps_reader {
	uintptr_t number, start, end;
	unsigned field;
};

/* Has a line ended? */
static bool take_byte(struct maps_reader *reader, char byte)
{
	unsigned digit = byte <= '9' ? (unsigned)(byte - '0') : (unsigned)(byte - 'a' + 10);

	if (byte == '\n')
		return true;
	if (reader->field < 2 && digit < 16) {
		reader->number = reader->number << 4 | digit;
	} else if (reader->field < 2) {
		*(reader->field++ ? &reader->end : &reader->start) = reader->number;
		reader->number = 0;
	}
	return false;
}

/* Lies where the stack will be. */
struct scratch {
	struct maps_reader found;
	struct rlimit limit;
	char buffer[1024];
};

static bool find_mapping(struct scratch *scratch, uintptr_t address)
{
	long fd = sys_call(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC), len;
	struct maps_reader *found = &scratch->found;
	bool is_found = false;

	*found = (struct maps_reader){ 0 };
	while (fd >= 0 && !is_found &&
	       (len = sys_call(SYS_read, fd, scratch->buffer, sizeof(scratch->buffer))) > 0)
		for (long i = 0; i < len && !is_found; i++) {
			if (!take_byte(found, scratch->buffer[i]))
				continue;
			is_found = address - found->start < found->end - found->start;
			if (!is_found)
				*found = (struct maps_reader){ 0 };
		}
	if (fd >= 0)
		sys_call(SYS_close, fd);
	return is_found;
}

/* Of the C library: where the main thread's stack began. */
extern void *__libc_stack_end;

/* Threads of the C library have their control block above their stack. */
static void look_for_room(struct block *block)
{
	bool is_main = sys_call(SYS_gettid) == sys_call(SYS_getpid);
	void *at = is_main ? __libc_stack_end : __builtin_thread_pointer();
	struct scratch *scratch = (struct scratch *)block->stack;
	uintptr_t start, end;

	/* A filter may end the process for what comes: the thread stays where it is. */
	if (sys_call(SYS_prctl, PR_GET_SECCOMP) > 0) {
		block->room_size = UINTPTR_MAX;
		return;
	}
	if (!find_mapping(scratch, (uintptr_t)at))
		return;
	start = scratch->found.start;
	end = is_main ? scratch->found.end : (uintptr_t)at;
	if (is_main && !sys_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, &scratch->limit))
		start = end - (scratch->limit.rlim_cur < MAIN ? scratch->limit.rlim_cur : MAIN);
	block->room = start + ROOM;
	if (end > block->room)
		block->room_size = end - block->room;
}

uintptr_t stack_choose(struct block *block, uintptr_t at)
{
	stack_t alternate;

	if (!block->is_looked_for) {
		block->is_looked_for = true;
		look_for_room(block);
	}
	if (at - block->room < block->room_size || sys_call(SYS_sigaltstack, 0, &alternate) < 0 ||
	    alternate.ss_flags & SS_ONSTACK)
		return at & -(uintptr_t)16;
	/* libc's syscall() reads the argument behind its last one, maybe beyond the page. */
	return (uintptr_t)block->stack + sizeof(block->stack) - 16;
}
