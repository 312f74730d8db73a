/* SPDX-License-Identifier: MIT */
/*
 * What fastinst prints as JSON: objects of one line each, which begin with type, schema, tool and
 * date. results/schema/fastinst-1.json says what they hold.
 */
#ifndef PROFILE_COMMAND_PRINT_H
#define PROFILE_COMMAND_PRINT_H

#include <jansson.h>
#include <stdio.h>

#define JSON_SCHEMA 1

/* name_json - a name as a string, with U+FFFD in place of bytes that are no UTF-8. NULL: it was. */
json_t *name_json(const char *name);

/* demangled_json - a function's name as its source has it. NULL: it is the same. */
json_t *demangled_json(const char *name);

/* set_named_member - json_object_set_new() of a member that is called by a name. */
int set_named_member(json_t *object, const char *name, json_t *value);

/* print_json_line - write an object as a line, and free it. 0, -ENOMEM if it is NULL, or -EIO. */
int print_json_line(FILE *out, json_t *object);

/* print_json - write what the body holds in an object of that type, and free it. As
 * print_json_line(). */
int print_json(FILE *out, const char *type, json_t *body);

#endif
