/* SPDX-License-Identifier: MIT */
/*
 * fastinst list: what a program or library has to put probes on, from its file.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "probes/command/command.h"
#include "probes/command/reach.h"
#include "probes/elf/elf.h"

#define SITE_LEN 5

static const char help[] =
	"Usage: fastinst list [OPTION]... PROGRAM\n"
	"Shows the sites of a program or library: functions compiled with\n"
	"-fpatchable-function-entry=5.\n"
	"\n"
	"  --entries      functions that nothing was compiled into: which of them\n"
	"                 \"fastinst run --entries\" takes, and why not the others\n"
	"  --summary      only how many there are\n"
	"  --json         as JSON\n"
	"  --help         this text\n";

struct site {
	uint64_t addr; /* in the file's own addresses */
	const char *kind;
	const char *function;
	bool usable;
	unsigned crosses; /* the largest boundary that its five bytes cross: 8 to 4096, or 0 */
};

static const struct table {
	const char *section;
	const char *kind;
} tables[] = {
	{ "__patchable_function_entries", "entry" },
	{ "__mcount_loc", "entry" },
	{ "__return_loc", "exit" },
};

struct sites {
	const char *kind; /* of those that are being added */
	struct site *site;
	size_t n;
};

struct file {
	struct elf elf;
	const void *image;
	size_t size;
	struct elf_symbols symbols;
};

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

static unsigned boundary(uint64_t addr)
{
	for (unsigned size = 4096; size >= 8; size /= 2)
		if (addr / size != (addr + SITE_LEN - 1) / size)
			return size;
	return 0;
}

static bool is_site(const uint8_t *code)
{
	static const uint8_t ones[SITE_LEN] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	static const uint8_t long_nop[4] = { 0x0f, 0x1f, 0x44, 0x00 };

	return !memcmp(code, ones, SITE_LEN) || !memcmp(code, long_nop, sizeof(long_nop));
}

/* As the provider does it in memory: behind the label and an ENDBR64. */
static void add_site(const struct file *file, struct sites *sites, uint64_t addr)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct elf_symbol *symbol = elf_function_from(&file->symbols, addr);
	struct site *site = &sites->site[sites->n++];
	const uint8_t *code;

	bool is_entry = !strcmp(sites->kind, "entry");

	if (is_entry && symbol && symbol->addr - addr <= 64 &&
	    !elf_function_at(&file->symbols, addr))
		addr = symbol->addr;
	code = code_at(&file->elf, addr, sizeof(endbr64));
	if (is_entry && code && !memcmp(code, endbr64, sizeof(endbr64)))
		addr += sizeof(endbr64);
	code = code_at(&file->elf, addr, SITE_LEN);
	symbol = elf_function_at(&file->symbols, addr);
	*site = (struct site){
		.addr = addr,
		.kind = sites->kind,
		.function = symbol ? symbol->name : "",
		.usable = code && is_site(code),
		.crosses = boundary(addr),
	};
}

/* What stands in the table itself: all of it, or nothing where the program is loaded anywhere. */
static void add_plain(const struct file *file, struct sites *sites, const struct elf_section *table)
{
	uint64_t entry;

	for (uint64_t i = 0; i < table->len / sizeof(entry); i++) {
		memcpy(&entry, table->bytes + i * sizeof(entry), sizeof(entry));
		if (entry)
			add_site(file, sites, entry);
	}
}

/* What the loader will put there. */
static void add_relocated(const struct file *file, struct sites *sites,
			  const struct elf_section *table, size_t room)
{
	struct elf_section section;
	Elf64_Rela rela;

	for (uint32_t s = 0; s < file->elf.number; s++) {
		if (!elf_section(&file->elf, s, &section) || section.type != SHT_RELA ||
		    !section.bytes)
			continue;
		for (uint64_t r = 0; r < section.len / sizeof(rela) && sites->n < room; r++) {
			memcpy(&rela, section.bytes + r * sizeof(rela), sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) == R_X86_64_RELATIVE &&
			    rela.r_offset - table->addr < table->len)
				add_site(file, sites, (uint64_t)rela.r_addend);
		}
	}
}

static int by_addr(const void *a, const void *b)
{
	const struct site *one = a, *two = b;

	return one->addr < two->addr ? -1 : one->addr > two->addr;
}

/* Some linkers write both the entry and its relocation. */
static void drop_doubles(struct sites *sites)
{
	size_t kept = 0;

	if (!sites->n)
		return;
	qsort(sites->site, sites->n, sizeof(*sites->site), by_addr);
	for (size_t i = 1; i < sites->n; i++)
		if (sites->site[i].addr != sites->site[kept].addr)
			sites->site[++kept] = sites->site[i];
	sites->n = kept + 1;
}

static const char *kind_of(const char *section)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (!strcmp(section, tables[i].section))
			return tables[i].kind;
	return NULL;
}

static int find_sites(const struct file *file, struct sites *sites)
{
	struct elf_section table;

	for (uint32_t i = 0; i < file->elf.number; i++) {
		size_t room;
		struct site *site;

		if (!elf_section(&file->elf, i, &table) || !table.bytes || !table.len)
			continue;
		sites->kind = kind_of(table.name);
		if (!sites->kind)
			continue;
		room = sites->n + 2 * (table.len / 8);
		site = realloc(sites->site, (room + 1) * sizeof(*site));
		if (!site)
			return -ENOMEM;
		sites->site = site;
		add_plain(file, sites, &table);
		add_relocated(file, sites, &table, room);
	}
	drop_doubles(sites);
	return 0;
}

/* --- Output ----------------------------------------------------------------------------------- */

struct summary {
	size_t usable, words, lines, pages;
};

static struct summary sum_up(const struct sites *sites)
{
	struct summary sum = { 0 };

	for (size_t i = 0; i < sites->n; i++) {
		const struct site *site = &sites->site[i];

		sum.usable += site->usable;
		sum.words += site->usable && site->crosses >= 8;
		sum.lines += site->usable && site->crosses >= 64;
		sum.pages += site->usable && site->crosses >= 4096;
	}
	return sum;
}

static void print_text(const struct sites *sites, bool summary)
{
	struct summary sum = sum_up(sites);

	for (size_t i = 0; i < sites->n && !summary; i++) {
		const struct site *site = &sites->site[i];

		printf("%12" PRIx64 "  %-5s  %s", site->addr, site->kind,
		       *site->function ? site->function : "?");
		if (!site->usable)
			printf("  refused: no five bytes of NOPs");
		else if (site->crosses)
			printf("  crosses %u", site->crosses);
		putchar('\n');
	}
	printf("%zu sites, %zu usable; of these %zu cross 8 bytes, %zu a line of 64, %zu a page\n",
	       sites->n, sum.usable, sum.words, sum.lines, sum.pages);
}

static json_t *site_json(const struct site *site)
{
	return json_pack("{s:I, s:s, s:s, s:b, s:i}", "address", (json_int_t)site->addr, "kind",
			 site->kind, "function", site->function, "usable", site->usable, "crosses",
			 (int)site->crosses);
}

static void print_json(const struct sites *sites, const char *path, bool summary)
{
	struct summary sum = sum_up(sites);
	json_t *array = json_array();
	json_t *root = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "object", path, "sites",
				 (json_int_t)sites->n, "usable", (json_int_t)sum.usable, "cross_8",
				 (json_int_t)sum.words, "cross_64", (json_int_t)sum.lines,
				 "cross_4096", (json_int_t)sum.pages);

	for (size_t i = 0; i < sites->n && !summary; i++)
		json_array_append_new(array, site_json(&sites->site[i]));
	if (summary)
		json_decref(array);
	else
		json_object_set_new(root, "list", array);
	json_dumpf(root, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(root);
}

/* --- The command ------------------------------------------------------------------------------ */

static int map_file(struct file *file, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	int ret = 0;

	if (fd < 0 || fstat(fd, &stat) < 0) {
		ret = -errno;
	} else if (!S_ISREG(stat.st_mode) || !stat.st_size) {
		ret = -ENOEXEC;
	} else {
		file->size = (size_t)stat.st_size;
		file->image = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file->image == MAP_FAILED)
			ret = -errno;
	}
	if (fd >= 0)
		close(fd);
	if (!ret && !elf_open(&file->elf, file->image, file->size))
		ret = -ENOEXEC;
	return ret ? ret : elf_functions(&file->elf, &file->symbols);
}

static int list(const char *path, bool json, bool summary)
{
	struct file file = { 0 };
	struct sites sites = { 0 };
	int ret = map_file(&file, path);

	if (!ret)
		ret = find_sites(&file, &sites);
	if (ret < 0)
		fprintf(stderr, "fastinst: %s: %s\n", path,
			ret == -ENOEXEC ? "no ELF file for x86-64" : strerror(-ret));
	else if (json)
		print_json(&sites, path, summary);
	else
		print_text(&sites, summary);
	if (!ret && !sites.n)
		fprintf(stderr,
			"fastinst: %s has no sites: compile with "
			"-fpatchable-function-entry=5, or try --entries\n",
			path);
	elf_free(&file.symbols);
	free(sites.site);
	return ret < 0 ? STATUS_NO_INPUT : STATUS_OK;
}

static int list_entries(const char *path, bool json, bool summary)
{
	struct file file = { 0 };
	int ret = map_file(&file, path);

	if (!ret)
		ret = reach_print(&file.elf, path, json, summary);
	if (ret < 0)
		fprintf(stderr, "fastinst: %s: %s\n", path,
			ret == -ENOEXEC	  ? "no ELF file for x86-64"
			: ret == -ENOTSUP ? "fastinst was built without Zydis, which tells "
					    "instructions apart"
					  : strerror(-ret));
	elf_free(&file.symbols);
	return ret < 0 ? STATUS_NO_INPUT : STATUS_OK;
}

int list_command(int argc, char **argv)
{
	static const struct option options[] = {
		{ "entries", no_argument, NULL, 'e' },
		{ "summary", no_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool json = false, summary = false, entries = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		if (option == 'h')
			return fputs(help, stdout) < 0;
		if (option == '?')
			return usage_error("list");
		json |= option == 'j';
		summary |= option == 's';
		entries |= option == 'e';
	}
	if (optind + 1 != argc)
		return usage_error("list");
	return (entries ? list_entries : list)(argv[optind], json, summary);
}
