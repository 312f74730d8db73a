/* SPDX-License-Identifier: MIT */
/*
 * The metric description language: its text, and the tree that is made of it. The language is that
 * of Hollingsworth et al., "MDL: A Language and Compiler for Dynamic Program Instrumentation";
 * mdl(5) is its reference.
 *
 * A text has lists of names, constraints and metrics. What stands in (* *) is code, which runs in
 * the program where probes are; all around it says where, and runs once, when a metric is asked
 * for.
 */
#ifndef METRICS_LANGUAGE_TREE_H
#define METRICS_LANGUAGE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where a word of the text begins: both from 1, columns are bytes. */
struct mdl_place {
	unsigned line, column;
};

enum mdl_type {
	MDL_COUNTER,
	MDL_PROCESS_TIMER, /* CPU time of the process */
	MDL_THREAD_TIMER,  /* CPU time of the thread */
	MDL_WALL_TIMER,
};

/* A name, or a text that names something. */
struct mdl_name {
	struct mdl_name *next;
	struct mdl_place place;
	const char *text;
};

/* --- Code, and conditions --------------------------------------------------------------------- */

enum mdl_expr_kind {
	MDL_NUMBER,
	MDL_STRING,
	MDL_VARIABLE,
	MDL_FIELD,     /* text.field */
	MDL_ARG,       /* $arg[number] */
	MDL_RETURN,    /* $return */
	MDL_COMPONENT, /* $constraint[number], or its field */
	MDL_ADDRESS,   /* &text */
	MDL_CALL,      /* text(left, left->next ...) */
	MDL_NOT,       /* of left, as those up to MDL_MINUS */
	MDL_NEGATIVE,
	MDL_AND, /* of left and right, as all below */
	MDL_OR,
	MDL_EQUAL,
	MDL_UNEQUAL,
	MDL_LESS,
	MDL_AT_MOST,
	MDL_MORE,
	MDL_AT_LEAST,
	MDL_PLUS,
	MDL_MINUS,
	MDL_TIMES,
	MDL_DIVIDED,
	MDL_MODULO,
};

struct mdl_expr {
	struct mdl_expr *next; /* argument of a call */
	struct mdl_place place;
	enum mdl_expr_kind kind;
	int64_t number;
	const char *text, *field;
	struct mdl_expr *left, *right;
};

enum mdl_code_kind {
	MDL_ASSIGN, /* text = expr; what += and ++ are, too */
	MDL_IF,	    /* if (expr) then else otherwise */
	MDL_DO,	    /* a call */
};

struct mdl_code {
	struct mdl_code *next;
	struct mdl_place place;
	enum mdl_code_kind kind;
	const char *text;
	struct mdl_expr *expr;
	struct mdl_code *then, *otherwise;
};

/* --- Where code is put ------------------------------------------------------------------------ */

enum mdl_base {
	MDL_NAMED,	/* a list, or a variable of foreach */
	MDL_SELECTED,	/* $constraint[number] */
	MDL_PROCEDURES, /* $procedures */
	MDL_START,	/* $start */
	MDL_EXIT,	/* $exit */
};

/* A list, something of a list, or a field of it: "" is none. */
struct mdl_object {
	struct mdl_place place, field_place;
	enum mdl_base base;
	int64_t number;
	const char *text, *field;
};

enum mdl_where_kind {
	MDL_FOREACH, /* foreach text in object: then */
	MDL_CHOOSE,  /* if (expr) then else otherwise, as it is when the metric is asked for */
	MDL_PUT,     /* code at the points of object */
};

struct mdl_where {
	struct mdl_where *next;
	struct mdl_place place;
	enum mdl_where_kind kind;
	const char *text;
	struct mdl_object object;
	struct mdl_expr *expr;
	struct mdl_where *then, *otherwise;
	bool prepend, post, constrained;
	struct mdl_code *code;
};

/* --- Declarations ----------------------------------------------------------------------------- */

enum mdl_list_kind {
	MDL_PROCEDURE,
	MDL_MODULE,
	MDL_THREAD,
	MDL_FILE,
};

struct mdl_list {
	struct mdl_list *next;
	struct mdl_name name;
	enum mdl_list_kind kind;
	struct mdl_name *items, *flavors;
	bool in_library, in_program; /* both are false: anywhere */
};

struct mdl_constraint {
	struct mdl_constraint *next;
	struct mdl_name name;
	const char *path; /* "/Code" */
	bool is_default, replaces;
	enum mdl_type type;
	struct mdl_where *body;
};

enum mdl_units {
	MDL_UNNORMALIZED, /* the value is shown */
	MDL_NORMALIZED,	  /* how much it grows a second */
	MDL_SAMPLED,	  /* what it is now */
};

enum mdl_aggregate {
	MDL_SUM,
	MDL_MIN,
	MDL_MAX,
	MDL_AVG,
};

struct mdl_metric {
	struct mdl_metric *next;
	struct mdl_name name;
	const char *title, *units;
	enum mdl_units units_type;
	enum mdl_aggregate aggregate;
	bool sampled_function, for_developers;
	struct mdl_name *flavors;
	struct mdl_name *constraints;
	struct mdl_name *counters;
	bool has_base;
	enum mdl_type type;
	struct mdl_where *base;
};

/* In the order in which they stand. */
struct mdl {
	struct mdl_list *lists;
	struct mdl_constraint *constraints;
	struct mdl_metric *metrics;
	struct mdl_block *memory;
};

/* --- Texts ------------------------------------------------------------------------------------ */

#define MDL_NESTING 64 /* how deep statements and expressions may be in each other */

/* What is wrong with a text, at which place of it. */
struct mdl_error {
	struct mdl_place place;
	char text[512];
};

/* mdl_fault - fill in an error, unless there is one. Returns -EINVAL. */
int mdl_fault(struct mdl_error *error, struct mdl_place place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * mdl_read - the tree of a text, which may go then; mdl_free() it in any case. -EINVAL: error says
 * why. -ENOMEM.
 */
int mdl_read(struct mdl *mdl, const char *text, struct mdl_error *error);
void mdl_free(struct mdl *mdl);

/* mdl_complain - an error in lines: file, line, column, text; the line; a caret below it. */
void mdl_complain(FILE *out, const char *file, const char *text, const struct mdl_error *error);

/* Those of that name; NULL. */
struct mdl_list *mdl_list_named(const struct mdl *mdl, const char *name);
struct mdl_constraint *mdl_constraint_named(const struct mdl *mdl, const char *name);
struct mdl_metric *mdl_metric_named(const struct mdl *mdl, const char *name);

/* mdl_alloc - cleared memory until mdl_free(). NULL. */
void *mdl_alloc(struct mdl *mdl, size_t size);

#endif
