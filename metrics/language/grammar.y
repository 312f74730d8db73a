/* SPDX-License-Identifier: MIT */
/* The grammar of the metric description language. */

%require "3.6"
%define api.pure full
%define api.prefix {mdl_yy}
%define api.location.type {struct mdl_place}
%define parse.error custom
%define parse.lac full
%locations
%initial-action { @$ = (struct mdl_place){ 1, 1 }; }
%param {void *scanner}
%parse-param {struct mdl_reader *reader}
%expect 0

%code requires {
#include "metrics/language/reader.h"

#define YYLLOC_DEFAULT(here, parts, n) ((here) = YYRHSLOC(parts, (n) ? 1 : 0))
}

%union {
	int64_t number;
	bool flag;
	const char *text;
	struct mdl_name name;
	struct mdl_name *names;
	struct mdl_expr *expr;
	struct mdl_code *code;
	struct mdl_where *where;
	struct mdl_object object;
}

%{
#include <stdlib.h>
#include <string.h>

#include "metrics/language/reader.h"
%}

%code {
static void mdl_yyerror(const struct mdl_place *place, void *scanner, struct mdl_reader *reader, const char *text);
int mdl_yylex(union MDL_YYSTYPE *value, struct mdl_place *place, void *scanner);

/*
 * What is made where there is no memory is NULL. Nothing here looks into what it has made, and the
 * reader knows that memory was missing.
 */
static struct mdl_name *new_name(struct mdl_reader *reader, struct mdl_name name);
static struct mdl_expr *new_expr(struct mdl_reader *reader, struct mdl_place place, struct mdl_expr expr);
static struct mdl_expr *new_pair(struct mdl_reader *reader, struct mdl_place place, enum mdl_expr_kind kind,
				 struct mdl_expr *left, struct mdl_expr *right);
static struct mdl_code *new_code(struct mdl_reader *reader, struct mdl_place place, struct mdl_code code);
static struct mdl_code *new_change(struct mdl_reader *reader, struct mdl_place place, const char *name,
				   enum mdl_expr_kind kind, struct mdl_expr *by);
static struct mdl_where *new_where(struct mdl_reader *reader, struct mdl_place place, struct mdl_where where);
static void add_constraint(struct mdl_reader *reader, struct mdl_constraint constraint);

/* What a name may be in a field, and its values from 0 on; negative after a fault. */
static int choose(struct mdl_reader *reader, const struct mdl_name *name, const char *what,
		  const char *const *words);
static int deepen(struct mdl_reader *reader, struct mdl_place place);

static const char *const truths[] = { "false", "true", NULL };
static const char *const units_types[] = { "unnormalized", "normalized", "sampled", NULL };
static const char *const aggregates[] = { "sum", "min", "max", "avg", NULL };
static const char *const styles[] = { "EventCounter", "SampledFunction", NULL };
static const char *const modes[] = { "normal", "developer", NULL };

/* The place of the next in a chain. */
#define CHAIN_END(chain)                                                                           \
	({                                                                                         \
		__typeof__(chain) *end = &(chain);                                                 \
		while (*end)                                                                       \
			end = &(*end)->next;                                                       \
		end;                                                                               \
	})
}

%token <text> WORD "a name" STRING "a text in quotes" PATH "a path"
%token <number> NUMBER "a number"
%token CODE_BEGIN "(*" CODE_END "*)" OPEN_CODE "the end of the text"
%token AGGREGATE "aggregateOperator" APPEND "append" BASE "base" CONSTRAINED "constrained"
%token CONSTRAINT "constraint" COUNTER "counter" DEFAULT "default" FILES "file" FLAVOR "flavor"
%token FOREACH "foreach" IN "in" IS "is" ITEMS "items" LIBRARY "library" LIST "list"
%token METRIC "metric" MODE "mode" MODULE "module" NAME "name" POST "postInsn" PRE "preInsn"
%token PREPEND "prepend" PROCEDURE "procedure" PROCESS_TIMER "processTimer" REPLACE "replace"
%token STYLE "style" THREAD "thread" THREAD_TIMER "threadTimer" UNITS "units"
%token UNITS_TYPE "unitsType" WALL_TIMER "wallTimer"
%token IF "if" ELSE "else" ARG "$arg" RETURN "$return" COMPONENT "$constraint"
%token ALL_PROCEDURES "$procedures" START "$start" EXIT "$exit"
%token EQUAL "==" UNEQUAL "!=" AT_MOST "<=" AT_LEAST ">=" AND "&&" OR "||"
%token INCREMENT "++" DECREMENT "--" ADD_TO "+=" TAKE_FROM "-=" UNKNOWN

%left OR
%left AND
%nonassoc EQUAL UNEQUAL
%nonassoc '<' '>' AT_MOST AT_LEAST
%left '+' '-'
%left '*' '/' '%'
%precedence '!' SIGN
%precedence THEN
%precedence ELSE

%type <text> word keyword field
%type <name> name
%type <names> names flavors texts
%type <number> type list_kind index
%type <flag> order moment constrained
%type <object> object point list_object
%type <expr> expr primary arguments some_arguments
%type <code> code statement
%type <where> where wheres

%%

text: %empty | text declaration;

declaration: list | constraint | metric;

semicolon: %empty | ';';

/* --- Names ------------------------------------------------------------------------------------ */

/* Words of the language are names where a name stands. */
word: WORD | keyword;

keyword:
	  AGGREGATE { $$ = "aggregateOperator"; }
	| BASE { $$ = "base"; }
	| CONSTRAINT { $$ = "constraint"; }
	| COUNTER { $$ = "counter"; }
	| DEFAULT { $$ = "default"; }
	| FILES { $$ = "file"; }
	| FLAVOR { $$ = "flavor"; }
	| ITEMS { $$ = "items"; }
	| LIBRARY { $$ = "library"; }
	| LIST { $$ = "list"; }
	| METRIC { $$ = "metric"; }
	| MODE { $$ = "mode"; }
	| MODULE { $$ = "module"; }
	| NAME { $$ = "name"; }
	| PROCEDURE { $$ = "procedure"; }
	| STYLE { $$ = "style"; }
	| THREAD { $$ = "thread"; }
	| UNITS { $$ = "units"; }
	;

name: word { $$ = (struct mdl_name){ .place = @1, .text = $1 }; };

names:
	  name { $$ = new_name(reader, $1); }
	| names ',' name { $$ = $1; *CHAIN_END($$) = new_name(reader, $3); }
	;

texts:
	  STRING { $$ = new_name(reader, (struct mdl_name){ .place = @1, .text = $1 }); }
	| texts ',' STRING {
		$$ = $1;
		*CHAIN_END($$) = new_name(reader, (struct mdl_name){ .place = @3, .text = $3 });
	}
	;

type:
	  COUNTER { $$ = MDL_COUNTER; }
	| PROCESS_TIMER { $$ = MDL_PROCESS_TIMER; }
	| THREAD_TIMER { $$ = MDL_THREAD_TIMER; }
	| WALL_TIMER { $$ = MDL_WALL_TIMER; }
	;

flavors: name { $$ = new_name(reader, $1); } | '{' names '}' { $$ = $2; };

/* --- Lists ------------------------------------------------------------------------------------ */

list: LIST name IS list_kind '{' list_fields '}' semicolon {
	struct mdl_list *list = reader_new(reader, sizeof(*list));

	reader->list.name = $2;
	reader->list.kind = (enum mdl_list_kind)$4;
	if (list)
		*list = reader->list;
	reader->list = (struct mdl_list){ 0 };
	*CHAIN_END(reader->mdl->lists) = list;
};

list_kind:
	  PROCEDURE { $$ = MDL_PROCEDURE; }
	| MODULE { $$ = MDL_MODULE; }
	| THREAD { $$ = MDL_THREAD; }
	| FILES { $$ = MDL_FILE; }
	;

list_fields: %empty | list_fields list_field ';';

list_field:
	  ITEMS '{' texts '}' { *CHAIN_END(reader->list.items) = $3; }
	| FLAVOR flavors { *CHAIN_END(reader->list.flavors) = $2; }
	| LIBRARY name {
		int truth = choose(reader, &$2, "library", truths);

		if (truth < 0)
			YYABORT;
		reader->list.in_library = truth;
		reader->list.in_program = !truth;
	}
	;

/* --- Constraints ------------------------------------------------------------------------------ */

constraint:
	  CONSTRAINT name PATH IS DEFAULT ';' {
		add_constraint(reader, (struct mdl_constraint){
			.name = $2, .path = $3, .is_default = true });
	}
	| CONSTRAINT name PATH IS type '{' wheres '}' semicolon {
		add_constraint(reader, (struct mdl_constraint){
			.name = $2, .path = $3, .type = (enum mdl_type)$5, .body = $7 });
	}
	| CONSTRAINT name PATH IS REPLACE type '{' wheres '}' semicolon {
		add_constraint(reader, (struct mdl_constraint){
			.name = $2, .path = $3, .type = (enum mdl_type)$6, .body = $8, .replaces = true });
	}
	;

/* --- Metrics ---------------------------------------------------------------------------------- */

metric: METRIC name '{' metric_fields '}' semicolon {
	struct mdl_metric *metric = reader_new(reader, sizeof(*metric));

	reader->metric.name = $2;
	if (metric)
		*metric = reader->metric;
	reader->metric = (struct mdl_metric){ 0 };
	*CHAIN_END(reader->mdl->metrics) = metric;
};

metric_fields: %empty | metric_fields metric_field ';' | metric_fields base;

metric_field:
	  NAME STRING { reader->metric.title = $2; }
	| UNITS name { reader->metric.units = $2.text; }
	| UNITS_TYPE name {
		int chosen = choose(reader, &$2, "unitsType", units_types);

		if (chosen < 0)
			YYABORT;
		reader->metric.units_type = (enum mdl_units)chosen;
	}
	| AGGREGATE name {
		int chosen = choose(reader, &$2, "aggregateOperator", aggregates);

		if (chosen < 0)
			YYABORT;
		reader->metric.aggregate = (enum mdl_aggregate)chosen;
	}
	| STYLE name {
		int chosen = choose(reader, &$2, "style", styles);

		if (chosen < 0)
			YYABORT;
		reader->metric.sampled_function = chosen;
	}
	| FLAVOR flavors { *CHAIN_END(reader->metric.flavors) = $2; }
	| MODE name {
		int chosen = choose(reader, &$2, "mode", modes);

		if (chosen < 0)
			YYABORT;
		reader->metric.for_developers = chosen;
	}
	| CONSTRAINT name { *CHAIN_END(reader->metric.constraints) = new_name(reader, $2); }
	| COUNTER names { *CHAIN_END(reader->metric.counters) = $2; }
	;

base: BASE IS type '{' wheres '}' semicolon {
	if (reader->metric.has_base) {
		mdl_fault(reader->error, @1, "a metric has one base");
		YYABORT;
	}
	reader->metric.has_base = true;
	reader->metric.type = (enum mdl_type)$3;
	reader->metric.base = $5;
};

/* --- Where code is put ------------------------------------------------------------------------ */

wheres: %empty { $$ = NULL; } | wheres where { $$ = $1; *CHAIN_END($$) = $2; };

where:
	  '{' deeper wheres '}' semicolon {
		reader->depth--;
		$$ = $3;
	}
	| FOREACH word IN list_object deeper where {
		reader->depth--;
		$$ = new_where(reader, @1, (struct mdl_where){
			.kind = MDL_FOREACH, .text = $2, .object = $4, .then = $6 });
	}
	| IF '(' expr ')' deeper where %prec THEN {
		reader->depth--;
		$$ = new_where(reader, @1, (struct mdl_where){
			.kind = MDL_CHOOSE, .expr = $3, .then = $6 });
	}
	| IF '(' expr ')' deeper where ELSE where {
		reader->depth--;
		$$ = new_where(reader, @1, (struct mdl_where){
			.kind = MDL_CHOOSE, .expr = $3, .then = $6, .otherwise = $8 });
	}
	| order moment point constrained CODE_BEGIN code CODE_END semicolon {
		$$ = new_where(reader, @1, (struct mdl_where){
			.kind = MDL_PUT, .prepend = $1, .post = $2, .object = $3, .constrained = $4,
			.code = $6 });
	}
	;

deeper: %empty {
	if (deepen(reader, @$) < 0)
		YYABORT;
};

order: APPEND { $$ = false; } | PREPEND { $$ = true; };

moment: PRE { $$ = false; } | POST { $$ = true; };

constrained: %empty { $$ = false; } | CONSTRAINED { $$ = true; };

index: '[' NUMBER ']' { $$ = $2; };

field: word;

object:
	  word { $$ = (struct mdl_object){ .place = @1, .base = MDL_NAMED, .text = $1, .field = "" }; }
	| COMPONENT index {
		$$ = (struct mdl_object){ .place = @1, .base = MDL_SELECTED, .number = $2, .text = "$constraint", .field = "" };
	}
	| ALL_PROCEDURES {
		$$ = (struct mdl_object){ .place = @1, .base = MDL_PROCEDURES, .text = "$procedures", .field = "" };
	}
	| START { $$ = (struct mdl_object){ .place = @1, .base = MDL_START, .text = "$start", .field = "" }; }
	| EXIT { $$ = (struct mdl_object){ .place = @1, .base = MDL_EXIT, .text = "$exit", .field = "" }; }
	;

point: object '.' field { $$ = $1; $$.field = $3; $$.field_place = @3; };

list_object: object | point;

/* --- Expressions, and code -------------------------------------------------------------------- */

expr:
	  primary
	| expr OR expr { $$ = new_pair(reader, @2, MDL_OR, $1, $3); }
	| expr AND expr { $$ = new_pair(reader, @2, MDL_AND, $1, $3); }
	| expr EQUAL expr { $$ = new_pair(reader, @2, MDL_EQUAL, $1, $3); }
	| expr UNEQUAL expr { $$ = new_pair(reader, @2, MDL_UNEQUAL, $1, $3); }
	| expr '<' expr { $$ = new_pair(reader, @2, MDL_LESS, $1, $3); }
	| expr '>' expr { $$ = new_pair(reader, @2, MDL_MORE, $1, $3); }
	| expr AT_MOST expr { $$ = new_pair(reader, @2, MDL_AT_MOST, $1, $3); }
	| expr AT_LEAST expr { $$ = new_pair(reader, @2, MDL_AT_LEAST, $1, $3); }
	| expr '+' expr { $$ = new_pair(reader, @2, MDL_PLUS, $1, $3); }
	| expr '-' expr { $$ = new_pair(reader, @2, MDL_MINUS, $1, $3); }
	| expr '*' expr { $$ = new_pair(reader, @2, MDL_TIMES, $1, $3); }
	| expr '/' expr { $$ = new_pair(reader, @2, MDL_DIVIDED, $1, $3); }
	| expr '%' expr { $$ = new_pair(reader, @2, MDL_MODULO, $1, $3); }
	| '!' deeper expr %prec '!' { reader->depth--; $$ = new_pair(reader, @1, MDL_NOT, $3, NULL); }
	| '-' deeper expr %prec SIGN { reader->depth--; $$ = new_pair(reader, @1, MDL_NEGATIVE, $3, NULL); }
	;

primary:
	  NUMBER { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_NUMBER, .number = $1 }); }
	| STRING { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_STRING, .text = $1 }); }
	| word { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_VARIABLE, .text = $1 }); }
	| word '.' field {
		$$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_FIELD, .text = $1, .field = $3 });
	}
	| ARG index { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_ARG, .number = $2 }); }
	| RETURN { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_RETURN }); }
	| COMPONENT index {
		$$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_COMPONENT, .number = $2 });
	}
	| COMPONENT index '.' field {
		$$ = new_expr(reader, @1, (struct mdl_expr){
			.kind = MDL_COMPONENT, .number = $2, .field = $4 });
	}
	| '&' word { $$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_ADDRESS, .text = $2 }); }
	| word '(' deeper arguments ')' {
		reader->depth--;
		$$ = new_expr(reader, @1, (struct mdl_expr){ .kind = MDL_CALL, .text = $1, .left = $4 });
	}
	| '(' deeper expr ')' { reader->depth--; $$ = $3; }
	;

arguments: %empty { $$ = NULL; } | some_arguments;

some_arguments: expr | some_arguments ',' expr { $$ = $1; *CHAIN_END($$) = $3; };

code: %empty { $$ = NULL; } | code statement { $$ = $1; *CHAIN_END($$) = $2; };

statement:
	  ';' { $$ = NULL; }
	| '{' deeper code '}' { reader->depth--; $$ = $3; }
	| word '=' expr ';' {
		$$ = new_code(reader, @1, (struct mdl_code){ .kind = MDL_ASSIGN, .text = $1, .expr = $3 });
	}
	| word ADD_TO expr ';' { $$ = new_change(reader, @1, $1, MDL_PLUS, $3); }
	| word TAKE_FROM expr ';' { $$ = new_change(reader, @1, $1, MDL_MINUS, $3); }
	| word INCREMENT ';' { $$ = new_change(reader, @1, $1, MDL_PLUS, NULL); }
	| word DECREMENT ';' { $$ = new_change(reader, @1, $1, MDL_MINUS, NULL); }
	| word '(' arguments ')' ';' {
		struct mdl_expr call = { .kind = MDL_CALL, .text = $1, .left = $3 };

		$$ = new_code(reader, @1, (struct mdl_code){ .kind = MDL_DO, .expr = new_expr(reader, @1, call) });
	}
	| IF '(' expr ')' deeper statement %prec THEN {
		reader->depth--;
		$$ = new_code(reader, @1, (struct mdl_code){ .kind = MDL_IF, .expr = $3, .then = $6 });
	}
	| IF '(' expr ')' deeper statement ELSE statement {
		reader->depth--;
		$$ = new_code(reader, @1, (struct mdl_code){
			.kind = MDL_IF, .expr = $3, .then = $6, .otherwise = $8 });
	}
	;

%%

static struct mdl_name *new_name(struct mdl_reader *reader, struct mdl_name name)
{
	struct mdl_name *new = reader_new(reader, sizeof(*new));

	if (new)
		*new = name;
	return new;
}

static struct mdl_expr *new_expr(struct mdl_reader *reader, struct mdl_place place, struct mdl_expr expr)
{
	struct mdl_expr *new = reader_new(reader, sizeof(*new));

	expr.place = place;
	if (new)
		*new = expr;
	return new;
}

static struct mdl_expr *new_pair(struct mdl_reader *reader, struct mdl_place place, enum mdl_expr_kind kind,
				 struct mdl_expr *left, struct mdl_expr *right)
{
	return new_expr(reader, place, (struct mdl_expr){ .kind = kind, .left = left, .right = right });
}

static struct mdl_code *new_code(struct mdl_reader *reader, struct mdl_place place, struct mdl_code code)
{
	struct mdl_code *new = reader_new(reader, sizeof(*new));

	code.place = place;
	if (new)
		*new = code;
	return new;
}

/* name = name + by; by NULL: 1 */
static struct mdl_code *new_change(struct mdl_reader *reader, struct mdl_place place, const char *name,
				   enum mdl_expr_kind kind, struct mdl_expr *by)
{
	struct mdl_expr variable = { .kind = MDL_VARIABLE, .text = name };
	struct mdl_expr one = { .kind = MDL_NUMBER, .number = 1 };
	struct mdl_expr *old = new_expr(reader, place, variable);
	struct mdl_expr *sum = new_pair(reader, place, kind, old, by ? by : new_expr(reader, place, one));

	return new_code(reader, place, (struct mdl_code){ .kind = MDL_ASSIGN, .text = name, .expr = sum });
}

static struct mdl_where *new_where(struct mdl_reader *reader, struct mdl_place place, struct mdl_where where)
{
	struct mdl_where *new = reader_new(reader, sizeof(*new));

	where.place = place;
	if (new)
		*new = where;
	return new;
}

static void add_constraint(struct mdl_reader *reader, struct mdl_constraint constraint)
{
	struct mdl_constraint *new = reader_new(reader, sizeof(*new));

	if (new)
		*new = constraint;
	*CHAIN_END(reader->mdl->constraints) = new;
}

static int choose(struct mdl_reader *reader, const struct mdl_name *name, const char *what,
		  const char *const *words)
{
	char known[128] = "";

	for (int i = 0; words[i]; i++) {
		if (!strcmp(words[i], name->text))
			return i;
		strcat(strcat(known, !i ? "" : words[i + 1] ? ", " : " or "), words[i]);
	}
	return mdl_fault(reader->error, name->place, "%s is %s, not %s", what, known, name->text);
}

/* What is deep in the text is deep on the stack of who reads the tree. */
static int deepen(struct mdl_reader *reader, struct mdl_place place)
{
	if (++reader->depth <= MDL_NESTING)
		return 0;
	return mdl_fault(reader->error, place, "more than %d levels in each other", MDL_NESTING);
}

static void mdl_yyerror(const struct mdl_place *place, void *scanner, struct mdl_reader *reader, const char *text)
{
	(void)scanner;
	(void)text;
	reader->no_memory = true;
	mdl_fault(reader->error, *place, "there is no memory for it");
}

/* Where a name may stand, all words of the language may, too. */
static bool is_told(yysymbol_kind_t symbol, bool names)
{
	return !names || symbol == YYSYMBOL_WORD || symbol < YYSYMBOL_AGGREGATE || symbol > YYSYMBOL_WALL_TIMER;
}

static void add_symbols(char *text, size_t size, const yysymbol_kind_t *symbols, int n)
{
	bool names = false;
	int told = 0, said = 0;

	for (int i = 0; i < n; i++)
		names |= symbols[i] == YYSYMBOL_WORD;
	for (int i = 0; i < n; i++)
		told += is_told(symbols[i], names);
	for (int i = 0; i < n; i++) {
		size_t used = strlen(text);

		if (!is_told(symbols[i], names))
			continue;
		said++;
		snprintf(text + used, size - used, "%s%s", said == 1 ? "" : said == told ? " or " : ", ",
			 symbols[i] == YYSYMBOL_YYEOF ? "the end of the text" : yysymbol_name(symbols[i]));
	}
}

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct mdl_reader *reader)
{
	yysymbol_kind_t found = yypcontext_token(context), symbols[YYNTOKENS];
	int n = yypcontext_expected_tokens(context, symbols, YYNTOKENS);
	const struct mdl_place *place = yypcontext_location(context);
	char expected[384] = "";

	(void)scanner;
	if (n < 0)
		return n;
	add_symbols(expected, sizeof(expected), symbols, n);
	if (reader->no_memory)
		mdl_fault(reader->error, *place, "there is no memory for it");
	else if (found == YYSYMBOL_YYEOF || found == YYSYMBOL_OPEN_CODE)
		mdl_fault(reader->error, *place, "the text ends, expected %s", expected);
	else
		mdl_fault(reader->error, *place, "expected %s", expected);
	return 0;
}
