/* SPDX-License-Identifier: MIT */
/*
 * The thread that opens windows, once per epoch.
 */
#ifndef PROBES_PROFILE_EPOCHS_EPOCHS_H
#define PROBES_PROFILE_EPOCHS_EPOCHS_H

/* epochs_start_thread - in the place of an earlier one. Negative errno. */
int epochs_start_thread(void);

/* epochs_end_thread - it begins no other epoch. */
void epochs_end_thread(void);

/* epochs_count_out - in a child: threads of the parent are not there. */
void epochs_count_out(void);

/* epochs_drain - count the callers that threads have noted. */
void epochs_drain(void);

#endif
