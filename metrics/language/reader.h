/* SPDX-License-Identifier: MIT */
/* What grammar.y, words.l and tree.c share while a text is read. */
#ifndef METRICS_LANGUAGE_READER_H
#define METRICS_LANGUAGE_READER_H

#include "metrics/language/tree.h"

struct mdl_reader {
	struct mdl *mdl;
	struct mdl_error *error;
	const char *text;      /* all of it */
	unsigned line, column; /* behind the last word */
	unsigned depth;	       /* of what is read in each other */
	struct mdl_list list;
	struct mdl_metric metric; /* the one that is read */
	bool no_memory;
};

/* reader_pass - go behind a word that has so many bytes; returns where it begins. */
struct mdl_place reader_pass(struct mdl_reader *reader, const char *word, size_t len);

/* reader_copy - so many bytes of a word; "" and no_memory are set where there is none. */
const char *reader_copy(struct mdl_reader *reader, const char *word, size_t len);

/* reader_new - cleared; the reader has failed where it is NULL. */
void *reader_new(struct mdl_reader *reader, size_t size);

#endif
