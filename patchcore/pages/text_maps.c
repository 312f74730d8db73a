/* SPDX-License-Identifier: MIT */
#include "patchcore/pages/text.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "patchcore/syscall/sys.h"

/* Of the calling thread: /proc/self has nothing once the process's main thread has ended. */
#define MAPS "/proc/thread-self/maps"

/* --- Asked for one mapping: Linux 6.11 -------------------------------------------------------- */

bool mappings_by_text;

/* struct procmap_query and PROCMAP_QUERY of linux/fs.h, which older headers lack. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, prot, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY		 _IOWR('f', 17, struct query)
#define COVERING_OR_NEXT 0x10u
#define SHARED		 0x08u /* of prot; in flags: find no others */

/* The first one that ends behind addr. 0 or a negative errno, -ENOENT: there is none. */
static long find_next(long fd, uintptr_t addr, enum mapping_kind kind, struct mapping *map)
{
	struct query query = {
		.size = sizeof(query),
		.flags = COVERING_OR_NEXT | (kind == MAPPING_SHARED ? SHARED : 0),
		.addr = addr,
	};
	long ret = mappings_by_text ? -ENOTTY : sys_call(SYS_ioctl, fd, QUERY, &query);

	*map = (struct mapping){
		.start = query.start,
		.end = query.end,
		.prot = (int)query.prot & (PROT_READ | PROT_WRITE | PROT_EXEC),
		.shared = query.prot & SHARED,
		.page_size = query.page_size,
		.origin = { makedev(query.major, query.minor), query.inode, query.offset },
	};
	return ret;
}

/* --- Read as text ----------------------------------------------------------------------------- */

#define HUGE_PAGE ((size_t)2 << 20)

struct maps_text {
	long fd;
	long left; /* bytes that were read and not used; not positive at the end or on an error */
	const char *at;
	char last; /* that was taken; 0: there was no more */
	char bytes[2048];
};

static char next_char(struct maps_text *text)
{
	if (text->left <= 0) {
		text->at = text->bytes;
		text->left = sys_call(SYS_read, text->fd, text->bytes, sizeof(text->bytes));
	}
	text->last = text->left-- > 0 ? *text->at++ : 0;
	return text->last;
}

/* Up to what follows it, which is passed over. */
static uint64_t next_number(struct maps_text *text, unsigned base)
{
	uint64_t number = 0;
	char c;

	while (((c = next_char(text)) >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
		number = number * base + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
	return number;
}

/* A line is START-END rwxp OFFSET MAJOR:MINOR INODE, and mostly blanks and a name. */
static void read_line(struct maps_text *text, struct mapping *map)
{
	char prot[4];
	unsigned major;

	map->start = next_number(text, 16);
	map->end = next_number(text, 16);
	for (unsigned i = 0; i < 4; i++)
		prot[i] = next_char(text);
	next_char(text);
	map->prot = (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0) |
		    (prot[2] == 'x' ? PROT_EXEC : 0);
	map->shared = prot[3] == 's';
	map->page_size = (map->start | map->end) & (HUGE_PAGE - 1) ? TEXT_PAGE : HUGE_PAGE;
	map->origin.offset = next_number(text, 16);
	major = (unsigned)next_number(text, 16);
	map->origin.device = makedev(major, (unsigned)next_number(text, 16));
	map->origin.inode = next_number(text, 10);
	while (text->last && text->last != '\n')
		next_char(text);
}

/* The next one that ends behind addr, as find_next(). */
static long read_next(struct maps_text *text, uintptr_t addr, struct mapping *map)
{
	do {
		read_line(text, map);
		if (!map->end)
			return text->left < -1 ? -EACCES : -ENOENT;
	} while (map->end <= addr);
	return 0;
}

/* --- Either way ------------------------------------------------------------------------------- */

int mappings_each(uintptr_t start, uintptr_t end, enum mapping_kind kind, mapping_fn *fn, void *arg)
{
	struct maps_text text = { .fd = sys_call(SYS_openat, AT_FDCWD, MAPS,
						 O_RDONLY | O_CLOEXEC) };
	bool as_text = false;
	struct mapping map;
	long error = 0;
	int ret = 0;

	if (text.fd < 0)
		return text.fd == -ENOMEM ? -ENOMEM : -EACCES;
	for (; ret == 0 && start < end; start = map.end) {
		if (!as_text)
			error = find_next(text.fd, start, kind, &map);
		as_text |= error < 0 && error != -ENOENT;
		if (as_text)
			error = read_next(&text, start, &map);
		/* The kernel's own page lies above all of the process: a query does not find it. */
		if (error < 0 || map.start >= end || map.start > INTPTR_MAX)
			break;
		if (map.shared || kind == MAPPING_ANY)
			ret = fn(&map, arg);
	}
	sys_call(SYS_close, text.fd);
	return error == -EACCES ? -EACCES : ret;
}

struct origin mapping_origin(const struct mapping *map, uintptr_t addr)
{
	struct origin origin = map->origin;

	/* Private memory has no file, and so no place in one. */
	if (origin.inode)
		origin.offset += addr - map->start;
	return origin;
}

static int note_page_size(const struct mapping *map, void *size)
{
	*(size_t *)size = map->page_size;
	return 0;
}

size_t mapping_page_size(uintptr_t addr)
{
	size_t size = TEXT_PAGE;

	mappings_each(addr, addr + 1, MAPPING_ANY, note_page_size, &size);
	return size;
}

int text_read(void *buffer, const void *addr, size_t len)
{
	long got = sys_transfer(SYS_process_vm_readv, (uintptr_t)addr, buffer, len), mem, forced;

	if (got == (long)len)
		return 0;
	/* Execute-only memory is -EFAULT above, as unmapped memory is, but not here. */
	mem = sys_call(SYS_openat, AT_FDCWD, "/proc/thread-self/mem", O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		/* A partial read, or -EFAULT: some of it is not mapped. */
		return got > 0 || got == -EFAULT ? -EFAULT : -EACCES;
	forced = sys_call(SYS_pread64, mem, buffer, len, addr);
	sys_call(SYS_close, mem);
	return forced == (long)len ? 1 : -EFAULT;
}

/* --- Protection keys -------------------------------------------------------------------------- */

bool pkeys_on;

__attribute__((constructor)) static void look_for_pkeys(void)
{
	unsigned a, b, c, d;

	/* OSPKE: the kernel has switched them on. */
	pkeys_on = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 4);
}
