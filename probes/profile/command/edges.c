/* SPDX-License-Identifier: MIT */
#include "probes/profile/command/edges.h"

#include <stdlib.h>
#include <string.h>

double edges_count(const struct row *row)
{
	return row->half[0] + row->half[1];
}

double edges_agreement(const struct edges *profile)
{
	double sum[2] = { 0 }, common = 0;

	for (size_t i = 0; i < profile->n; i++)
		for (int h = 0; h < 2; h++)
			sum[h] += profile->row[i].half[h];
	for (size_t i = 0; i < profile->n && sum[0] > 0 && sum[1] > 0; i++) {
		double a = profile->row[i].half[0] / sum[0], b = profile->row[i].half[1] / sum[1];

		common += a < b ? a : b;
	}
	return common;
}

/* "FUNCTION+OFFSET\tOBJECT\tADDRESS": where the object's name starts and ends. */
bool edges_place(const char *name, const char **object, size_t *len, uint64_t *address)
{
	const char *start = strchr(name, '\t'), *end = start ? strchr(start + 1, '\t') : NULL;

	if (!end)
		return false;
	*object = start + 1;
	*len = (size_t)(end - start - 1);
	*address = strtoull(end + 1, NULL, 16);
	return true;
}
