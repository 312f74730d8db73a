/* SPDX-License-Identifier: MIT */
/*
 * fastinst list --entries: which functions of a file can be probed though nothing was compiled into
 * them, and why the others cannot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "probes/command/reach.h"
#include "probes/entries/survey.h"
#include "probes/text/demangle.h"
#include "probes/text/text.h"
#include "probes/told/told.h"

/* Functions by the reason of their refusal: the texts are constants of the survey. */
struct tally {
	const char *reason;
	size_t n;
};

#define REASONS_MAX 32

static size_t tally(const struct survey *survey, struct tally *tallies)
{
	size_t n = 0;

	for (size_t i = 0; i < survey->n; i++) {
		const char *reason = survey->site[i].reason;
		size_t k = 0;

		if (!reason)
			continue;
		while (k < n && strcmp(tallies[k].reason, reason) != 0)
			k++;
		if (k == REASONS_MAX)
			continue;
		if (k == n)
			tallies[n++] = (struct tally){ .reason = reason };
		tallies[k].n++;
	}
	return n;
}

static void print_text(const struct survey *survey, bool summary)
{
	struct tally tallies[REASONS_MAX];
	size_t n = tally(survey, tallies);

	for (size_t i = 0; i < survey->n && !summary; i++) {
		const struct survey_site *site = &survey->site[i];

		printf("%12" PRIx64 "  entry  ", site->function);
		text_put(stdout, *site->name ? name_for_people(site->name, true) : "?");
		printf("%s%s\n", site->reason ? "  refused: " : "",
		       site->reason ? site->reason : "");
	}
	printf("%zu functions, %zu (%.1f %%) can be taken\n", survey->n, survey->usable,
	       survey->n ? 100.0 * (double)survey->usable / (double)survey->n : 0.0);
	for (size_t i = 0; i < n; i++)
		printf("%8zu  %s\n", tallies[i].n, tallies[i].reason);
}

static json_t *site_json(const struct survey_site *site)
{
	return json_pack("{s:I, s:s, s:o, s:o*, s:b, s:s}", "address", (json_int_t)site->function,
			 "kind", "entry", "function", told_text(site->name), "demangled",
			 told_demangled(site->name), "usable", !site->reason, "reason",
			 site->reason ? site->reason : "");
}

static void print_json(const struct survey *survey, const char *path, bool summary)
{
	struct tally tallies[REASONS_MAX];
	size_t n = tally(survey, tallies);
	json_t *refused = json_object(), *list = json_array();
	json_t *root = json_pack("{s:o, s:I, s:I, s:o}", "object", told_text(path), "functions",
				 (json_int_t)survey->n, "usable", (json_int_t)survey->usable,
				 "refused", refused);

	for (size_t i = 0; i < n; i++)
		json_object_set_new(refused, tallies[i].reason,
				    json_integer((json_int_t)tallies[i].n));
	for (size_t i = 0; i < survey->n && !summary; i++)
		json_array_append_new(list, site_json(&survey->site[i]));
	if (summary)
		json_decref(list);
	else
		json_object_set_new(root, "list", list);
	told(stdout, "functions", root);
}

int reach_print(const struct elf *elf, const char *path, bool json, bool summary)
{
	struct survey survey;
	int ret = survey_make(&survey, elf);

	if (!ret && json)
		print_json(&survey, path, summary);
	else if (!ret)
		print_text(&survey, summary);
	survey_free(&survey);
	return ret;
}
