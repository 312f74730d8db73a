/* SPDX-License-Identifier: MIT */
#ifndef CALIBRATE_CONF_WRITE_H
#define CALIBRATE_CONF_WRITE_H

#include "calibrate/estimate.h"

/* Where the numbers come from. */
struct provenance {
	const struct identity *identity;
	const struct plan *plan;
	const char *journal; /* file name, without its folder */
};

/*
 * conf_check - can conf_write() write there? Makes the folders that are missing,
 * and leaves no file. 0 or a negative errno; -ENOTSUP for what is no plain file.
 */
int conf_check(const char *path);

/*
 * conf_write - write machine.conf: to a temporary file beside path, then renamed
 * over it, so that a reader sees the old or the new one. Folders that are
 * missing are made. 0 or a negative errno, with path as it was.
 */
int conf_write(const char *path, const struct estimate *estimate, const struct provenance *from);

#endif
