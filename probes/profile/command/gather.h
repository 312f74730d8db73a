/* SPDX-License-Identifier: MIT */
/*
 * The lines that processes left (probes/profile/session/report.h), as one profile.
 */
#ifndef PROBES_PROFILE_COMMAND_GATHER_H
#define PROBES_PROFILE_COMMAND_GATHER_H

#include "probes/profile/model/profile.h"

/*
 * gather - all files of a folder, which is removed; edges says which kind they are. 1 after a
 * complaint: not all is there. Negative errno.
 */
int gather(struct profile *profile, const char *folder);

#endif
