/* SPDX-License-Identifier: MIT */
/*
 * Where the config is. Private.
 */
#ifndef PATCHCORE_MACHINE_CONF_PATH_H
#define PATCHCORE_MACHINE_CONF_PATH_H

#include <stddef.h>

/*
 * machine_conf_find - the path of the config in force: the first that exists
 * in the order of pc_init(). -ENOENT if there is none, -ENAMETOOLONG.
 */
int machine_conf_find(char *path, size_t size);

/*
 * machine_conf_default_path - where a calibration run by this user puts it: the
 * user's folder, or localstatedir for root. -ENOENT if there is no home.
 */
int machine_conf_default_path(char *path, size_t size);

#endif
