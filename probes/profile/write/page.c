/* SPDX-License-Identifier: MIT */
/*
 * A page for browsers: what JSON has, and a script that draws it. Nothing is fetched.
 */
#include "probes/profile/write/write.h"
#include "probes/told/told.h"

static const char calls_page[] =
#include "probes/profile/write/calls.inc"
	;

static const char edges_page[] =
#include "probes/profile/write/edges.inc"
	;

static int write_calls(const void *profile, FILE *out)
{
	return write_json(profile, out);
}

int write_page(const struct profile *profile, FILE *out)
{
	return told_page(out, profile->edges ? edges_page : calls_page, write_calls, profile);
}
