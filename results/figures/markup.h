/* SPDX-License-Identifier: MIT */
/* Verdicts on terminals, and JUnit's XML and YAML for reports that other programs read. */
#ifndef RESULTS_FIGURES_MARKUP_H
#define RESULTS_FIGURES_MARKUP_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct waits;

/*
 * put_verdict - the name of a verdict, which the program exits with that status for: green of
 * EXIT_PASS, red of EXIT_TEARS, else yellow. Plain where out is no terminal that has colours, and
 * where the user has set NO_COLOR (no-color.org).
 */
void put_verdict(FILE *out, const char *name, int status);

/* waits_words, WAITS_WORDS - for people: "0.31 us, or 4 times the store's own latency". */
#define WAITS_WORDS_TEXT 96
char *waits_words(const struct waits *waits, uint64_t tsc_khz, char buf[WAITS_WORDS_TEXT]);
#define WAITS_WORDS(waits, tsc_khz) waits_words((waits), (tsc_khz), (char[WAITS_WORDS_TEXT]){ 0 })

/*
 * junit_case - add a test to an array of them: its status is "failure", "error" of the test itself,
 * "skipped", or NULL for one that passed, with the message; output: what it ran, or said.
 *
 * junit_document - all of them as JUnit's XML. properties: an object; of an object in it each
 * member is a property, with both names. Both are freed.
 */
void junit_case(json_t *cases, const char *class, const char *name, double seconds,
		const char *status, const char *message, const char *output);
void junit_document(FILE *f, const char *suite, const char *date, double seconds,
		    json_t *properties, json_t *cases);

/*
 * yaml_document - an object as a document of YAML: a line for each member, and a line for each
 * element of a list. What is inside these is JSON, which is YAML too.
 */
void yaml_document(FILE *f, const json_t *object);

#endif
