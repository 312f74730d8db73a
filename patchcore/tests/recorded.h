/* SPDX-License-Identifier: MIT */
/*
 * Recorded machines, and ones made up file by file, to read an identity or a clock from. For
 * cmocka tests, which include cmocka.h first.
 */
#ifndef PATCHCORE_TESTS_RECORDED_H
#define PATCHCORE_TESTS_RECORDED_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "patchcore/machine/identity.h"

#define RECORDS 16
#define CPU	"/sys/devices/system/cpu/"
#define EPYC	"amd-epyc-kvm"

/* The answers of CPUID on a recorded machine, and which were asked for. */
struct machine {
	char root[256];
	unsigned records;
	struct record {
		uint32_t leaf, subleaf, regs[4];
		unsigned asked;
	} record[RECORDS];
	unsigned asked;
};

static inline struct record *find(struct machine *m, uint32_t leaf, uint32_t subleaf)
{
	for (unsigned i = 0; i < m->records; i++)
		if (m->record[i].leaf == leaf && m->record[i].subleaf == subleaf)
			return &m->record[i];
	return NULL;
}

static inline void recorded_cpuid(void *arg, uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	struct machine *m = arg;
	struct record *r = find(m, leaf, subleaf);

	m->asked++;
	memset(regs, 0, 4 * sizeof(*regs));
	if (!r)
		return;
	r->asked++;
	memcpy(regs, r->regs, sizeof(r->regs));
}

static inline void load(struct machine *m, const char *name)
{
	const char *srcdir = getenv("srcdir");
	char path[300], line[128];
	FILE *f;

	memset(m, 0, sizeof(*m));
	snprintf(m->root, sizeof(m->root), "%s/patchcore/tests/fixtures/%s", srcdir ? srcdir : ".",
		 name);
	snprintf(path, sizeof(path), "%s/cpuid.txt", m->root);
	f = fopen(path, "r");
	while (f && m->records < RECORDS && fgets(line, sizeof(line), f)) {
		struct record *r = &m->record[m->records++];

		assert_int_equal(sscanf(line, "%x %u %x %x %x %x", &r->leaf, &r->subleaf,
					&r->regs[0], &r->regs[1], &r->regs[2], &r->regs[3]),
				 6);
	}
	if (f)
		fclose(f);
}

/* A machine made up file by file: EPYC's CPUID over an empty folder. */
static inline void make_machine(struct machine *m)
{
	const char *tmp = getenv("TMPDIR");

	load(m, EPYC);
	snprintf(m->root, sizeof(m->root), "%s/identity-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(m->root));
}

static inline void put(const struct machine *m, const char *path, const char *text)
{
	char full[400];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", m->root, path);
	for (char *slash = full + strlen(m->root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void remove_machine(const struct machine *m)
{
	assert_int_equal(nftw(m->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
