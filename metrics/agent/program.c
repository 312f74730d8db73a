/* SPDX-License-Identifier: MIT */
/*
 * Probes at entries and exits, put together by the procedures that they are of: by object, provider
 * and name, without what compilers append to the name of a part that is seldom run. Static
 * functions of one name in one object are one procedure.
 *
 * A procedure of which one exit cannot be used has no exits: code that is to run when it returns
 * would not run each time.
 */
#include "metrics/agent/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "probes/elf/elf.h"
#include "probes/include/fastinst.h"

struct probe_site {
	struct fi_probe probe;
	size_t len; /* of the procedure's name */
};

/* Its probes stand one behind the other: entries, then exits. */
struct procedure {
	const char *name, *object;
	size_t first, entries, exits;
	bool entries_whole, exits_whole;
	bool hooked; /* by -finstrument-functions: its registers are not known */
};

struct procedures {
	struct procedure *procedure;
	size_t n;
	uint32_t *ids;
	uint32_t *of_probe; /* an entry's: 1 more than the procedure's number; 0: none */
	uint32_t probes;
	char program[PATH_MAX];
};

/* --- Putting them together -------------------------------------------------------------------- */

static int compare_names(const struct probe_site *one, const struct probe_site *two)
{
	int order = strcmp(one->probe.object, two->probe.object);

	if (!order)
		order = strcmp(one->probe.provider, two->probe.provider);
	if (!order)
		order = (one->len > two->len) - (one->len < two->len);
	return order ? order : memcmp(one->probe.function, two->probe.function, one->len);
}

static int compare_sites(const void *a, const void *b)
{
	const struct probe_site *one = a, *two = b;
	int order = compare_names(one, two);

	if (!order)
		order = (int)one->probe.kind - (int)two->probe.kind;
	return order ? order : (one->probe.id > two->probe.id) - (one->probe.id < two->probe.id);
}

static bool note_site(struct probe_site *site, uint32_t id)
{
	const char *part;

	if (fi_get(id, &site->probe) < 0 || site->probe.state == FI_GONE ||
	    (site->probe.kind != FI_ENTRY && site->probe.kind != FI_EXIT) || !*site->probe.function)
		return false;
	part = strstr(site->probe.function, ".cold");
	site->len = part ? (size_t)(part - site->probe.function) : strlen(site->probe.function);
	return true;
}

static void add_site(struct procedures *all, struct procedure *to, const struct probe_site *site)
{
	bool is_entry = site->probe.kind == FI_ENTRY, usable = site->probe.state != FI_REFUSED;

	all->ids[to->first + to->entries + to->exits] = site->probe.id;
	*(is_entry ? &to->entries : &to->exits) += 1;
	*(is_entry ? &to->entries_whole : &to->exits_whole) &= usable;
	if (is_entry)
		all->of_probe[site->probe.id] = (uint32_t)(to - all->procedure) + 1;
}

static void group_sites(struct procedures *all, const struct probe_site *site, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct procedure *last = &all->procedure[all->n];

		if (!i || compare_names(&site[i - 1], &site[i])) {
			last = &all->procedure[all->n++];
			*last = (struct procedure){
				.name = site[i].probe.function,
				.object = site[i].probe.object,
				.first = i,
				.entries_whole = true,
				.exits_whole = true,
				.hooked = !strcmp(site[i].probe.provider, "cyg"),
			};
		} else {
			last--;
		}
		add_site(all, last, &site[i]);
	}
}

struct procedures *procedures_find(void)
{
	uint32_t probes = fi_probes();
	struct procedures *all = calloc(1, sizeof(*all));
	struct probe_site *site = calloc(probes + 1, sizeof(*site));
	size_t n = 0;
	ssize_t len;

	if (all) {
		all->probes = probes;
		all->procedure = calloc(probes + 1, sizeof(*all->procedure));
		all->ids = calloc(probes + 1, sizeof(*all->ids));
		all->of_probe = calloc(probes + 1, sizeof(*all->of_probe));
		len = readlink("/proc/self/exe", all->program, sizeof(all->program) - 1);
		all->program[len < 0 ? 0 : len] = '\0';
	}
	if (!all || !site || !all->procedure || !all->ids || !all->of_probe) {
		free(site);
		procedures_free(all);
		return NULL;
	}
	for (uint32_t id = 0; id < probes; id++)
		n += note_site(&site[n], id);
	qsort(site, n, sizeof(*site), compare_sites);
	group_sites(all, site, n);
	free(site);
	return all;
}

void procedures_free(struct procedures *all)
{
	if (!all)
		return;
	free(all->procedure);
	free(all->ids);
	free(all->of_probe);
	free(all);
}

/* --- As a plan sees them ---------------------------------------------------------------------- */

static bool is_listed(const struct procedures *all, uint32_t number, const struct mdl_list *list)
{
	bool in_program = !strcmp(all->procedure[number].object, all->program);

	return !list || (!list->in_library && !list->in_program) || list->in_program == in_program;
}

static long find_procedures(void *data, const char *pattern, const struct mdl_list *list,
			    uint32_t **found)
{
	struct procedures *all = data;
	uint32_t *ids = calloc(all->probes + 1, sizeof(*ids));
	long n = ids ? fi_find(pattern, ids, all->probes) : -ENOMEM;
	size_t kept = 0;

	*found = ids;
	if (n < 0)
		return n;
	for (long i = 0; i < n && i < (long)all->probes; i++) {
		uint32_t number = ids[i] < all->probes ? all->of_probe[ids[i]] : 0;

		if (number && is_listed(all, number - 1, list))
			ids[kept++] = number - 1;
	}
	return (long)sort_numbers(ids, kept);
}

static const char *procedure_name(void *data, uint32_t procedure)
{
	return ((struct procedures *)data)->procedure[procedure].name;
}

/* Calls in a procedure have no probes. */
static size_t procedure_probes(void *data, uint32_t number, enum code_point point, bool registers,
			       const uint32_t **ids)
{
	const struct procedures *all = data;
	const struct procedure *procedure = &all->procedure[number];

	*ids = all->ids + procedure->first;
	if (registers && procedure->hooked)
		return 0;
	if (point == CODE_AT_ENTRY)
		return procedure->entries_whole ? procedure->entries : 0;
	*ids += procedure->entries;
	return point == CODE_AT_RETURN && procedure->exits_whole ? procedure->exits : 0;
}

/* --- Variables of the program ----------------------------------------------------------------- */

static bool find_in_table(const struct elf *elf, const struct elf_section *table, const char *name,
			  Elf64_Sym *symbol)
{
	const char *found;

	for (uint64_t i = 0; elf_read_symbol(elf, table, i, symbol, &found); i++)
		if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx &&
		    !strcmp(found, name))
			return true;
	return false;
}

static bool find_in_file(const char *path, const char *name, Elf64_Sym *symbol)
{
	struct elf_section section;
	uint32_t index = 0;
	bool found = false;
	struct elf elf;

	if (elf_map(&elf, path, ELF_PLAIN) < 0)
		return false;
	while (!found && elf_next_section(&elf, &index, &section))
		found = section.type == SHT_SYMTAB && find_in_table(&elf, &section, name, symbol);
	elf_unmap(&elf);
	return found;
}

/* The program's own, by its symbols; else what an object exports. */
static int find_variable(void *data, const char *name, uint64_t *address, unsigned *size)
{
	const struct procedures *all = data;
	const ElfW(Sym) *exported = NULL;
	Elf64_Sym symbol = { 0 };
	Dl_info info;
	void *at;

	if (find_in_file(all->program, name, &symbol)) {
		*address = symbol.st_value + _r_debug.r_map->l_addr;
	} else {
		at = dlsym(RTLD_DEFAULT, name);
		if (!at || !dladdr1(at, &info, (void **)&exported, RTLD_DL_SYMENT) || !exported ||
		    info.dli_saddr != at || ELF64_ST_TYPE(exported->st_info) != STT_OBJECT)
			return -ENOENT;
		symbol.st_size = exported->st_size;
		*address = (uintptr_t)at;
	}
	*size = (unsigned)symbol.st_size;
	return symbol.st_size == 1 || symbol.st_size == 2 || symbol.st_size == 4 ||
			       symbol.st_size == 8
		       ? 0
		       : -ENOENT;
}

struct metric_world procedures_world(struct procedures *procedures)
{
	return (struct metric_world){ .data = procedures,
				      .find = find_procedures,
				      .name = procedure_name,
				      .probes = procedure_probes,
				      .symbol = find_variable };
}
