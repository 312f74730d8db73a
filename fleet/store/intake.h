/* SPDX-License-Identifier: MIT */
/*
 * Files into the database: stores of evidence and journals, by their lines.
 *
 * A line that is damaged, forged without care or not ours is set aside with the reason. It costs no
 * other line. Lines of journals that are no cells are passed over.
 */
#ifndef FLEET_STORE_INTAKE_H
#define FLEET_STORE_INTAKE_H

#include "fleet/store/store.h"

struct intake {
	size_t runs;  /* added */
	size_t known; /* that were there already */
	size_t aside; /* lines set aside, those that had been before included */
};

/*
 * fleet_take_file - add what a file holds to the counts and to the database. machine: whose it is;
 * NULL: as the file's name says (HOST.evidence), or its folder's (HOST/machine.conf.evidence).
 * Runs that the file has before an epoch begins are dropped. 0; -ENOMSG: no line is evidence or of
 * a journal; or another negative errno: then nothing of the file is added.
 */
int fleet_take_file(struct fleet *fleet, const char *path, const char *machine,
		    struct intake *intake);

/* fleet_machine_of - that name. */
void fleet_machine_of(const char *path, char *name, size_t size);

#endif
