# SPDX-License-Identifier: MIT
# The tests that tmax litmus finds by their names.
litmusdir = $(pkgdatadir)/litmus
dist_litmus_DATA = \
	conform/litmus/AB.lines.litmus \
	conform/litmus/AB.word+stores.litmus \
	conform/litmus/AB.word+swapped.litmus \
	conform/litmus/AB.word.litmus \
	conform/litmus/CoFF+back.litmus \
	conform/litmus/CoFF+iret.litmus \
	conform/litmus/CoFF.alias.litmus \
	conform/litmus/CoFF.colour.litmus \
	conform/litmus/CoFF.lines.litmus \
	conform/litmus/CoFF.litmus \
	conform/litmus/CoFF.pages.litmus \
	conform/litmus/CoFR+back.litmus \
	conform/litmus/CoFR.alias.litmus \
	conform/litmus/CoFR.litmus \
	conform/litmus/CoRF+back.litmus \
	conform/litmus/CoRF+iret.litmus \
	conform/litmus/CoRF.alias.litmus \
	conform/litmus/CoRF.colour.litmus \
	conform/litmus/CoRF.litmus \
	conform/litmus/IRIW.FF+same.litmus \
	conform/litmus/IRIW.FF.litmus \
	conform/litmus/ISA2.RRF+swapped.litmus \
	conform/litmus/ISA2.RRF.litmus \
	conform/litmus/LB.RF+swapped.litmus \
	conform/litmus/LB.RF.litmus \
	conform/litmus/MP.FF+branch+swapped.litmus \
	conform/litmus/MP.FF+branch.litmus \
	conform/litmus/MP.FF+iret.litmus \
	conform/litmus/MP.FF+lfence.litmus \
	conform/litmus/MP.FF+swapped.litmus \
	conform/litmus/MP.FF.line.litmus \
	conform/litmus/MP.FF.litmus \
	conform/litmus/MP.FF.pages.litmus \
	conform/litmus/MP.FR+lfence.litmus \
	conform/litmus/MP.FR+swapped.litmus \
	conform/litmus/MP.FR.litmus \
	conform/litmus/MP.RF+cpuid+swapped.litmus \
	conform/litmus/MP.RF+cpuid.litmus \
	conform/litmus/MP.RF+iret+swapped.litmus \
	conform/litmus/MP.RF+iret.litmus \
	conform/litmus/MP.RF+jump.litmus \
	conform/litmus/MP.RF+lfence.litmus \
	conform/litmus/MP.RF+locked.litmus \
	conform/litmus/MP.RF+mfence+swapped.litmus \
	conform/litmus/MP.RF+mfence.litmus \
	conform/litmus/MP.RF+serialize.litmus \
	conform/litmus/MP.RF+swapped.litmus \
	conform/litmus/MP.RF.alias+cpuid.litmus \
	conform/litmus/MP.RF.alias+iret+swapped.litmus \
	conform/litmus/MP.RF.alias+iret.litmus \
	conform/litmus/MP.RF.alias.litmus \
	conform/litmus/MP.RF.colour+cpuid.litmus \
	conform/litmus/MP.RF.colour+iret.litmus \
	conform/litmus/MP.RF.colour.litmus \
	conform/litmus/MP.RF.lines+cpuid.litmus \
	conform/litmus/MP.RF.lines+iret.litmus \
	conform/litmus/MP.RF.lines.litmus \
	conform/litmus/MP.RF.litmus \
	conform/litmus/MP.RF.pages+cpuid.litmus \
	conform/litmus/MP.RF.pages+iret.litmus \
	conform/litmus/MP.RF.pages+swapped.litmus \
	conform/litmus/MP.RF.pages.litmus \
	conform/litmus/S.F+swapped.litmus \
	conform/litmus/S.F.litmus \
	conform/litmus/SB.RF+mfence+cpuid.litmus \
	conform/litmus/SB.RF+mfence+iret.litmus \
	conform/litmus/SB.RF+mfence+po.litmus \
	conform/litmus/SB.RF+mfences.litmus \
	conform/litmus/SB.RF.litmus \
	conform/litmus/SM+cpuid.litmus \
	conform/litmus/SM+iret.litmus \
	conform/litmus/SM+jump.litmus \
	conform/litmus/SM+lfence.litmus \
	conform/litmus/SM+locked.litmus \
	conform/litmus/SM+mfence.litmus \
	conform/litmus/SM+nt.litmus \
	conform/litmus/SM+swapped.litmus \
	conform/litmus/SM.alias+cpuid.litmus \
	conform/litmus/SM.alias+jump.litmus \
	conform/litmus/SM.alias.litmus \
	conform/litmus/SM.call+swapped.litmus \
	conform/litmus/SM.call.litmus \
	conform/litmus/SM.colour+cpuid.litmus \
	conform/litmus/SM.colour+jump.litmus \
	conform/litmus/SM.colour.litmus \
	conform/litmus/SM.lines.litmus \
	conform/litmus/SM.litmus \
	conform/litmus/SM.pages.litmus \
	conform/litmus/Torn.16.litmus \
	conform/litmus/Torn.32.litmus \
	conform/litmus/Torn.8.litmus \
	conform/litmus/Torn.lines+locked.litmus \
	conform/litmus/Torn.lines.litmus \
	conform/litmus/Torn.pages.litmus \
	conform/litmus/Torn.word+stores.litmus \
	conform/litmus/Torn.word.litmus \
	conform/litmus/WRC.FRF+po.litmus \
	conform/litmus/WRC.FRF+swapped.litmus \
	conform/litmus/WRC.FRF.litmus \
	conform/litmus/WRC.RRF.litmus

check_PROGRAMS += conform/tests/fuzz_litmus
tests_compute += conform/tests/fuzz_litmus
CLEANFILES += conform/tests/fuzz_litmus.crash
conform_tests_fuzz_litmus_CPPFLAGS = $(fuzz_cppflags)
conform_tests_fuzz_litmus_CFLAGS = $(fuzz_cflags)
