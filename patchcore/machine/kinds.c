/* SPDX-License-Identifier: MIT */
#include "patchcore/machine/kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchcore/machine/machine_conf.h"

const char *kinds_path = PKGDATADIR "/kinds.tsv";

/*
 * 32 for AMD from family 26 on: stores across 32 bytes were seen to tear there in 20 of 23 runs of
 * a minute. And nowhere more than others of the kind keep.
 */
static unsigned find_widest(const struct kind *kind, const struct identity *id)
{
	unsigned most = strcmp(id->vendor, "AuthenticAMD") == 0 && id->family >= 26 ? 32 : 64;
	unsigned bytes = 8;

	for (unsigned i = 0; bytes < most && !kind->torn[i]; i++)
		bytes *= 2;
	return bytes;
}

bool kind_take(struct kind *k, const char *line, const struct identity *id)
{
	/* As results/kinds.py writes them. */
	const char *columns = "\t%u\t%u\t%u\t%" SCNu64 "\t%" SCNu64 "\t%u\t%u\t%u"
			      "\t%" SCNu64 "\t%" SCNu64 "\t%" SCNu64;
	size_t vendor = strlen(id->vendor);

	*k = (struct kind){ 0 };
	/* Of this kind; and it claims no window that tore, and no more than its stores allow. */
	if (strncmp(line, id->vendor, vendor) == 0 &&
	    sscanf(line + vendor, columns, &k->family, &k->model, &k->window, &k->stores,
		   &k->one_in, &k->runs, &k->hours, &k->machines, &k->torn[0], &k->torn[1],
		   &k->torn[2]) == 11 &&
	    k->family == id->family && k->model == id->model && k->window >= 8 &&
	    k->window <= find_widest(k, id) && !(k->window & (k->window - 1)) && k->one_in > 0 &&
	    -(double)k->one_in * log1p(-0.95) <= (double)k->stores && k->hours <= k->runs &&
	    k->runs <= k->stores)
		return true;
	*k = (struct kind){ 0 };
	return false;
}

struct kind kind_read(const struct identity *id)
{
	const char *named = secure_getenv("PATCHCORE_KINDS");
	char why[160], *line = NULL;
	int fd = conf_open(named && named[0] ? named : kinds_path, why, sizeof(why));
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	struct kind kind = { 0 };
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0 && !kind_take(&kind, line, id))
		;
	kind.widest = find_widest(&kind, id);
	free(line);
	if (file)
		fclose(file);
	return kind;
}
