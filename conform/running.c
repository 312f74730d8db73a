/* SPDX-License-Identifier: MIT */
/*
 * Promises about code that is changed while it runs, without a handshake: the executor runs it all
 * the time, and what it gets is one of those numbers that the code may have. Trials are the
 * writer's, failures the executor's.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ucontext.h>

#include "conform/child.h"
#include "patchcore/machine/policy.h"
#include "patchcore/patchcore.h"

/* --- One store inside eight aligned bytes ----------------------------------------------------- */

#define HALF_OF_WORD UINT64_C(0xffffff) /* opcode, and half of the number */

/* Both halves of the number tell of each other. */
static uint64_t word_with(uint64_t trial)
{
	uint32_t half = (uint32_t)(trial & 0xffff), number = half | (~half & 0xffff) << 16;
	uint64_t word = 0xb8 | (uint64_t)0xc3 << 40 | (uint64_t)0x9090 << 48;

	return word | (uint64_t)number << 8;
}

int prepare_word(struct conform_child *c)
{
	*(uint64_t *)(void *)c->arena = word_with(1);
	return 0;
}

void write_word(struct conform_child *c)
{
	uint64_t *word = (uint64_t *)(void *)c->arena;

	for (uint64_t trial = 0; child_goes_on(c); trial++) {
		uint64_t next = word_with(random_next(&c->random[WRITER]));
		uint64_t half = (*word & ~HALF_OF_WORD) | (next & HALF_OF_WORD);
		bool torn = child_draw_fault(c, FAULT_TORN, WRITER);

		child_flush_code(c->arena, sizeof(*word), trial);
		if (torn) {
			__atomic_store_n(word, half, __ATOMIC_SEQ_CST);
			pause_for(200);
		}
		__atomic_store_n(word, child_draw_fault(c, FAULT_LOST, WRITER) ? half : next,
				 __ATOMIC_SEQ_CST);
		pause_for((unsigned)(trial % 16));
		child_count(c, trial + 1);
	}
}

void execute_word(struct conform_child *c)
{
	while (!child_is_over(c)) {
		uint32_t got = child_call(c, c->arena, EXECUTOR);

		if ((got >> 16) != (~got & 0xffff))
			child_fail(c, (got & 0xffff) | (~got & 0xffff) << 16, got);
	}
}

/* --- INT3 as one byte ------------------------------------------------------------------------- */

#define INT3_NUMBER 0x12345678u

/* In the place of the instruction that the INT3 stands on. */
static void skip_instruction(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal;
	(void)info;
	uc->uc_mcontext.gregs[REG_RAX] = NUMBER_NONE;
	uc->uc_mcontext.gregs[REG_RIP] += 4;
}

int prepare_int3(struct conform_child *c)
{
	struct sigaction action = { .sa_sigaction = skip_instruction, .sa_flags = SA_SIGINFO };
	const uint8_t code[] = { 0xb8, 0x78, 0x56, 0x34, 0x12, 0xc3 };

	/* Across a line: the first byte on one, the rest on the next. */
	c->arena += LINE - 1;
	memcpy(c->arena, code, sizeof(code));
	return sigaction(SIGTRAP, &action, NULL) < 0 ? -errno : 0;
}

void write_int3(struct conform_child *c)
{
	for (uint64_t trial = 0; child_goes_on(c); trial++) {
		bool torn = child_draw_fault(c, FAULT_TORN, WRITER);

		child_flush_code(c->arena, 6, trial);
		/* Half a change would be the first byte of another instruction: mov ecx, imm32. */
		__atomic_store_n(c->arena, torn ? 0xb9 : 0xcc, __ATOMIC_SEQ_CST);
		pause_for(torn ? 200 : (unsigned)(random_next(&c->random[WRITER]) % 64));
		__atomic_store_n(c->arena, 0xb8, __ATOMIC_SEQ_CST);
		pause_for((unsigned)(random_next(&c->random[WRITER]) % 64));
		child_count(c, trial + 1);
	}
}

void execute_int3(struct conform_child *c)
{
	while (!child_is_over(c)) {
		uint32_t got = child_call(c, c->arena, EXECUTOR);

		if (got != INT3_NUMBER && got != NUMBER_NONE)
			child_fail(c, INT3_NUMBER, got);
	}
}

/* --- INT3 and membarrier ---------------------------------------------------------------------- */

#define VERSIONS 200u

/* mov eax, imm32 across a page. One version and the next have no byte of the number in common. */
static void numbered_code(uint8_t code[5], uint64_t version)
{
	code[0] = 0xb8;
	memset(code + 1, (int)(1 + version % VERSIONS), 4);
}

int prepare_membarrier(struct conform_child *c)
{
	uint8_t code[6] = { 0, 0, 0, 0, 0, 0xc3 };
	int ret;

	numbered_code(code, 0);
	memcpy(c->stale, code, sizeof(code));
	c->arena += PAGE - 3;
	memcpy(c->arena, code, sizeof(code));
	/* INT3 and the order of stores as ever, and nothing that makes threads fetch anew. */
	if (c->cell->fault == FAULT_UNSERIALIZED)
		policy_assume_waits(0, 0, 0);
	ret = pc_init();
	if (ret == 0)
		ret = pc_set_policy(c->cell->fault == FAULT_UNSERIALIZED ? PC_POLICY_WAIT
									 : PC_POLICY_MEMBARRIER);
	return ret < 0 ? ret : pc_text_open(c->arena, 8);
}

/*
 * When pc_patch() has returned, no thread runs an older version any more: the INT3 stood on its
 * first byte when the first membarrier serialised all of them.
 */
void write_membarrier(struct conform_child *c)
{
	for (uint64_t version = 1; child_goes_on(c); version++) {
		uint8_t code[5];

		numbered_code(code, version);
		child_flush_code(c->arena, sizeof(code), version);
		/* Pairs with the acquire in execute_membarrier(), as the next does. */
		atomic_store_explicit(&c->started, version, memory_order_seq_cst);
		if (child_draw_fault(c, FAULT_TORN, WRITER)) {
			memcpy(c->arena + 3, code + 3, 2);
			pause_for(200);
			memcpy(c->arena, code, 3);
		} else if (pc_patch(c->arena, code, sizeof(code)) < 0) {
			return;
		}
		/* The store to the part behind the boundary was lost. */
		if (child_draw_fault(c, FAULT_LOST, WRITER)) {
			numbered_code(code, version - 1);
			memcpy(c->arena + 3, code + 3, 2);
			pause_for(200);
		}
		atomic_store_explicit(&c->number, version, memory_order_release);
		child_count(c, version);
	}
}

void execute_membarrier(struct conform_child *c)
{
	while (!child_is_over(c)) {
		uint64_t before = atomic_load_explicit(&c->number, memory_order_acquire), after;
		uint32_t got = child_call(c, c->arena, EXECUTOR), byte = got & 0xff;

		after = atomic_load_explicit(&c->started, memory_order_acquire);
		/* Not the whole of a version, or older than before, or newer than after. */
		if (got != byte * 0x01010101u || byte < 1 || byte > VERSIONS ||
		    (byte - 1 + VERSIONS - before % VERSIONS) % VERSIONS > after - before)
			child_fail(c, (1 + before % VERSIONS) * 0x01010101u, got);
	}
}
