/* SPDX-License-Identifier: MIT */
#ifndef COMMANDS_TMAX_PRIOR_CMD_H
#define COMMANDS_TMAX_PRIOR_CMD_H

/*
 * prior_apply - write machine.conf for this machine by a table of tmax fleet export. output: where
 * to; NULL: where calibrate would. require_p: 0: as calibrate has it. An exit status.
 */
int prior_apply(const char *table, const char *output, double require_p);

#endif
