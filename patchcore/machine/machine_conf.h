/* SPDX-License-Identifier: MIT */
/* machine.conf: what a calibration found, and on which machine. Private. */
#ifndef PATCHCORE_MACHINE_MACHINE_CONF_H
#define PATCHCORE_MACHINE_MACHINE_CONF_H

#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"
#include "patchcore/machine/sync.h"

#define MACHINE_CONF_SCHEMA  4 /* the one that is read */
#define MACHINE_CONF_STRETCH 64
#define MACHINE_CONF_LEVELS  SYNC_LEVELS
#define MACHINE_CONF_BYTES   65536		  /* a larger file is refused */
#define MACHINE_CONF_WAIT    UINT64_C(1000000000) /* ticks; longer waits are refused */
#define MACHINE_CONF_COST    (UINT64_C(1) << 40)  /* ticks; higher costs are refused */
#define MACHINE_CONF_TIME    (UINT64_C(1) << 40)  /* seconds; later times are refused */
#define MACHINE_CONF_SPREAD  1.0		  /* of a config that does not tell */

enum machine_conf_verdict {
	MACHINE_CONF_PASS,
	MACHINE_CONF_FAIL,
	MACHINE_CONF_INCONCLUSIVE
};

/* What was seen at sites of one kind. */
struct machine_conf_bound {
	uint64_t toggles;
	uint64_t tears; /* among them */
	double upper_p; /* upper bound on tears per toggle, 0 < p <= 1 */
};

/* One way to wait. */
struct machine_conf_level {
	struct waits waits;
	uint64_t rest;			/* that the lines must have had, ticks; 0: none */
	uint64_t ticks;			/* that one change of a straddler costs, 0: not measured */
	struct machine_conf_bound line; /* of sites inside one page */
	struct machine_conf_bound page; /* of sites that cross a page */
};

struct machine_conf {
	unsigned schema;
	enum machine_conf_verdict verdict;
	bool fleet; /* [tmax] source: counted on other machines of the kind */
	struct identity identity;
	struct cpus cpus;   /* [scope] cpus: those that were calibrated */
	bool long_run;	    /* [scope] evidence: of more than this one run */
	uint64_t runs;	    /* behind it, at least 1 */
	uint64_t measured;  /* the latest of them: seconds since the epoch, 0: unknown */
	bool usable;	    /* [wait] usable: there is a level that may be waited by */
	double confidence;  /* of the bounds of all levels, 0.9 to below 1 */
	double require_p;   /* tears per toggle that a pass stays below, 0: not told */
	double spread_line; /* variance of the rate between slices, in squares of it */
	double spread_page;
	uint64_t membarrier_ticks; /* that one change costs by membarrier, 0: not measured */
	unsigned levels;
	unsigned long_levels; /* behind those: for changes that no patcher stands waiting for */
	unsigned rested;      /* behind those: levels for lines that have rested */
	struct machine_conf_level level[MACHINE_CONF_LEVELS]; /* in order of rising cost */
	unsigned window;				      /* [window] bytes: 8, 16, 32 or 64 */
	uint64_t window_toggles;			      /* stores without a tear behind it */
	uint64_t window_runs;	  /* that made them; those of one hour are one; 0: unknown */
	double window_p;	  /* upper bound on tears per store inside it beyond 8 bytes */
	double window_confidence; /* of that bound */
};

/* machine_conf_all_levels - the long and the rested ones too. */
static inline unsigned machine_conf_all_levels(const struct machine_conf *conf)
{
	return conf->levels + conf->long_levels + conf->rested;
}

/* The sites that a bound is asked for. */
enum machine_conf_sites {
	SITES_LINE, /* inside one page */
	SITES_PAGE, /* across a page */
	SITES_ALL   /* both: the worse bound */
};

double machine_conf_p(const struct machine_conf_level *level, enum machine_conf_sites sites);

/*
 * machine_conf_cheapest - the level by which such sites are changed: the cheapest of these whose
 * bound is at most accept_p, or NULL. They stand in order of rising waits; of two the later one is
 * cheaper where both costs were measured to be so. All that prints, writes, verifies or uses a
 * level chooses it here.
 */
const struct machine_conf_level *machine_conf_cheapest(const struct machine_conf_level *level,
						       unsigned count,
						       enum machine_conf_sites sites,
						       double accept_p);

/*
 * machine_conf_accepted - the level by which policy auto changes such sites, or NULL. A site at
 * rest tears less: where no other level is accepted, one for lines that have rested may be.
 */
const struct machine_conf_level *machine_conf_accepted(const struct machine_conf *conf,
						       enum machine_conf_sites sites,
						       double accept_p);

/*
 * machine_conf_surest - the level with the lowest bound for such sites, the first of equals. A
 * level of zeros where there is none.
 */
const struct machine_conf_level *machine_conf_surest(const struct machine_conf *conf,
						     enum machine_conf_sites sites);

/*
 * machine_conf_find - the path of the config in force: the first that exists in the order of
 * pc_init(). -ENOENT if there is none, -ENAMETOOLONG.
 * machine_conf_default_path - where a calibration run by this user puts it: the user's folder, or
 * localstatedir for root. -ENOENT if there is no home.
 */
int machine_conf_find(char *path, size_t size);
int machine_conf_default_path(char *path, size_t size);

/*
 * conf_open - open a config for reading, and judge what was opened.
 *
 * It must be a regular file, and it and the folder that holds it must belong to root or to
 * the effective user, with no write permission for group or others (a sticky folder is no
 * exception). For a symbolic link the same holds of the folder with the link, and of all that
 * it leads through. What is judged are the open descriptors, so that nothing can be put in
 * their place afterwards. A link of /proc (/proc/self/fd/3) leads to a file that is open
 * already and may have no folder: there the file counts, and the folder in /proc.
 *
 * Returns a descriptor, or with one line in why: -EINVAL: no regular file; -EPERM: others
 * could have written it; else what open(2) failed with.
 */
int conf_open(const char *path, char *why, size_t size);

/*
 * machine_conf_read - read the file at that path, which conf_open() opens.
 * machine_conf_parse - the same of text of that size, behind which a NUL stands.
 *
 * INI, read with inih. Sections and keys that the library does not need are skipped, so that the
 * calibrator may say more; what it needs must be there once, be well formed, and not contradict
 * itself (conf_rule()). 0, or with one line in why: -EINVAL, -EFBIG, what conf_open() and read(2)
 * fail with.
 */
int machine_conf_read(struct machine_conf *conf, const char *path, char *why, size_t why_size);
int machine_conf_parse(struct machine_conf *conf, const char *text, size_t size, char *why,
		       size_t why_size);

/*
 * conf_rule - rule number i of what the numbers must say together. why: what is wrong, in one
 * line, or "" if it holds. Returns false behind the last rule.
 *
 * Each number may be in its range, and the file still claim more than it has counted. The rules
 * never refuse what a calibration writes: its bounds are wider than theirs.
 */
bool conf_rule(unsigned i, const struct machine_conf *conf, char *why, size_t size);

#endif
