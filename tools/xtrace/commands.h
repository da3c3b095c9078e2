/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that are defined in this folder.
 *
 * The program has one thread. xtrace record never writes to stdout, which belongs to the traced
 * program.
 */
#ifndef XTRACE_COMMANDS_H
#define XTRACE_COMMANDS_H

#include "cli/command.h"

extern const struct command command_record, command_report, command_bench, command_attach,
	command_start, command_stop, command_snapshot, command_ps, command_serve, command_top,
	command_sample, command_env, command_doctor, command_version, command_ci;

#endif
