/* SPDX-License-Identifier: MIT */
/*
 * A request, a metric and what it is limited to, becomes a plan: which code stands at which probe.
 * What says where code is put runs here.
 *
 * A focus is a path. "/Code/MODULE/PROCEDURE" and "/Code/MODULE" name code as patterns of fi_find()
 * do, "/Thread/NAME" a thread by its name or number; what others mean is said by the constraint
 * that has their path.
 */
#ifndef METRICS_LANGUAGE_REQUEST_H
#define METRICS_LANGUAGE_REQUEST_H

#include "metrics/language/code.h"
#include "metrics/language/tree.h"

#define FOCUS_PARTS 8 /* of a path, at most */
#define FOCI_MAX    8 /* of a request */

struct metric_request {
	const char *metric;
	const char *foci[FOCI_MAX]; /* all of them hold */
	size_t foci_n;
	const char *flavor;  /* lists and metrics of others are not there; NULL: all are */
	uint32_t value;	     /* the number of the metric's own variable */
	uint32_t next_value; /* of its others */
};

/* Where code is put that stands at no probe. */
#define AT_START (UINT32_MAX - 1) /* when measuring begins */
#define AT_EXIT	 (UINT32_MAX - 2) /* when the process ends */

#define NO_PROCEDURE UINT32_MAX

struct placement {
	uint32_t id; /* of a probe */
	uint32_t procedure;
	bool prepend, post;
	const struct snippet *snippet; /* of this plan */
};

struct metric_plan {
	enum mdl_type type;  /* of the metric's own variable */
	const char *thread;  /* only the thread of that name or number; NULL: all */
	uint32_t next_value; /* behind those that it takes */
	struct placement *placement;
	size_t n;
	struct snippet **snippets;
	size_t snippets_n;
	size_t left_out; /* procedures that have not all the points that are asked for */
};

/* A program. Procedures have numbers. */
struct metric_world {
	void *data;
	/* Which procedures a pattern matches, each once: how many, and a list to be freed. -errno.
	 */
	long (*find)(void *data, const char *pattern, const struct mdl_list *list,
		     uint32_t **found);
	const char *(*name)(void *data, uint32_t procedure);
	/*
	 * The probes at a point of it. 0: not all can be used. @registers: they must know the
	 * registers
	 */
	size_t (*probes)(void *data, uint32_t procedure, enum code_point point, bool registers,
			 const uint32_t **ids);
	int (*symbol)(void *data, const char *name, uint64_t *address, unsigned *size);
	bool is_none; /* there is no program: a text is checked, and each way of an if is taken */
};

/*
 * plan_metric - plan_free() it in any case. -EINVAL: error says why it cannot be, at a place of the
 * text, or of line 0: it is not in the text.
 */
int plan_metric(const struct mdl *mdl, const struct metric_request *request,
		const struct metric_world *world, struct metric_plan *plan,
		struct mdl_error *error);
void plan_free(struct metric_plan *plan);

/* sort_numbers - and leave each once: how many there are. */
size_t sort_numbers(uint32_t *number, size_t n);

/* has_flavor - one of them, or there are none; of NULL all are. */
bool has_flavor(const struct mdl_name *flavors, const char *flavor);

/* mdl_check - whether all that a text declares can be asked for. -EINVAL, -ENOMEM. */
int mdl_check(const struct mdl *mdl, struct mdl_error *error);

/* no_program - the world of mdl_check(). */
extern const struct metric_world no_program;

#endif
