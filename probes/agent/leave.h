/* SPDX-License-Identifier: MIT */
/* How an agent's process ends, whichever way it leaves. */
#ifndef PROBES_AGENT_LEAVE_H
#define PROBES_AGENT_LEAVE_H

/* leave_by - what the agent has to do last: @end, which may be called more than once. For the
 * agent's constructor. */
void leave_by(void (*end)(void));

#endif
