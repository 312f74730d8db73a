/* SPDX-License-Identifier: MIT */
/*
 * AutoFDO's text: counts of ranges of addresses, of single addresses (none), and of branches. A
 * branch is told where it leads to a function's first block: the count of the function.
 *
 * The format is of one object: the one whose blocks were run most.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "probes/profile/command/edges.h"
#include "probes/profile/command/image.h"
#include "probes/text/text.h"

struct site {
	uint64_t address, entry, end; /* of its function */
	double count;
};

struct object {
	const struct edges *profile;
	const char *name; /* as long as len; in the name of a block */
	size_t len;
	struct image image;
	struct site *site; /* by address */
	size_t n;
};

static void find_object(struct object *object)
{
	json_t *sums = json_object(), *count;
	const char *name, *in;
	uint64_t address;
	double most = -1;
	size_t len;

	json_object_foreach(object->profile->counts, name, count)
	{
		double sum;
		json_t *before;

		if (!edges_place(name, &in, &len, &address))
			continue;
		before = json_object_getn(sums, in, len);
		sum = json_real_value(before) + json_real_value(count);
		json_object_setn_new(sums, in, len, json_real(sum));
		if (sum <= most)
			continue;
		most = sum;
		object->name = in;
		object->len = len;
	}
	json_decref(sums);
}

static bool is_of(const struct object *object, const char *name, uint64_t *address)
{
	const char *in;
	size_t len;

	return edges_place(name, &in, &len, address) && len == object->len &&
	       !memcmp(in, object->name, len);
}

static int by_address(const void *a, const void *b)
{
	const struct site *one = a, *two = b;

	return (one->address > two->address) - (one->address < two->address);
}

static int find_sites(struct object *object)
{
	const char *name;
	uint64_t address;
	json_t *count;

	object->site = calloc(json_object_size(object->profile->counts) + 1, sizeof(*object->site));
	if (!object->site)
		return -ENOMEM;
	json_object_foreach(object->profile->counts, name, count)
	{
		const struct elf_symbol *symbol;

		if (!is_of(object, name, &address))
			continue;
		symbol = elf_function_at(&object->image.symbols, address);
		if (symbol)
			object->site[object->n++] =
				(struct site){ address, symbol->addr, symbol->addr + symbol->size,
					       json_real_value(count) };
	}
	qsort(object->site, object->n, sizeof(*object->site), by_address);
	return 0;
}

static bool is_first(const struct object *object, size_t i)
{
	return !i || object->site[i - 1].entry != object->site[i].entry;
}

static uint64_t start_of(const struct object *object, size_t i)
{
	return is_first(object, i) ? object->site[i].entry : object->site[i].address;
}

/* Its last byte: that of the last instruction, which is what readers look for. */
static uint64_t last_of(const struct object *object, size_t i)
{
	bool last = i + 1 == object->n || is_first(object, i + 1);

	return (last ? object->site[i].end : object->site[i + 1].address) - 1;
}

static void put_ranges(const struct object *object, FILE *out)
{
	size_t n = 0;

	for (size_t i = 0; i < object->n; i++)
		n += object->site[i].count >= 0.5;
	fprintf(out, "%zu\n", n);
	for (size_t i = 0; i < object->n; i++)
		if (object->site[i].count >= 0.5)
			fprintf(out, "%" PRIx64 "-%" PRIx64 ":%.0f\n", start_of(object, i),
				last_of(object, i), object->site[i].count);
}

/* Where an edge leads, if that is a function's first block; else 0. */
static uint64_t entered_function(const struct object *object, uint64_t to)
{
	const struct site key = { .address = to };
	const struct site *site = bsearch(&key, object->site, object->n, sizeof(key), by_address);

	return site && is_first(object, (size_t)(site - object->site)) ? site->entry : 0;
}

/* Blocks run one behind the other are no call where a loop leads to the first block. */
static size_t put_branches(const struct object *object, FILE *out)
{
	const struct edges *profile = object->profile;
	size_t n = 0;

	for (size_t i = 0; i < profile->n; i++) {
		uint64_t from, to, entry;

		if (!is_of(object, profile->row[i].from, &from) ||
		    !is_of(object, profile->row[i].to, &to))
			continue;
		entry = entered_function(object, to);
		if (!entry)
			continue;
		n++;
		if (out)
			fprintf(out, "%" PRIx64 "->%" PRIx64 ":%.0f\n", from, entry,
				edges_count(&profile->row[i]));
	}
	return n;
}

int edges_write_autofdo(const struct edges *profile, FILE *out)
{
	struct object object = { .profile = profile };
	char *path;
	int ret;

	find_object(&object);
	path = object.name ? text_unescaped(object.name, object.len) : NULL;
	if (!path)
		return object.name ? -ENOMEM : 0;
	image_open(&object.image, path);
	ret = find_sites(&object);
	if (!ret) {
		put_ranges(&object, out);
		fputs("0\n", out);
		fprintf(out, "%zu\n", put_branches(&object, NULL));
		put_branches(&object, out);
	}
	image_close(&object.image);
	free(object.site);
	free(path);
	return ret;
}
