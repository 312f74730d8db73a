/* SPDX-License-Identifier: MIT */
/*
 * The program fastinst: a function per command, each with argc and argv from its own name on. They
 * return the exit status.
 */
#ifndef PROBES_COMMAND_COMMAND_H
#define PROBES_COMMAND_COMMAND_H

#include "probes/launch/launch.h"

int run_command(int argc, char **argv);
int switch_command(int argc, char **argv); /* on, off */
int top_command(int argc, char **argv);
int list_command(int argc, char **argv);

#endif
