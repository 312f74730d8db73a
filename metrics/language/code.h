/* SPDX-License-Identifier: MIT */
/*
 * What stands in (* *), as instructions of a small machine with a stack. They run in the threads of
 * the program. Jumps lead forward only, so a snippet runs at most as many instructions as it has.
 */
#ifndef METRICS_CODE_CODE_H
#define METRICS_CODE_CODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "metrics/language/tree.h"
#include "probes/include/fastinst.h"

#define SNIPPET_INSNS 4096 /* at most */
#define SNIPPET_STACK 80

/*
 * A variable of one thread: only that thread writes it. The version is odd while it changes. A
 * timer that was started and not yet stopped has a depth, and has begun at start, in ns.
 */
struct mdl_value {
	_Atomic uint64_t version;
	_Atomic int64_t value, start, depth;
};

enum snippet_op {
	OP_NUMBER,
	OP_LOAD, /* a variable */
	OP_STORE,
	OP_ADDRESS, /* of a variable */
	OP_ARG,
	OP_RETURN,
	OP_READ, /* so many bytes at an address */
	OP_INT,	 /* the lower 32 bits, with their sign */
	OP_JUMP,
	OP_UNLESS, /* jump unless it is not 0 */
	OP_START,  /* a timer: number is the clock */
	OP_STOP,
	OP_NOT,
	OP_NEGATIVE,
	OP_AND,
	OP_OR,
	OP_EQUAL,
	OP_UNEQUAL,
	OP_LESS,
	OP_AT_MOST,
	OP_MORE,
	OP_AT_LEAST,
	OP_PLUS,
	OP_MINUS,
	OP_TIMES,
	OP_DIVIDED,
	OP_MODULO,
};

struct snippet_insn {
	enum snippet_op op;
	uint32_t at; /* of a variable; or where a jump leads */
	int64_t number;
};

struct snippet {
	uint32_t n;
	struct snippet_insn insn[];
};

/* --- Making them ------------------------------------------------------------------------------ */

/* What a name in code stands for. */
struct code_name {
	enum {
		NAME_UNKNOWN,
		NAME_COUNTER,
		NAME_TIMER,
		NAME_NUMBER,
		NAME_TEXT, /* which is no number: it can be used nowhere in code */
	} kind;
	enum mdl_type type;
	uint32_t at;
	int64_t number;
};

enum code_point {
	CODE_AT_ENTRY,
	CODE_AT_RETURN,
	CODE_AT_CALL,
	CODE_AT_EVENT, /* $start and $exit: no registers are known */
};

/* Where code stands: which names it knows, and which variables must be set for it to run. */
struct code_scope {
	struct code_name (*name)(void *data, const char *name);
	struct code_name (*component)(void *data, int64_t number); /* $constraint[number] */
	int (*symbol)(void *data, const char *name, uint64_t *address, unsigned *size);
	void *data;
	enum code_point point;
	const uint32_t *flags;
	size_t flags_n;
};

/*
 * compile_code - a snippet, to be freed; NULL: error says why, or there is no memory. With
 * *uses_registers it needs registers that hooks of -finstrument-functions do not have.
 */
struct snippet *compile_code(const struct mdl_code *code, const struct code_scope *scope,
			     bool *uses_registers, struct mdl_error *error);

/* type_name - "counter" and so on, as the language has it. */
const char *type_name(enum mdl_type type);

/* clock_of - CLOCK_MONOTONIC and so on, of a timer. */
int clock_of(enum mdl_type type);

/* --- Running them ----------------------------------------------------------------------------- */

/* A division that the processor refuses is 0, or for -1 what wraps around. */
static inline int64_t divide_numbers(int64_t a, int64_t b, bool rest)
{
	if (!b)
		return 0;
	if (b == -1)
		return rest ? 0 : (int64_t) - (uint64_t)a;
	return rest ? a % b : a / b;
}

/* combine_numbers - what an operator makes of them; one of one operand passes over the second. */
static inline int64_t combine_numbers(enum snippet_op op, int64_t a, int64_t b)
{
	switch (op) {
	case OP_NOT:
		return !a;
	case OP_NEGATIVE:
		return (int64_t) - (uint64_t)a;
	case OP_AND:
		return a && b;
	case OP_OR:
		return a || b;
	case OP_EQUAL:
		return a == b;
	case OP_UNEQUAL:
		return a != b;
	case OP_LESS:
		return a < b;
	case OP_AT_MOST:
		return a <= b;
	case OP_MORE:
		return a > b;
	case OP_AT_LEAST:
		return a >= b;
	case OP_PLUS:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	case OP_MINUS:
		return (int64_t)((uint64_t)a - (uint64_t)b);
	case OP_TIMES:
		return (int64_t)((uint64_t)a * (uint64_t)b);
	default:
		return divide_numbers(a, b, op == OP_MODULO);
	}
}

/* read_clock - in ns. Changes no vector register. */
int64_t read_clock(int64_t clock);

/*
 * run_snippet - with the variables of this thread. @regs: NULL where the point has none. Changes no
 * vector register, and makes no system call but for clocks and reads of memory.
 */
void run_snippet(const struct snippet *snippet, struct mdl_value *values,
		 const struct fi_regs *regs);

#endif
