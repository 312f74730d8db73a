/* SPDX-License-Identifier: MIT */
/*
 * Objects whose code is probed by an agent that was put into a process that runs: the dlclose()
 * that the program calls is not the agent's, so the agent holds each of them itself.
 */
#ifndef PROBES_AGENT_PIN_H
#define PROBES_AGENT_PIN_H

/*
 * pin_object - the object that holds that address stays loaded until pins_drop(). -ENOENT: none
 * does any more. -ENOMEM.
 *
 * pin_init, pin_scan - fi_init() and fi_scan(), which pin each new object before they read it.
 *
 * pin_use - the next pins_drop() leaves the object that holds that address.
 *
 * pins_drop - lets all others go, and runs what they run at their end. All in one thread at a time.
 */
int pin_object(const void *address);
int pin_init(void);
int pin_scan(void);
void pin_use(const void *address);
void pins_drop(void);

#endif
