/* SPDX-License-Identifier: MIT */
/*
 * Calls that leave this shared library go to the libraries that it was linked against. Each of ours
 * has a copy of this file.
 *
 * The loader binds a call to the first definition of its name: that of the program, of a sanitizer,
 * of another preloaded library. Such a function may hold a probe, may need a state that it has not
 * set up yet, or may call back what called it. So each name is looked up once more, by its version,
 * among the libraries that this one needs, before anything else of the library runs.
 *
 * Three kinds of functions stay as the loader has bound them: allocation, which libc itself takes
 * from the program; threads, of which sanitizers have to know; and the hooks of
 * -finstrument-functions, since fastinst's provider "cyg" asks who defines these. A build with a
 * sanitizer leaves all functions as they are, and so does a library that is linked statically.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "patchcore/syscall/sys.h"

#ifdef __has_feature
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if defined(PIC) && !SANITIZED
#define PAGE ((uintptr_t)4096)

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden"))); /* the linker's */

struct imports {
	const Elf64_Sym *symbols;
	const char *strings;
	size_t own_name; /* in strings: of this library */
	const Elf64_Half *versions;
	const Elf64_Verneed *needed;
	struct {
		const Elf64_Rela *first;
		size_t size;
	} relocations[2];
};

static struct imports read_imports(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	struct imports imports = { 0 };

	for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++) {
		/* The loader has added the base to some of them. */
		const void *at = (const void *)(d->d_un.d_ptr + (d->d_un.d_ptr < base ? base : 0));

		if (d->d_tag == DT_SYMTAB)
			imports.symbols = at;
		else if (d->d_tag == DT_STRTAB)
			imports.strings = at;
		else if (d->d_tag == DT_SONAME)
			imports.own_name = d->d_un.d_val;
		else if (d->d_tag == DT_VERSYM)
			imports.versions = at;
		else if (d->d_tag == DT_VERNEED)
			imports.needed = at;
		else if (d->d_tag == DT_RELA || d->d_tag == DT_JMPREL)
			imports.relocations[d->d_tag == DT_JMPREL].first = at;
		else if (d->d_tag == DT_RELASZ || d->d_tag == DT_PLTRELSZ)
			imports.relocations[d->d_tag == DT_PLTRELSZ].size = d->d_un.d_val;
	}
	return imports;
}

/* Pages that the loader has closed after it had written the slots. */
static int protect_slots(int protection)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	const Elf64_Phdr *segment = (const void *)(base + __ehdr_start.e_phoff);

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, segment++) {
		uintptr_t start = (base + segment->p_vaddr) & -PAGE;
		uintptr_t end = (base + segment->p_vaddr + segment->p_memsz) & -PAGE;

		if (segment->p_type == PT_GNU_RELRO && end > start)
			return (int)sys_call(SYS_mprotect, start, end - start, protection);
	}
	return 0;
}

/* Of a function, by its index in the version table; NULL where it has none. */
static const char *find_version(const struct imports *imports, unsigned index)
{
	const char *at = (const char *)imports->needed, *one;
	const Elf64_Verneed *file;
	const Elf64_Vernaux *version;

	do {
		file = (const void *)at;
		one = at + file->vn_aux;
		for (unsigned n = file->vn_cnt; n--; one += version->vna_next) {
			version = (const void *)one;
			if ((version->vna_other & 0x7fff) == index)
				return imports->strings + version->vna_name;
		}
		at += file->vn_next;
	} while (file->vn_next);
	return NULL;
}

static bool stays_bound(const char *name)
{
	static const char *const kept[] = { "malloc",	     "calloc",	     "realloc",
					    "free",	     "reallocarray", "aligned_alloc",
					    "pthread_create" };

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (!strcmp(name, kept[i]))
			return true;
	return !strncmp(name, "__cyg_", strlen("__cyg_"));
}

/* The one of the libraries that this one needs. NULL: the slot stays as it is. */
static void *find_function(const struct imports *imports, const Elf64_Rela *slot, void *own)
{
	size_t index = ELF64_R_SYM(slot->r_info);
	const Elf64_Sym *symbol = &imports->symbols[index];
	unsigned type = ELF64_R_TYPE(slot->r_info);
	const char *name = imports->strings + symbol->st_name, *version;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
	    symbol->st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    stays_bound(name))
		return NULL;
	version = find_version(imports, imports->versions[index] & 0x7fff);
	return version ? dlvsym(own, name, version) : NULL;
}

static void bind_calls(const struct imports *imports, void *own)
{
	for (int i = 0; i < 2; i++) {
		const Elf64_Rela *slot = imports->relocations[i].first;

		for (size_t n = imports->relocations[i].size / sizeof(*slot); n--; slot++) {
			void *function = find_function(imports, slot, own);

			if (function)
				*(void *volatile *)((uintptr_t)&__ehdr_start + slot->r_offset) =
					function;
		}
	}
}

__attribute__((constructor(101))) static void bind_own_calls(void)
{
	struct imports imports = read_imports();
	int (*close_library)(void *);
	void *own;

	if (!imports.needed || !imports.versions)
		return;
	/* Not dlopen() and dlclose(), which the agents of fastinst have as well. */
	own = dlmopen(LM_ID_BASE, imports.strings + imports.own_name, RTLD_LAZY | RTLD_NOLOAD);
	if (!own)
		return;
	close_library = (int (*)(void *))dlvsym(own, "dlclose", "GLIBC_2.2.5");
	if (protect_slots(PROT_READ | PROT_WRITE) == 0) {
		bind_calls(&imports, own);
		protect_slots(PROT_READ);
	}
	if (close_library)
		close_library(own);
}
#endif
