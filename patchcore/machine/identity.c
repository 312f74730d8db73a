/* SPDX-License-Identifier: MIT */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "patchcore/machine/identity.h"

#define CPU_DIR	     "/sys/devices/system/cpu/"
#define LIST_BYTES   4096 /* sysfs never shows more than a page */
#define CPUS_MAX     65536
#define UNKNOWN	     "unknown"
#define MILLISECOND  UINT64_C(1000000) /* in ns */
#define CPUINFO_READ 8192

/*
 * Feature bits that change while the machine runs, or that a kernel option
 * changes: they say nothing about the hardware.
 */
#define LEAF1_ECX_MASK	  (~(1u << 3 | 1u << 27)) /* MONITOR (MISC_ENABLE), OSXSAVE (CR4) */
#define LEAF1_EDX_MASK	  (~(1u << 9))		  /* APIC (APIC_BASE) */
#define LEAF7_EBX_MASK	  (~(1u << 4 | 1u << 11)) /* HLE, RTM (TSX_CTRL) */
#define LEAF7_ECX_MASK	  (~(1u << 4))		  /* OSPKE (CR4) */
#define EXTENDED_EDX_MASK (~(1u << 9))		  /* AMD's copy of APIC */

enum kind {
	TEXT,
	COUNT,
	KHZ,
	HASH,
	FLAG
};

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	size_t size;
	bool told; /* for the reader, never compared */
};

/* clang-format off */
#define SIZE_OF(member) sizeof(((struct identity *)NULL)->member)
#define FIELD(member, kind) { #member, kind, offsetof(struct identity, member), SIZE_OF(member), false }
#define TOLD(member, kind)  { #member, kind, offsetof(struct identity, member), SIZE_OF(member), true }
static const struct field fields[] = {
	FIELD(vendor, TEXT),
	FIELD(family, COUNT),
	FIELD(model, COUNT),
	FIELD(stepping, COUNT),
	FIELD(brand, TEXT),
	FIELD(microcode, TEXT),
	FIELD(hypervisor, TEXT),
	FIELD(cache_line, COUNT),
	FIELD(caches, TEXT),
	FIELD(features, HASH),
	FIELD(tsc_invariant, FLAG),
	FIELD(tsc_khz, KHZ),
	FIELD(sockets, COUNT),
	FIELD(cores, COUNT),
	FIELD(cpus, COUNT),
	TOLD(kernel, TEXT),
};
/* clang-format on */

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

static struct leaf read_leaf(const struct identity_source *src, uint32_t leaf)
{
	uint32_t regs[4] = { 0 };

	src->cpuid(src->arg, leaf, 0, regs);
	return (struct leaf){ regs[0], regs[1], regs[2], regs[3] };
}

/* Behind the highest leaf Intel repeats the last one: that is no answer. */
static struct leaf read_leaf_upto(const struct identity_source *src, uint32_t max, uint32_t leaf)
{
	return leaf <= max ? read_leaf(src, leaf) : (struct leaf){ 0 };
}

static uint64_t hash_word(uint64_t hash, uint32_t word)
{
	for (int i = 0; i < 4; i++) {
		hash ^= word >> (8 * i) & 0xff;
		hash *= UINT64_C(0x100000001b3);
	}
	return hash;
}

static uint64_t hash_features(struct leaf one, struct leaf seven, struct leaf extended)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	hash = hash_word(hash, one.ecx & LEAF1_ECX_MASK);
	hash = hash_word(hash, one.edx & LEAF1_EDX_MASK);
	hash = hash_word(hash, seven.ebx & LEAF7_EBX_MASK);
	hash = hash_word(hash, seven.ecx & LEAF7_ECX_MASK);
	hash = hash_word(hash, seven.edx);
	hash = hash_word(hash, extended.ecx);
	return hash_word(hash, extended.edx & EXTENDED_EDX_MASK);
}

static void set_signature(struct identity *id, uint32_t eax)
{
	unsigned base = eax >> 8 & 0xf;

	id->stepping = eax & 0xf;
	id->family = base == 0xf ? base + (eax >> 20 & 0xff) : base;
	id->model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
}

static void read_hypervisor(struct identity *id, const struct identity_source *src, uint32_t ecx)
{
	struct leaf leaf;

	if (!(ecx & 1u << 31)) {
		snprintf(id->hypervisor, sizeof(id->hypervisor), "none");
		return;
	}
	leaf = read_leaf(src, 0x40000000);
	set_text(id->hypervisor, sizeof(id->hypervisor),
		 (char *)(uint32_t[]){ leaf.ebx, leaf.ecx, leaf.edx }, 12);
}

static void read_brand(struct identity *id, const struct identity_source *src, uint32_t max)
{
	uint32_t text[12] = { 0 };

	for (uint32_t i = 0; i < 3 && max >= 0x80000004; i++)
		src->cpuid(src->arg, 0x80000002 + i, 0, text + 4 * i);
	set_text(id->brand, sizeof(id->brand), (char *)text, sizeof(text));
}

/* Under a hypervisor every CPUID is an exit: ten leaves, each read once. */
static void read_cpuid(struct identity *id, const struct identity_source *src)
{
	struct leaf zero = read_leaf(src, 0);
	struct leaf one = read_leaf_upto(src, zero.eax, 1);
	struct leaf seven = read_leaf_upto(src, zero.eax, 7);
	uint32_t max = read_leaf(src, 0x80000000).eax;
	struct leaf extended = read_leaf_upto(src, max, 0x80000001);

	set_text(id->vendor, sizeof(id->vendor),
		 (char *)(uint32_t[]){ zero.ebx, zero.edx, zero.ecx }, 12);
	set_signature(id, one.eax);
	read_brand(id, src, max);
	read_hypervisor(id, src, one.ecx);
	id->cache_line = (one.ebx >> 8 & 0xff) * 8;
	id->features = hash_features(one, seven, extended);
	id->tsc_invariant = read_leaf_upto(src, max, 0x80000007).edx >> 8 & 1;
}

static int open_file(const struct identity_source *src, const char *path)
{
	char full[512];
	int n = snprintf(full, sizeof(full), "%s%s", src->root, path);

	return n < (int)sizeof(full) ? open(full, O_RDONLY | O_CLOEXEC) : -1;
}

bool identity_line(const struct identity_source *src, const char *path, char *line, size_t size)
{
	int fd = open_file(src, path);
	ssize_t n;

	line[0] = '\0';
	if (fd < 0)
		return false;
	n = read(fd, line, size - 1);
	close(fd);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line[0];
}

/* The block of the first CPU. On a large machine the whole file takes milliseconds. */
static void read_cpuinfo(const struct identity_source *src, char *text, size_t size)
{
	int fd = open_file(src, "/proc/cpuinfo");
	size_t n = 0;
	ssize_t got;

	text[0] = '\0';
	if (fd < 0)
		return;
	while (n + 1 < size && (got = read(fd, text + n, size - 1 - n)) > 0) {
		n += (size_t)got;
		text[n] = '\0';
		if (strstr(text, "\n\n"))
			break;
	}
	close(fd);
}

/* The value of a line "key : value" of the first block, which a newline must end. */
static bool cpuinfo_value(const char *text, const char *key, const char **value, size_t *length)
{
	size_t n = strlen(key);
	const char *end;

	for (; (end = strchr(text, '\n')) && end != text; text = end + 1) {
		if (strncmp(text, key, n) || !strchr(" \t:", text[n]))
			continue;
		*value = memchr(text, ':', (size_t)(end - text));
		if (!*value)
			return false;
		*value += 1;
		*length = (size_t)(end - *value);
		return true;
	}
	return false;
}

/* Bogomips are two per MHz, told to two places: "5192.28" is 2596140 kHz. */
static uint64_t bogomips_khz(const char *cpuinfo)
{
	unsigned whole, hundredths;
	const char *value;
	size_t length;

	if (!cpuinfo_value(cpuinfo, "bogomips", &value, &length))
		return 0;
	if (sscanf(value, " %7u.%2u", &whole, &hundredths) != 2)
		return 0;
	return (UINT64_C(100) * whole + hundredths) * 5;
}

/* One TSC stamp and the clock's time at it: the closest of a few tries. */
static uint64_t stamp(uint64_t *ns)
{
	uint64_t best = UINT64_MAX, tsc = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t before = __rdtsc(), width;
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC_RAW, &now);
		width = __rdtsc() - before;
		if (width >= best)
			continue;
		best = width;
		tsc = before + width / 2;
		*ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	}
	return tsc;
}

static uint64_t measure_khz(void)
{
	uint64_t begin_ns = 0, end_ns = 0;
	uint64_t begin = stamp(&begin_ns), end;

	do {
		end = stamp(&end_ns);
	} while (end_ns - begin_ns < MILLISECOND);
	return (end - begin) * MILLISECOND / (end_ns - begin_ns);
}

static void read_proc(struct identity *id, const struct identity_source *src, const char *cpuinfo)
{
	const char *microcode = "";
	char line[128];
	size_t length = 0;

	cpuinfo_value(cpuinfo, "microcode", &microcode, &length);
	set_text(id->microcode, sizeof(id->microcode), microcode, length);
	identity_line(src, "/proc/sys/kernel/osrelease", line, sizeof(line));
	set_text(id->kernel, sizeof(id->kernel), line, sizeof(line));

	id->tsc_khz = bogomips_khz(cpuinfo);
	/* The TSC at hand is not that of a recorded machine. */
	if (!id->tsc_khz && !src->root[0])
		id->tsc_khz = measure_khz();
}

/* One cache as "L1d 32K". */
static bool read_cache(const struct identity_source *src, unsigned index, char *text, size_t size)
{
	char path[96], level[8], type[16], bytes[16];
	const char *suffix = "";

	snprintf(path, sizeof(path), CPU_DIR "cpu0/cache/index%u/level", index);
	if (!identity_line(src, path, level, sizeof(level)))
		return false;
	snprintf(path, sizeof(path), CPU_DIR "cpu0/cache/index%u/type", index);
	identity_line(src, path, type, sizeof(type));
	snprintf(path, sizeof(path), CPU_DIR "cpu0/cache/index%u/size", index);
	if (!identity_line(src, path, bytes, sizeof(bytes)))
		snprintf(bytes, sizeof(bytes), "?");

	if (strcmp(type, "Data") == 0)
		suffix = "d";
	else if (strcmp(type, "Instruction") == 0)
		suffix = "i";
	snprintf(text, size, "L%s%s %s ", level, suffix, bytes);
	return true;
}

static void read_caches(struct identity *id, const struct identity_source *src)
{
	char all[IDENTITY_CACHES * 48] = "";
	size_t n = 0;

	for (unsigned i = 0; i < IDENTITY_CACHES; i++) {
		if (!read_cache(src, i, all + n, sizeof(all) - n))
			break;
		n += strlen(all + n);
	}
	set_text(id->caches, sizeof(id->caches), all, sizeof(all));
}

/* One number of a list; sets *end to NULL if there is none. */
static unsigned long list_number(const char *text, char **end)
{
	unsigned long value = strtoul(text, end, 10);

	if (*text < '0' || *text > '9' || value >= CPUS_MAX)
		*end = NULL;
	return value;
}

/* CPUs in a list such as "0-49,100-149"; 0 if it is none. */
static unsigned count_list(const char *list)
{
	unsigned long count = 0, first, last;
	char *end;

	for (;; list = end + 1) {
		first = last = list_number(list, &end);
		if (end && *end == '-')
			last = list_number(end + 1, &end);
		if (!end || last < first)
			return 0;
		count += last - first + 1;
		if (*end != ',' || count > CPUS_MAX)
			break;
	}
	return *end == '\0' ? (unsigned)count : 0;
}

/* Older kernels know a list by another name. */
static unsigned count_file(const struct identity_source *src, const char *path, const char *older)
{
	char list[LIST_BYTES];

	if (identity_line(src, path, list, sizeof(list)))
		return count_list(list);
	return older && identity_line(src, older, list, sizeof(list)) ? count_list(list) : 0;
}

static unsigned groups(unsigned members, unsigned size)
{
	return size ? (members + size - 1) / size : 0;
}

/*
 * Cores of the first package. The kernel has counted them, which is right on a
 * hybrid part too, where a core's threads depend on its kind.
 */
static unsigned package_cores(const struct identity_source *src, const char *cpuinfo,
			      unsigned package_cpus)
{
	const char *value;
	size_t length;
	unsigned cores;

	if (cpuinfo_value(cpuinfo, "cpu cores", &value, &length) &&
	    sscanf(value, " %5u", &cores) == 1 && cores > 0 && cores <= package_cpus)
		return cores;
	return groups(package_cpus, count_file(src, CPU_DIR "cpu0/topology/core_cpus_list",
					       CPU_DIR "cpu0/topology/thread_siblings_list"));
}

/*
 * One file per CPU would be exact and slow. Packages are alike, so the first
 * one tells: sockets = present CPUs / CPUs of that package, rounded up. It
 * lists only CPUs that are online, so that the number goes up when SMT is
 * switched off or CPUs are taken offline: that is another machine to calibrate,
 * with other placements.
 */
static void read_counts(struct identity *id, const struct identity_source *src, const char *cpuinfo)
{
	unsigned package_cpus = count_file(src, CPU_DIR "cpu0/topology/package_cpus_list",
					   CPU_DIR "cpu0/topology/core_siblings_list");

	id->cpus = count_file(src, CPU_DIR "present", NULL);
	id->sockets = groups(id->cpus, package_cpus);
	id->cores = id->sockets ? id->sockets * package_cores(src, cpuinfo, package_cpus) : 0;
}

int identity_read_from(struct identity *id, const struct identity_source *src)
{
	char cpuinfo[CPUINFO_READ];

	if (!id || !src || !src->root || !src->cpuid)
		return -EINVAL;
	memset(id, 0, sizeof(*id));
	read_cpuinfo(src, cpuinfo, sizeof(cpuinfo));
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

static uint64_t number_of_field(const struct identity *id, const struct field *f)
{
	const char *at = (const char *)id + f->offset;

	switch (f->kind) {
	case COUNT:
		return *(const unsigned *)at;
	case FLAG:
		return *(const bool *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void set_number(struct identity *id, const struct field *f, uint64_t value)
{
	char *at = (char *)id + f->offset;

	switch (f->kind) {
	case COUNT:
		*(unsigned *)at = (unsigned)value;
		break;
	case FLAG:
		*(bool *)at = value;
		break;
	default:
		*(uint64_t *)at = value;
	}
}

static bool khz_differ(uint64_t a, uint64_t b)
{
	uint64_t high = a > b ? a : b, low = a > b ? b : a;

	return high - low > high / 100;
}

static bool field_differs(const struct field *f, const struct identity *a, const struct identity *b)
{
	if (f->told)
		return false;
	if (f->kind == TEXT)
		return strcmp((const char *)a + f->offset, (const char *)b + f->offset);
	if (f->kind == KHZ)
		return khz_differ(number_of_field(a, f), number_of_field(b, f));
	return number_of_field(a, f) != number_of_field(b, f);
}

const char *identity_differs(const struct identity *a, const struct identity *b)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (field_differs(&fields[i], a, b))
			return fields[i].name;
	return NULL;
}

static void print_field(const struct identity *id, const struct field *f, char *value, size_t size)
{
	switch (f->kind) {
	case TEXT:
		snprintf(value, size, "%s", (const char *)id + f->offset);
		break;
	case HASH:
		snprintf(value, size, "0x%016" PRIx64, number_of_field(id, f));
		break;
	case FLAG:
		snprintf(value, size, "%s", number_of_field(id, f) ? "yes" : "no");
		break;
	default:
		snprintf(value, size, "%" PRIu64, number_of_field(id, f));
	}
}

bool identity_field(const struct identity *id, unsigned i, const char **name, char *value,
		    size_t size)
{
	if (i >= FIELDS)
		return false;
	*name = fields[i].name;
	print_field(id, &fields[i], value, size);
	return true;
}

static void parse_field(struct identity *id, const struct field *f, const char *value)
{
	if (f->kind == TEXT)
		set_text((char *)id + f->offset, f->size, value, strlen(value));
	else if (f->kind == FLAG)
		set_number(id, f, strcmp(value, "yes") == 0);
	else
		set_number(id, f, strtoull(value, NULL, f->kind == HASH ? 16 : 10));
}

/*
 * A value is valid if it prints again as it stands. This one rule refuses blanks, signs, leading
 * zeros, junk behind a number, and numbers that do not fit.
 */
static int set_field(struct identity *id, const struct field *f, const char *value)
{
	struct identity parsed = *id;
	char printed[sizeof(parsed)];

	parse_field(&parsed, f, value);
	print_field(&parsed, f, printed, sizeof(printed));
	if (strcmp(printed, value) != 0)
		return -EINVAL;
	*id = parsed;
	return 0;
}

int identity_set(struct identity *id, const char *name, const char *value)
{
	if (!id || !name || !value)
		return -EINVAL;
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(name, fields[i].name) == 0)
			return set_field(id, &fields[i], value);
	return -ENOENT;
}
