/* SPDX-License-Identifier: MIT */
/*
 * The page of a machine: what its journals hold, as one HTML file with its figures.
 *
 * It lives here rather than in results/, because it needs the bounds of
 * calibrate/statistics/bound.h and the dependencies point that way.
 */
#ifndef CALIBRATE_REPORT_REPORT_H
#define CALIBRATE_REPORT_REPORT_H

#include <stddef.h>

#include "calibrate/page/report_page.h"

/* report_refusal - why there can be no page of these journals, NULL if there can. */
const char *report_refusal(const struct journal_data *data);

/*
 * report_write - write the page and its figures. A figure that cannot be drawn is
 * replaced by a sentence; its data are written all the same.
 *
 * 0, or with the reason in words in error:
 * -EINVAL: refused as above; nothing is written.
 * -EEXIST: index.html is there, and this program did not write it; nothing is written.
 * Else what writing failed with; then index.html is as it was.
 */
int report_write(struct report *report, char *error, size_t size);

#endif
