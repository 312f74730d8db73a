/* SPDX-License-Identifier: MIT */
/*
 * <sys/sdt.h> of fastinst: put its folder before the system's with -I, and what was written for
 * SystemTap's or DTrace's header (PostgreSQL --enable-dtrace, CPython --with-dtrace) has markers
 * that libfastinst can turn on, and that gdb, perf, bpftrace and SystemTap see as before. For C and
 * C++.
 */
#ifndef _SYS_SDT_H
#define _SYS_SDT_H 1

#include "../../marker.h"

/* Semaphores, as the headers have them that dtrace(1) makes: provider_name_semaphore. */
#ifdef _SDT_HAS_SEMAPHORES
#define _SDT_MARK(provider, name, n, operands)                                                     \
	do {                                                                                       \
		__asm__ __volatile__("" : : "m"(provider##_##name##_semaphore));                   \
		FI_MARK(FI_STRING(provider##_##name##_semaphore), provider, name, n, operands);    \
	} while (0)
#else
#define _SDT_MARK(provider, name, n, operands) FI_MARK("0", provider, name, n, operands)
#endif

#define STAP_PROBE(provider, name)		   _SDT_MARK(provider, name, 0, ())
#define STAP_PROBE1(provider, name, a)		   _SDT_MARK(provider, name, 1, (a))
#define STAP_PROBE2(provider, name, a, b)	   _SDT_MARK(provider, name, 2, (a, b))
#define STAP_PROBE3(provider, name, a, b, c)	   _SDT_MARK(provider, name, 3, (a, b, c))
#define STAP_PROBE4(provider, name, a, b, c, d)	   _SDT_MARK(provider, name, 4, (a, b, c, d))
#define STAP_PROBE5(provider, name, a, b, c, d, e) _SDT_MARK(provider, name, 5, (a, b, c, d, e))
#define STAP_PROBE6(provider, name, a, b, c, d, e, f)                                              \
	_SDT_MARK(provider, name, 6, (a, b, c, d, e, f))
#define STAP_PROBE7(provider, name, a, b, c, d, e, f, g)                                           \
	_SDT_MARK(provider, name, 7, (a, b, c, d, e, f, g))
#define STAP_PROBE8(provider, name, a, b, c, d, e, f, g, h)                                        \
	_SDT_MARK(provider, name, 8, (a, b, c, d, e, f, g, h))
#define STAP_PROBE9(provider, name, a, b, c, d, e, f, g, h, i)                                     \
	_SDT_MARK(provider, name, 9, (a, b, c, d, e, f, g, h, i))
#define STAP_PROBE10(provider, name, a, b, c, d, e, f, g, h, i, j)                                 \
	_SDT_MARK(provider, name, 10, (a, b, c, d, e, f, g, h, i, j))
#define STAP_PROBE11(provider, name, a, b, c, d, e, f, g, h, i, j, k)                              \
	_SDT_MARK(provider, name, 11, (a, b, c, d, e, f, g, h, i, j, k))
#define STAP_PROBE12(provider, name, a, b, c, d, e, f, g, h, i, j, k, l)                           \
	_SDT_MARK(provider, name, 12, (a, b, c, d, e, f, g, h, i, j, k, l))

#ifdef SDT_USE_VARIADIC
#define _SDT_MARK_N(provider, name, n, ...) _SDT_MARK(provider, name, n, (__VA_ARGS__))
#define STAP_PROBEV(provider, ...)	    _SDT_MARK_V(FI_COUNT(__VA_ARGS__), provider, __VA_ARGS__)
#define _SDT_MARK_V(n, provider, name, ...) _SDT_MARK_N(provider, name, n, ##__VA_ARGS__)
#endif

#define DTRACE_PROBE   STAP_PROBE
#define DTRACE_PROBE1  STAP_PROBE1
#define DTRACE_PROBE2  STAP_PROBE2
#define DTRACE_PROBE3  STAP_PROBE3
#define DTRACE_PROBE4  STAP_PROBE4
#define DTRACE_PROBE5  STAP_PROBE5
#define DTRACE_PROBE6  STAP_PROBE6
#define DTRACE_PROBE7  STAP_PROBE7
#define DTRACE_PROBE8  STAP_PROBE8
#define DTRACE_PROBE9  STAP_PROBE9
#define DTRACE_PROBE10 STAP_PROBE10
#define DTRACE_PROBE11 STAP_PROBE11
#define DTRACE_PROBE12 STAP_PROBE12

#endif
