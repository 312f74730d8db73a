/* SPDX-License-Identifier: MIT */
/*
 * What the database says of each kind, for people: as text, and as a page with figures.
 */
#ifndef COMMANDS_REPORT_FLEET_REPORT_H
#define COMMANDS_REPORT_FLEET_REPORT_H

#include <stdio.h>

#include "fleet/judge/ladder_of.h"

/*
 * fleet_text, fleet_page - of all kinds: to a stream, or FOLDER/fleet.html with its figures; the
 * folder is made. How many machines are worse than their kind, or a negative errno. undrawn: out:
 * why figures are missing, "" if none are.
 */
int fleet_text(FILE *out, struct fleet *fleet);
int fleet_page(const char *folder, struct fleet *fleet, char *undrawn, size_t size);

#endif
