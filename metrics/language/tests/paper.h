/* SPDX-License-Identifier: MIT */
/*
 * The examples of the paper on the language: figure 2, and those of its text, which are parts of a
 * declaration and have one around them here. Two differ from what is printed: behind the procedure
 * constraint of figure 2 a brace too many stands there, and the module constraint says
 * $constraint[1] for what is $constraint[0] by the paper's own footnote.
 */
#ifndef METRICS_LANGUAGE_TESTS_PAPER_H
#define METRICS_LANGUAGE_TESTS_PAPER_H

#define PAPER_CALLS                                                                                \
	"metric proc_calls {\n"                                                                    \
	"  base is counter {\n"                                                                    \
	"foreach i in $procedures\n"                                                               \
	"    append preInsn i.entry\n"                                                             \
	"    (* proc_calls++; *)\n"                                                                \
	"  }\n"                                                                                    \
	"}\n"

#define PAPER_STEPS                                                                                \
	"metric x {\n"                                                                             \
	"  base is processTimer {\n"                                                               \
	"    append preInsn $start.entry\n"                                                        \
	"(* if (readSymbol(\"timeSteps\")==300) {\n"                                               \
	"    startProcessTimer(x);\n"                                                              \
	"    } *)\n"                                                                               \
	"  }\n"                                                                                    \
	"}\n"

#define PAPER_LIST                                                                                 \
	"list pvm_msg_func is procedure {\n"                                                       \
	"   flavor pvm;\n"                                                                         \
	"   items { \"pvm_send\", \"pvm_recv\" };\n"                                               \
	"}\n"

#define PAPER_MODULE(number)                                                                       \
	"constraint module /Code is counter {\n"                                                   \
	"  foreach func in $constraint[" number "].funcs {\n"                                      \
	"    append preInsn func.entry\n"                                                          \
	"    (* module = 1; *)\n"                                                                  \
	"    prepend preInsn func.return\n"                                                        \
	"    (* module = 0; *)\n"                                                                  \
	"  }\n"                                                                                    \
	"}\n"

#define PAPER_PROCEDURE(brace)                                                                     \
	"constraint procedure /Code is counter {\n"                                                \
	"   append preInsn $constraint[0].entry\n"                                                 \
	"        (* procedure = 1; *)\n"                                                           \
	"   prepend preInsn $constraint[0].return\n"                                               \
	"        (* procedure = 0; *)\n"                                                           \
	"   }\n" brace

#define PAPER_METRIC                                                                               \
	"metric msgs {\n"                                                                          \
	"   name \"Messages\";\n"                                                                  \
	"   units opsPerSecond;\n"                                                                 \
	"   aggregateOperator sum;\n"                                                              \
	"   flavor { pvm };\n"                                                                     \
	"   // Constraints that can be applied\n"                                                  \
	"   constraint module;\n"                                                                  \
	"   constraint procedure;\n"                                                               \
	"   constraint msgTag;\n"                                                                  \
	"   // the base computation of the metric.\n"                                              \
	"   base is counter {\n"                                                                   \
	"    foreach func in pvm_msg_func\n"                                                       \
	"       append preInsn func.entry constrained\n"                                           \
	"          (* msgs++; *)\n"                                                                \
	"   }\n"                                                                                   \
	"}\n"

/* What figure 2 leaves out: the paper has no text of it. */
#define PAPER_TAG                                                                                  \
	"constraint msgTag /SyncObject/MsgTag is counter {\n"                                      \
	"  foreach func in pvm_msg_func {\n"                                                       \
	"    prepend preInsn func.entry\n"                                                         \
	"    (* msgTag = $arg[1] == $constraint[0]; *)\n"                                          \
	"  }\n"                                                                                    \
	"}\n"

#define PAPER_FIGURE_2 PAPER_LIST PAPER_MODULE("0") PAPER_PROCEDURE("") PAPER_TAG PAPER_METRIC

/* All else that the language has. */
#define ALL_ELSE                                                                                   \
	"resourceList files is file { items { \"a\", \"b\" }; library false; };\n"                 \
	"list threads is thread { items { \"main\" }; flavor { a, b }; library true; }\n"          \
	"list modules is module { items { \"x.c\" }; }\n"                                          \
	"constraint thread /Thread is default;\n"                                                  \
	"constraint whole /Code is replace wallTimer {\n"                                          \
	"  append postInsn $constraint[0].calls (* stopWallTimer(&t); *)\n"                        \
	"}\n"                                                                                      \
	"metric t { name \"T\"; units s; unitsType normalized; style SampledFunction;\n"           \
	"  mode developer; counter one, two; constraint whole; constraint thread;\n"               \
	"  base is threadTimer {\n"                                                                \
	"    foreach m in modules foreach f in m.funcs { if (f.name != \"main\" && !(1 > 2))\n"    \
	"      append preInsn f.entry (* /* both */ if ($arg[0] % 2 == 0x1 || one <= -2) one++;\n" \
	"        else { one -= 3 * (two + 1) / 2; two--; one += int($arg[6]); } *);\n"             \
	"    else prepend postInsn $exit.entry constrained (* one = readAddress(&two, 8); *) };\n" \
	"  } };\n"

#endif
