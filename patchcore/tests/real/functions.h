/* SPDX-License-Identifier: MIT */
/*
 * The functions of a loaded object, as its unwind tables tell them: those are
 * there also where the symbols were stripped.
 */
#ifndef PATCHCORE_TESTS_REAL_FUNCTIONS_H
#define PATCHCORE_TESTS_REAL_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef void function_fn(uint8_t *code, size_t size, void *arg);

/*
 * functions_each - of the first object whose name contains `object`; the main
 * program if that is "". Their number, 0 also if there is no table of a known form.
 */
size_t functions_each(const char *object, function_fn *fn, void *arg);

#endif
