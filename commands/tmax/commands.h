/* SPDX-License-Identifier: MIT */
/*
 * The subcommands. Each takes its own name as argv[0] and returns an exit status. With what all of
 * them need.
 */
#ifndef COMMANDS_TMAX_COMMANDS_H
#define COMMANDS_TMAX_COMMANDS_H

#include <signal.h>
#include <stdio.h>

#include "base/command_line.h"
#include "base/exit_status.h"
#include "stress/placement/placement.h"

int cmd_info(int argc, char **argv);
int cmd_stress(int argc, char **argv);
int cmd_gaps(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_evidence(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_protocols(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_conform(int argc, char **argv);
int cmd_litmus(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_fleet(int argc, char **argv);

/* bench_print - the result of a benchmark as a table. */
struct bench_result;
void bench_print(struct bench_result *result, uint64_t tsc_khz, FILE *out);

/* Set to the signal's number by SIGINT, SIGTERM and SIGHUP. */
extern volatile sig_atomic_t interrupted;

#endif
