/* SPDX-License-Identifier: MIT */
/* fastinst list: sites for probes in files of programs and libraries. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/demangle.h"
#include "base/text.h"
#include "commands/fastinst/command.h"
#include "commands/fastinst/sites.h"
#include "commands/fastinst/source_of.h"
#include "probes/entries/survey.h"
#include "profile/command/print.h"

#define KINDS_MAX 9

/* Boundaries that a site may cross. */
static const unsigned bounds[] = { 8, 64, 4096 };
#define BOUNDS (sizeof(bounds) / sizeof(*bounds))

/* Numbers of one kind of site, or of all. */
struct sum {
	const char *kind, *provider;
	size_t sites, usable, crossing[BOUNDS];
};

struct list {
	bool json, summary, entries;
};

static void count_site(struct sum *sum, const struct site *site)
{
	sum->sites++;
	sum->usable += !site->reason;
	for (size_t i = 0; i < BOUNDS; i++)
		sum->crossing[i] += !site->reason && site->crosses >= bounds[i];
}

/* Fills in the sum of all first, then one per kind. Returns how many sums. */
static size_t sum_up(const struct sites *sites, struct sum sums[1 + KINDS_MAX])
{
	size_t n = 1;

	sums[0] = (struct sum){ .kind = "all", .provider = "" };
	for (size_t i = 0; i < sites->n; i++) {
		const struct site *site = &sites->site[i];
		size_t k = 1;

		count_site(&sums[0], site);
		while (k < n && (strcmp(sums[k].kind, site->kind) != 0 ||
				 strcmp(sums[k].provider, site->provider) != 0))
			k++;
		if (k == n && n <= KINDS_MAX)
			sums[n++] = (struct sum){ .kind = site->kind, .provider = site->provider };
		if (k < n)
			count_site(&sums[k], site);
	}
	return n;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void print_site(const struct site *site, const char *path)
{
	char source[512];

	printf("%12" PRIx64 "  %-7s  ", site->addr, site->kind);
	text_put(stdout, *site->name ? name_for_people(site->name, true) : "?");
	if (site->args && *site->args) {
		putchar('(');
		text_put(stdout, site->args);
		putchar(')');
	}
	if (site->reason)
		printf("  refused: %s", site->reason);
	else if (site->crosses)
		printf("  crosses %u", site->crosses);
	strcpy(source, "  ");
	if (*source_text(path, site->addr, source + 2, sizeof(source) - 2))
		text_put(stdout, source);
	putchar('\n');
}

static double percent_of(size_t n, size_t of)
{
	return of ? 100 * (double)n / (double)of : 0;
}

static void print_sum(const struct sum *sum)
{
	printf("%-7s  %-9s %8zu %8zu", sum->kind, sum->provider, sum->sites, sum->usable);
	for (size_t i = 0; i < BOUNDS; i++)
		printf(" %8zu %5.1f", sum->crossing[i], percent_of(sum->crossing[i], sum->usable));
	putchar('\n');
}

static void print_sites(const struct sites *sites, const char *path, bool summary)
{
	struct sum sums[1 + KINDS_MAX];
	size_t n = sum_up(sites, sums);

	for (size_t i = 0; i < sites->n && !summary; i++)
		print_site(&sites->site[i], path);
	if (n > 2 || summary)
		printf("%-7s  %-9s %8s %8s %8s %5s %8s %5s %8s %5s\n", "kind", "by", "sites",
		       "usable", "8 bytes", "%", "line", "%", "page", "%");
	for (size_t i = 1; i < n && (n > 2 || summary); i++)
		print_sum(&sums[i]);
	printf("%zu sites, %zu usable; of these %zu cross 8 bytes, %zu a line of 64, %zu a page\n",
	       sums->sites, sums->usable, sums->crossing[0], sums->crossing[1], sums->crossing[2]);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *site_json(const struct site *site, const char *path)
{
	json_t *json =
		json_pack("{s:I, s:s, s:s, s:o, s:o*, s:b, s:i}", "address", (json_int_t)site->addr,
			  "kind", site->kind, "provider", site->provider, "function",
			  name_json(site->name), "demangled", demangled_json(site->name), "usable",
			  !site->reason, "crosses", (int)site->crosses);

	if (site->args)
		json_object_set_new(json, "arguments", name_json(site->args));
	if (site->reason)
		json_object_set_new(json, "reason", json_string(site->reason));
	source_json(path, site->addr, json);
	return json;
}

/* Adds a sum's numbers to the other members, and returns these. */
static json_t *sum_json(const struct sum *sum, json_t *others)
{
	char name[16];

	json_object_set_new(others, "sites", json_integer((json_int_t)sum->sites));
	json_object_set_new(others, "usable", json_integer((json_int_t)sum->usable));
	for (size_t i = 0; i < BOUNDS; i++) {
		snprintf(name, sizeof(name), "cross_%u", bounds[i]);
		json_object_set_new(others, name, json_integer((json_int_t)sum->crossing[i]));
	}
	return others;
}

static void print_sites_json(const struct sites *sites, const char *path, bool summary)
{
	struct sum sums[1 + KINDS_MAX];
	size_t n = sum_up(sites, sums);
	json_t *root = sum_json(&sums[0], json_pack("{s:o}", "object", name_json(path)));
	json_t *kinds = json_array(), *list = summary ? NULL : json_array();

	for (size_t i = 1; i < n; i++)
		json_array_append_new(
			kinds, sum_json(&sums[i], json_pack("{s:s, s:s}", "kind", sums[i].kind,
							    "provider", sums[i].provider)));
	json_object_set_new(root, "kinds", kinds);
	for (size_t i = 0; i < sites->n && list; i++)
		json_array_append_new(list, site_json(&sites->site[i], path));
	json_object_set_new(root, "list", list);
	print_json(stdout, "sites", root);
}

/* --- Functions that nothing was compiled into ------------------------------------------------- */

/* An object: how many functions are refused for each reason. */
static json_t *count_refused(const struct survey *survey)
{
	json_t *refused = json_object();

	for (size_t i = 0; i < survey->n; i++) {
		const char *reason = survey->site[i].reason;

		if (reason)
			json_object_set_new(
				refused, reason,
				json_integer(json_integer_value(json_object_get(refused, reason)) +
					     1));
	}
	return refused;
}

static struct site entry_site(const struct survey_site *one)
{
	return (struct site){ .addr = one->function,
			      .kind = "entry",
			      .provider = "entries",
			      .name = (char *)one->name,
			      .reason = one->reason,
			      .crosses = find_boundary(one->site, SURVEY_JUMP) };
}

static void print_entries(const struct survey *survey, const char *path, bool summary)
{
	json_t *refused = count_refused(survey), *n;
	const char *reason;

	for (size_t i = 0; i < survey->n && !summary; i++) {
		struct site site = entry_site(&survey->site[i]);

		print_site(&site, path);
	}
	printf("%zu functions, %zu (%.1f %%) can be taken\n", survey->n, survey->usable,
	       percent_of(survey->usable, survey->n));
	json_object_foreach(refused, reason, n)
		printf("%8" JSON_INTEGER_FORMAT "  %s\n", json_integer_value(n), reason);
	json_decref(refused);
}

static void print_entries_json(const struct survey *survey, const char *path, bool summary)
{
	json_t *list = summary ? NULL : json_array();

	for (size_t i = 0; i < survey->n && list; i++) {
		struct site site = entry_site(&survey->site[i]);
		json_t *json = site_json(&site, path);

		if (!site.reason)
			json_object_set_new(json, "reason", json_string(""));
		json_array_append_new(list, json);
	}
	print_json(stdout, "functions",
		   json_pack("{s:o, s:I, s:I, s:o, s:o*}", "object", name_json(path), "functions",
			     (json_int_t)survey->n, "usable", (json_int_t)survey->usable, "refused",
			     count_refused(survey), "list", list));
}

/* --- The command ------------------------------------------------------------------------------ */

static int end_file(const char *path, int ret)
{
	if (!ret)
		return STATUS_OK;
	return complain(STATUS_NO_INPUT, 0, "%s: %s", path,
			ret == -ENOEXEC ? "no ELF file for x86-64" : strerror(-ret));
}

static int show_sites(const struct list *list, const char *path)
{
	struct sites sites;
	int ret = file_sites_read(&sites, path);

	if (!ret)
		(list->json ? print_sites_json : print_sites)(&sites, path, list->summary);
	if (!ret && !sites.n)
		complain(0, 0,
			 "%s has no sites: compile with -fpatchable-function-entry=5, or try "
			 "--entries",
			 path);
	file_sites_free(&sites);
	return end_file(path, ret);
}

int refuse_entries(void)
{
	if (survey_ready())
		return STATUS_OK;
	return complain(STATUS_FAILED, 0, SURVEY_MISSING);
}

static int show_entries(const struct list *list, const char *path)
{
	struct survey survey = { 0 };
	struct elf elf;
	int ret = elf_map(&elf, path, ELF_PATCHED);

	if (ret)
		return end_file(path, ret);
	ret = survey_make(&survey, &elf);
	if (!ret)
		(list->json ? print_entries_json : print_entries)(&survey, path, list->summary);
	survey_free(&survey);
	elf_unmap(&elf);
	return end_file(path, ret);
}

static const struct option_row options[] = {
	{ "entries", NULL,
	  "functions that nothing was compiled into: which of them \"fastinst run --entries\" "
	  "takes, and why not the others",
	  OPTION_FLAG(struct list, entries) },
	{ "summary", NULL, "only how many there are", OPTION_FLAG(struct list, summary) },
	{ "json", NULL, "as JSON, an object per program", OPTION_FLAG(struct list, json) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM...",
	.about = "Show the sites of programs and libraries: entries and exits of functions,\n"
		 "markers, blocks, compares, static branches and calls; which cross a boundary of\n"
		 "8 bytes, a line of 64, or a page.\n",
	.options = { options },
	.end = "Exit status: 0, 1 no Zydis for --entries, 64 usage, 66 a file cannot be "
	       "read.\n",
};

int list_command(int argc, char **argv)
{
	struct list list = { 0 };
	int status = command_line_parse(&line, argc, argv, &list, NULL);

	if (status == STATUS_OK && optind == argc)
		status = refuse_usage("there is no program to look at");
	if (status == STATUS_OK && list.entries)
		status = refuse_entries();
	for (int i = optind; i < argc && !status; i++) {
		if (argc > optind + 1 && !list.json)
			printf("%s:\n", argv[i]);
		status = (list.entries ? show_entries : show_sites)(&list, argv[i]);
	}
	return status;
}
