/* SPDX-License-Identifier: MIT */
/* Files of text, also as xz(1) has packed them. */
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

#endif
