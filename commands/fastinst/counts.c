/* SPDX-License-Identifier: MIT */
/* Counts of probes: read from lines of agents, joined, compared, and printed. */
#include "commands/fastinst/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/demangle.h"
#include "base/text.h"
#include "commands/fastinst/sites.h"
#include "profile/command/command.h"

int counts_add(struct counts *counts, uint64_t count, uint64_t lost, const char *kind,
	       const char *function, const char *object)
{
	struct function_count one = {
		.count = count,
		.lost = lost,
		.rate = -1,
	};

	if (asprintf(&one.kind, "%s%c%s%c%s", kind, 0, function, 0, object) < 0)
		return -ENOMEM;
	one.function = one.kind + strlen(kind) + 1;
	one.object = one.function + strlen(function) + 1;
	if (!ARRAY_ADD(counts->count, counts->n, one))
		return 0;
	free(one.kind);
	return -ENOMEM;
}

int counts_line(char *line, void *to)
{
	struct counts *counts = to;
	char *field[5];

	counts->processes += !line;
	if (!line || text_fields(&line, field, 5) < 5)
		return 0;
	return counts_add(counts, strtoull(field[0], NULL, 10), strtoull(field[1], NULL, 10),
			  field[2], field[3], field[4]);
}

static int order_by_place(const void *a, const void *b)
{
	const struct function_count *one = a, *two = b;
	int order = strcmp(one->object, two->object);

	if (!order)
		order = strcmp(one->function, two->function);
	return order ? order : strcmp(one->kind, two->kind);
}

static bool is_pattern(const struct function_count *count)
{
	return !strcmp(count->kind, "pattern");
}

static int order_by_count(const void *a, const void *b)
{
	const struct function_count *one = a, *two = b;

	if (is_pattern(one) != is_pattern(two))
		return is_pattern(one) ? 1 : -1;
	if (one->count != two->count)
		return one->count > two->count ? -1 : 1;
	return order_by_place(a, b);
}

void counts_join(struct counts *counts)
{
	size_t kept = 0;

	if (!counts->n)
		return;
	qsort(counts->count, counts->n, sizeof(*counts->count), order_by_place);
	for (size_t i = 1; i < counts->n; i++) {
		struct function_count *last = &counts->count[kept], *next = &counts->count[i];

		if (order_by_place(last, next)) {
			counts->count[++kept] = *next;
			continue;
		}
		last->count += next->count;
		last->lost += next->lost;
		free(next->kind);
	}
	counts->n = kept + 1;
	qsort(counts->count, counts->n, sizeof(*counts->count), order_by_count);
	for (; counts->n && is_pattern(&counts->count[counts->n - 1]); counts->n--)
		counts->patterns++;
}

static void sort_places(struct counts *counts)
{
	if (counts->n)
		qsort(counts->count, counts->n, sizeof(*counts->count), order_by_place);
}

static const struct function_count *find_count(const struct counts *counts,
					       const struct function_count *like)
{
	return counts->n ? bsearch(like, counts->count, counts->n, sizeof(*like), order_by_place)
			 : NULL;
}

/* Drops patterns, and counts of 0; sorts the others by how often they were run. */
static void drop_empty(struct counts *counts)
{
	size_t kept = 0;

	for (size_t i = 0; i < counts->n + counts->patterns; i++) {
		struct function_count *one = &counts->count[i];

		if (i < counts->n && (one->count || one->lost))
			counts->count[kept++] = *one;
		else
			free(one->kind);
	}
	counts->n = kept;
	counts->patterns = 0;
	if (kept)
		qsort(counts->count, kept, sizeof(*counts->count), order_by_count);
}

void counts_since(struct counts *counts, struct counts *before, struct counts *named)
{
	sort_places(before);
	if (named)
		sort_places(named);
	for (size_t i = 0; i < counts->n; i++) {
		struct function_count *one = &counts->count[i];
		const struct function_count *was = find_count(before, one);

		one->count -= was && was->count <= one->count ? was->count : 0;
		one->lost -= was && was->lost <= one->lost ? was->lost : 0;
		if (named && !find_count(named, one))
			one->count = one->lost = 0;
	}
	drop_empty(counts);
}

void counts_missing(struct counts *counts, struct counts *seen, bool known_only)
{
	sort_places(seen);
	for (size_t i = 0; i < counts->n; i++) {
		struct function_count *one = &counts->count[i];
		const struct function_count *events = find_count(seen, one);
		bool has_all = events ? events->count >= one->count : known_only;

		one->lost = has_all ? 0 : one->count - (events ? events->count : 0);
		one->count = has_all ? 0 : one->count;
	}
	drop_empty(counts);
}

void counts_rates(struct counts *counts, struct counts *before, double seconds)
{
	sort_places(before);
	for (size_t i = 0; i < counts->n; i++) {
		struct function_count *one = &counts->count[i];
		const struct function_count *was = find_count(before, one);
		uint64_t from = was && was->count <= one->count ? was->count : 0;

		one->rate = (double)(one->count - from) / seconds;
	}
}

json_t *counts_json(const struct counts *counts)
{
	json_t *probes = json_array();

	for (size_t i = 0; i < counts->n; i++) {
		const struct function_count *one = &counts->count[i];
		char source[SOURCE_ROOM];

		json_array_append_new(probes,
				      json_pack("{s:I, s:I, s:o, s:o, s:o*, s:o, s:o*}", "count",
						(json_int_t)one->count, "lost",
						(json_int_t)one->lost, "kind", name_json(one->kind),
						"function", name_json(one->function), "demangled",
						demangled_json(one->function), "object",
						name_json(one->object), "source",
						name_json(source_named(one->object, one->kind,
								       one->function, source))));
	}
	return probes;
}

static void print_line(const struct function_count *one, FILE *out)
{
	char source[SOURCE_ROOM];
	int len;

	fprintf(out, "%14" PRIu64 " %10" PRIu64 "  ", one->count, one->lost);
	if (one->rate >= 0)
		fprintf(out, "%12.0f  ", one->rate);
	fprintf(out, "%-7s  ", one->kind);
	len = text_put(out, name_for_people(one->function, true));
	fprintf(out, "%*s", len < 32 ? 34 - len : 2, "");
	text_put(out, one->object);
	put_source(out, source_named(one->object, one->kind, one->function, source));
	fputc('\n', out);
}

void counts_print(const struct counts *counts, FILE *out, bool json, size_t most)
{
	if (json) {
		print_json(out, "counts",
			   json_pack("{s:I, s:o}", "processes", (json_int_t)counts->processes,
				     "probes", counts_json(counts)));
		return;
	}
	fprintf(out, "%14s %10s  %s%-7s  %-32s  %s\n", "count", "lost",
		counts->n && counts->count->rate >= 0 ? "per second    " : "", "kind", "function",
		"object");
	for (size_t i = 0; i < counts->n && i < most; i++)
		print_line(&counts->count[i], out);
}

int counts_write(const struct counts *counts, const char *path, bool json)
{
	FILE *out = open_output(path);

	if (!out)
		return -EIO;
	counts_print(counts, out, json, SIZE_MAX);
	return close_output(out, path);
}

void counts_free(struct counts *counts)
{
	for (size_t i = 0; i < counts->n + counts->patterns; i++)
		free(counts->count[i].kind);
	free(counts->count);
	*counts = (struct counts){ 0 };
}
