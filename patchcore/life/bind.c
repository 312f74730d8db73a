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

/* A number of the dynamic section, 0: it has none of that tag. */
static uintptr_t find_number(Elf64_Sxword tag)
{
	const Elf64_Dyn *d = _DYNAMIC;

	while (d->d_tag != DT_NULL && d->d_tag != tag)
		d++;
	return d->d_tag == tag ? d->d_un.d_val : 0;
}

/* The address of a table, NULL: there is none. The loader has added the base to some of them. */
static const void *find_table(Elf64_Sxword tag)
{
	uintptr_t base = (uintptr_t)&__ehdr_start, at = find_number(tag);

	return (const void *)(at && at < base ? at + base : at);
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
static const char *find_version(const char *strings, unsigned index)
{
	const char *at = find_table(DT_VERNEED), *one;
	const Elf64_Verneed *file;
	const Elf64_Vernaux *version;

	do {
		file = (const void *)at;
		one = at + file->vn_aux;
		for (unsigned n = file->vn_cnt; n--; one += version->vna_next) {
			version = (const void *)one;
			if ((version->vna_other & 0x7fff) == index)
				return strings + version->vna_name;
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
static void *find_function(const Elf64_Rela *slot, void *own)
{
	size_t index = ELF64_R_SYM(slot->r_info);
	const Elf64_Sym *symbol = (const Elf64_Sym *)find_table(DT_SYMTAB) + index;
	const Elf64_Half *versions = find_table(DT_VERSYM);
	unsigned type = ELF64_R_TYPE(slot->r_info);
	const char *strings = find_table(DT_STRTAB), *name = strings + symbol->st_name, *version;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
	    symbol->st_shndx != SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
	    stays_bound(name))
		return NULL;
	version = find_version(strings, versions[index] & 0x7fff);
	return version ? dlvsym(own, name, version) : NULL;
}

static void bind_calls(const Elf64_Rela *slot, size_t size, void *own)
{
	for (size_t n = size / sizeof(*slot); n--; slot++) {
		void *function = find_function(slot, own);

		if (function)
			*(void *volatile *)((uintptr_t)&__ehdr_start + slot->r_offset) = function;
	}
}

__attribute__((constructor(101))) static void bind_own_calls(void)
{
	const char *strings = find_table(DT_STRTAB);
	int (*close_library)(void *);
	void *own;

	if (!find_table(DT_VERNEED) || !find_table(DT_VERSYM))
		return;
	/* Not dlopen() and dlclose(), which the agents of fastinst have as well. */
	own = dlmopen(LM_ID_BASE, strings + find_number(DT_SONAME), RTLD_LAZY | RTLD_NOLOAD);
	if (!own)
		return;
	close_library = (int (*)(void *))dlvsym(own, "dlclose", "GLIBC_2.2.5");
	if (protect_slots(PROT_READ | PROT_WRITE) == 0) {
		bind_calls(find_table(DT_RELA), find_number(DT_RELASZ), own);
		bind_calls(find_table(DT_JMPREL), find_number(DT_PLTRELSZ), own);
		protect_slots(PROT_READ);
	}
	if (close_library)
		close_library(own);
}
#endif
