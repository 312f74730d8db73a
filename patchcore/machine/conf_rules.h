/* SPDX-License-Identifier: MIT */
/*
 * What the numbers of a config must say together. Private.
 *
 * Each may be in its range, and the file still claim more than it has counted. The rules
 * never refuse what a calibration writes: its bounds are wider than theirs.
 */
#ifndef PATCHCORE_MACHINE_CONF_RULES_H
#define PATCHCORE_MACHINE_CONF_RULES_H

#include "patchcore/machine/machine_conf.h"

/*
 * conf_rule - rule number i. why: what is wrong, in one line, or "" if it holds.
 * Returns false behind the last rule.
 */
bool conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size);

#endif
