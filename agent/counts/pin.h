/* SPDX-License-Identifier: MIT */
/*
 * Objects whose code is probed by an agent that was put into a process that runs: the dlclose()
 * that the program calls is not the agent's, so the agent holds each of them itself.
 */
#ifndef AGENT_COUNTS_PIN_H
#define AGENT_COUNTS_PIN_H

/*
 * pin_object - the object that holds that address stays loaded until pins_drop(). -ENOENT: none
 * does any more. -ENOMEM. pins_drop - runs what the object runs at its end. Both in one thread at a
 * time.
 */
int pin_object(const void *address);
void pins_drop(void);

#endif
