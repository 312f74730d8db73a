/* SPDX-License-Identifier: MIT */
/*
 * The data files of the package: scripts of gnuplot, sources of peers, the schema.
 */
#ifndef BASE_DATA_FILE_H
#define BASE_DATA_FILE_H

#include <stddef.h>

/*
 * data_file - the path of such a file: in $TMAX_DATADIR if that is set; else in the folder data/
 * beside the program, which a build tree has; else where the package is installed.
 *
 * 0; -ENAMETOOLONG, or what reading failed with: then path is the last place that was tried.
 */
int data_file(const char *name, char *path, size_t size);

#endif
