# SPDX-License-Identifier: MIT
noinst_LIBRARIES += libstress.a
libstress_a_SOURCES = \
	stress/cell/cell.c \
	stress/cell/cell.h \
	stress/cell/code.c \
	stress/cell/code.h \
	stress/cell/own.c \
	stress/cell/shared_code.c \
	stress/cell/toggle.c \
	stress/placement/place.c \
	stress/placement/placement.c \
	stress/placement/placement.h \
	stress/protocol/change.c \
	stress/protocol/library.c \
	stress/protocol/protocol.h \
	stress/protocol/read.c \
	stress/protocol/trap.c \
	stress/protocol/trap.h \
	stress/run/gap_judge.c \
	stress/run/provoker.c \
	stress/run/child.c \
	stress/run/gap.c \
	stress/run/gap.h \
	stress/run/isolate.c \
	stress/run/run.h \
	stress/witness/noise.c \
	stress/witness/tsc_offset.c \
	stress/witness/witness.c \
	stress/witness/witness.h

protocolsdir = $(pkgdatadir)/protocols
dist_protocols_DATA = \
	stress/protocols/atomic.protocol \
	stress/protocols/call-patch.protocol \
	stress/protocols/dynamorio.protocol \
	stress/protocols/front-first.protocol \
	stress/protocols/gvisor.protocol \
	stress/protocols/hotspot-call.protocol \
	stress/protocols/hotspot-replace.protocol \
	stress/protocols/javascriptcore.protocol \
	stress/protocols/liteinst2-line.protocol \
	stress/protocols/liteinst2.protocol \
	stress/protocols/membarrier.protocol \
	stress/protocols/naive.protocol \
	stress/protocols/no-int3.protocol \
	stress/protocols/openj9.protocol \
	stress/protocols/text-poke.protocol \
	stress/protocols/uftrace.protocol \
	stress/protocols/uprobes-nop10.protocol \
	stress/protocols/uprobes-nop5.protocol \
	stress/protocols/wait.protocol \
	stress/protocols/word-patch.protocol \
	stress/protocols/xray.protocol

check_PROGRAMS += stress/witness/tests/fuzz_proc_text stress/protocol/tests/fuzz_protocol
tests_compute += stress/witness/tests/fuzz_proc_text stress/protocol/tests/fuzz_protocol
tests_race += stress/protocol/tests/test_page.sh
EXTRA_DIST += \
	stress/protocol/tests/every-own.protocol \
	stress/protocol/tests/every.protocol \
	stress/protocol/tests/test_page.sh \
	stress/tests/fixtures/interrupts \
	stress/tests/fixtures/stat \
	stress/tests/provoker_place.h \
	stress/tests/synthetic.h
CLEANFILES += stress/witness/tests/fuzz_proc_text.crash stress/protocol/tests/fuzz_protocol.crash

stress_witness_tests_fuzz_proc_text_CPPFLAGS = $(fuzz_cppflags)
stress_witness_tests_fuzz_proc_text_CFLAGS = $(fuzz_cflags)
stress_protocol_tests_fuzz_protocol_CPPFLAGS = $(fuzz_cppflags)
stress_protocol_tests_fuzz_protocol_CFLAGS = $(fuzz_cflags)

if HAVE_CMOCKA
stress_tests = \
	stress/cell/tests/test_cell \
	stress/cell/tests/test_code \
	stress/protocol/tests/test_change \
	stress/protocol/tests/test_read \
	stress/run/tests/test_gap_judge \
	stress/run/tests/test_trace_log \
	stress/placement/tests/test_place \
	stress/placement/tests/test_placement
stress_waiting = \
	base/tests/test_data_file \
	base/tests/test_process \
	base/tests/test_spelling \
	base/tests/test_text_file \
	base/tests/test_words \
	stress/run/tests/test_isolate
stress_alone = \
	stress/run/tests/test_provoker \
	stress/run/tests/test_gap \
	stress/run/tests/test_oracle \
	stress/run/tests/test_protocol \
	stress/run/tests/test_provoker_cell \
	stress/witness/tests/test_noise \
	stress/witness/tests/test_witness
check_PROGRAMS += $(stress_tests) $(stress_waiting) $(stress_alone)
tests_race += $(stress_tests)
tests_wait += $(stress_waiting)
tests_alone += $(stress_alone)
not_asan += stress/run/tests/test_isolate stress/run/tests/test_gap stress/run/tests/test_oracle
endif

