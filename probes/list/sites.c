/* SPDX-License-Identifier: MIT */
#include "probes/list/sites.h"
#include "probes/elf/sorted.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/blocks/tracers.h"
#include "probes/branch/entries.h"
#include "probes/calls/calls.h"
#include "probes/marker/notes.h"

#define BREAKPOINT 0xcc
#define SITE_LEN   5
#define SPAN_MAX   (UINT64_C(1) << 31) /* from the first to the last byte in memory */
#define DAMAGED	   "its entry points outside the code"

static const uint8_t nop5[SITE_LEN] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* The code at an address, len bytes of it; NULL: the file has none there. */
static const uint8_t *code_at(const struct elf *elf, uint64_t addr, uint64_t len)
{
	struct elf_section section;

	for (uint32_t i = 0; i < elf->number; i++)
		if (elf_section(elf, i, &section) && section.bytes &&
		    section.flags & SHF_EXECINSTR && addr >= section.addr &&
		    addr - section.addr < section.len && len <= section.len - (addr - section.addr))
			return section.bytes + (addr - section.addr);
	return NULL;
}

unsigned find_boundary(uint64_t addr, unsigned len)
{
	for (unsigned size = 4096; size >= 8; size /= 2)
		if (addr / size != (addr + len - 1) / size)
			return size;
	return 0;
}

/* With a name that was allocated, which becomes the site's. */
static int add_site(struct sites *sites, const struct site *site)
{
	if (!site->name)
		return -ENOMEM;
	if (sites->n == sites->room) {
		size_t room = sites->room ? 2 * sites->room : 256;
		struct site *more = realloc(sites->site, room * sizeof(*more));

		if (!more) {
			free(site->name);
			return -ENOMEM;
		}
		sites->site = more;
		sites->room = room;
	}
	sites->site[sites->n] = *site;
	sites->site[sites->n++].crosses = find_boundary(site->addr, site->len);
	return 0;
}

static char *name_at(const struct sites *sites, uint64_t addr)
{
	const struct elf_symbol *symbol = elf_function_at(&sites->symbols, addr);

	return strdup(symbol ? symbol->name : "");
}

/* --- Tables of NOPs --------------------------------------------------------------------------- */

static const struct table {
	const char *section;
	const char *kind;
} tables[] = {
	{ "__patchable_function_entries", "entry" },
	{ "__mcount_loc", "entry" },
	{ "__return_loc", "exit" },
};

static bool is_nops(const uint8_t *code)
{
	static const uint8_t ones[SITE_LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };

	return !memcmp(code, ones, SITE_LEN) || !memcmp(code, nop5, SITE_LEN - 1);
}

/* As the provider does it in memory: behind the label and an ENDBR64. */
static int add_nops(struct sites *sites, const char *kind, uint64_t addr)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct elf_symbol *symbol = elf_function_from(&sites->symbols, addr);
	bool is_entry = !strcmp(kind, "entry");
	const uint8_t *code;

	if (is_entry && symbol && symbol->addr - addr <= 64 &&
	    !elf_function_at(&sites->symbols, addr))
		addr = symbol->addr;
	code = code_at(&sites->elf, addr, sizeof(endbr64));
	if (is_entry && code && !memcmp(code, endbr64, sizeof(endbr64)))
		addr += sizeof(endbr64);
	code = code_at(&sites->elf, addr, SITE_LEN);
	return add_site(
		sites,
		&(struct site){ .addr = addr,
				.len = SITE_LEN,
				.kind = kind,
				.provider = "patchable",
				.name = name_at(sites, addr),
				.reason = code && is_nops(code) ? NULL : "no five bytes of NOPs" });
}

/* What stands in the table itself: all of it, or nothing where the program is loaded anywhere. */
static int add_plain(struct sites *sites, const char *kind, const struct elf_section *table)
{
	uint64_t entry;
	int ret = 0;

	for (uint64_t i = 0; i < table->len / sizeof(entry) && !ret; i++) {
		memcpy(&entry, table->bytes + i * sizeof(entry), sizeof(entry));
		if (entry)
			ret = add_nops(sites, kind, entry);
	}
	return ret;
}

/* What the loader will put there. */
static int add_relocated(struct sites *sites, const char *kind, const struct elf_section *table)
{
	struct elf_section section;
	Elf64_Rela rela;
	int ret = 0;

	for (uint32_t s = 0; s < sites->elf.number && !ret; s++) {
		if (!elf_section(&sites->elf, s, &section) || section.type != SHT_RELA ||
		    !section.bytes)
			continue;
		for (uint64_t r = 0; r < section.len / sizeof(rela) && !ret; r++) {
			memcpy(&rela, section.bytes + r * sizeof(rela), sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE &&
			    rela.r_offset - table->addr < table->len)
				ret = add_nops(sites, kind, (uint64_t)rela.r_addend);
		}
	}
	return ret;
}

static int find_nops(struct sites *sites)
{
	struct elf_section section;
	int ret = 0;

	for (uint32_t i = 0; i < sites->elf.number && !ret; i++) {
		if (!elf_section(&sites->elf, i, &section) || !section.bytes)
			continue;
		for (size_t t = 0; t < sizeof(tables) / sizeof(*tables) && !ret; t++) {
			if (strcmp(section.name, tables[t].section) != 0)
				continue;
			ret = add_plain(sites, tables[t].kind, &section);
			if (!ret)
				ret = add_relocated(sites, tables[t].kind, &section);
		}
	}
	return ret;
}

/* --- Markers, branches, calls by choice ------------------------------------------------------- */

static int add_marker(const struct note *note, void *data)
{
	static const uint8_t off[] = { 0x90, 0x0f, 0x1f, 0x44, 0x00, 0x08 };
	struct sites *sites = data;
	const uint8_t *code = code_at(&sites->elf, note->address, sizeof(off));
	const char *reason = NULL;
	char *name;

	if (!code)
		reason = "its note points outside the code";
	/* The kernel puts that of a uprobe into private mappings of the file: into this one, too.
	 */
	else if (*code == BREAKPOINT)
		reason = "a debugger or a uprobe has a breakpoint on it";
	else if (memcmp(code, off, sizeof(off)) != 0)
		reason = "one 1-byte NOP has no room for a jump: compile with fastinst's sys/sdt.h";
	if (asprintf(&name, "%s.%s", note->provider, note->name) < 0)
		return -ENOMEM;
	return add_site(sites, &(struct site){ .addr = note->address + 1,
					       .len = SITE_LEN,
					       .kind = "marker",
					       .provider = "marker",
					       .name = name,
					       .args = note->operands,
					       .reason = reason });
}

static int add_branch(const struct entry *entry, void *data)
{
	struct sites *sites = data;
	const uint8_t *code = code_at(&sites->elf, entry->site, SITE_LEN);
	const char *reason = code ? NULL : DAMAGED;

	if (code && memcmp(code, nop5, SITE_LEN) != 0)
		reason = "other bytes stand there than the compiler puts there";
	return add_site(sites, &(struct site){ .addr = entry->site,
					       .len = SITE_LEN,
					       .kind = "branch",
					       .provider = "branch",
					       .name = strdup(entry->name),
					       .reason = reason });
}

static int add_call(const struct entry *entry, void *data)
{
	struct sites *sites = data;

	return add_site(sites, &(struct site){ .addr = entry->site,
					       .len = SITE_LEN,
					       .kind = "call",
					       .provider = "branch",
					       .name = strdup(entry->name),
					       .reason = code_at(&sites->elf, entry->site, SITE_LEN)
								 ? NULL
								 : DAMAGED });
}

/* --- Calls that the compiler puts ------------------------------------------------------------- */

static const char *refuse_slot(const struct object *object, const struct elf_symbols *symbols,
			       const struct called *to, const void *slot)
{
	(void)object;
	(void)slot;
	for (size_t i = 0; i < symbols->n; i++)
		if (!strcmp(symbols->symbol[i].name, to->function))
			return "it has such a function of its own";
	return NULL;
}

#define COUNT(name, of_kind, operands)	1 +
#define CALLED(name, of_kind, operands) { .function = "__sanitizer_cov_" #name, .kind = of_kind },

static const struct hooks {
	const char *provider;
	struct calls calls;
} hooks[] = {
	{ "cyg",
	  { .n = 2,
	    .to = { { .function = "__cyg_profile_func_enter", .kind = FI_ENTRY },
		    { .function = "__cyg_profile_func_exit", .kind = FI_EXIT } },
	    .given = true,
	    .refuse = refuse_slot } },
	{ "blocks",
	  { .n = TRACERS(COUNT) 0,
	    .to = { TRACERS(CALLED) },
	    .offsets = true,
	    .refuse = refuse_slot } },
};

/* Whether one of the first n, which have been sorted, is a usable site of that kind in the
 * function.
 */
static bool has_nops(const struct sites *sites, size_t n, const char *kind,
		     const struct elf_symbol *function)
{
	size_t i = SORTED_FROM(sites->site, n, addr, function->addr);

	for (; i < n && sites->site[i].addr - function->addr < function->size; i++)
		if (!sites->site[i].reason && !strcmp(sites->site[i].kind, kind))
			return true;
	return false;
}

static int add_hook(struct sites *sites, const struct hooks *of, const struct object *object,
		    const struct call_site *call)
{
	static const char *const words[] = { [FI_ENTRY] = "entry",
					     [FI_EXIT] = "exit",
					     [FI_BLOCK] = "block",
					     [FI_COMPARE] = "compare" };
	uint64_t addr = (uintptr_t)call->at - object->base;
	struct site site = {
		.addr = addr,
		.len = call->len,
		.kind = words[call->to->kind],
		.provider = of->provider,
		.reason = call->reason,
	};

	if (of->calls.given && !site.reason && call->own &&
	    has_nops(sites, sites->nops, site.kind, call->function))
		site.reason = CALLS_TWICE;
	if (!of->calls.offsets)
		site.name = strdup(call->name);
	else if (asprintf(&site.name, "%s+0x%lx", call->function->name,
			  (unsigned long)(addr - call->function->addr)) < 0)
		site.name = NULL;
	return add_site(sites, &site);
}

static bool segment_at(const struct elf *elf, unsigned i, Elf64_Phdr *segment)
{
	Elf64_Ehdr header;

	memcpy(&header, elf->image, sizeof(header));
	if (i >= header.e_phnum || header.e_phentsize != sizeof(*segment) ||
	    header.e_phoff > elf->size ||
	    !elf_inside(elf, header.e_phoff + i * sizeof(*segment), sizeof(*segment)))
		return false;
	memcpy(segment, elf->image + header.e_phoff + i * sizeof(*segment), sizeof(*segment));
	return true;
}

/* A copy as the loader lays it out, but for what it changes in it. False: there is no such thing.
 */
static bool lay_out(const struct elf *elf, struct object *object)
{
	uint64_t low = UINT64_MAX, high = 0;
	Elf64_Phdr segment;
	uint8_t *copy;
	int n = 0;

	for (unsigned i = 0; segment_at(elf, i, &segment); i++) {
		if (segment.p_type != PT_LOAD)
			continue;
		if (segment.p_filesz > segment.p_memsz || segment.p_memsz > SPAN_MAX ||
		    segment.p_vaddr > INT64_MAX ||
		    !elf_inside(elf, segment.p_offset, segment.p_filesz))
			return false;
		low = segment.p_vaddr < low ? segment.p_vaddr : low;
		if (segment.p_vaddr + segment.p_memsz > high)
			high = segment.p_vaddr + segment.p_memsz;
	}
	if (low >= high || high - low > SPAN_MAX)
		return false;
	copy = mmap(NULL, high - low, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy == MAP_FAILED)
		return false;
	*object = (struct object){ .base = (uintptr_t)copy - low,
				   .start = (uintptr_t)copy,
				   .end = (uintptr_t)copy + (high - low) };
	for (unsigned i = 0; segment_at(elf, i, &segment); i++) {
		if (segment.p_type != PT_LOAD)
			continue;
		memcpy(copy + (segment.p_vaddr - low), elf->image + segment.p_offset,
		       segment.p_filesz);
		if (n == 8)
			continue;
		object->segment[n].start = object->base + segment.p_vaddr;
		object->segment[n].end = object->segment[n].start + segment.p_memsz;
		object->segment[n++].flags = segment.p_flags;
	}
	return true;
}

static int find_hooks(struct sites *sites)
{
	struct object object;
	int ret = 0;

	if (!lay_out(&sites->elf, &object))
		return 0;
	for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks) && !ret; i++) {
		struct call_sites found;

		ret = calls_find(&hooks[i].calls, &object, &sites->elf, &sites->symbols, &found);
		for (size_t k = 0; k < found.n && !ret; k++)
			ret = add_hook(sites, &hooks[i], &object, &found.site[k]);
		free(found.site);
	}
	munmap((void *)object.start, object.end - object.start);
	return ret;
}

/* --- All of them ------------------------------------------------------------------------------ */

static int by_addr(const void *a, const void *b)
{
	const struct site *one = a, *two = b;
	int order = strcmp(one->provider, two->provider);

	if (order)
		return order;
	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* Some linkers write both the entry and its relocation. */
static void drop_doubles(struct sites *sites)
{
	size_t kept = 0;

	if (!sites->n)
		return;
	qsort(sites->site, sites->n, sizeof(*sites->site), by_addr);
	for (size_t i = 1; i < sites->n; i++) {
		if (by_addr(&sites->site[i], &sites->site[kept]) ||
		    strcmp(sites->site[i].name, sites->site[kept].name) != 0)
			sites->site[++kept] = sites->site[i];
		else
			free(sites->site[i].name);
	}
	sites->n = kept + 1;
}

int file_sites_open(struct sites *sites, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *image = MAP_FAILED;
	int ret = 0;

	*sites = (struct sites){ 0 };
	if (fd < 0 || fstat(fd, &stat) < 0)
		ret = -errno;
	else if (!S_ISREG(stat.st_mode) || !stat.st_size)
		ret = -ENOEXEC;
	else
		image = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (!ret && image == MAP_FAILED)
		ret = -errno;
	if (fd >= 0)
		close(fd);
	if (ret)
		return ret;
	sites->image = image;
	sites->elf.size = (size_t)stat.st_size;
	return elf_open(&sites->elf, image, (size_t)stat.st_size) ? 0 : -ENOEXEC;
}

int file_sites_find(struct sites *sites)
{
	int ret = elf_functions(&sites->elf, &sites->symbols);

	if (!ret)
		ret = find_nops(sites);
	drop_doubles(sites);
	sites->nops = sites->n;
	if (!ret)
		ret = notes_read(&sites->elf, add_marker, sites, NULL);
	if (!ret)
		ret = entries_read(&sites->elf, "fi_branch_sites", add_branch, sites);
	if (!ret)
		ret = entries_read(&sites->elf, "fi_call_sites", add_call, sites);
	if (!ret)
		ret = find_hooks(sites);
	drop_doubles(sites);
	return ret;
}

int file_sites_read(struct sites *sites, const char *path)
{
	int ret = file_sites_open(sites, path);

	return ret ? ret : file_sites_find(sites);
}

void file_sites_free(struct sites *sites)
{
	for (size_t i = 0; i < sites->n; i++)
		free(sites->site[i].name);
	free(sites->site);
	elf_free(&sites->symbols);
	if (sites->image)
		munmap((void *)sites->image, sites->elf.size);
	*sites = (struct sites){ 0 };
}
