/* SPDX-License-Identifier: MIT */
/*
 * What debug information (DWARF) says of a program or library: which line code comes from, and what
 * arguments a function has and where they are at its entry. By libdw, which is loaded when it is
 * first asked: without it, or without debug information, nothing is known.
 *
 * Debug information that lies beside the file is found by its build ID below /usr/lib/debug.
 */
#ifndef PROBES_SOURCE_SOURCE_H
#define PROBES_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#define SOURCE_INTEGERS 6 /* registers that hand over integers */
#define SOURCE_VECTORS	8
#define SOURCE_VECTOR	SOURCE_INTEGERS /* the first of them, in source_value.reg */
#define SOURCE_ARGS_MAX 16

enum source_form {
	SOURCE_SIGNED = 0,
	SOURCE_UNSIGNED,
	SOURCE_BOOL,
	SOURCE_CHAR,
	SOURCE_POINTER,
	SOURCE_STRING, /* of char, up to a 0 */
	SOURCE_FLOAT,  /* of 32 or 64 bits */
	SOURCE_OTHER,  /* in no register, or of a type that is not shown */
};

/* An argument, or a member of one that is handed over in registers, named "argument.member". */
struct source_value {
	const char *name; /* "" if it has none; valid until source_close() */
	enum source_form form;
	uint8_t bits;  /* 1 to 64 */
	uint8_t shift; /* where in the register it begins */
	uint8_t reg;   /* 0 to 5: rdi, rsi, rdx, rcx, r8, r9; 6 to 13: xmm0 to xmm7 */
};

struct source_function {
	struct source_value arg[SOURCE_ARGS_MAX];
	unsigned args;
	bool more;    /* others behind them, of which it is not known where they are */
	bool returns; /* something in rax, which is 0 in result.reg, or xmm0 */
	struct source_value result;
};

struct source;

/*
 * source_ready - load libdw, if that was not tried before; false: it is not here. By dlopen(), so
 * not under a lock that a thread may hold while it waits for the loader. The other functions call
 * it themselves.
 */
bool source_ready(void);

/* source_open - NULL: no libdw, no debug information, or no memory. */
struct source *source_open(const char *path);
void source_close(struct source *source);

/*
 * source_line - the line that the code at an address (of the file's own) comes from. @file is valid
 * until source_close().
 */
bool source_line(struct source *source, uint64_t addr, const char **file, unsigned *line);

/*
 * source_function - the function that starts there, or has that address in it. False: not known.
 */
bool source_function(struct source *source, uint64_t addr, struct source_function *function);

#endif
