/* SPDX-License-Identifier: MIT */
/* tell(FORMAT, ...) - a line of what a program gives a function: "function argument=value ...". */
#ifndef COMMANDS_FASTINST_TESTS_TELL_H
#define COMMANDS_FASTINST_TESTS_TELL_H

#include <stdio.h>

#define tell(...) (printf(__VA_ARGS__), putchar('\n'))

#endif
