/* SPDX-License-Identifier: MIT */
/* fastinst list: sites for probes in files of programs and libraries. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/demangle.h"
#include "base/text.h"
#include "commands/fastinst/command.h"
#include "commands/fastinst/sites.h"
#include "profile/command/command.h"

struct list_request {
	bool json, summary, entries;
};

/* --- What a file has, as JSON ----------------------------------------------------------------- */

static json_int_t number_in_json(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* Counts boundaries of 8 bytes, of a line, and of a page, that a site may cross. */
static void count_site(json_t *sum, const struct listed_site *site)
{
	count_more(sum, "sites", true);
	count_more(sum, "usable", !site->reason);
	count_more(sum, "cross_8", !site->reason && site->crosses >= 8);
	count_more(sum, "cross_64", !site->reason && site->crosses >= 64);
	count_more(sum, "cross_4096", !site->reason && site->crosses >= 4096);
}

static json_t *find_kind(json_t *kinds, const struct listed_site *site)
{
	json_t *kind;
	size_t i;

	json_array_foreach(kinds, i, kind)
	{
		if (!strcmp(json_string_value(json_object_get(kind, "kind")), site->kind) &&
		    !strcmp(json_string_value(json_object_get(kind, "provider")), site->provider))
			return kind;
	}
	kind = json_pack("{s:s, s:s}", "kind", site->kind, "provider", site->provider);
	return json_array_append_new(kinds, kind) ? NULL : kind;
}

static json_t *sum_up_kinds(const struct listed_sites *sites, const char *path)
{
	json_t *kinds = json_array();
	json_t *root = json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:o}", "object", name_json(path),
				 "sites", 0, "usable", 0, "cross_8", 0, "cross_64", 0, "cross_4096",
				 0, "kinds", kinds);

	for (size_t i = 0; i < sites->n; i++) {
		count_site(root, &sites->site[i]);
		count_site(find_kind(kinds, &sites->site[i]), &sites->site[i]);
	}
	return root;
}

/* How many functions are refused for each reason. */
static json_t *sum_up_functions(const struct listed_sites *sites, const char *path)
{
	json_t *refused = json_object();
	json_t *root = json_pack("{s:o, s:I, s:i, s:o}", "object", name_json(path), "functions",
				 (json_int_t)sites->n, "usable", 0, "refused", refused);

	for (size_t i = 0; i < sites->n; i++) {
		const char *reason = sites->site[i].reason;

		count_more(reason ? refused : root, reason ? reason : "usable", true);
	}
	return root;
}

/* A function that nothing was compiled into has a reason in any case. */
static json_t *site_json(const struct listed_site *site, const char *path, bool entries)
{
	const char *reason = !site->reason && entries ? "" : site->reason;
	json_t *json =
		json_pack("{s:I, s:s, s:s, s:o, s:o*, s:b, s:i, s:o*, s:s*}", "address",
			  (json_int_t)site->addr, "kind", site->kind, "provider", site->provider,
			  "function", name_json(site->name), "demangled",
			  demangled_json(site->name), "usable", !site->reason, "crosses",
			  (int)site->crosses, "arguments", name_json(site->args), "reason", reason);

	source_json(path, site->addr, json);
	return json;
}

/* --- Text ------------------------------------------------------------------------------------- */

static void print_site(const struct listed_site *site, const char *path)
{
	char source[SOURCE_ROOM];

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
	put_source(stdout, source_text(path, site->addr, source));
	putchar('\n');
}

static double percent_of(json_int_t n, json_int_t of)
{
	return of ? 100 * (double)n / (double)of : 0;
}

static void print_kinds(const json_t *root, bool summary)
{
	static const char *const crossings[] = { "cross_8", "cross_64", "cross_4096" };
	const json_t *kinds = json_object_get(root, "kinds"), *kind;
	size_t shown = json_array_size(kinds) > 1 || summary ? json_array_size(kinds) : 0;

	if (shown || summary)
		printf("%-7s  %-9s %8s %8s %8s %5s %8s %5s %8s %5s\n", "kind", "by", "sites",
		       "usable", "8 bytes", "%", "line", "%", "page", "%");
	for (size_t i = 0; i < shown; i++) {
		json_int_t usable;

		kind = json_array_get(kinds, i);
		usable = number_in_json(kind, "usable");
		printf("%-7s  %-9s %8lld %8lld", json_string_value(json_object_get(kind, "kind")),
		       json_string_value(json_object_get(kind, "provider")),
		       number_in_json(kind, "sites"), usable);
		for (size_t k = 0; k < 3; k++)
			printf(" %8lld %5.1f", number_in_json(kind, crossings[k]),
			       percent_of(number_in_json(kind, crossings[k]), usable));
		putchar('\n');
	}
	printf("%lld sites, %lld usable; of these %lld cross 8 bytes, %lld a line of 64, %lld a "
	       "page\n",
	       number_in_json(root, "sites"), number_in_json(root, "usable"),
	       number_in_json(root, "cross_8"), number_in_json(root, "cross_64"),
	       number_in_json(root, "cross_4096"));
}

static void print_functions(const json_t *root)
{
	json_int_t n = number_in_json(root, "functions"), usable = number_in_json(root, "usable");
	const char *reason;
	json_t *refused;

	printf("%lld functions, %lld (%.1f %%) can be taken\n", n, usable, percent_of(usable, n));
	json_object_foreach(json_object_get(root, "refused"), reason, refused)
		printf("%8lld  %s\n", json_integer_value(refused), reason);
}

static void print_sites(const struct list_request *list, const struct listed_sites *sites,
			const char *path)
{
	json_t *root = (list->entries ? sum_up_functions : sum_up_kinds)(sites, path);
	json_t *all = list->summary ? NULL : json_array();

	for (size_t i = 0; i < sites->n && all; i++)
		if (list->json)
			json_array_append_new(all, site_json(&sites->site[i], path, list->entries));
		else
			print_site(&sites->site[i], path);
	json_object_set_new(root, "list", all);
	if (list->json) {
		print_json(stdout, list->entries ? "functions" : "sites", root);
		return;
	}
	if (list->entries)
		print_functions(root);
	else
		print_kinds(root, list->summary);
	json_decref(root);
}

static int show_sites(const struct list_request *list, const char *path)
{
	struct listed_sites sites;
	int ret = file_sites_read(&sites, path, list->entries);

	if (!ret)
		print_sites(list, &sites, path);
	if (!ret && !sites.n && !list->entries)
		remark("%s has no sites: compile with -fpatchable-function-entry=5, or try "
		       "--entries",
		       path);
	file_sites_free(&sites);
	if (!ret)
		return STATUS_OK;
	return complain(STATUS_NO_INPUT, 0, "%s: %s", path,
			ret == -ENOEXEC ? "no ELF file for x86-64" : strerror(-ret));
}

static const struct option_row options[] = {
	{ "entries", NULL,
	  "functions that nothing was compiled into: which of them \"fastinst run --entries\" "
	  "takes, and why not the others",
	  OPTION_FLAG(struct list_request, entries) },
	{ "summary", NULL, "only how many there are", OPTION_FLAG(struct list_request, summary) },
	{ "json", NULL, "as JSON, an object per program", OPTION_FLAG(struct list_request, json) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM...",
	.about = "Show the sites of programs and libraries: entries and exits of functions,\n"
		 "markers, blocks, compares, static branches and calls; which cross a boundary of\n"
		 "8 bytes, a line of 64, or a page.\n",
	.options = { options },
	.end = "Exit status: 0, 64 usage, 66 a file cannot be read.\n",
};

int list_command(int argc, char **argv)
{
	struct list_request list = { 0 };
	int status = command_line_parse(&line, argc, argv, &list, NULL);

	if (status == STATUS_OK && optind == argc)
		status = refuse_usage("there is no program to look at");
	for (int i = optind; i < argc && !status; i++) {
		if (argc > optind + 1 && !list.json)
			printf("%s:\n", argv[i]);
		status = show_sites(&list, argv[i]);
	}
	return status;
}
