/* SPDX-License-Identifier: MIT */
/*
 * What the database says of each kind, for people: as text, and as a page with figures.
 */
#ifndef COMMANDS_REPORT_FLEET_REPORT_H
#define COMMANDS_REPORT_FLEET_REPORT_H

#include <stdio.h>

#include "fleet/judge/ladder_of.h"

/* kind_title - what the kind is, in a line without its end. */
void kind_title(FILE *out, const struct fleet_kind *kind);

/*
 * kind_ladder - of each decade and crossing the cheapest wait that keeps it, as cells with tabs
 * between them: decade, crossing, waits, bound, machines, runs, toggles, tears.
 */
typedef void ladder_row(FILE *out, char *cells);
void kind_ladder(FILE *out, const struct kind_report *report, ladder_row *put);

/*
 * kind_text - all of it, with the ladder or without. What journals say is made printable. How many
 * machines are worse than their kind, or a negative errno.
 */
int kind_text(FILE *out, const struct kind_report *report, bool ladder);

/*
 * fleet_text, fleet_page - of all kinds: to a stream, or FOLDER/fleet.html with its figures; the
 * folder is made. How many machines are worse than their kind, or a negative errno. undrawn: out:
 * why figures are missing, "" if none are.
 */
int fleet_text(FILE *out, struct fleet *fleet);
int fleet_page(const char *folder, struct fleet *fleet, char *undrawn, size_t size);

#endif
