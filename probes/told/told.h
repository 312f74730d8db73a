/* SPDX-License-Identifier: MIT */
/*
 * What fastinst prints as JSON: objects of one line each, which begin with type, schema, tool and
 * date. results/schema/fastinst-1.json says what they hold.
 */
#ifndef PROBES_TOLD_TOLD_H
#define PROBES_TOLD_TOLD_H

#include <jansson.h>
#include <stdio.h>

#define TOLD_SCHEMA 1

/* told_text - a name as a string, with U+FFFD in place of bytes that are no UTF-8. NULL: it was. */
json_t *told_text(const char *name);

/* told_demangled - a function's name as its source has it. NULL: it is the same. */
json_t *told_demangled(const char *name);

/* told_member - json_object_set_new() of a member that is called by a name. */
int told_member(json_t *object, const char *name, json_t *value);

/* told_line - write an object as a line, and free it. 0, -ENOMEM if it is NULL, or -EIO. */
int told_line(FILE *out, json_t *object);

/* told - write what the body holds in an object of that type, and free it. As told_line(). */
int told(FILE *out, const char *type, json_t *body);

typedef int told_fn(const void *what, FILE *out);

/*
 * told_page - write an HTML page that fetches nothing: the head of all pages, and the body, where
 * the function writes in place of @JSON@. 0, its error, -ENOMEM or -EIO.
 */
int told_page(FILE *out, const char *body, told_fn *write, const void *what);

#endif
