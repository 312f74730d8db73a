/* SPDX-License-Identifier: MIT */
/* The process as a program that metrics are planned for: its procedures are those with probes. */
#ifndef METRICS_AGENT_PROGRAM_H
#define METRICS_AGENT_PROGRAM_H

#include "metrics/language/request.h"

struct procedures;

/* procedures_find - all that have probes now; procedures_free() them. NULL: no memory. */
struct procedures *procedures_find(void);
void procedures_free(struct procedures *procedures);

/* procedures_world - as a plan sees them. */
struct metric_world procedures_world(struct procedures *procedures);

#endif
