/* SPDX-License-Identifier: MIT */
/* How an agent's process ends, whichever way it leaves. */
#ifndef PROBES_AGENT_LEAVE_H
#define PROBES_AGENT_LEAVE_H

struct leaving {
	void (*end)(void);   /* last of all; may be called more than once */
	void (*image)(void); /* before another program is executed in place of this one */
	void (*back)(void);  /* that was not executed; NULL: what image() did stays done */
};

/* leave_by - what the agent has to do then. For its constructor, or later. */
void leave_by(const struct leaving *leaving);

void leave_image(void);
void leave_not(void);

#endif
