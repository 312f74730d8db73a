# SPDX-License-Identifier: MIT
# Calls that the compiler has put into functions, and lists nowhere.
libfastinst_internal_la_SOURCES += \
	probes/calls/calls.c \
	probes/calls/calls.h \
	probes/calls/starts.h
if HAVE_ZYDIS
libfastinst_internal_la_SOURCES += probes/calls/starts.c
noinst_LTLIBRARIES += libfastinst_decode.la
libfastinst_decode_la_SOURCES = \
	patchcore/check/decode.c \
	patchcore/check/decode.h
libfastinst_decode_la_LIBADD = $(ZYDIS_LIBS)
libfastinst_internal_la_LIBADD += libfastinst_decode.la
else
libfastinst_internal_la_SOURCES += probes/calls/no_starts.c
endif
