/* SPDX-License-Identifier: MIT */
/*
 * tell(FORMAT, ...) - a line of what a program gives a function: "function argument=value ...".
 */
#ifndef PROBES_COMMAND_TESTS_TELL_H
#define PROBES_COMMAND_TESTS_TELL_H

#include <stdio.h>

#define tell(...) (printf(__VA_ARGS__), putchar('\n'))

#endif
