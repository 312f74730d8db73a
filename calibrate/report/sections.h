/* SPDX-License-Identifier: MIT */
/*
 * The sections of the report about a calibration. Those of the benchmarks: bench/page/.
 */
#ifndef CALIBRATE_REPORT_SECTIONS_H
#define CALIBRATE_REPORT_SECTIONS_H

#include "calibrate/page/report_page.h"

/* A section returns 0 or a negative errno; what is missing is no error. */
int section_verdict(struct page *page);
int section_machine(struct page *page);
int section_figure9(struct page *page);
int section_rate(struct page *page);
int section_tail(struct page *page);
int section_gaps(struct page *page);
int section_provokers(struct page *page);
int section_placements(struct page *page);
int section_noise(struct page *page);
int section_events(struct page *page);
int section_cells(struct page *page);
int section_limits(struct page *page);

#endif
