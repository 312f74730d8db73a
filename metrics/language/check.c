/* SPDX-License-Identifier: MIT */
/*
 * Whether all that a text declares can be asked for: each metric is planned as a whole, and with
 * each of its constraints, for a program that has every procedure, point and variable.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/language/focus.h"

/* --- A program that has all ------------------------------------------------------------------- */

static long find_any(void *data, const char *pattern, const struct mdl_list *list, uint32_t **found)
{
	(void)data;
	(void)pattern;
	(void)list;
	*found = calloc(1, sizeof(**found));
	return *found ? 1 : -ENOMEM;
}

static const char *name_any(void *data, uint32_t procedure)
{
	(void)data;
	(void)procedure;
	return "";
}

static size_t have_probes(void *data, uint32_t procedure, enum code_point point, bool registers,
			  const uint32_t **ids)
{
	static const uint32_t id;

	(void)data;
	(void)procedure;
	(void)point;
	(void)registers;
	*ids = &id;
	return 1;
}

static int have_symbol(void *data, const char *name, uint64_t *address, unsigned *size)
{
	(void)data;
	(void)name;
	*address = 0;
	*size = 8;
	return 0;
}

const struct metric_world no_program = {
	.find = find_any,
	.name = name_any,
	.probes = have_probes,
	.symbol = have_symbol,
	.is_none = true,
};

/* --- Declarations ----------------------------------------------------------------------------- */

static int check_names(const struct mdl *mdl, struct mdl_error *error)
{
	for (const struct mdl_list *one = mdl->lists; one; one = one->next)
		if (mdl_list_named(mdl, one->name.text) != one)
			return mdl_fault(error, one->name.place, "there is a list %s already",
					 one->name.text);
	for (const struct mdl_constraint *one = mdl->constraints; one; one = one->next)
		if (mdl_constraint_named(mdl, one->name.text) != one)
			return mdl_fault(error, one->name.place, "there is a constraint %s already",
					 one->name.text);
	for (const struct mdl_metric *one = mdl->metrics; one; one = one->next)
		if (mdl_metric_named(mdl, one->name.text) != one)
			return mdl_fault(error, one->name.place, "there is a metric %s already",
					 one->name.text);
	return 0;
}

static int check_constraint(const struct mdl_constraint *constraint, struct mdl_error *error)
{
	const struct mdl_name *name = &constraint->name;

	if (constraint->is_default && strcmp(constraint->path, "/Thread") != 0)
		return mdl_fault(error, name->place, "only /Thread is known by default, not %s",
				 constraint->path);
	if (!constraint->is_default && !constraint->replaces && constraint->type != MDL_COUNTER)
		return mdl_fault(error, name->place,
				 "a constraint is a counter, or replaces a base, and is no %s",
				 type_name(constraint->type));
	if (strcmp(constraint->path, "/Code") != 0 || takes_parts(constraint, 1) ||
	    takes_parts(constraint, 2))
		return 0;
	return mdl_fault(error, name->place,
			 "%s is for no focus: of the last component, $constraint[0], it takes "
			 "neither .funcs, which is a module, nor points, which is a procedure",
			 name->text);
}

/* A metric's variables have names of their own. */
static int check_variables(const struct mdl_metric *metric, struct mdl_error *error)
{
	for (const struct mdl_name *one = metric->constraints; one; one = one->next)
		if (!strcmp(one->text, metric->name.text))
			return mdl_fault(error, one->place, "%s is the metric", one->text);
	for (const struct mdl_name *one = metric->counters; one; one = one->next) {
		bool twice = !strcmp(one->text, metric->name.text);

		for (const struct mdl_name *other = one->next; other; other = other->next)
			twice |= !strcmp(one->text, other->text);
		for (const struct mdl_name *other = metric->constraints; other; other = other->next)
			twice |= !strcmp(one->text, other->text);
		if (twice)
			return mdl_fault(error, one->place, "%s is something else already",
					 one->text);
	}
	return 0;
}

static int check_plan(const struct mdl *mdl, const struct mdl_metric *metric, const char *focus,
		      struct mdl_error *error)
{
	struct metric_request request = { .metric = metric->name.text,
					  .next_value = 1,
					  .foci = { focus },
					  .foci_n = focus != NULL };
	struct metric_plan plan;
	int ret = plan_metric(mdl, &request, &no_program, &plan, error);

	plan_free(&plan);
	return ret;
}

static int check_metric(const struct mdl *mdl, const struct mdl_metric *metric,
			struct mdl_error *error)
{
	char focus[512];
	int ret = check_variables(metric, error);

	if (!metric->has_base)
		return mdl_fault(error, metric->name.place, "%s has no base", metric->name.text);
	if (!ret)
		ret = check_plan(mdl, metric, NULL, error);
	for (const struct mdl_name *name = metric->constraints; name && !ret; name = name->next) {
		const struct mdl_constraint *constraint = mdl_constraint_named(mdl, name->text);

		if (!constraint)
			return mdl_fault(error, name->place, "there is no constraint %s",
					 name->text);
		if (!strcmp(constraint->path, "/Code") && takes_parts(constraint, 2))
			snprintf(focus, sizeof(focus), "/Code/1/1");
		else
			snprintf(focus, sizeof(focus), "%s/1", constraint->path);
		ret = check_plan(mdl, metric, focus, error);
	}
	return ret;
}

int mdl_check(const struct mdl *mdl, struct mdl_error *error)
{
	int ret;

	*error = (struct mdl_error){ 0 };
	ret = check_names(mdl, error);
	for (const struct mdl_constraint *one = mdl->constraints; one && !ret; one = one->next)
		ret = check_constraint(one, error);
	for (const struct mdl_metric *one = mdl->metrics; one && !ret; one = one->next)
		ret = check_metric(mdl, one, error);
	return ret;
}
