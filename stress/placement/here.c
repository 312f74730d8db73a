/* SPDX-License-Identifier: MIT */
#include "stress/placement/here.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "stress/placement/placement.h"

int topology_here(hwloc_topology_t *topology)
{
	int foreign;

	if (topology_open(topology, &foreign) < 0)
		return complain(EXIT_MISSING, 0, "cannot read the topology of this machine");
	if (!foreign)
		return EXIT_PASS;
	hwloc_topology_destroy(*topology);
	return complain(EXIT_MISSING, 0,
			"HWLOC_* names another machine: nothing to measure there; unset it");
}

int machine_here(struct identity *id)
{
	int ret = identity_read(id);

	return ret == 0 ? EXIT_PASS
			: complain(EXIT_MISSING, ret, "cannot tell what machine this is");
}

void cpus_here(hwloc_topology_t topology, struct cpus *cpus)
{
	hwloc_const_cpuset_t set = hwloc_topology_get_topology_cpuset(topology);
	char *list = NULL;

	*cpus = (struct cpus){ 0 };
	if (hwloc_bitmap_list_asprintf(&list, set) > 0)
		cpus_parse(cpus, list, strlen(list));
	free(list);
}

void text_printable(char *to, size_t size, const char *text)
{
	json_t *valid = json_string(text); /* NULL if it is no UTF-8 */

	snprintf(to, size, "%s", text);
	/* Cut in the middle of a character is no UTF-8 either. */
	if (valid && strlen(text) >= size) {
		json_decref(valid);
		valid = json_string(to);
	}
	for (char *p = to; *p; p++) {
		/* U+0080 to U+009F: some terminals obey these, too. */
		bool c1 = valid && *p == '\xc2' && (unsigned char)p[1] < 0xa0;

		if ((unsigned char)*p < ' ' || *p == 0x7f || (!valid && (*p & 0x80)))
			*p = '?';
		if (c1)
			p[0] = p[1] = '?';
	}
	json_decref(valid);
}
