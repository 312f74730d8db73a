/* SPDX-License-Identifier: MIT */
/*
 * A program with markers, branches and a call, for C and C++, in two source files: sample.c is
 * compiled once with MAIN and once without, into an object or a library.
 */
#ifndef PROBES_PROVIDERS_TESTS_MARKER_SAMPLE_H
#define PROBES_PROVIDERS_TESTS_MARKER_SAMPLE_H

#include <fastinst/branch.h>
#include <fastinst/marker.h>

#ifdef __cplusplus
extern "C" {
#endif
int other_file(int n);
#ifdef __cplusplus
}
#endif

static inline int shared_inline(int n)
{
	FI_MARKER(sample, inlined, n);
	if (fi_branch(sample, twice))
		n *= 2;
	return n;
}

#ifdef __cplusplus
template <typename T> T in_template(T n)
{
	FI_MARKER(sample, templated, n);
	if (fi_branch_true(sample, usual))
		return n;
	return -n;
}

/* With a destructor, which some compilers do not let a jump pass. */
struct guard {
	int &n;
	~guard()
	{
		n++;
	}
};
#endif

#endif
