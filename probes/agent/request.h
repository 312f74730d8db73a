/* SPDX-License-Identifier: MIT */
/*
 * What "fastinst on", "off", "top" and "trace" ask for.
 */
#ifndef PROBES_AGENT_REQUEST_H
#define PROBES_AGENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define REQUEST_ANSWER 128 /* that the first line of an answer fits into */

/*
 * request_serve - does what a line asks for, and cuts it. Writes "ok N" or "error TEXT", with its
 * end of line, to @text, which has REQUEST_ANSWER bytes at least; *counts: all counts are to
 * follow. The length.
 */
size_t request_serve(char *request, char *text, size_t size, bool *counts);

#endif
