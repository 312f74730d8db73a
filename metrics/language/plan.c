/* SPDX-License-Identifier: MIT */
/*
 * A plan is made in this order: the constraint of each focus, then the metric's base, or the
 * constraint that replaces it. Each is walked once; foreach and if are run, and code is compiled
 * for each point where it is put.
 *
 * A procedure of foreach that lacks a point, as one without probes at its returns, gets no code of
 * that constraint or base at all: a timer that is started there would never be stopped.
 */
#include "metrics/language/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "metrics/language/focus.h"

/* What a variable of foreach stands for, or a part of a focus. */
struct thing {
	enum {
		PROCEDURES,
		MODULE_PATTERN,
		TEXT,
	} kind;
	const uint32_t *procedure;
	size_t n;
	const char *text; /* as in a list, or in a focus */
};

struct binding {
	const struct binding *outer;
	const char *name;
	const struct thing *thing;
};

struct walk {
	const struct mdl *mdl;
	const struct metric_request *request;
	const struct metric_world *world;
	struct metric_plan *plan;
	struct mdl_error *error;
	const struct mdl_metric *metric;
	struct focus focus[FOCI_MAX];
	size_t foci;
	const struct focus *here; /* whose constraint is walked; NULL: the metric's base is */
	const struct binding *bindings;
	uint32_t counters; /* the first of the metric's temporary ones */
	bool in_loop;	   /* through procedures */
	uint32_t *lacking; /* procedures without a point that this code needs */
	size_t lacking_n;
};

static int walk_all(struct walk *walk, const struct mdl_where *where);

static int fail(struct walk *walk, struct mdl_place place, const char *what)
{
	return mdl_fault(walk->error, place, "%s", what);
}

/* --- Numbers of procedures -------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
	uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;

	return (one > two) - (one < two);
}

size_t sort_numbers(uint32_t *number, size_t n)
{
	size_t once = 0;

	if (n)
		qsort(number, n, sizeof(*number), compare_numbers);
	for (size_t i = 0; i < n; i++)
		if (!i || number[i] != number[i - 1])
			number[once++] = number[i];
	return once;
}

/* --- Names in code ---------------------------------------------------------------------------- */

static struct code_name text_in_code(const char *text)
{
	char *end;
	int64_t number;

	errno = 0;
	number = strtoll(text, &end, 0);
	if (!*text || *end || errno)
		return (struct code_name){ .kind = NAME_TEXT };
	return (struct code_name){ .kind = NAME_NUMBER, .number = number };
}

static struct code_name variable(enum mdl_type type, uint32_t at)
{
	return (struct code_name){ .kind = type == MDL_COUNTER ? NAME_COUNTER : NAME_TIMER,
				   .type = type,
				   .at = at };
}

static struct code_name constraint_variable(const struct walk *walk, const struct focus *focus)
{
	if (focus->constraint->is_default)
		return (struct code_name){ .kind = NAME_UNKNOWN };
	if (focus->constraint->replaces)
		return variable(walk->plan->type, walk->request->value);
	return variable(MDL_COUNTER, focus->flag);
}

static struct code_name find_name(void *data, const char *name)
{
	const struct walk *walk = data;
	uint32_t at = walk->counters;

	for (const struct binding *one = walk->bindings; one; one = one->outer)
		if (!strcmp(one->name, name))
			return one->thing->kind == TEXT ? text_in_code(one->thing->text)
							: (struct code_name){ .kind = NAME_TEXT };
	if (!strcmp(walk->metric->name.text, name))
		return variable(walk->plan->type, walk->request->value);
	for (const struct mdl_name *one = walk->metric->counters; one; one = one->next, at++)
		if (!strcmp(one->text, name))
			return variable(MDL_COUNTER, at);
	/* Two foci may have one constraint, whose code knows its own variable. */
	if (walk->here && !strcmp(walk->here->constraint->name.text, name))
		return constraint_variable(walk, walk->here);
	for (size_t i = 0; i < walk->foci; i++)
		if (!strcmp(walk->focus[i].constraint->name.text, name))
			return constraint_variable(walk, &walk->focus[i]);
	return (struct code_name){ .kind = NAME_UNKNOWN };
}

static const char *find_part(const struct walk *walk, int64_t number)
{
	if (!walk->here || number < 0 || number >= (int64_t)walk->here->parts)
		return NULL;
	return walk->here->part[number];
}

static struct code_name find_component(void *data, int64_t number)
{
	const char *part = find_part(data, number);

	return part ? text_in_code(part) : (struct code_name){ .kind = NAME_UNKNOWN };
}

static int find_symbol(void *data, const char *name, uint64_t *address, unsigned *size)
{
	const struct metric_world *world = ((struct walk *)data)->world;

	return world->symbol(world->data, name, address, size);
}

/* --- Things ----------------------------------------------------------------------------------- */

static struct thing part_thing(const struct focus *focus, size_t number)
{
	struct thing thing = { .kind = TEXT, .text = focus->part[number] };

	if (focus->in_code && number + 1 == focus->parts) {
		thing.kind = MODULE_PATTERN;
	} else if (focus->in_code && !number) {
		thing.kind = PROCEDURES;
		thing.procedure = focus->procedures;
		thing.n = focus->procedures_n;
	}
	return thing;
}

/* A variable of foreach, or a part of the focus. */
static int find_thing(struct walk *walk, const struct mdl_object *object, struct thing *thing)
{
	const struct binding *one = walk->bindings;

	if (object->base == MDL_SELECTED) {
		if (!find_part(walk, object->number))
			return fail(walk, object->place, "the focus has no such component");
		*thing = part_thing(walk->here, (size_t)object->number);
		return 0;
	}
	while (one && (object->base != MDL_NAMED || strcmp(one->name, object->text) != 0))
		one = one->outer;
	if (!one)
		return mdl_fault(walk->error, object->place, "there is no %s here", object->text);
	*thing = *one->thing;
	return 0;
}

static const char *thing_name(const struct walk *walk, const struct thing *thing)
{
	if (thing->kind != PROCEDURES)
		return thing->text;
	return thing->n ? walk->world->name(walk->world->data, *thing->procedure) : "";
}

/* --- Code at points --------------------------------------------------------------------------- */

/* The variables of constraints, but for the one whose own code it is. */
static size_t find_flags(const struct walk *walk, uint32_t flags[FOCI_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < walk->foci; i++) {
		const struct focus *focus = &walk->focus[i];

		if (focus != walk->here && !focus->constraint->is_default &&
		    !focus->constraint->replaces)
			flags[n++] = focus->flag;
	}
	return n;
}

static int compile_here(struct walk *walk, const struct mdl_where *put, enum code_point point,
			bool *registers)
{
	uint32_t flags[FOCI_MAX];
	const struct code_scope scope = {
		.name = find_name,
		.component = find_component,
		.symbol = find_symbol,
		.data = walk,
		.point = point,
		.flags = flags,
		.flags_n = put->constrained ? find_flags(walk, flags) : 0,
	};
	struct metric_plan *plan = walk->plan;
	struct snippet *snippet = compile_code(put->code, &scope, registers, walk->error);
	int ret;

	if (!snippet)
		return *walk->error->text ? -EINVAL : -ENOMEM;
	ret = ARRAY_ADD(plan->snippets, plan->snippets_n, snippet);
	if (ret)
		free(snippet);
	return ret;
}

static int put_at(struct walk *walk, const struct mdl_where *put, uint32_t procedure, uint32_t id)
{
	struct metric_plan *plan = walk->plan;
	const struct snippet *snippet = plan->snippets[plan->snippets_n - 1];

	return ARRAY_ADD(plan->placement, plan->n,
			 (struct placement){ id, procedure, put->prepend, put->post, snippet });
}

static int put_event(struct walk *walk, const struct mdl_where *put)
{
	bool registers;
	int ret;

	if (strcmp(put->object.field, "entry") != 0)
		return fail(walk, put->object.field_place, "$start and $exit have .entry only");
	ret = compile_here(walk, put, CODE_AT_EVENT, &registers);
	if (ret)
		return ret;
	return put_at(walk, put, NO_PROCEDURE, put->object.base == MDL_START ? AT_START : AT_EXIT);
}

/* In foreach, a procedure without the point is left out later. */
static int put_in_procedure(struct walk *walk, const struct mdl_where *put, uint32_t procedure,
			    enum code_point point, bool registers)
{
	const struct metric_world *world = walk->world;
	const uint32_t *ids;
	size_t n = world->probes(world->data, procedure, point, registers, &ids);
	int ret = 0;

	if (!n && walk->in_loop)
		return ARRAY_ADD(walk->lacking, walk->lacking_n, procedure);
	if (!n)
		return mdl_fault(walk->error, put->object.field_place,
				 "%s has no probes at .%s%s; fastinst(7) says how to compile",
				 world->name(world->data, procedure), put->object.field,
				 registers ? " that know registers" : "");
	for (size_t i = 0; i < n && !ret; i++)
		ret = put_at(walk, put, procedure, ids[i]);
	return ret;
}

static int walk_put(struct walk *walk, const struct mdl_where *put)
{
	static const char *const fields[] = {
		[CODE_AT_ENTRY] = "entry", [CODE_AT_RETURN] = "return", [CODE_AT_CALL] = "calls"
	};
	enum code_point point = CODE_AT_ENTRY;
	struct thing thing;
	bool registers;
	int ret;

	if (put->object.base == MDL_START || put->object.base == MDL_EXIT)
		return put_event(walk, put);
	while (point <= CODE_AT_CALL && strcmp(fields[point], put->object.field) != 0)
		point++;
	if (point > CODE_AT_CALL)
		return fail(walk, put->object.field_place,
			    "points of a procedure are .entry, .return and .calls");
	ret = find_thing(walk, &put->object, &thing);
	if (!ret && thing.kind != PROCEDURES)
		ret = mdl_fault(walk->error, put->object.place, "%s is no procedure",
				put->object.text);
	if (!ret)
		ret = compile_here(walk, put, point, &registers);
	for (size_t i = 0; i < thing.n && !ret; i++)
		ret = put_in_procedure(walk, put, thing.procedure[i], point, registers);
	return ret;
}

/* --- foreach ---------------------------------------------------------------------------------- */

static int walk_with(struct walk *walk, const struct mdl_where *loop, const struct thing *thing)
{
	const struct binding binding = { walk->bindings, loop->text, thing };
	bool was_in = walk->in_loop;
	int ret;

	walk->bindings = &binding;
	walk->in_loop |= thing->kind == PROCEDURES;
	ret = walk_all(walk, loop->then);
	walk->in_loop = was_in;
	walk->bindings = binding.outer;
	return ret;
}

static int walk_procedures(struct walk *walk, const struct mdl_where *loop, const struct thing *all)
{
	int ret = 0;

	for (size_t i = 0; i < all->n && !ret; i++) {
		struct thing one = { .kind = PROCEDURES, .procedure = &all->procedure[i], .n = 1 };

		ret = walk_with(walk, loop, &one);
	}
	return ret;
}

static int walk_pattern(struct walk *walk, const struct mdl_where *loop, const char *pattern)
{
	struct thing all = { .kind = PROCEDURES };
	uint32_t *found = NULL;
	long n = walk->world->find(walk->world->data, pattern, NULL, &found);
	int ret;

	all.procedure = found;
	all.n = n > 0 ? (size_t)n : 0;
	ret = n < 0 ? (int)n : walk_procedures(walk, loop, &all);
	free(found);
	return ret;
}

/* Those that any item names, once. Items that the program has not are not in the list. */
static int walk_named(struct walk *walk, const struct mdl_where *loop, const struct mdl_list *list)
{
	struct thing all = { .kind = PROCEDURES };
	uint32_t *number = NULL, *found;
	size_t n = 0;
	int ret = 0;

	for (const struct mdl_name *item = list->items; item && ret >= 0; item = item->next) {
		found = NULL;
		ret = (int)walk->world->find(walk->world->data, item->text, list, &found);
		for (long i = 0, more = ret; i < more && ret >= 0; i++)
			ret = ARRAY_ADD(number, n, found[i]);
		free(found);
	}
	all.procedure = number;
	all.n = sort_numbers(number, n);
	ret = ret < 0 ? ret : walk_procedures(walk, loop, &all);
	free(number);
	return ret;
}

static int walk_list(struct walk *walk, const struct mdl_where *loop, const struct mdl_list *list)
{
	int ret = 0;

	if (!has_flavor(list->flavors, walk->request->flavor))
		return 0;
	if (list->kind == MDL_PROCEDURE)
		return walk_named(walk, loop, list);
	for (const struct mdl_name *item = list->items; item && !ret; item = item->next) {
		struct thing thing = { .kind = list->kind == MDL_MODULE ? MODULE_PATTERN : TEXT,
				       .text = item->text };

		ret = walk_with(walk, loop, &thing);
	}
	return ret;
}

static int walk_foreach(struct walk *walk, const struct mdl_where *loop)
{
	const struct mdl_object *object = &loop->object;
	const struct mdl_list *list = NULL;
	struct thing thing;
	char pattern[512];
	int ret;

	if (object->base == MDL_PROCEDURES && !*object->field)
		return walk_pattern(walk, loop, "*");
	if (object->base == MDL_NAMED && !*object->field)
		list = mdl_list_named(walk->mdl, object->text);
	if (list)
		return walk_list(walk, loop, list);
	ret = find_thing(walk, object, &thing);
	if (ret)
		return ret;
	if (thing.kind == PROCEDURES && !*object->field)
		return walk_procedures(walk, loop, &thing);
	if (thing.kind != MODULE_PATTERN || strcmp(object->field, "funcs") != 0)
		return fail(walk, object->place,
			    "foreach goes through a list, $procedures, or the .funcs of a module");
	if (snprintf(pattern, sizeof(pattern), "%s:*", thing.text) >= (int)sizeof(pattern))
		return -ENAMETOOLONG;
	return walk_pattern(walk, loop, pattern);
}

/* --- if --------------------------------------------------------------------------------------- */

/* A text, or a number where that is NULL. */
struct answer {
	const char *text;
	int64_t number;
};

static int answer_expr(struct walk *walk, const struct mdl_expr *expr, struct answer *answer);

static int answer_name(struct walk *walk, const struct mdl_expr *expr, struct answer *answer)
{
	const struct mdl_object object = {
		.place = expr->place,
		.base = expr->kind == MDL_COMPONENT ? MDL_SELECTED : MDL_NAMED,
		.number = expr->number,
		.text = expr->text,
	};
	struct thing thing;
	int ret = find_thing(walk, &object, &thing);

	if (ret)
		return ret;
	if (expr->field ? strcmp(expr->field, "name") != 0 : thing.kind != TEXT)
		return fail(walk, expr->place, "what is asked about it here is its .name");
	*answer = (struct answer){ .text = thing_name(walk, &thing) };
	return 0;
}

static int answer_operation(struct walk *walk, const struct mdl_expr *expr, struct answer *answer)
{
	enum snippet_op op = (enum snippet_op)(expr->kind - MDL_NOT + OP_NOT);
	struct answer left, right = { 0 };
	int ret = answer_expr(walk, expr->left, &left);

	if (!ret && expr->right)
		ret = answer_expr(walk, expr->right, &right);
	if (ret)
		return ret;
	if (!left.text != !right.text || (left.text && op != OP_EQUAL && op != OP_UNEQUAL))
		return fail(walk, expr->place, "texts are == or != to texts, and nothing else");
	if (left.text)
		left.number = strcmp(left.text, right.text);
	*answer = (struct answer){ .number = combine_numbers(op, left.number, right.number) };
	return 0;
}

static int answer_expr(struct walk *walk, const struct mdl_expr *expr, struct answer *answer)
{
	switch (expr->kind) {
	case MDL_NUMBER:
		*answer = (struct answer){ .number = expr->number };
		return 0;
	case MDL_STRING:
		*answer = (struct answer){ .text = expr->text };
		return 0;
	case MDL_VARIABLE:
	case MDL_FIELD:
	case MDL_COMPONENT:
		return answer_name(walk, expr, answer);
	case MDL_ARG:
	case MDL_RETURN:
	case MDL_ADDRESS:
	case MDL_CALL:
		return fail(walk, expr->place, "it is known to code in (* *) only");
	default:
		return answer_operation(walk, expr, answer);
	}
}

static int walk_if(struct walk *walk, const struct mdl_where *choice)
{
	struct answer answer = { 0 };
	int ret = answer_expr(walk, choice->expr, &answer);

	if (!ret && answer.text)
		ret = fail(walk, choice->expr->place, "a text is neither true nor false");
	if (!ret && (answer.number || walk->world->is_none))
		ret = walk_all(walk, choice->then);
	if (!ret && (!answer.number || walk->world->is_none))
		ret = walk_all(walk, choice->otherwise);
	return ret;
}

static int walk_all(struct walk *walk, const struct mdl_where *where)
{
	int ret = 0;

	for (; where && !ret; where = where->next)
		if (where->kind == MDL_FOREACH)
			ret = walk_foreach(walk, where);
		else if (where->kind == MDL_CHOOSE)
			ret = walk_if(walk, where);
		else
			ret = walk_put(walk, where);
	return ret;
}

/* --- The focus -------------------------------------------------------------------------------- */

/* The first constraint of the metric's that takes it. */
static int add_focus(struct walk *walk, const char *path)
{
	struct focus *focus = &walk->focus[walk->foci];
	const struct mdl_name *name = walk->metric->constraints;
	const struct mdl_constraint *constraint = NULL;

	if (path[strspn(path, "/")] == '\0' || !strcmp(path, "/Code"))
		return 0;
	for (; name; name = name->next) {
		constraint = mdl_constraint_named(walk->mdl, name->text);
		if (constraint && focus_take(focus, constraint, path))
			break;
	}
	if (!name)
		return mdl_fault(walk->error, (struct mdl_place){ 0 },
				 "%s cannot be limited to %s: it has no constraint for that",
				 walk->metric->name.text, path);
	walk->foci++;
	if (constraint->is_default)
		walk->plan->thread = path + strlen(constraint->path) + 1;
	else if (constraint->replaces)
		walk->plan->type = constraint->type;
	else
		focus->flag = walk->plan->next_value++;
	return focus_find_procedures(focus, walk->world, walk->error);
}

bool has_flavor(const struct mdl_name *flavors, const char *flavor)
{
	bool has = !flavors || !flavor;

	for (; flavors && !has; flavors = flavors->next)
		has = !strcmp(flavors->text, flavor);
	return has;
}

/* --- The plan --------------------------------------------------------------------------------- */

/* A constraint's code, or a base: without what was put at procedures that lack a point. */
static int walk_body(struct walk *walk, const struct mdl_where *body)
{
	struct metric_plan *plan = walk->plan;
	size_t kept = plan->n;
	int ret = walk_all(walk, body);

	walk->lacking_n = sort_numbers(walk->lacking, walk->lacking_n);
	for (size_t i = kept; i < plan->n && walk->lacking_n; i++)
		if (!bsearch(&plan->placement[i].procedure, walk->lacking, walk->lacking_n,
			     sizeof(*walk->lacking), compare_numbers))
			plan->placement[kept++] = plan->placement[i];
	if (walk->lacking_n)
		plan->n = kept;
	plan->left_out += walk->lacking_n;
	free(walk->lacking);
	walk->lacking = NULL;
	walk->lacking_n = 0;
	return ret;
}

static int walk_constraints(struct walk *walk)
{
	bool replaced = false;
	int ret = 0;

	for (size_t i = 0; i < walk->foci && !ret; i++) {
		const struct mdl_constraint *constraint = walk->focus[i].constraint;

		walk->here = &walk->focus[i];
		if (constraint->replaces && replaced)
			return fail(walk, constraint->name.place,
				    "two constraints cannot replace one base");
		replaced |= constraint->replaces;
		ret = walk_body(walk, constraint->body);
	}
	walk->here = NULL;
	return ret || replaced ? ret : walk_body(walk, walk->metric->base);
}

int plan_metric(const struct mdl *mdl, const struct metric_request *request,
		const struct metric_world *world, struct metric_plan *plan, struct mdl_error *error)
{
	struct walk walk = { .mdl = mdl,
			     .request = request,
			     .world = world,
			     .plan = plan,
			     .error = error,
			     .metric = mdl_metric_named(mdl, request->metric) };
	int ret = 0;

	*plan = (struct metric_plan){ .next_value = request->next_value };
	*error = (struct mdl_error){ 0 };
	if (!walk.metric)
		return mdl_fault(error, (struct mdl_place){ 0 }, "there is no metric %s",
				 request->metric);
	if (!has_flavor(walk.metric->flavors, request->flavor))
		return mdl_fault(error, (struct mdl_place){ 0 }, "%s is not of the flavor %s",
				 request->metric, request->flavor);
	plan->type = walk.metric->type;
	walk.counters = plan->next_value;
	for (const struct mdl_name *one = walk.metric->counters; one; one = one->next)
		plan->next_value++;
	for (size_t i = 0; i < request->foci_n && !ret; i++)
		ret = add_focus(&walk, request->foci[i]);
	if (!ret)
		ret = walk_constraints(&walk);
	for (size_t i = 0; i < FOCI_MAX; i++) {
		free(walk.focus[i].procedures);
		free(walk.focus[i].copy);
	}
	return ret;
}

void plan_free(struct metric_plan *plan)
{
	while (plan->snippets_n)
		free(plan->snippets[--plan->snippets_n]);
	free(plan->snippets);
	free(plan->placement);
	*plan = (struct metric_plan){ 0 };
}
