/* SPDX-License-Identifier: MIT */
/*
 * Reading a config. Private.
 *
 * INI, read with inih. Sections and keys that the library does not need are
 * skipped, so that the calibrator may say more; what it needs must be there
 * once, be well formed, and not contradict itself (conf_rules.h).
 */
#ifndef PATCHCORE_MACHINE_CONF_READ_H
#define PATCHCORE_MACHINE_CONF_READ_H

#include <stddef.h>

#include "patchcore/machine/machine_conf.h"

/*
 * machine_conf_parse - parse text of a known size, which must end in a NUL that
 * is not counted. 0, or -EINVAL with one line in why.
 */
int machine_conf_parse(struct machine_conf *conf, const char *text, size_t size, char *why,
		       size_t why_size);

/*
 * machine_conf_read - the same from a file that only root and the effective user can
 * write to. Also what conf_open() and read(2) fail with, and -EFBIG.
 */
int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size);

#endif
