/* SPDX-License-Identifier: MIT */
/* Verdicts on terminals, and text inside XML and YAML for reports that other programs read. */
#ifndef RESULTS_FIGURES_MARKUP_H
#define RESULTS_FIGURES_MARKUP_H

#include <stdio.h>

#include <jansson.h>

/*
 * put_verdict - the name of a verdict, which the program exits with that status for: green of
 * EXIT_PASS, red of EXIT_TEARS, else yellow. Plain where out is no terminal that has colours, and
 * where the user has set NO_COLOR (no-color.org).
 */
void put_verdict(FILE *out, const char *name, int status);

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
