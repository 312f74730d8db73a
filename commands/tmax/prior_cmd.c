/* SPDX-License-Identifier: MIT */
/*
 * tmax fleet prior: a config for a machine that has not been calibrated.
 */
#include "commands/tmax/prior_cmd.h"

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "calibrate/conf/conf_write.h"
#include "fleet/export/prior.h"
#include "patchcore/machine/machine_conf.h"
#include "stress/placement/here.h"

/* What was measured here is better than any prior, also if it is out of date or damaged. */
static int keep_measured(const char *path)
{
	struct machine_conf conf;
	char why[200];

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return EXIT_PASS;
	if (machine_conf_read(&conf, path, why, sizeof(why)) == 0 && conf.fleet)
		return EXIT_PASS;
	error(0, 0, "%s is no prior: it stays as it is", path);
	return EXIT_CANNOT_CREATE;
}

static int write_conf(const char *output, const char *table, const struct prior *prior,
		      const struct identity *id, const struct plan *plan, const struct cpus *cpus)
{
	const char *slash = strrchr(table, '/');
	const struct provenance from = {
		.identity = id,
		.plan = plan,
		.cpus = cpus,
		.measured = prior->kind.to,
		.prior = slash ? slash + 1 : table,
		.confidence = prior->confidence,
	};
	int ret = conf_write(output, &prior->estimate, &from);

	if (ret < 0) {
		error(0, -ret, "cannot write %s", output);
		return EXIT_CANNOT_WRITE;
	}
	printf("Verdict: %s: %s\nHow sure: %.0f %%, from %" PRIu64
	       " machines of this kind and none of this one: tmax calibrate knows better.\n"
	       "Config:  %s\n",
	       verdict_name(prior->estimate.verdict), prior->estimate.reason,
	       100 * prior->confidence, prior->kind.machines, output);
	return EXIT_PASS;
}

int prior_apply(const char *table, const char *output, double require_p)
{
	static struct prior prior;
	hwloc_topology_t topology;
	char room[PATH_MAX], force[PATH_MAX], why[300];
	struct plan plan = *plan_find("default");
	struct identity id;
	struct cpus cpus;
	int ret, status;

	/* The config in force may be another file than the one to write, and would be hidden by it.
	 */
	if (!output && machine_conf_default_path(room, sizeof(room)) < 0)
		return refuse_usage("no home folder to write to: give --output");
	status = keep_measured(output ? output : room);
	if (!output && status == EXIT_PASS && machine_conf_find(force, sizeof(force)) == 0)
		status = keep_measured(force);
	if (!output)
		output = room;
	if (status == EXIT_PASS)
		status = machine_here(&id);
	if (status != EXIT_PASS)
		return status;
	ret = prior_read(table, &id, &prior, why, sizeof(why));
	if (ret < 0) {
		error(0, 0, "%s: %s", table, why);
		return ret == -ENODATA ? EXIT_NO_CONF : EXIT_MISSING;
	}
	status = topology_here(&topology);
	if (status != EXIT_PASS)
		return status;
	plan.name = "none";
	plan_seat(&plan, topology);
	cpus_here(topology, &cpus);
	hwloc_topology_destroy(topology);
	prior_decide(&prior, require_p > 0 ? require_p : plan.require_p);
	/* Of a placement that the fleet never tried nothing is known. */
	for (unsigned i = 0; i < plan.seats; i++)
		if (!prior.placed[plan.seat[i].placement]) {
			error(0, 0, "no machine of the fleet was tested at placement %s: calibrate",
			      placement_name(plan.seat[i].placement));
			return EXIT_NO_CONF;
		}
	return write_conf(output, table, &prior, &id, &plan, &cpus);
}
