/* SPDX-License-Identifier: MIT */
/*
 * Writes a journal to make a report of: report_journal FILE. With a second
 * argument it holds a machine and nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "calibrate/tests/report_sample.h"

int main(int argc, char **argv)
{
	struct journal *journal;
	int rc;

	if (argc < 2 || journal_open(&journal, argv[1])) {
		fprintf(stderr, "usage: report_journal FILE [empty]\n");
		return 1;
	}
	rc = argc == 2 ? sample_calibration(journal) : sample_run(journal);
	if (rc)
		fprintf(stderr, "report_journal: %s\n", strerror(-rc));
	journal_close(journal);
	return rc != 0;
}
