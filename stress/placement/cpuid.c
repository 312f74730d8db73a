/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <libcpuid/libcpuid.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "stress/placement/placement.h"

/* Leaf 1, EAX: model and family have four bits each, and extended parts above. */
#define EXTENDED_MODEL	0x000f0000u
#define BASE_FAMILY	0x00000f00u
#define EXTENDED_FAMILY 0x0ff00000u
#define BRAND		2 /* leaves 0x80000002 to 4 */

static bool is_called(struct cpu_raw_data_t raw, const char *codename)
{
	struct cpu_id_t id;

	return cpu_identify(&raw, &id) == 0 && strcmp(id.cpu_codename, codename) == 0;
}

/*
 * libcpuid takes the entry that has most in common with the CPU: one that it does not know gets
 * the name of another. A name is sure if its entry has this very extended model, or family: if
 * some CPU with it, like this one but for its brand and the other parts, is called so, and is not
 * with a part that no CPU has.
 */
static bool hangs_on(const struct cpu_raw_data_t *raw, uint32_t part, const char *codename)
{
	bool is_extended = (raw->basic_cpuid[1][EAX] & BASE_FAMILY) == BASE_FAMILY;
	unsigned families = is_extended ? 1 : 15;

	for (unsigned i = 0; i < 2 * 16 * families; i++) {
		struct cpu_raw_data_t with = *raw, without;

		if (i % 2)
			memset(with.ext_cpuid[BRAND], 0, 3 * sizeof(with.ext_cpuid[0]));
		with.basic_cpuid[1][EAX] ^= i / 2 % 16 << 4;
		if (!is_extended)
			with.basic_cpuid[1][EAX] =
				(with.basic_cpuid[1][EAX] & ~BASE_FAMILY) | i / 32 << 8;
		without = with;
		without.basic_cpuid[1][EAX] |= part;
		if (is_called(with, codename) && !is_called(without, codename))
			return true;
	}
	return false;
}

static int name_of_raw(struct cpu_raw_data_t *raw, struct cpu_name *name)
{
	bool is_extended = (raw->basic_cpuid[1][EAX] & BASE_FAMILY) == BASE_FAMILY;
	struct cpu_id_t id;

	if (cpu_identify(raw, &id) != 0)
		return -EINVAL;
	*name = (struct cpu_name){
		.family = (unsigned)id.ext_family,
		.model = (unsigned)id.ext_model,
		.stepping = (unsigned)id.stepping,
	};
	/* A dump may hold any bytes. */
	text_printable(name->vendor, sizeof(name->vendor), id.vendor_str);
	text_printable(name->brand, sizeof(name->brand), id.brand_str);
	if (hangs_on(raw, EXTENDED_MODEL, id.cpu_codename) &&
	    (!is_extended || hangs_on(raw, EXTENDED_FAMILY, id.cpu_codename)))
		snprintf(name->codename, sizeof(name->codename), "%s", id.cpu_codename);
	return 0;
}

int cpuid_name_here(struct cpu_name *name)
{
	struct cpu_raw_data_t raw;

	if (!cpuid_present() || cpuid_get_raw_data(&raw) != 0)
		return -ENOTSUP;
	return name_of_raw(&raw, name) == 0 ? 0 : -ENOTSUP;
}

/* Complaints are ours: one for a file, not one for each of its lines. */
static void stay_silent(const char *warning)
{
	(void)warning;
}

int cpuid_name_of(const char *dump, struct cpu_name *name)
{
	struct cpu_raw_data_t raw = { 0 };

	cpuid_set_warn_function(stay_silent);
	/* libcpuid reads standard input for an empty name. */
	if (!dump[0] || access(dump, R_OK) < 0)
		return dump[0] ? -errno : -ENOENT;
	if (cpuid_deserialize_raw_data(&raw, dump) != 0)
		return -EINVAL;
	return name_of_raw(&raw, name);
}

json_t *cpu_name_to_json(const struct cpu_name *name)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:s, s:s?}", "vendor", name->vendor, "family",
			 (int)name->family, "model", (int)name->model, "stepping",
			 (int)name->stepping, "brand", name->brand, "codename",
			 name->codename[0] ? name->codename : NULL);
}

void cpu_name_print(FILE *out, const struct cpu_name *name)
{
	fprintf(out, "  %-16s %s\n  %-16s %u\n  %-16s %u\n  %-16s %u\n  %-16s %s\n  %-16s %s\n",
		"vendor", name->vendor, "family", name->family, "model", name->model, "stepping",
		name->stepping, "brand", name->brand, "codename",
		name->codename[0] ? name->codename : "not known for sure");
}

void cpuid_keep(const char *store)
{
	char path[PATH_MAX], temporary[PATH_MAX + 12];
	struct cpu_raw_data_t raw;
	struct cpu_name name;
	int length, fd;

	if (!cpuid_present() || cpuid_get_raw_data(&raw) != 0 || name_of_raw(&raw, &name) < 0)
		return;
	length = snprintf(path, sizeof(path), "%s.%s-%u-%u-%u.cpuid", store, name.vendor,
			  name.family, name.model, name.stepping);
	if (length >= (int)sizeof(path) || access(path, F_OK) == 0)
		return;
	/* A file of our own: libcpuid opens it by its name, and would follow a link. */
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX.tmp", path);
	fd = mkostemps(temporary, 4, O_CLOEXEC);
	if (fd >= 0 && fchmod(fd, 0644) == 0 && cpuid_serialize_raw_data(&raw, temporary) == 0 &&
	    rename(temporary, path) == 0) {
		close(fd);
		return;
	}
	error(0, errno, "cannot write %s", path);
	if (fd < 0)
		return;
	close(fd);
	unlink(temporary);
}
