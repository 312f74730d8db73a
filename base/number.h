/* SPDX-License-Identifier: MIT */
/* The one notation of numbers for people: on pages, in figures, in text. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

/*
 * number_text - "4700", "0.25", "1.62e6", "3.1e-7"; "?" for none. Whole numbers below 100000 are
 * written in full, all others with three digits. Returns buf.
 */
#define NUMBER_TEXT 24
char *number_text(char buf[NUMBER_TEXT], double value);

/* The same as an expression, for the arguments of printf(). */
#define NUMBER(value) number_text((char[NUMBER_TEXT]){ 0 }, (double)(value))

/* ticks_text, TICKS - as a time: "77 ns", "7.7 us"; in ticks where the rate of the TSC is 0: not
 * known. */
#define TICKS_TEXT (NUMBER_TEXT + 8)
char *ticks_text(char buf[TICKS_TEXT], double ticks, uint64_t tsc_khz);
#define TICKS(ticks, tsc_khz) ticks_text((char[TICKS_TEXT]){ 0 }, (double)(ticks), (tsc_khz))

/* The end of a word for so many: "1 tear", "2 tears". */
#define S(count) ((count) == 1 ? "" : "s")

#endif
