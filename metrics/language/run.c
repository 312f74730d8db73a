/* SPDX-License-Identifier: MIT */
/* Compiled without vector registers: what runs at a probe need not have them saved. */
#include <stddef.h>

#include "metrics/language/code.h"
#include "patchcore/syscall/sys.h"

int64_t read_clock(int64_t clock)
{
	struct timespec now = { 0 };

	sys_call(SYS_clock_gettime, clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The version says of the whole, and its own stores are in order on x86. */
static void change_value(struct mdl_value *to, int64_t value, int64_t start, int64_t depth)
{
	uint64_t version = load_relaxed(&to->version);

	store_relaxed(&to->version, version + 1);
	atomic_signal_fence(memory_order_seq_cst);
	store_relaxed(&to->value, value);
	store_relaxed(&to->start, start);
	store_relaxed(&to->depth, depth);
	atomic_signal_fence(memory_order_seq_cst);
	store_relaxed(&to->version, version + 2);
}

/* In recursion the first start and the last stop count. */
static void start_timer(struct mdl_value *timer, int64_t clock)
{
	int64_t depth = load_relaxed(&timer->depth);
	int64_t start = depth ? load_relaxed(&timer->start) : read_clock(clock);

	change_value(timer, load_relaxed(&timer->value), start, depth + 1);
}

static void stop_timer(struct mdl_value *timer, int64_t clock)
{
	int64_t depth = load_relaxed(&timer->depth), start = load_relaxed(&timer->start);
	int64_t value = load_relaxed(&timer->value);

	if (!depth)
		return;
	if (depth == 1)
		value += read_clock(clock) - start;
	change_value(timer, value, start, depth - 1);
}

/* 0 where there is no such memory. */
static int64_t read_memory(uint64_t address, int64_t size)
{
	union {
		int64_t all;
		int32_t four;
		int16_t two;
		int8_t one;
	} bytes = { 0 };

	if (sys_transfer(SYS_process_vm_readv, address, &bytes, (size_t)size) != size)
		return 0;
	return size == 8 ? bytes.all : size == 4 ? bytes.four : size == 2 ? bytes.two : bytes.one;
}

/* By the ABI: six integers in registers, the others above the return address. */
static int64_t read_argument(const struct fi_regs *regs, int64_t number)
{
	switch (number) {
	case 0:
		return (int64_t)regs->rdi;
	case 1:
		return (int64_t)regs->rsi;
	case 2:
		return (int64_t)regs->rdx;
	case 3:
		return (int64_t)regs->rcx;
	case 4:
		return (int64_t)regs->r8;
	case 5:
		return (int64_t)regs->r9;
	default:
		return read_memory(regs->rsp + 8 * (uint64_t)(number - 5), 8);
	}
}

void run_snippet(const struct snippet *snippet, struct mdl_value *values,
		 const struct fi_regs *regs)
{
	int64_t stack[SNIPPET_STACK];
	int64_t *top = stack; /* the next free one */

	for (uint32_t i = 0; i < snippet->n; i++) {
		const struct snippet_insn *insn = &snippet->insn[i];
		struct mdl_value *value = &values[insn->at];

		switch (insn->op) {
		case OP_NUMBER:
			*top++ = insn->number;
			break;
		case OP_LOAD:
			*top++ = load_relaxed(&value->value);
			break;
		case OP_STORE:
			store_relaxed(&value->value, *--top);
			break;
		case OP_ADDRESS:
			*top++ = (int64_t)(uintptr_t)&value->value;
			break;
		case OP_ARG:
			*top++ = read_argument(regs, insn->number);
			break;
		case OP_RETURN:
			*top++ = (int64_t)regs->rax;
			break;
		case OP_READ:
			top[-1] = read_memory((uint64_t)top[-1], insn->number);
			break;
		case OP_INT:
			top[-1] = (int32_t)top[-1];
			break;
		case OP_NOT:
		case OP_NEGATIVE:
			top[-1] = combine_numbers(insn->op, top[-1], 0);
			break;
		case OP_JUMP:
			i = insn->at - 1;
			break;
		case OP_UNLESS:
			if (!*--top)
				i = insn->at - 1;
			break;
		case OP_START:
			start_timer(value, insn->number);
			break;
		case OP_STOP:
			stop_timer(value, insn->number);
			break;
		default:
			top--;
			top[-1] = combine_numbers(insn->op, top[-1], *top);
		}
	}
}
