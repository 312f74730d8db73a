/* SPDX-License-Identifier: MIT */
/*
 * Static branches and static calls, for C and C++.
 *
 *	if (fi_branch(net, trace))		usually false
 *		...
 *	if (fi_branch_true(net, checksum))	usually true
 *		...
 *
 * A branch is a 5-byte NOP on its usual side, and a jump on the other: there is nothing to load and
 * nothing to compare. Kind and name are words as in C; together they name a switch, "net.trace",
 * that turns all its sites, in all objects of the process, with as few waits as one.
 *
 *	FI_CALL_DEFINE(hash, hash_generic);	once, in a source file
 *	FI_CALL_DECLARE(hash, hash_generic);	elsewhere, in a header say; or a type: uint32_t(char
 **) h = fi_call(hash, text); fi_call_set(hash, hash_avx2);
 *
 * A static call is a direct call to a direct jump. No pointer is loaded.
 *
 * Sites work without libfastinst as they are compiled: branches take their usual side, calls go to
 * their first function, by a pointer. The functions below need it, and fi_init().
 *
 * In C, and in C++ before C++11, clang before 17 refuses two branches in a function that has
 * variables with __attribute__((cleanup)) or destructors.
 */
#ifndef FASTINST_BRANCH_H
#define FASTINST_BRANCH_H

#include <stddef.h>

#include <fastinst.h>

#if !defined(__x86_64__) || defined(__ILP32__)
#error "static branches are for x86-64"
#endif

/*
 * The site, and its entry in a section: relative, so that nothing is relocated when it is loaded. A
 * relocation of no bytes ties the two together for linkers that drop what nothing refers to.
 */
#define FI_BRANCH_CODE(kind, name, usual)                                                          \
	"1:\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                                 \
	"\t.reloc 1b, R_X86_64_NONE, 2f\n"                                                         \
	".pushsection fi_branch_sites,\"a?\",@progbits\n"                                          \
	"\t.balign 4\n"                                                                            \
	"2:\t.long 3f-2b\n"                                                                        \
	"\t.long 1b-.\n"                                                                           \
	"\t.long %l[fi_other]-.\n"                                                                 \
	"\t.long " #usual "\n"                                                                     \
	"\t.asciz \"" #kind "." #name "\"\n"                                                       \
	"\t.balign 4\n"                                                                            \
	"3:\n"                                                                                     \
	".popsection\n"

#if defined(__cplusplus) && __cplusplus >= 201103L
/* A function of its own: labels and destructors keep out of each other's way. */
#define FI_BRANCH_SITE(kind, name, usual)                                                          \
	([]() __attribute__((always_inline))->bool {                                               \
		__asm__ goto(FI_BRANCH_CODE(kind, name, usual) : : : : fi_other);                  \
		return usual;                                                                      \
	fi_other:                                                                                  \
		return !usual;                                                                     \
	}())
#else
#define FI_BRANCH_SITE(kind, name, usual)                                                          \
	__extension__({                                                                            \
		__label__ fi_other;                                                                \
		int fi_taken = usual;                                                              \
		__asm__ goto(FI_BRANCH_CODE(kind, name, usual) : : : : fi_other);                  \
		if (0) {                                                                           \
		fi_other:                                                                          \
			fi_taken = !usual;                                                         \
		}                                                                                  \
		fi_taken;                                                                          \
	})
#endif

#define fi_branch(kind, name)	   FI_BRANCH_SITE(kind, name, 0)
#define fi_branch_true(kind, name) FI_BRANCH_SITE(kind, name, 1)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a switch is. The name stays valid.
 *
 * It is true while its count is above 0. Usually true ones start with 1. While there is a veto on
 * it, all its sites take their usual side, at any count; counting goes on.
 */
struct fi_branch_state {
	const char *name; /* "kind.name" */
	int value;	  /* which side is taken now */
	int usual;
	unsigned count; /* times it was turned on and not off again */
	unsigned vetoes;
	unsigned sites;	  /* in objects that are loaded */
	unsigned refused; /* of them; see reason */
	const char *reason;
};

/*
 * fi_branch_on, fi_branch_off - count up, or down, all switches that a glob names (fnmatch(3)), or
 * an extended regular expression (regex(7)) between two '/', as one set. A count of 0 stays 0.
 *
 * fi_branch_veto, fi_branch_allow - put a veto on them, or take one away.
 *
 * Return how many there were. If the code of a site cannot be changed, the first error of
 * pc_patch_batch(), and all are as they were; -EINVAL, -ENOMEM, -ESHUTDOWN. While one of these is
 * under way, threads may see some sites of a set on their new side and some on the old one.
 */
long fi_branch_on(const char *pattern);
long fi_branch_off(const char *pattern);
long fi_branch_veto(const char *pattern);
long fi_branch_allow(const char *pattern);

/* fi_branches - all switches, filled up to max; how many there are. -EINVAL, -ESHUTDOWN. */
long fi_branches(struct fi_branch_state *states, size_t max);

/*
 * fi_branch_settings - what is wrong with the environment variable FASTINST_BRANCHES, or NULL.
 *
 * "GLOB=on,GLOB=off,GLOB=veto": what switches start with, as they are found. Ignored in
 * set-user-ID programs.
 */
const char *fi_branch_settings(void);

/* --- Calls ------------------------------------------------------------------------------------ */

#define FI_CALL_DECLARE(name, function)                                                            \
	extern __typeof__(function) fi_call_##name __asm__("fi_call_" #name)                       \
		__attribute__((visibility("hidden")))

#define FI_CALL_DEFINE(name, function)                                                             \
	__asm__(".pushsection .text.fi_calls,\"ax\",@progbits\n"                                   \
		"\t.balign 16\n"                                                                   \
		"\t.globl fi_call_" #name "\n"                                                     \
		"\t.hidden fi_call_" #name "\n"                                                    \
		"\t.type fi_call_" #name ", @function\n"                                           \
		"fi_call_" #name ":\n"                                                             \
		"1:\tjmp *fi_call_slot_" #name "(%rip)\n"                                          \
		"\t.reloc 1b, R_X86_64_NONE, 2f\n"                                                 \
		"\t.balign 16, 0xcc\n"                                                             \
		"\t.size fi_call_" #name ", .-fi_call_" #name "\n"                                 \
		".popsection\n"                                                                    \
		".pushsection fi_call_sites,\"a\",@progbits\n"                                     \
		"\t.balign 4\n"                                                                    \
		"2:\t.long 3f-2b\n"                                                                \
		"\t.long fi_call_" #name "-.\n"                                                    \
		"\t.long fi_call_slot_" #name "-.\n"                                               \
		"\t.long 0\n"                                                                      \
		"\t.asciz \"" #name "\"\n"                                                         \
		"\t.balign 4\n"                                                                    \
		"3:\n"                                                                             \
		".popsection\n");                                                                  \
	FI_CALL_DECLARE(name, function);                                                           \
	extern void *fi_call_slot_##name __asm__("fi_call_slot_" #name)                            \
		__attribute__((visibility("hidden")));                                             \
	__attribute__((used)) void *fi_call_slot_##name = (void *)(function)

#define fi_call(name, ...) fi_call_##name(__VA_ARGS__)

/*
 * fi_call_set - the function that is called from now on, of the type that was declared.
 *
 * Executors call the old one or the new one. 0. -ENOENT: it is not known, as its object was loaded
 * after the last fi_scan(). -EINVAL: NULL. Else as pc_patch(), and the old one is called.
 */
#define fi_call_set(name, function)                                                                \
	fi_call_retarget((void *)&fi_call_##name, (void *)(1 ? (function) : &fi_call_##name))
int fi_call_retarget(void *call, void *function);

struct fi_call_state {
	const char *name;
	void *target;
	int direct; /* by a jump; 0: by a pointer, as it is more than 2 GiB away */
};

/* fi_calls - all of them, filled up to max; how many there are. -EINVAL, -ESHUTDOWN. */
long fi_calls(struct fi_call_state *states, size_t max);

#ifdef __cplusplus
}
#endif
#endif
