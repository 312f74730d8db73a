/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/kinds.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/machine/machine_conf.h"

#define WIDEST	   64u
#define CONFIDENCE 0.95

const char *kinds_path = PKGDATADIR "/kinds.tsv";

/* A tab, and digits behind it. */
static bool take_number(const char **at, uint64_t *number)
{
	char *end;

	if ((*at)[0] != '\t' || !isdigit((unsigned char)(*at)[1]))
		return false;
	errno = 0;
	*number = strtoull(*at + 1, &end, 10);
	*at = end;
	return errno == 0;
}

/* The columns of results/kinds.py. */
static bool take_kind(const char *at, struct kind *k)
{
	uint64_t *const columns[] = {
		&k->family, &k->model,	  &k->window,  &k->stores,  &k->one_in,	 &k->runs,
		&k->hours,  &k->machines, &k->torn[0], &k->torn[1], &k->torn[2],
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if (!take_number(&at, columns[i]))
			return false;
	return *at == '\0';
}

/* Does it claim no more than its stores allow, and no window that tore? */
static bool is_sound(const struct kind *k)
{
	double stores = (double)k->stores;

	return k->window >= 8 && k->window <= kind_widest(k) && !(k->window & (k->window - 1)) &&
	       k->one_in > 0 && -(double)k->one_in * log1p(-CONFIDENCE) <= stores &&
	       k->machines <= k->hours && k->hours <= k->runs && k->runs <= k->stores;
}

unsigned kind_widest(const struct kind *kind)
{
	for (unsigned i = 0; i < KIND_BOUNDARIES; i++)
		if (kind->torn[i])
			return 8u << i;
	return WIDEST;
}

int kind_parse(struct kind *kind, char *text, const struct identity *id)
{
	size_t length = strlen(id->vendor);
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (strncmp(line, id->vendor, length) == 0 && take_kind(line + length, kind) &&
		    kind->family == id->family && kind->model == id->model && is_sound(kind))
			return 0;
	}
	*kind = (struct kind){ 0 };
	return -ENOENT;
}

int kind_read(struct kind *kind, const char *path, const struct identity *id)
{
	char why[160], *text;
	size_t size;
	int ret = conf_load(path, &text, &size, why, sizeof(why));

	*kind = (struct kind){ 0 };
	if (ret == 0)
		ret = kind_parse(kind, text, id);
	free(text);
	return ret;
}
