/* SPDX-License-Identifier: MIT */
/* How the command tells the agent what to measure: see agent.c. */
#ifndef METRICS_AGENT_AGENT_H
#define METRICS_AGENT_AGENT_H

#define METRICS_AGENT	 "libfastinst-metrics.so"
#define METRICS_TEXT	 "FASTINST_METRICS"
#define METRICS_REQUESTS "FASTINST_REQUESTS"
#define METRICS_VALUES	 "FASTINST_VALUES"

#endif
