/* SPDX-License-Identifier: MIT */
/*
 * Text inside XML and YAML, for reports that other programs read.
 */
#ifndef CALIBRATE_PROGRAM_MARKUP_H
#define CALIBRATE_PROGRAM_MARKUP_H

#include <stdio.h>

#include <jansson.h>

/* xml_text - with what XML would take for its own named. xml_attribute - a blank, name="text". */
void xml_text(FILE *f, const char *text);
void xml_attribute(FILE *f, const char *name, const char *text);

/* xml_property - a line of JUnit's <properties>. */
void xml_property(FILE *f, const char *name, const char *value);

/*
 * yaml_document - an object as a document of YAML: a line for each member, and a line for each
 * element of a list. What is inside these is JSON, which is YAML too.
 */
void yaml_document(FILE *f, const json_t *object);

#endif
