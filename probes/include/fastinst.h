/* SPDX-License-Identifier: MIT */
/*
 * fastinst: probes that are turned on and off while the program runs.
 *
 * A probe is a place in the program where a function of the caller's can be attached: the entry of
 * a function that was compiled with -fpatchable-function-entry=5, a marker, and what other
 * providers find. A probe that is off is a NOP, or a short jump over dead bytes where it crosses an
 * 8-byte boundary. One that is on counts its calls, and calls the probe function if it has one.
 *
 *	fi_init();
 *	n = fi_find("parse_*", ids, 64);
 *	fi_activate_batch(ids, n, on_parse);
 *
 * Every function returns 0 (or a number) or a negative errno. All are thread-safe. None is
 * async-signal-safe unless its comment says so. Nothing in the library prints, exits or asserts.
 * Before fi_init() and after fi_fini() they return -ESHUTDOWN. A call that fails leaves the code of
 * the probe as it was.
 *
 * Code is changed by libpatchcore, and only by it: see patchcore/patchcore.h for what an executor
 * may run meanwhile. SIGTRAP belongs to that library while probes are in use. Paper: "Living on
 * the Edge", sections 4 and 7, figure 3.
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
 * Registers as they were at the site, to be read by probe functions. rsp is the stack pointer
 * before the site: at an entry it points at the return address. Entries and exits of provider "cyg"
 * are calls of a hook by the function: rdi is its address, rsi what it returns to, the others hold
 * nothing of use, and rsp is somewhere in its frame. At a marker rsp is not what it was:
 * fi_marker_regs() has it, fastinst/args.h.
 */
struct fi_regs {
	uint64_t r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
	uint64_t rsp;
};

/*
 * A probe function.
 * @id:	  the probe
 * @site: its address
 * @regs: valid until it returns; the registers in it are restored afterwards, changed or not
 * @data: what fi_set_data() gave the probe, or NULL
 *
 * Runs in the thread that came to the site, in a signal handler if that is where the site was run.
 * A site that is on needs 320 bytes of the stack that it is run on. A probe function has 64 KiB at
 * least: those of the thread's own stack, or where the thread is on another, as coroutines are, or
 * near the end of its own, those of one that the library keeps for the thread. On an alternate
 * signal stack (sigaltstack(2)) it stays there, and needs its own share and 4 KiB more. An array of
 * a function that is used as a stack is not told from the thread's own. Registers, vectors and
 * flags are preserved around it. It may call instrumented code, and fi_* functions that are
 * async-signal-safe: probes that it runs into count, but do not call their functions; such calls
 * are lost events. It must return: no longjmp(), no exception, nor a siglongjmp() out of a signal
 * handler that has interrupted it: the thread would count as inside for ever, and all its later
 * events as lost. errno is not preserved.
 */
typedef void fi_function(uint32_t id, void *site, const struct fi_regs *regs, void *data);

/*
 * fi_vectors - for probe functions that read floating point, in place of one that does not: the
 * lower halves of xmm0 to xmm7, as they were at the site. At the entry of a function these are its
 * arguments of double, by their number among those of floating point; one of float is in the lower
 * 32 bits of its register.
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
 * fi_init - start libpatchcore and find the probes of all objects that are loaded.
 *
 * Idempotent. While the process has one thread, runs of five 1-byte NOPs become one NOP each, which
 * writes to the pages that they are on; later that is done at the first activation, and takes an
 * interruption of all threads, one for all that are turned on together (pc_patch_over_batch()).
 *
 * Errors of pc_init(); -ENOMEM. That a probe or an object cannot be used is no error: see
 * FI_REFUSED.
 */
int fi_init(void);

/*
 * fi_fini - turn all probes off and wait until no thread is in a probe function.
 *
 * Counts stay readable through fi_count(). libpatchcore stays in use. -ETIMEDOUT, -ENOTSUP as
 * fi_synchronize(). -EAGAIN, -ETIMEDOUT: pages of code that were open for several changes cannot be
 * closed yet, see pc_text_close(); probes are off, and it is to be called again.
 */
int fi_fini(void);

/*
 * fi_stubs - where code is that this library has made, up to @max pieces of *size bytes each.
 * Returns how many there are.
 *
 * fi_unload - after fi_fini() and pc_fini(): give back all memory of probes and stubs, and let this
 * library and libpatchcore be unloaded with the last object that is linked with them. The caller
 * knows that no thread is in a stub or in their code, or has such an address on its stack: only one
 * that looks at all threads can (fastinst detach). -EBUSY: not closed.
 */
long fi_stubs(void *start[], size_t max, size_t *size);
int fi_unload(void);

/*
 * fi_scan - look for objects that came or went since the last look.
 *
 * For programs that call dlopen() and dlclose() themselves; under "fastinst run" it is done before
 * the constructors of an object run. Returns the number of probes that were found. The probes of an
 * object that is gone are FI_GONE. Where the same file is loaded again they have the ids and counts
 * that they had, and those that were on as it was unloaded are on, with their functions; callbacks
 * are not told of them again. An object that another thread is just loading is found by a later
 * look. Unloading waits for this function, and for those that turn probes on and off.
 */
int fi_scan(void);

/*
 * fi_own_thread - the calling thread is (1) or is no longer (-1) one that never runs code with
 * probes: a thread of the tool. Where all others are such, five 1-byte NOPs become one without a
 * look at them. 0 changes nothing, and returns how many such threads there are; in a child of
 * fork() none are. -EINVAL: another number. Works before fi_init().
 */
int fi_own_thread(int change);

/*
 * fi_take_entries - take functions as well that nothing was compiled into, of objects that the next
 * fi_init() or fi_scan() looks at, and later ones; what was taken stays.
 * @objects: a glob (fnmatch(3)), held against the last part of their paths; "": the program itself;
 *	     NULL: none
 *
 * Where it can be shown that their first instructions can be moved elsewhere; the others are
 * FI_REFUSED. Such a function begins with a jump while its probe is on; a backtrace from the few
 * instructions that were moved ends there. The C library is not among them, nor what this library
 * is in. FASTINST_ENTRIES in the environment of an agent does the same. Not while fi_init() runs.
 * -ENOMEM.
 */
int fi_take_entries(const char *objects);

/*
 * fi_set_progress - call a function before fi_init() and fi_scan() read an object, with the number
 * of objects that were read and the number of all. It must not call this library, but
 * fi_probes(). NULL: no function.
 */
typedef void fi_progress(unsigned done, unsigned of);
void fi_set_progress(fi_progress *progress);

/*
 * fi_keep_writable - from the next change of a probe on, leave the code of its object writable,
 * until it is called with false, or fi_fini(); where that is refused, with an alias to write to,
 * see pc_text_alias(). No further change needs system calls for pages. Linux puts no uprobe into
 * writable code. One that it puts on a probe that is on ends the process, as the kernel goes on
 * behind the instruction of the file.
 *
 * Any thread. -ESHUTDOWN before fi_init() and after fi_fini(), -EDEADLK in a callback; with false
 * also the errors of pc_text_close(): some pages cannot be closed yet; the next change of a probe
 * does so.
 */
int fi_keep_writable(bool keep);

/* --- Discovery -------------------------------------------------------------------------------- */

/*
 * fi_register_callback - have new probes told. Also tells of all that are known already, before it
 * returns. Up to eight callbacks. -ENOSPC; -EINVAL: callback is NULL.
 * fi_unregister_callback - no more. -ENOENT. A call in another thread may still be under way.
 */
int fi_register_callback(fi_callback *callback, void *data);
int fi_unregister_callback(fi_callback *callback, void *data);

/* fi_probes - how many there are: ids are below that. Async-signal-safe. Works before fi_init(). */
uint32_t fi_probes(void);

/* fi_get - all that is known of a probe. -ENOENT: no such id. -EINVAL. */
int fi_get(uint32_t id, struct fi_probe *probe);

/*
 * fi_source - the source line of a probe, by the debug information of its object, or what lies for
 * it below /usr/lib/debug.
 * @file: the name that the compiler noted; stays valid until the process ends
 *
 * The first look at an object reads much of its debug information: milliseconds to seconds, during
 * which threads wait that want to change probes. fi_get() tells file and line afterwards.
 *
 * -ENODATA: no debug information there, or no libdw.so.1 (elfutils), which is loaded by the first
 * call, or the library was built without its headers; in programs that are linked statically.
 * -ENOENT: no such id. -EINVAL: a pointer is NULL.
 */
int fi_source(uint32_t id, const char **file, unsigned *line);

/*
 * fi_find, fi_find_from - the set of probes that a pattern names, in order of their ids.
 * @pattern: "FUNCTION", "OBJECT:FUNCTION" or "FILE:FUNCTION", globs (fnmatch(3)); OBJECT is matched
 *	     against the last part of the path. FILE, which has a '/' or ends as sources do (.c,
 *	     .cc, .cpp, .cxx, .h, .rs), against what fi_source() tells: all of it, or its last
 *	     parts. Or "/REGEX/": an extended regular expression (regex(7)) on "OBJECT:FUNCTION".
 *	     FUNCTION of C++ and Rust is matched as the symbol is named, and as the source names it,
 *	     with parameters and without: "Foo::bar", "Foo::bar(int)". The colon in front of it is
 *	     one that stands alone.
 * @from:    the lowest id
 * @ids:     filled up to max
 *
 * Returns how many there are, which may be more than max. Probes that are gone or refused are not
 * among them. -EINVAL: pattern is NULL or no regular expression. -ENOMEM.
 */
long fi_find(const char *pattern, uint32_t *ids, size_t max);
long fi_find_from(const char *pattern, uint32_t from, uint32_t *ids, size_t max);

/* --- On and off ------------------------------------------------------------------------------- */

/*
 * fi_activate - turn a probe on.
 * @function: called from now on; NULL: calls are only counted
 *
 * Of a probe that is on already, the function is changed by one atomic store, and no code.
 * A thread that comes to the site sees the old function or the new one.
 *
 * fi_deactivate - turn it off. Off already: nothing to do, 0. On return no thread starts to call
 * the function, but threads may still be inside, or on their way: see fi_synchronize().
 *
 * -ENOENT: no such id. -ENODEV: the object is gone. -ENOTSUP: refused, see fi_get(). -ENOSPC: no
 * room for a trampoline within 2 GiB of the site. -ESTALE: the site holds other bytes than it
 * should. -EBUSY: the change takes an INT3, and a thread has SIGTRAP blocked and would die of it,
 * or SIGTRAP does not come to libpatchcore: see pc_check_signals(). Else as pc_patch() and
 * pc_patch_over_batch().
 */
int fi_activate(uint32_t id, fi_function *function);
int fi_deactivate(uint32_t id);

/*
 * fi_activate_batch, fi_deactivate_batch - the same for n probes, which share the waits.
 *
 * Each probe is changed or not, independent of the others. 0 if all were, else the first error; the
 * state of each is what fi_get() says. A probe may be named twice.
 */
int fi_activate_batch(const uint32_t *ids, size_t n, fi_function *function);
int fi_deactivate_batch(const uint32_t *ids, size_t n);

/*
 * fi_activate_how - fi_activate_batch() with flags.
 *
 * FI_KEEPS_VECTORS: the caller promises that the function, and all it calls, changes no vector
 * register: FI_FUNCTION has the compiler see to it for the function itself. It is then called
 * without saving them, which is most of what a call costs. A function that breaks the promise
 * destroys arguments and results of the program. -EINVAL: other flags.
 *
 * Of a small function that calls nothing the library sees for itself which it changes: its first
 * 128 bytes are decoded when it is given to a probe, so the code of a probe function must not
 * change while it is one. Where it changes none, this needs no promise; where it changes some of
 * xmm0 to xmm7 by SSE instructions, only these are saved.
 *
 * One that changes none, makes no use of its stack and has one RET at its end is not called but
 * copied, with what it needs in front and behind: a call and a return take as long as all the rest.
 * Breakpoints and probes in the function itself do not see those calls. 64 functions at most are
 * copied in the life of a process; others are called.
 */
#define FI_KEEPS_VECTORS 1u
int fi_activate_how(const uint32_t *ids, size_t n, fi_function *function, unsigned flags);

/*
 * FI_FUNCTION - in front of a probe function: the compiler uses no vector register in it, and
 * refuses floating point there. So FI_KEEPS_VECTORS is true of it if it is of all that it calls:
 * functions that are declared so, too, and none of libc, which use vectors to copy and compare. Of
 * structs of more than 64 bytes or so, and of loops that copy or clear, compilers make calls of
 * memcpy() and memset(): in such a function copy word by word, by a pointer to volatile.
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
 * fi_synchronize - wait until every thread that was inside a probe function when this was called,
 * or on its way there with a function that was replaced before, has left it.
 *
 * After fi_deactivate() and this, the old function and its data may be freed.
 * -EDEADLK: called in a probe function. -ETIMEDOUT: a thread was still inside after ten seconds;
 * nothing may be freed. -ENOTSUP: the kernel has no expedited membarrier(2).
 */
int fi_synchronize(void);

/* --- Counts ----------------------------------------------------------------------------------- */

/*
 * fi_count - how often the site was run while it was on, by all threads of the process, those that
 * have ended included. In the child of fork() it starts from 0. Exact once the threads that ran the
 * site have been waited for (pthread_join() or the like); else it may lag behind.
 *
 * fi_lost - of these, how often a probe function was to be called and was not: the thread was in a
 * probe function already. Calls that were not even counted, since the kernel had no memory for
 * a thread's counters, are in here too.
 *
 * 0 for an id that is none. Not in signal handlers.
 */
uint64_t fi_count(uint32_t id);
uint64_t fi_lost(uint32_t id);

#ifdef __cplusplus
}
#endif
#endif
