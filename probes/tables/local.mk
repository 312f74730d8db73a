# SPDX-License-Identifier: MIT
# Where jumps by tables lead.
if HAVE_ZYDIS
noinst_LTLIBRARIES += libfastinst_tables.la
tables_la = libfastinst_tables.la
libfastinst_tables_la_SOURCES = \
	probes/tables/decode.h \
	probes/tables/tables.c \
	probes/tables/tables.h \
	probes/tables/tables_value.c \
	probes/tables/tables_value.h
endif
