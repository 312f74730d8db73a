/* SPDX-License-Identifier: MIT */
/*
 * fastinst list: what programs and libraries have to put probes on, by their files.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "probes/command/command.h"
#include "probes/command/source_of.h"
#include "probes/entries/survey.h"
#include "probes/list/sites.h"
#include "probes/text/demangle.h"
#include "probes/text/text.h"
#include "probes/told/told.h"
#include "results/figures/gnuplot.h"

#define KINDS_MAX 9

/* Of one kind of site, or of all. */
struct sum {
	const char *kind, *provider;
	size_t sites, usable, words, lines, pages;
};

struct row {
	char *name;
	struct sum sum;
};

struct list {
	bool json, summary, entries;
	const char *figure;
	struct row *row; /* of the figure */
	size_t rows;
};

static void count_site(struct sum *sum, const struct site *site)
{
	bool usable = !site->reason;

	sum->sites++;
	sum->usable += usable;
	sum->words += usable && site->crosses >= 8;
	sum->lines += usable && site->crosses >= 64;
	sum->pages += usable && site->crosses >= 4096;
}

/* All of them in the first, then by kind. How many there are. */
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

static double share(size_t n, size_t of)
{
	return of ? 100 * (double)n / (double)of : 0;
}

static void print_sum(const struct sum *sum)
{
	printf("%-7s  %-9s %8zu %8zu %8zu %5.1f %8zu %5.1f %8zu %5.1f\n", sum->kind, sum->provider,
	       sum->sites, sum->usable, sum->words, share(sum->words, sum->usable), sum->lines,
	       share(sum->lines, sum->usable), sum->pages, share(sum->pages, sum->usable));
}

static void print_text(const struct sites *sites, const char *path, bool summary)
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
	       sums->sites, sums->usable, sums->words, sums->lines, sums->pages);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *site_json(const struct site *site, const char *path)
{
	json_t *json =
		json_pack("{s:I, s:s, s:s, s:o, s:o*, s:b, s:i}", "address", (json_int_t)site->addr,
			  "kind", site->kind, "provider", site->provider, "function",
			  told_text(site->name), "demangled", told_demangled(site->name), "usable",
			  !site->reason, "crosses", (int)site->crosses);
	struct source *source = source_of(path);
	const char *file;
	unsigned line;

	if (site->args)
		json_object_set_new(json, "arguments", told_text(site->args));
	if (site->reason)
		json_object_set_new(json, "reason", json_string(site->reason));
	if (source && source_line(source, site->addr, &file, &line)) {
		json_object_set_new(json, "file", told_text(file));
		json_object_set_new(json, "line", json_integer(line));
	}
	return json;
}

static void add_sum(json_t *to, const struct sum *sum)
{
	json_object_set_new(to, "sites", json_integer((json_int_t)sum->sites));
	json_object_set_new(to, "usable", json_integer((json_int_t)sum->usable));
	json_object_set_new(to, "cross_8", json_integer((json_int_t)sum->words));
	json_object_set_new(to, "cross_64", json_integer((json_int_t)sum->lines));
	json_object_set_new(to, "cross_4096", json_integer((json_int_t)sum->pages));
}

static void print_json(const struct sites *sites, const char *path, bool summary)
{
	json_t *root = json_pack("{s:o}", "object", told_text(path));
	json_t *kinds = json_array(), *array = json_array();
	struct sum sums[1 + KINDS_MAX];
	size_t n = sum_up(sites, sums);

	add_sum(root, &sums[0]);
	for (size_t i = 1; i < n; i++) {
		json_t *kind =
			json_pack("{s:s, s:s}", "kind", sums[i].kind, "provider", sums[i].provider);

		add_sum(kind, &sums[i]);
		json_array_append_new(kinds, kind);
	}
	json_object_set_new(root, "kinds", kinds);
	for (size_t i = 0; i < sites->n && !summary; i++)
		json_array_append_new(array, site_json(&sites->site[i], path));
	if (summary)
		json_decref(array);
	else
		json_object_set_new(root, "list", array);
	told(stdout, "sites", root);
}

/* --- The figure ------------------------------------------------------------------------------- */

static int add_rows(struct list *list, const struct sites *sites, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct sum sums[1 + KINDS_MAX];
	size_t n = sum_up(sites, sums);
	struct row *more = realloc(list->row, (list->rows + n) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->row = more;
	for (size_t i = 1; i < n; i++) {
		struct row *row = &more[list->rows];

		if (!sums[i].usable)
			continue;
		row->sum = sums[i];
		/* The entries of two providers are two rows. */
		if (asprintf(&row->name, "%s: %s%s", name, sums[i].kind,
			     strcmp(sums[i].provider, "cyg") ? "" : " (cyg)") < 0)
			return -ENOMEM;
		list->rows++;
	}
	return 0;
}

static void print_rows(FILE *out, const void *arg)
{
	const struct list *list = arg;

	for (size_t i = 0; i < list->rows; i++) {
		const struct row *row = &list->row[i];

		for (const char *c = row->name; *c; c++)
			fputc(*c == '\t' || *c == '\n' || *c == '"' ? '?' : *c, out);
		fprintf(out, "\t%zu\t%zu\t%zu\t%zu\n", row->sum.usable, row->sum.words,
			row->sum.lines, row->sum.pages);
	}
}

static int draw_figure(const struct list *list)
{
	char rows[16], error[PICTURE_PATH + 256] = "";
	const char *const args[] = { rows, NULL };
	const struct picture picture = {
		.print = print_rows, .arg = list, .script = "straddlers.gp", .args = args
	};

	snprintf(rows, sizeof(rows), "%zu", list->rows);
	if (!list->rows)
		return complain(STATUS_FAILED, 0, "there is no site to draw");
	if (picture_make(&picture, list->figure, error, sizeof(error)) == 0)
		return STATUS_OK;
	return complain(STATUS_FAILED, 0, "%s", error);
}

/* --- Functions that nothing was compiled into ------------------------------------------------- */

#define REASONS_MAX 32

/* Functions by the reason of their refusal: the texts are constants of the survey. */
struct tally {
	const char *reason;
	size_t n;
};

static size_t tally_reasons(const struct survey *survey, struct tally tallies[REASONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < survey->n; i++) {
		const char *reason = survey->site[i].reason;
		size_t k = 0;

		while (reason && k < n && strcmp(tallies[k].reason, reason) != 0)
			k++;
		if (!reason || k == REASONS_MAX)
			continue;
		if (k == n)
			tallies[n++] = (struct tally){ .reason = reason };
		tallies[k].n++;
	}
	return n;
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
	struct tally tallies[REASONS_MAX];
	size_t n = tally_reasons(survey, tallies);

	for (size_t i = 0; i < survey->n && !summary; i++) {
		struct site site = entry_site(&survey->site[i]);

		print_site(&site, path);
	}
	printf("%zu functions, %zu (%.1f %%) can be taken\n", survey->n, survey->usable,
	       share(survey->usable, survey->n));
	for (size_t i = 0; i < n; i++)
		printf("%8zu  %s\n", tallies[i].n, tallies[i].reason);
}

static void print_entries_json(const struct survey *survey, const char *path, bool summary)
{
	struct tally tallies[REASONS_MAX];
	size_t n = tally_reasons(survey, tallies);
	json_t *refused = json_object(), *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_object_set_new(refused, tallies[i].reason,
				    json_integer((json_int_t)tallies[i].n));
	for (size_t i = 0; i < survey->n && !summary; i++) {
		struct site site = entry_site(&survey->site[i]);
		json_t *json = site_json(&site, path);

		if (!site.reason)
			json_object_set_new(json, "reason", json_string(""));
		json_array_append_new(list, json);
	}
	told(stdout, "functions",
	     json_pack("{s:o, s:I, s:I, s:o, s:o*}", "object", told_text(path), "functions",
		       (json_int_t)survey->n, "usable", (json_int_t)survey->usable, "refused",
		       refused, "list", summary ? NULL : list));
	if (summary)
		json_decref(list);
}

/* --- The command ------------------------------------------------------------------------------ */

static int show_sites(struct list *list, const char *path)
{
	struct sites sites;
	int ret = file_sites_read(&sites, path);

	if (ret < 0)
		complain(0, 0, "%s: %s", path,
			 ret == -ENOEXEC ? "no ELF file for x86-64" : strerror(-ret));
	else if (list->json)
		print_json(&sites, path, list->summary);
	else
		print_text(&sites, path, list->summary);
	if (!ret && !sites.n)
		complain(0, 0,
			 "%s has no sites: compile with -fpatchable-function-entry=5, or try "
			 "--entries",
			 path);
	if (!ret && list->figure)
		ret = add_rows(list, &sites, path);
	file_sites_free(&sites);
	return ret < 0 ? STATUS_NO_INPUT : STATUS_OK;
}

int refuse_entries(void)
{
	if (survey_ready())
		return STATUS_OK;
	return complain(STATUS_FAILED, 0, SURVEY_MISSING);
}

static int show_entries(struct list *list, const char *path)
{
	struct survey survey = { 0 };
	struct sites file;
	int ret = file_sites_open(&file, path);

	if (!ret)
		ret = survey_make(&survey, &file.elf);
	if (!ret && list->json)
		print_entries_json(&survey, path, list->summary);
	else if (!ret)
		print_entries(&survey, path, list->summary);
	survey_free(&survey);
	if (ret < 0)
		complain(0, 0, "%s: %s", path,
			 ret == -ENOEXEC ? "no ELF file for x86-64" : strerror(-ret));
	file_sites_free(&file);
	return ret < 0 ? STATUS_NO_INPUT : STATUS_OK;
}

static const struct option_row options[] = {
	{ "entries", NULL,
	  "functions that nothing was compiled into: which of them \"fastinst run --entries\" "
	  "takes, and why not the others",
	  OPTION_FLAG(struct list, entries) },
	{ "summary", NULL, "only how many there are", OPTION_FLAG(struct list, summary) },
	{ "json", NULL, "as JSON, an object per program", OPTION_FLAG(struct list, json) },
	{ "figure", "PREFIX", "draw which share crosses what: PREFIX.dat, PREFIX.svg, PREFIX.png",
	  OPTION_FILE(struct list, figure) },
	{ 0 },
};

static const struct command_line line = {
	.operands = "PROGRAM...",
	.about = "Show the sites of programs and libraries: entries and exits of functions,\n"
		 "markers, blocks, compares, static branches and calls; which cross a boundary of\n"
		 "8 bytes, a line of 64, or a page.\n",
	.options = { options },
	.end = "Exit status: 0, 1 no figure, 64 usage, 66 a file cannot be read.\n",
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
	if (!status && list.figure)
		status = draw_figure(&list);
	for (size_t i = 0; i < list.rows; i++)
		free(list.row[i].name);
	free(list.row);
	return status;
}
