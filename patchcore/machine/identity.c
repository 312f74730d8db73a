/* SPDX-License-Identifier: MIT */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patchcore/machine/cpus.h"
#include "patchcore/machine/identity.h"

#define CPU_DIR	     "/sys/devices/system/cpu/"
#define LIST_BYTES   4096 /* sysfs never shows more than a page */
#define UNKNOWN	     "unknown"
#define CPUINFO_READ 8192

enum identity_kind {
	TEXT,
	COUNT,
	KHZ,
	HASH,
	FLAG
};

#define SIZE_OF(member)	    sizeof(((struct identity *)NULL)->member)
#define FIELD(member, kind) { #member, kind, offsetof(struct identity, member), SIZE_OF(member) },

static const struct field {
	const char *name;
	enum identity_kind kind;
	size_t offset, size;
} fields[] = { IDENTITY_FIELDS(FIELD) };

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

struct leaf {
	uint32_t eax, ebx, ecx, edx;
};

/*
 * Text as the config can carry it: blanks trimmed and folded, printable, and
 * without the sign that starts a comment in INI.
 */
static void set_text(char *to, size_t size, const char *from, size_t length)
{
	size_t n = 0;
	bool blank = false;

	for (size_t i = 0; i < length && from[i]; i++) {
		unsigned char c = (unsigned char)from[i];

		if (c == ' ' || (c >= '\t' && c <= '\r')) {
			blank = n > 0;
			continue;
		}
		if (n + blank + 1 >= size)
			break;
		if (blank)
			to[n++] = ' ';
		to[n++] = c > ' ' && c < 0x7f && c != ';' ? (char)c : '?';
		blank = false;
	}
	to[n] = '\0';
	if (n == 0)
		snprintf(to, size, UNKNOWN);
}

/* Behind the highest leaf Intel repeats the last one: that is no answer. */
static struct leaf read_leaf(const struct identity_source *src, uint32_t max, uint32_t leaf)
{
	uint32_t regs[4] = { 0 };

	if (leaf <= max)
		src->cpuid(src->arg, leaf, 0, regs);
	return (struct leaf){ regs[0], regs[1], regs[2], regs[3] };
}

/* Under a hypervisor every CPUID is an exit: ten leaves, each read once. */
static void read_cpuid(struct identity *id, const struct identity_source *src)
{
	struct leaf zero = read_leaf(src, UINT32_MAX, 0);
	struct leaf one = read_leaf(src, zero.eax, 1);
	struct leaf seven = read_leaf(src, zero.eax, 7);
	uint32_t max = read_leaf(src, UINT32_MAX, 0x80000000).eax;
	struct leaf extended = read_leaf(src, max, 0x80000001), brand[3] = { 0 }, above;
	unsigned family = one.eax >> 8 & 0xf;
	/*
	 * Without the bits that change while the machine runs, or that a kernel option changes:
	 * they say nothing about the hardware.
	 */
	const uint32_t features[] = {
		one.ecx & ~(1u << 3 | 1u << 27),   /* MONITOR (MISC_ENABLE), OSXSAVE (CR4) */
		one.edx & ~(1u << 9),		   /* APIC (APIC_BASE) */
		seven.ebx & ~(1u << 4 | 1u << 11), /* HLE, RTM (TSX_CTRL) */
		seven.ecx & ~(1u << 4),		   /* OSPKE (CR4) */
		seven.edx,
		extended.ecx,
		extended.edx & ~(1u << 9), /* AMD's copy of APIC */
	};

	set_text(id->vendor, sizeof(id->vendor),
		 (char *)(uint32_t[]){ zero.ebx, zero.edx, zero.ecx }, 12);
	id->stepping = one.eax & 0xf;
	id->family = family == 0xf ? family + (one.eax >> 20 & 0xff) : family;
	id->model = (one.eax >> 4 & 0xf) | (one.eax >> 12 & 0xf0);
	for (uint32_t i = 0; i < 3 && max >= 0x80000004; i++)
		brand[i] = read_leaf(src, max, 0x80000002 + i);
	set_text(id->brand, sizeof(id->brand), (char *)brand, sizeof(brand));
	if (one.ecx & 1u << 31) {
		above = read_leaf(src, UINT32_MAX, 0x40000000);
		set_text(id->hypervisor, sizeof(id->hypervisor),
			 (char *)(uint32_t[]){ above.ebx, above.ecx, above.edx }, 12);
	} else {
		snprintf(id->hypervisor, sizeof(id->hypervisor), "none");
	}
	id->cache_line = (one.ebx >> 8 & 0xff) * 8;
	id->features = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < sizeof(features); i++)
		id->features =
			(id->features ^ ((const uint8_t *)features)[i]) * UINT64_C(0x100000001b3);
	id->tsc_invariant = read_leaf(src, max, 0x80000007).edx >> 8 & 1;
}

/* What fits of a file, and not much behind the first end. "" if there is none. */
static void read_until(const struct identity_source *src, const char *path, const char *end,
		       char *text, size_t size)
{
	size_t n = 0;
	ssize_t got;
	char full[512];
	int fd = -1;

	text[0] = '\0';
	if (snprintf(full, sizeof(full), "%s%s", src->root, path) < (int)sizeof(full))
		fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (n + 1 < size && !strstr(text, end) && (got = read(fd, text + n, size - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
	}
	close(fd);
}

bool identity_line(const struct identity_source *src, const char *path, char *line, size_t size)
{
	size_t length;
	bool any;

	read_until(src, path, "\n", line, size);
	length = strcspn(line, "\n");
	any = length > 0;
	while (length > 0 && line[length - 1] == ' ')
		length--;
	line[length] = '\0';
	return any;
}

/* The value of a line "key : value" of the first block, which a newline must end; or "". */
static const char *cpuinfo_value(const char *text, const char *key)
{
	size_t n = strlen(key);
	const char *end, *colon;

	for (; (end = strchr(text, '\n')) && end != text; text = end + 1) {
		if (strncmp(text, key, n) || !strchr(" \t:", text[n]))
			continue;
		colon = memchr(text, ':', (size_t)(end - text));
		return colon ? colon + 1 : "";
	}
	return "";
}

static void read_proc(struct identity *id, const struct identity_source *src, const char *cpuinfo)
{
	const char *microcode = cpuinfo_value(cpuinfo, "microcode");
	unsigned whole, hundredths;
	char line[128];

	set_text(id->microcode, sizeof(id->microcode), microcode, strcspn(microcode, "\n"));
	identity_line(src, "/proc/sys/kernel/osrelease", line, sizeof(line));
	set_text(id->kernel, sizeof(id->kernel), line, sizeof(line));

	/* Bogomips are two per MHz, told to two places: "5192.28" is 2596140 kHz. */
	if (sscanf(cpuinfo_value(cpuinfo, "bogomips"), " %7u.%2u", &whole, &hundredths) == 2)
		id->tsc_khz = (UINT64_C(100) * whole + hundredths) * 5;
}

/* Each as "L1d 32K". */
static void read_caches(struct identity *id, const struct identity_source *src)
{
	static const char *const files[] = { "level", "type", "size" };
	char all[IDENTITY_CACHES * 48] = "", path[96], told[3][16];
	size_t n = 0;

	for (unsigned i = 0; i < IDENTITY_CACHES; i++) {
		for (unsigned j = 0; j < 3; j++) {
			snprintf(path, sizeof(path), CPU_DIR "cpu0/cache/index%u/%s", i, files[j]);
			identity_line(src, path, told[j], sizeof(told[j]));
		}
		if (!told[0][0])
			break;
		told[1][0] = told[1][0] == 'D' ? 'd' : told[1][0] == 'I' ? 'i' : '\0';
		n += (size_t)snprintf(all + n, sizeof(all) - n, "L%s%.1s %s ", told[0], told[1],
				      told[2][0] ? told[2] : "?");
	}
	set_text(id->caches, sizeof(id->caches), all, sizeof(all));
}

/* CPUs in a list such as "0-49,100-149"; 0 if it is none. Older kernels know it by another name. */
static unsigned count_cpus(const struct identity_source *src, const char *path, const char *older)
{
	char list[LIST_BYTES];
	struct cpus cpus;

	if (!identity_line(src, path, list, sizeof(list)) &&
	    !(older && identity_line(src, older, list, sizeof(list))))
		return 0;
	return cpus_parse(&cpus, list, strlen(list)) == 0 ? cpus_count(&cpus) : 0;
}

static unsigned groups_of(unsigned members, unsigned size)
{
	return size ? (members + size - 1) / size : 0;
}

/*
 * One file per CPU would be exact and slow. Packages are alike, so the first one tells: sockets =
 * present CPUs / CPUs of that package, rounded up. It lists only CPUs that are online, so that the
 * number goes up when SMT is switched off or CPUs are taken offline: that is another machine to
 * calibrate, with other placements.
 */
static void read_counts(struct identity *id, const struct identity_source *src, const char *cpuinfo)
{
	unsigned cores, package = count_cpus(src, CPU_DIR "cpu0/topology/package_cpus_list",
					     CPU_DIR "cpu0/topology/core_siblings_list");

	id->cpus = count_cpus(src, CPU_DIR "present", NULL);
	id->sockets = groups_of(id->cpus, package);
	/*
	 * The kernel has counted the package's cores, which is right on a hybrid part too, where a
	 * core's threads depend on its kind.
	 */
	if (sscanf(cpuinfo_value(cpuinfo, "cpu cores"), " %5u", &cores) != 1 || cores == 0 ||
	    cores > package)
		cores = groups_of(package,
				  count_cpus(src, CPU_DIR "cpu0/topology/core_cpus_list",
					     CPU_DIR "cpu0/topology/thread_siblings_list"));
	id->cores = id->sockets * cores;
}

int identity_read_from(struct identity *id, const struct identity_source *src)
{
	char cpuinfo[CPUINFO_READ];

	memset(id, 0, sizeof(*id));
	/* The block of the first CPU. On a large machine the whole file takes milliseconds. */
	read_until(src, "/proc/cpuinfo", "\n\n", cpuinfo, sizeof(cpuinfo));
	read_cpuid(id, src);
	read_proc(id, src, cpuinfo);
	read_caches(id, src);
	read_counts(id, src, cpuinfo);
	if (strcmp(id->vendor, UNKNOWN) == 0 && !id->family && !id->cpus && !cpuinfo[0])
		return -ENODATA;
	return 0;
}

static void this_cpuid(void *arg, uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
	(void)arg;
	__cpuid_count(leaf, subleaf, regs[0], regs[1], regs[2], regs[3]);
}

const struct identity_source identity_here = { .root = "", .cpuid = this_cpuid };

int identity_read(struct identity *id)
{
	return identity_read_from(id, &identity_here);
}

/* The lowest bytes of a number come first. */
static uint64_t number_of_field(const struct identity *id, const struct field *f)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)id + f->offset, f->size);
	return value;
}

const char *identity_differs(const struct identity *a, const struct identity *b)
{
	for (const struct field *f = fields; f < fields + FIELDS - 1; f++) {
		uint64_t x, y;

		if (f->kind == TEXT) {
			if (strcmp((const char *)a + f->offset, (const char *)b + f->offset) != 0)
				return f->name;
			continue;
		}
		x = number_of_field(a, f);
		y = number_of_field(b, f);
		if (x != y && (f->kind != KHZ || (x > y ? x - y > x / 100 : y - x > y / 100)))
			return f->name;
	}
	return NULL;
}

bool identity_field(const struct identity *id, unsigned i, const char **name, char *value,
		    size_t size)
{
	const struct field *f = &fields[i];

	if (i >= FIELDS)
		return false;
	*name = f->name;
	if (f->kind == TEXT)
		snprintf(value, size, "%s", (const char *)id + f->offset);
	else if (f->kind == HASH)
		snprintf(value, size, "0x%016" PRIx64, number_of_field(id, f));
	else if (f->kind == FLAG)
		snprintf(value, size, "%s", number_of_field(id, f) ? "yes" : "no");
	else
		snprintf(value, size, "%" PRIu64, number_of_field(id, f));
	return true;
}

/*
 * A value is valid if it prints again as it stands. This one rule refuses blanks, signs, leading
 * zeros, junk behind a number, and numbers that do not fit.
 */
int identity_set(struct identity *id, const char *name, const char *value)
{
	const struct field *f = fields;
	struct identity parsed;
	char printed[sizeof(parsed)], *to;
	uint64_t number;

	while (f < fields + FIELDS && strcmp(name, f->name) != 0)
		f++;
	if (f == fields + FIELDS)
		return -ENOENT;
	parsed = *id;
	to = (char *)&parsed + f->offset;
	if (f->kind == TEXT) {
		set_text(to, f->size, value, strlen(value));
	} else {
		number = f->kind == FLAG ? strcmp(value, "yes") == 0
					 : strtoull(value, NULL, f->kind == HASH ? 16 : 10);
		memcpy(to, &number, f->size);
	}
	identity_field(&parsed, (unsigned)(f - fields), &name, printed, sizeof(printed));
	if (strcmp(printed, value) != 0)
		return -EINVAL;
	*id = parsed;
	return 0;
}
