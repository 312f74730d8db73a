/* SPDX-License-Identifier: MIT */
/*
 * Which exits belong to which entries. An exit is on while an entry of its function is, and turns
 * itself off behind that.
 */
#ifndef PROBES_PROFILE_SAMPLE_EXITS_H
#define PROBES_PROFILE_SAMPLE_EXITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * exits_take - finds the exits of entries that came.
 * @first: probes below that were looked at before
 *
 * Returns how many functions have some, or -ENOMEM.
 */
long exits_take(const uint32_t *entries, size_t n, uint32_t first);

/* exits_on - those of entries, before these are turned on. How many were off; a negative errno. */
long exits_on(const uint32_t *entries, size_t n);

/*
 * exits_on_too - all that are off, also where the entry is. exits_off_again - all that were not
 * turned on with their entries since. 0 or a negative errno.
 */
int exits_on_too(void);
int exits_off_again(void);

/* exits_off - all of them. 0 or a negative errno. exits_forget - there are none. */
int exits_off(void);
void exits_forget(void);

/* exits_forked - in the child: none is being turned off. */
void exits_forked(void);

#endif
