/* SPDX-License-Identifier: MIT */
/*
 * Code of the language becomes a snippet. Here names and types are checked: what is made can be run
 * at its point without another look at it.
 */
#include "metrics/language/code.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TREE_DEPTH 1000 /* of sums that are long */

struct compiler {
	const struct code_scope *scope;
	struct mdl_error *error;
	struct snippet *snippet;
	uint32_t room;
	unsigned stack, depth;
	bool uses_registers, no_memory;
};

static const struct {
	const char *name, *word; /* of its type; in the names of its functions */
	int clock;
} types[] = {
	[MDL_COUNTER] = { "counter", "", -1 },
	[MDL_PROCESS_TIMER] = { "processTimer", "ProcessTimer", CLOCK_PROCESS_CPUTIME_ID },
	[MDL_THREAD_TIMER] = { "threadTimer", "ThreadTimer", CLOCK_THREAD_CPUTIME_ID },
	[MDL_WALL_TIMER] = { "wallTimer", "WallTimer", CLOCK_MONOTONIC },
};

const char *type_name(enum mdl_type type)
{
	return types[type].name;
}

int clock_of(enum mdl_type type)
{
	return types[type].clock;
}

/* --- Instructions ----------------------------------------------------------------------------- */

/* @pushed: how many values more than before are on the stack. Where it is, for a jump. */
static uint32_t add_insn(struct compiler *to, struct mdl_place place, struct snippet_insn insn,
			 int pushed)
{
	to->stack += (unsigned)pushed;
	if (to->stack > SNIPPET_STACK)
		mdl_fault(to->error, place, "too many values at once");
	if (to->snippet && to->snippet->n == SNIPPET_INSNS)
		mdl_fault(to->error, place, "code has at most %d instructions", SNIPPET_INSNS);
	if (*to->error->text)
		return 0;
	if (!to->snippet || to->snippet->n == to->room) {
		uint32_t room = to->room ? 2 * to->room : 8;
		struct snippet *more =
			realloc(to->snippet, sizeof(*more) + room * sizeof(*more->insn));

		if (!more) {
			to->no_memory = true;
			mdl_fault(to->error, place, "there is no memory for it");
			return 0;
		}
		if (!to->room)
			more->n = 0;
		to->snippet = more;
		to->room = room;
	}
	to->snippet->insn[to->snippet->n] = insn;
	return to->snippet->n++;
}

static void add_number(struct compiler *to, struct mdl_place place, int64_t number)
{
	add_insn(to, place, (struct snippet_insn){ .op = OP_NUMBER, .number = number }, 1);
}

/* The jump leads to what comes next. */
static void land_jump(struct compiler *to, uint32_t jump)
{
	if (!*to->error->text)
		to->snippet->insn[jump].at = to->snippet->n;
}

/* --- Expressions ------------------------------------------------------------------------------ */

static void add_expr(struct compiler *to, const struct mdl_expr *expr);

static void add_name(struct compiler *to, struct mdl_place place, const char *text,
		     struct code_name name)
{
	switch (name.kind) {
	case NAME_COUNTER:
		add_insn(to, place, (struct snippet_insn){ .op = OP_LOAD, .at = name.at }, 1);
		return;
	case NAME_NUMBER:
		add_number(to, place, name.number);
		return;
	case NAME_TIMER:
		mdl_fault(to->error, place, "%s is a %s: it is started and stopped, not read", text,
			  type_name(name.type));
		return;
	case NAME_TEXT:
		mdl_fault(to->error, place, "%s is no number", text);
		return;
	default:
		mdl_fault(to->error, place,
			  "there is no %s here: the metric, its counters and its constraints are",
			  text);
	}
}

static void add_argument(struct compiler *to, const struct mdl_expr *expr)
{
	if (to->scope->point != CODE_AT_ENTRY)
		mdl_fault(to->error, expr->place, "$arg is known at .entry only");
	else if (expr->number > 31)
		mdl_fault(to->error, expr->place, "the last argument is $arg[31]");
	to->uses_registers = true;
	add_insn(to, expr->place, (struct snippet_insn){ .op = OP_ARG, .number = expr->number }, 1);
}

static void add_return(struct compiler *to, const struct mdl_expr *expr)
{
	if (to->scope->point != CODE_AT_RETURN)
		mdl_fault(to->error, expr->place, "$return is known at .return only");
	to->uses_registers = true;
	add_insn(to, expr->place, (struct snippet_insn){ .op = OP_RETURN }, 1);
}

static void add_address(struct compiler *to, const struct mdl_expr *expr)
{
	struct code_name name = to->scope->name(to->scope->data, expr->text);

	if (name.kind != NAME_COUNTER)
		mdl_fault(to->error, expr->place, "& is the address of a counter, %s is none",
			  expr->text);
	add_insn(to, expr->place, (struct snippet_insn){ .op = OP_ADDRESS, .at = name.at }, 1);
}

/* --- Functions -------------------------------------------------------------------------------- */

static void add_read(struct compiler *to, const struct mdl_expr *call)
{
	const struct mdl_expr *size = call->left->next;
	int64_t bytes = size ? size->number : 8;

	if (size &&
	    (size->kind != MDL_NUMBER || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)))
		mdl_fault(to->error, size->place, "what is read has 1, 2, 4 or 8 bytes");
	add_expr(to, call->left);
	add_insn(to, call->place, (struct snippet_insn){ .op = OP_READ, .number = bytes }, 0);
}

static void add_symbol(struct compiler *to, const struct mdl_expr *call)
{
	const struct mdl_expr *name = call->left;
	uint64_t address = 0;
	unsigned size = 8;

	if (name->kind != MDL_STRING)
		mdl_fault(to->error, name->place, "readSymbol takes a name in quotes");
	else if (to->scope->symbol(to->scope->data, name->text, &address, &size) < 0)
		mdl_fault(to->error, name->place, "no variable %s of 1, 2, 4 or 8 bytes is here",
			  name->text);
	add_number(to, call->place, (int64_t)address);
	add_insn(to, call->place, (struct snippet_insn){ .op = OP_READ, .number = size }, 0);
}

static void add_int(struct compiler *to, const struct mdl_expr *call)
{
	add_expr(to, call->left);
	add_insn(to, call->place, (struct snippet_insn){ .op = OP_INT }, 0);
}

/* Functions with a value; those of timers have none. */
static const struct {
	const char *name;
	unsigned least, most; /* arguments */
	void (*add)(struct compiler *to, const struct mdl_expr *call);
} functions[] = {
	{ "readSymbol", 1, 1, add_symbol },
	{ "readAddress", 1, 2, add_read },
	{ "int", 1, 1, add_int },
};

static void add_call(struct compiler *to, const struct mdl_expr *call)
{
	unsigned n = 0;

	for (const struct mdl_expr *one = call->left; one; one = one->next)
		n++;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		if (strcmp(functions[i].name, call->text) != 0)
			continue;
		if (n < functions[i].least || n > functions[i].most)
			mdl_fault(to->error, call->place, "%s does not take %u arguments",
				  call->text, n);
		else
			functions[i].add(to, call);
		return;
	}
	mdl_fault(to->error, call->place,
		  "there is no function %s with a value: readSymbol, readAddress and int are; the "
		  "program's own are not called, as nothing bounds what they cost",
		  call->text);
}

/* "startWallTimer": what it does, and to what. */
static bool find_timer_function(const char *name, enum snippet_op *op, enum mdl_type *type)
{
	const char *word = name + strcspn(name, "PTW");

	for (*type = MDL_PROCESS_TIMER; *type <= MDL_WALL_TIMER; ++*type)
		if (!strcmp(types[*type].word, word))
			break;
	*op = strncmp(name, "stop", 4) ? OP_START : OP_STOP;
	return *type <= MDL_WALL_TIMER && (word - name == 4 || word - name == 5) &&
	       !strncmp(name, *op == OP_STOP ? "stop" : "start", (size_t)(word - name)) &&
	       (*op == OP_STOP) == (word - name == 4);
}

static void add_timer_call(struct compiler *to, const struct mdl_expr *call)
{
	const struct mdl_expr *timer = call->left;
	struct code_name name;
	enum snippet_op op;
	enum mdl_type type;

	if (!find_timer_function(call->text, &op, &type)) {
		mdl_fault(to->error, call->place,
			  "there is no function %s to call: start and stop of ProcessTimer, "
			  "ThreadTimer and WallTimer are, such as startWallTimer",
			  call->text);
		return;
	}
	if (!timer || timer->next || (timer->kind != MDL_VARIABLE && timer->kind != MDL_ADDRESS)) {
		mdl_fault(to->error, call->place, "%s takes a timer", call->text);
		return;
	}
	name = to->scope->name(to->scope->data, timer->text);
	if (name.kind != NAME_TIMER || name.type != type)
		mdl_fault(to->error, timer->place, "%s is no %s", timer->text, type_name(type));
	add_insn(to, call->place,
		 (struct snippet_insn){ .op = op, .at = name.at, .number = clock_of(type) }, 0);
}

/* --- All expressions -------------------------------------------------------------------------- */

static void add_operation(struct compiler *to, const struct mdl_expr *expr)
{
	enum snippet_op op = (enum snippet_op)(expr->kind - MDL_NOT + OP_NOT);

	if (++to->depth > TREE_DEPTH)
		mdl_fault(to->error, expr->place, "the expression is too long");
	if (!*to->error->text)
		add_expr(to, expr->left);
	if (expr->right && !*to->error->text)
		add_expr(to, expr->right);
	to->depth--;
	add_insn(to, expr->place, (struct snippet_insn){ .op = op }, expr->right ? -1 : 0);
}

static void add_expr(struct compiler *to, const struct mdl_expr *expr)
{
	const struct code_scope *scope = to->scope;

	switch (expr->kind) {
	case MDL_NUMBER:
		add_number(to, expr->place, expr->number);
		return;
	case MDL_VARIABLE:
		add_name(to, expr->place, expr->text, scope->name(scope->data, expr->text));
		return;
	case MDL_COMPONENT:
		if (!expr->field) {
			add_name(to, expr->place, "$constraint",
				 scope->component(scope->data, expr->number));
			return;
		}
		/* fall through */
	case MDL_STRING:
	case MDL_FIELD:
		mdl_fault(to->error, expr->place, "code knows numbers only");
		return;
	case MDL_ARG:
		add_argument(to, expr);
		return;
	case MDL_RETURN:
		add_return(to, expr);
		return;
	case MDL_ADDRESS:
		add_address(to, expr);
		return;
	case MDL_CALL:
		add_call(to, expr);
		return;
	default:
		add_operation(to, expr);
	}
}

/* --- Statements ------------------------------------------------------------------------------- */

static void add_code(struct compiler *to, const struct mdl_code *code);

static void add_assignment(struct compiler *to, const struct mdl_code *code)
{
	struct code_name name = to->scope->name(to->scope->data, code->text);

	if (name.kind != NAME_COUNTER)
		mdl_fault(to->error, code->place, "%s is no counter", code->text);
	add_expr(to, code->expr);
	add_insn(to, code->place, (struct snippet_insn){ .op = OP_STORE, .at = name.at }, -1);
}

static void add_if(struct compiler *to, const struct mdl_code *code)
{
	uint32_t unless, over;

	add_expr(to, code->expr);
	unless = add_insn(to, code->place, (struct snippet_insn){ .op = OP_UNLESS }, -1);
	add_code(to, code->then);
	if (!code->otherwise) {
		land_jump(to, unless);
		return;
	}
	over = add_insn(to, code->place, (struct snippet_insn){ .op = OP_JUMP }, 0);
	land_jump(to, unless);
	add_code(to, code->otherwise);
	land_jump(to, over);
}

static void add_code(struct compiler *to, const struct mdl_code *code)
{
	for (; code && !*to->error->text; code = code->next)
		if (code->kind == MDL_ASSIGN)
			add_assignment(to, code);
		else if (code->kind == MDL_IF)
			add_if(to, code);
		else
			add_timer_call(to, code->expr);
}

struct snippet *compile_code(const struct mdl_code *code, const struct code_scope *scope,
			     bool *uses_registers, struct mdl_error *error)
{
	struct compiler to = { .scope = scope, .error = error };
	struct mdl_place place = code ? code->place : (struct mdl_place){ 0 };
	uint32_t *jumps = calloc(scope->flags_n + 1, sizeof(*jumps));

	for (size_t i = 0; i < scope->flags_n && jumps; i++) {
		add_insn(&to, place, (struct snippet_insn){ .op = OP_LOAD, .at = scope->flags[i] },
			 1);
		jumps[i] = add_insn(&to, place, (struct snippet_insn){ .op = OP_UNLESS }, -1);
	}
	add_code(&to, code);
	/* Code that does nothing is a snippet, too. */
	if (!to.snippet)
		land_jump(&to, add_insn(&to, place, (struct snippet_insn){ .op = OP_JUMP }, 0));
	for (size_t i = 0; i < scope->flags_n && jumps; i++)
		land_jump(&to, jumps[i]);
	free(jumps);
	if (*error->text || !jumps) {
		free(to.snippet);
		return NULL;
	}
	*uses_registers = to.uses_registers;
	return to.snippet;
}
