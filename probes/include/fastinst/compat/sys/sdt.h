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

/* STAP_PROBEV(provider, name, up to 12 arguments) - a marker; the others are by their number. */
#define STAP_PROBEV(provider, ...)	    _SDT_MARK_V(FI_COUNT(__VA_ARGS__), provider, __VA_ARGS__)
#define _SDT_MARK_V(n, provider, name, ...) _SDT_MARK_N(provider, name, n, ##__VA_ARGS__)
#define _SDT_MARK_N(provider, name, n, ...) _SDT_MARK(provider, name, n, (__VA_ARGS__))

#define STAP_PROBE   STAP_PROBEV
#define STAP_PROBE1  STAP_PROBEV
#define STAP_PROBE2  STAP_PROBEV
#define STAP_PROBE3  STAP_PROBEV
#define STAP_PROBE4  STAP_PROBEV
#define STAP_PROBE5  STAP_PROBEV
#define STAP_PROBE6  STAP_PROBEV
#define STAP_PROBE7  STAP_PROBEV
#define STAP_PROBE8  STAP_PROBEV
#define STAP_PROBE9  STAP_PROBEV
#define STAP_PROBE10 STAP_PROBEV
#define STAP_PROBE11 STAP_PROBEV
#define STAP_PROBE12 STAP_PROBEV

#define DTRACE_PROBE   STAP_PROBEV
#define DTRACE_PROBE1  STAP_PROBEV
#define DTRACE_PROBE2  STAP_PROBEV
#define DTRACE_PROBE3  STAP_PROBEV
#define DTRACE_PROBE4  STAP_PROBEV
#define DTRACE_PROBE5  STAP_PROBEV
#define DTRACE_PROBE6  STAP_PROBEV
#define DTRACE_PROBE7  STAP_PROBEV
#define DTRACE_PROBE8  STAP_PROBEV
#define DTRACE_PROBE9  STAP_PROBEV
#define DTRACE_PROBE10 STAP_PROBEV
#define DTRACE_PROBE11 STAP_PROBEV
#define DTRACE_PROBE12 STAP_PROBEV

#endif
