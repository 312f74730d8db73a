/* SPDX-License-Identifier: MIT */
/*
 * fastinst: probes that are turned on and off while the program runs.
 *
 *	fi_init();
 *	n = fi_find("parse_*", ids, 64);
 *	fi_activate_batch(ids, n, on_parse);
 *
 * Every function returns 0 (or a number) or a negative errno, and is thread-safe. None is
 * async-signal-safe unless its comment says so. Before fi_init() and after fi_fini() they return
 * -ESHUTDOWN. A call that fails leaves the code of the probe as it was. libfastinst(3) is the
 * manual: what probes there are, and all errors. SIGTRAP belongs to libpatchcore while probes are
 * in use. Paper: "Living on the Edge", sections 4 and 7, figure 3.
 */
#ifndef FASTINST_H
#define FASTINST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most probes that a process may have in all its life: ids are not used twice. */
#define FI_PROBES_MAX (1u << 18)

/* What kind of place a probe is at. */
enum fi_kind {
	FI_ENTRY = 0,	/* of a function; argument registers are intact, but for provider "cyg" */
	FI_EXIT = 1,	/* before a function returns */
	FI_MARKER = 2,	/* named, anywhere in the code */
	FI_BRANCH = 3,	/* a static branch: it has a state and no probe function */
	FI_CALL = 4,	/* a static call: its target is its state */
	FI_BLOCK = 5,	/* a basic block */
	FI_COMPARE = 6, /* a comparison, or a switch: see fastinst/args.h */
};

enum fi_state {
	FI_OFF = 0,
	FI_ON = 1,
	FI_REFUSED = 2, /* it cannot be used; reason says why */
	FI_GONE = 3,	/* its object was unloaded */
};

/* What is known of a probe. The strings are the library's and stay valid until the process ends. */
struct fi_probe {
	uint32_t id; /* dense, from 0, in order of discovery */
	enum fi_kind kind;
	enum fi_state state;
	const char *function; /* or the marker's name; "" where the object has no symbols */
	const char *object;   /* path of the program or library */
	const char *provider; /* "patchable", "marker" and so on */
	const char *file;     /* source, "" if unknown: see fi_source() */
	unsigned line;	      /* 0: unknown */
	void *address;	      /* of the site */
	const char *reason;   /* FI_REFUSED: one line; else "" */
};

/*
 * Registers as they were at the site; rsp is the stack pointer before it: at an entry it points at
 * the return address. Entries and exits of provider "cyg" are calls of a hook: rdi is the
 * function's address, rsi what it returns to, the others hold nothing of use. At a marker
 * fi_marker_regs() has the program's rsp, fastinst/args.h.
 */
struct fi_regs {
	uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
	uint64_t rsp;
};

/*
 * A probe function, in the thread that came to the site, be that in a signal handler.
 * @id:	  the probe
 * @site: its address
 * @regs: valid until it returns; the registers in it are restored afterwards, changed or not
 * @data: what fi_set_data() gave the probe, or NULL
 *
 * Registers, vectors and flags are preserved around it, errno is not. It may run code with probes,
 * which count, but do not call their functions: such calls are lost events. It must return: no
 * longjmp(), no exception. It has 64 KiB of stack, but on an alternate signal stack.
 */
typedef void fi_function(uint32_t id, void *site, const struct fi_regs *regs, void *data);

/*
 * fi_vectors - for probe functions that read floating point, in place of one that does not: the
 * lower halves of xmm0 to xmm7 as they were at the site.
 *
 *	fi_activate(id, fi_vectors(on_call));
 */
typedef void fi_vectors_function(uint32_t id, void *site, const struct fi_regs *regs, void *data,
				 double xmm0, double xmm1, double xmm2, double xmm3, double xmm4,
				 double xmm5, double xmm6, double xmm7);

/* By the ABI these arguments are where the site had them: the trampoline leaves them there. */
static inline fi_function *fi_vectors(fi_vectors_function *function)
{
	return (fi_function *)(void (*)(void))function;
}

/* What is told of a probe that was discovered. Called without locks that fi_* functions take. */
typedef void fi_callback(const struct fi_probe *probe, void *data);

/* --- Life ------------------------------------------------------------------------------------- */

/*
 * fi_init - start libpatchcore and find the probes of all objects that are loaded. Idempotent.
 * Errors of pc_init(); -ENOMEM. Probes that cannot be used are no error: see FI_REFUSED.
 */
int fi_init(void);

/*
 * fi_fini - turn all probes off and wait until no thread is in a probe function. Counts stay.
 * -EAGAIN, -ETIMEDOUT: pages of code cannot be closed yet, and it is to be called again. Else as
 * fi_synchronize().
 */
int fi_fini(void);

/*
 * fi_stubs - where code is that this library has made: up to @max pieces of *size bytes each.
 * Returns how many there are.
 *
 * fi_unload - after fi_fini() and pc_fini(): give back all memory, and let the library be unloaded.
 * The caller knows that no thread is in a stub or comes back to one. -EBUSY: not closed.
 */
long fi_stubs(void *start[], size_t max, size_t *size);
int fi_unload(void);

/* fi_scan - look for objects that came or went since the last look: how many probes were found. */
int fi_scan(void);

/*
 * fi_own_thread - the calling thread is (1) or is no longer (-1) a thread of the tool, which never
 * runs code with probes. 0: how many there are. -EINVAL. Works before fi_init().
 */
int fi_own_thread(int change);

/*
 * fi_take_entries - take functions as well that nothing was compiled into, of objects that the next
 * fi_init() or fi_scan() looks at, and later ones. Not while fi_init() runs.
 * @objects: a glob (fnmatch(3)) for the last part of their paths; "": the program itself; NULL:
 * none
 *
 * -ENOMEM; -ENOTSUP: the library was built without Zydis.
 */
int fi_take_entries(const char *objects);

/*
 * fi_set_progress - call a function, which calls nothing of this library but fi_probes(), before
 * fi_init() and fi_scan() read an object: how many were read, of how many. NULL: no function.
 */
typedef void fi_progress(unsigned done, unsigned of);
void fi_set_progress(fi_progress *progress);

/*
 * fi_keep_writable - from the next change of a probe on, leave the code of its object writable,
 * until it is called with false, or fi_fini(). Linux puts no uprobe into writable code. One that it
 * puts on a probe that is on ends the process, as the kernel goes on behind the instruction of the
 * file.
 *
 * Any thread. -ESHUTDOWN before fi_init() and after fi_fini(), -EDEADLK in a callback; with false
 * also -EAGAIN and -ETIMEDOUT: some pages cannot be closed yet, see pc_text_close(); the next
 * change of a probe does so.
 */
int fi_keep_writable(bool keep);

/* --- Discovery -------------------------------------------------------------------------------- */

/*
 * fi_register_callback - have all known and all new probes told. -ENOSPC: there are eight; -EINVAL.
 * fi_unregister_callback - no more; a call in another thread may still be under way. -ENOENT.
 */
int fi_register_callback(fi_callback *callback, void *data);
int fi_unregister_callback(fi_callback *callback, void *data);

/* fi_probes - how many there are: ids are below that. Async-signal-safe. Works before fi_init(). */
uint32_t fi_probes(void);

/* fi_get - all that is known of a probe. -ENOENT: no such id. -EINVAL. */
int fi_get(uint32_t id, struct fi_probe *probe);

/*
 * fi_source - the source line of a probe, by debug information; the first look at an object may
 * take seconds. The name stays valid. -ENODATA: there is none, or no libdw.so.1. -ENOENT, -EINVAL.
 */
int fi_source(uint32_t id, const char **file, unsigned *line);

/*
 * fi_find, fi_find_from - the probes that a pattern names and that can be used, in order of ids.
 * @pattern: "FUNCTION", "OBJECT:FUNCTION" or "FILE:FUNCTION", globs, or "/REGEX/" (regex(7)) on
 *	     "OBJECT:FUNCTION": see fastinst(7)
 * @from:    the lowest id
 * @ids:     filled up to max
 *
 * Returns how many there are, which may be more than max. -EINVAL: NULL, or no regular expression.
 */
long fi_find(const char *pattern, uint32_t *ids, size_t max);
long fi_find_from(const char *pattern, uint32_t from, uint32_t *ids, size_t max);

/* --- On and off ------------------------------------------------------------------------------- */

/*
 * fi_activate - turn a probe on.
 * @function: called from now on; NULL: calls are only counted. Of a probe that is on already it is
 *	      changed by one atomic store.
 *
 * fi_deactivate - turn it off, if it is on. On return no thread starts to call the function, but
 * threads may still be inside, or on their way: see fi_synchronize().
 *
 * -ENOENT: no such id. -ENODEV: the object is gone. -ENOTSUP: refused, see fi_get(). -ENOSPC,
 * -ESTALE, -EBUSY: libfastinst(3). Else as pc_patch() and pc_patch_over_batch().
 */
int fi_activate(uint32_t id, fi_function *function);
int fi_deactivate(uint32_t id);

/*
 * fi_activate_batch, fi_deactivate_batch - the same for n probes, which share the waits. Each is
 * changed or not, independent of the others: 0 if all were, else the first error.
 */
int fi_activate_batch(const uint32_t *ids, size_t n, fi_function *function);
int fi_deactivate_batch(const uint32_t *ids, size_t n);

/*
 * fi_activate_how - fi_activate_batch() with flags. -EINVAL: other ones.
 *
 * FI_KEEPS_VECTORS: the caller promises that the function, and all it calls, changes no vector
 * register: it is called without saving them, which is most of what a call costs. A function that
 * breaks the promise destroys arguments and results of the program.
 *
 * The library sees for itself what a small function changes that calls nothing, and runs a copy of
 * the smallest in its place. So the code of a probe function must not change while it is one.
 */
#define FI_KEEPS_VECTORS 1u
int fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags);

/*
 * FI_FUNCTION - in front of a probe function: the compiler uses no vector register in it. So
 * FI_KEEPS_VECTORS is true of it if it is of all that it calls: none of libc, nor memcpy() and
 * memset(), which compilers call for large structs and loops.
 *
 *	FI_FUNCTION static void on_call(uint32_t id, void *site, ...)
 *
 * gcc 7, clang 10 or later; elsewhere it is empty, and FI_KEEPS_VECTORS_HERE 0 instead of the flag.
 */
#if defined(__x86_64__) && ((defined(__clang__) && __clang_major__ >= 10) ||                       \
			    (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 7))
#define FI_FUNCTION	      __attribute__((target("general-regs-only")))
#define FI_KEEPS_VECTORS_HERE FI_KEEPS_VECTORS
#else
#define FI_FUNCTION
#define FI_KEEPS_VECTORS_HERE 0u
#endif

/* fi_set_data - what the probe function gets as data; one atomic store. Async-signal-safe. */
int fi_set_data(uint32_t id, void *data);

/*
 * fi_synchronize - wait until every thread has left a probe function that was inside when this was
 * called, or on its way to a function that was replaced before. After fi_deactivate() and this, the
 * old function and its data may be freed.
 *
 * -EDEADLK: called in a probe function. -ETIMEDOUT: a thread was still inside after ten seconds.
 * -ENOTSUP: the kernel has no expedited membarrier(2). Then nothing may be freed.
 */
int fi_synchronize(void);

/* --- Counts ----------------------------------------------------------------------------------- */

/*
 * fi_count - how often the site was run while it was on, by all threads that there were. Exact once
 * the threads that ran the site have been waited for; else it may lag behind.
 *
 * fi_lost - how often a probe function was to be called and was not, as the thread was in one
 * already, or the kernel had no memory to count.
 *
 * 0 for an id that is none. In the child of fork() both start from 0. Not in signal handlers.
 */
uint64_t fi_count(uint32_t id);
uint64_t fi_lost(uint32_t id);

#ifdef __cplusplus
}
#endif
#endif
