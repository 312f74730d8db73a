/* SPDX-License-Identifier: MIT */
/*
 * Debug information (DWARF) of a program or library, in the file or by its build ID below
 * /usr/lib/debug: lines of code, and functions with the places of their arguments at the entry. By
 * libdw, which is loaded at the first question; without it nothing is known.
 */
#ifndef PROBES_DWARF_SOURCE_H
#define PROBES_DWARF_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#define SOURCE_INTEGERS 6 /* registers that hand over integers */
#define SOURCE_VECTORS	8
#define SOURCE_ARGS_MAX 128 /* values */

/* Eight bytes each, in source_value.reg. */
#define SOURCE_VECTOR 16 /* the first vector register */
#define SOURCE_MEMORY 24 /* the first word in memory */
#define SOURCE_WORDS  32 /* in memory */

enum source_form {
	SOURCE_SIGNED = 0,
	SOURCE_UNSIGNED,
	SOURCE_BOOL,
	SOURCE_CHAR,
	SOURCE_BYTE, /* a char without a sign */
	SOURCE_POINTER,
	SOURCE_STRING, /* of char, up to a 0 */
	SOURCE_FLOAT,  /* of 32, 64, or 128 bits: a long double, 80 of which count */
	SOURCE_MORE,   /* no value: the struct of that name goes on */
	SOURCE_OTHER,  /* too far up the stack, or of a type that is not shown */
};

/*
 * An argument, or a member of one, named "argument.member". The words in memory are those above the
 * return address at an entry, and those that rax points at when a struct is returned.
 */
struct source_value {
	const char *name; /* "" if it has none */
	enum source_form form;
	uint8_t bits;	 /* 1 to 64, or 128; of each in an array */
	uint8_t count;	 /* of an array, else 0 */
	bool cut;	 /* the array goes on */
	uint8_t shift;	 /* where in its first word it begins */
	uint16_t offset; /* where in the argument, in bits */
	uint8_t reg;	 /* 0 to 5: rdi, rsi, rdx, rcx, r8, r9; of a result rax, rdx */
	uint8_t next;	 /* its second word; a third is the one behind that */
};

/* source_word - the register, or place in memory, of the value's i-th word. */
static inline unsigned source_word(const struct source_value *value, unsigned i)
{
	return i ? value->next + i - 1 : value->reg;
}

struct source_function {
	const struct source_value *arg;
	unsigned args;
	bool more; /* there are others, whose places are not known */
	const struct source_value *result;
	unsigned results; /* one value, or members; 0: void, or not in registers or memory */
};

struct source;

/*
 * source_ready - load libdw, as the other functions do; false: it is not here. By dlopen(), so not
 * under a lock that a thread may hold while it waits for the loader.
 */
bool source_ready(void);

/*
 * source_open - NULL: no libdw, no debug information, or no memory. It stays open, and with it all
 * that these functions tell of it.
 */
struct source *source_open(const char *path);

/* source_line - the line of the code at an address of the file. */
bool source_line(struct source *source, uint64_t addr, const char **file, unsigned *line);

/*
 * source_function - the function at an address. @nops: so many bytes of NOPs are there, and clang's
 * locations of arguments begin behind them. False: not known.
 */
bool source_function(struct source *source, uint64_t addr, unsigned nops,
		     struct source_function *function);

#endif
