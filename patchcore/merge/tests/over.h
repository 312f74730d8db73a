/* SPDX-License-Identifier: MIT */
/*
 * Three instructions that one takes the place of, and a thread that stands inside of them. For
 * tests in a child, which include cmocka.h first.
 */
#ifndef PATCHCORE_MERGE_TESTS_OVER_H
#define PATCHCORE_MERGE_TESTS_OVER_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "patchcore/merge.h"
#include "patchcore/tests/child.h"
#include "patchcore/tests/code.h"
#include "patchcore/tests/stand.h"
#include "patchcore/tests/start.h"

#define LEN 5u

/* Three that add to al, of which the last byte of the last one is not replaced, and ret. */
#define GOT_OLD 0x51u
#define STARTS	0x15u /* at 0, 2 and 4 */

/* As one mov eax. */
#define GOT_NEW 0xebeb40ebu
#define GOT_BAD 0xbadbadu

/*
 * A thread that starts in the middle of the mov lands on a pad:
 *   at 2: rex jmp -0x15; at 4, with the byte behind: jmp +0x40.
 */
static const uint8_t adds[LEN + 1] = { 0x04, 0x01, 0x04, 0x10, 0x04, 0x40 };
static const uint8_t mov[LEN] = { 0xb8, 0xeb, 0x40, 0xeb, 0xeb };

/* The three, ret, and the pads. */
static inline void over_put(uint8_t *at)
{
	memcpy(at, adds, sizeof(adds));
	at[sizeof(adds)] = 0xc3;
	code_put(at + 5 - 0x15, GOT_BAD);
	code_put(at + 6 + 0x40, GOT_BAD);
}

static inline int over_at(uint8_t *at, const uint8_t *bytes)
{
	return pc_patch_over(at, bytes, LEN, STARTS, 1, PC_CHECK_THREADS);
}

/* --- One site, with xor eax, eax in front ----------------------------------------------------- */

static uint8_t *site;

static inline void over_put_site(uint8_t *at)
{
	static const uint8_t clear[] = { 0x31, 0xc0 };

	site = at;
	memcpy(site - sizeof(clear), clear, sizeof(clear));
	over_put(site);
}

/* So many bytes before the end of a page. */
static inline uint8_t *over_place(unsigned split)
{
	return code_map(2, RWX) + CODE_PAGE - split;
}

static inline uint32_t run_site(void)
{
	return code_run(site - 2);
}

static inline bool site_is(const uint8_t *code)
{
	return memcmp(site, code, LEN) == 0;
}

/* --- A thread that comes to it by a system call ----------------------------------------------- */

/* syscall; two additions */
static const uint8_t over_calls[LEN] = { 0x0f, 0x05, 0x04, 0x10, 0x04 };

/* An opcode and four bytes each; the last one jumps to the site. */
static inline void over_put_call(uint8_t *at, const uint8_t *opcodes, const int32_t *values,
				 const uint8_t *to)
{
	for (; *opcodes; opcodes++, values++, at += 5) {
		int32_t value = *opcodes == 0xe9 ? (int32_t)(to - (at + 5)) : *values;

		*at = *opcodes;
		memcpy(at + 1, &value, sizeof(value));
	}
}

/* The call sends the calling thread SIGUSR1: when the handler runs, the thread is inside. */
static inline void over_put_kill(uint8_t *at, const uint8_t *to)
{
	/* edi, esi, edx and eax */
	static const uint8_t kill[] = { 0xbf, 0xbe, 0xba, 0xb8, 0xe9, 0 };
	const int32_t thread[] = { getpid(), (int32_t)syscall(SYS_gettid), SIGUSR1, SYS_tgkill, 0 };

	over_put_call(at, kill, thread, to);
}

/* --- A thread that stands inside -------------------------------------------------------------- */

static atomic_bool stop;
static sem_t ready;
static _Atomic(unsigned) handled;
static atomic_bool leave;
static uint32_t got_last; /* by the thread that stood */

static inline void over_begin(void)
{
	if (CHILD_TSAN)
		child_skip("the thread sanitizer delivers signals when it likes");
	MUST(sem_init(&ready, 0, 0) == 0);
	start_by_membarrier();
}

/* Takes longer than a change waits before it looks at other sites. */
static inline void note_signal(int signal)
{
	(void)signal;
	usleep(30000);
	handled++;
}

static inline void stay_in_handler(int signal)
{
	(void)signal;
	while (!leave)
		usleep(1000);
}

/* The one run in which it is made to stand, and those behind. */
static inline void *run_until_other(void *start)
{
	stander = (pid_t)syscall(SYS_gettid);
	sem_post(&ready);
	do
		got_last = code_run(start);
	while (got_last == GOT_OLD && !stop);
	return start;
}

/* The thread runs what leads to the site, and stands `at` bytes behind its beginning. */
static inline pid_t over_stand(pthread_t *thread, void *(*run)(void *), uint8_t *start,
			       const uint8_t *from, unsigned at, bool interrupt)
{
	struct stand where = {
		.at = from + at, .interrupt = interrupt, .changed = from, .bytes = mov, .len = LEN
	};

	MUST(pthread_create(thread, NULL, run, start) == 0 && sem_wait(&ready) == 0);
	return stand_start(&where);
}

#endif
