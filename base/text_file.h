/* SPDX-License-Identifier: MIT */
/* Files of text, also as xz(1) has packed them, and the data files of the package. */
#ifndef BASE_TEXT_FILE_H
#define BASE_TEXT_FILE_H

#include <stdio.h>

/*
 * text_file_open - a file for reading; where its name ends in .xz, what is packed in it. NULL and
 * errno as fopen(3). Where a packed file is damaged or cut, reading ends in an error, as EIO.
 */
FILE *text_file_open(const char *path);

/* text_file_read - all of a file that is not packed, to be freed. NULL and errno; EINVAL: empty. */
char *text_file_read(const char *path);

/*
 * text_file_end - end the writing of a file and rename it to path, so that a reader sees the old
 * one or the new one; after an error (ret below 0) it is removed. ret, or a negative errno.
 */
int text_file_end(FILE *out, const char *fresh, const char *path, int ret);

/*
 * data_file - the path of a data file, such as a script of gnuplot or a schema: in $TMAX_DATADIR if
 * that is set; else in the folder data/ beside the program, which a build tree has; else where the
 * package is installed.
 *
 * 0; -ENAMETOOLONG, or what reading failed with: then path is the last place that was tried.
 */
int data_file(const char *name, char *path, size_t size);

#endif
