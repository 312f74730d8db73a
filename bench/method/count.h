/* SPDX-License-Identifier: MIT */
/*
 * Counting instructions, where time is too noisy to decide: by valgrind's callgrind.
 */
#ifndef BENCH_METHOD_COUNT_H
#define BENCH_METHOD_COUNT_H

#include <stdint.h>

#define COUNT_SECONDS 60 /* for one program: it runs some fifty times slower than by itself */

/*
 * count_instructions - run a program under callgrind, and tell how many instructions it ran in
 * user mode, from its first one in the dynamic linker to its last.
 * @argv: the program, as for execvp(3), NULL at the end. "/proc/self/exe" is this program.
 * @why:  BENCH_WHY bytes, one line when it fails
 *
 * No shell is involved, what the program prints is dropped, no file is left behind. Only the
 * program itself is counted, not what it starts. To count a part of it, run it twice, with more
 * of that part the second time, and take the difference. The caller waits asleep.
 *
 * 0 or:
 *   -ENOENT     there is no valgrind here
 *   -ETIMEDOUT  not done after COUNT_SECONDS, and killed with all that it started
 *   -EINTR      a signal came to the caller; killed likewise
 *   -ECHILD     the program failed: by status, by a signal, or valgrind could not run it
 *   -EPROTO     valgrind did not say how many
 *   or what pipe(2), fork(2), execve(2) or poll(2) failed with
 */
int count_instructions(char *const argv[], uint64_t *instructions, char *why);

/* count_instructions_within - the same with another limit. */
int count_instructions_within(char *const argv[], double seconds, uint64_t *instructions,
			      char *why);

#endif
