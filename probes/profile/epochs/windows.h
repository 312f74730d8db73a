/* SPDX-License-Identifier: MIT */
/*
 * Windows: how long a probe is watched, what that has shown, and the next one.
 */
#ifndef PROBES_PROFILE_EPOCHS_WINDOWS_H
#define PROBES_PROFILE_EPOCHS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

/* Probes that are off and to be turned on, at once. */
struct reopen {
	uint32_t *ids;
	uint64_t *windows;
	size_t n;
};

/* windows_reopening - room for so many; without memory for them ids is NULL. */
struct reopen windows_reopening(uint32_t n);
void windows_reopening_free(struct reopen *reopen);

/* windows_reopen - one more; its window by what is known of it. */
void windows_reopen(struct reopen *reopen, uint32_t id);

/* windows_activate - all of them. The estimated calls of the epochs that end by that. */
double windows_activate(const struct reopen *reopen);

/* windows_read - what the window of a probe in that state has seen until now. */
void windows_read(uint32_t id, uint64_t state, uint64_t now);

/* windows_learn - the epoch that was read ends. Its calls, estimated. */
double windows_learn(uint32_t id, uint64_t end);

/* windows_go_on - the next window of a probe that is still on, so that no code has to be changed.
 */
double windows_go_on(uint32_t id, uint64_t state, uint64_t now);

/* windows_afford - what the epoch that begins may count in addition, while the profile is new. */
void windows_afford(void);

/* windows_rest - how many epochs pass until what is hardly called is looked at again: all its calls
 * are counted anyway. */
void windows_rest(uint32_t id);

/* windows_exits - turn on what times these entries, before them. */
void windows_exits(const uint32_t *ids, size_t n);

#endif
