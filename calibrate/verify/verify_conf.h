/* SPDX-License-Identifier: MIT */
/*
 * The worst cells that a calibration recorded in machine.conf: sections [cell 1],
 * [cell 2], ..., each with a command line of tmax stress.
 */
#ifndef CALIBRATE_VERIFY_VERIFY_CONF_H
#define CALIBRATE_VERIFY_VERIFY_CONF_H

#include <stdio.h>

#include "stress/cell/cell.h"

/*
 * verify_conf_cells - read the cells of a config that the library takes, in their
 * order. The number of them; -EINVAL with one line in why; -E2BIG: more than max.
 */
int verify_conf_cells(FILE *f, struct cell *cells, unsigned max, char *why, size_t size);

/*
 * verify_conf_command - the cell that a line "tmax stress --placement ..." tells.
 * Only options that describe a cell are taken, and they must make one that can be
 * run. 0, or -EINVAL with the reason in why (and a complaint on stderr of the function that reads
 * the value).
 */
int verify_conf_command(const char *command, struct cell *cell, char *why, size_t size);

#endif
