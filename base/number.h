/* SPDX-License-Identifier: MIT */
/* The one notation of numbers for people: on pages, in figures, in text. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

/*
 * number_text - "4700", "0.25", "1.62e6", "3.1e-7"; "?" for none. Whole numbers below 100000 are
 * written in full, all others with three digits. Returns buf.
 */
#define NUMBER_TEXT 24
char *number_text(char buf[NUMBER_TEXT], double value);

/* The same as an expression, for the arguments of printf(). */
#define NUMBER(value) number_text((char[NUMBER_TEXT]){ 0 }, (double)(value))

/* The end of a word for so many: "1 tear", "2 tears". */
#define S(count) ((count) == 1 ? "" : "s")

#endif
