/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages of split DWARF (program.dwp): the .dwo files of a program combined in one file.
 *
 * libdw reads packages only since version 0.191, but it reads .dwo files. A package concatenates
 * the sections of the .dwo files and has an index of each unit's parts. This module builds section
 * headers for the parts of one unit, so libdw sees a .dwo file. It copies what .dwo files lack,
 * such as addresses, from the program.
 */
#ifndef XT_MERGE_DWP_H
#define XT_MERGE_DWP_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/debug_tree.h"
#include "merge/symbolize/elf_file.h"

struct dwp;

/* Opens the package of the module at path. Returns NULL if there is none that can be read. */
struct dwp *dwp_open(const char *path);

/* Accepts NULL. Invalidates all units. */
void dwp_close(struct dwp *dwp);

/*
 * Finds the root entry of the unit with this id, whose skeleton is in file, and fills *split.
 * Returns false if the package does not have it or it cannot be read. *unit_die is valid until
 * dwp_close().
 */
bool dwp_unit(struct dwp *dwp, const struct elf_file *file, Dwarf_Die *skeleton, uint64_t id,
	      Dwarf_Die *unit_die, struct split_unit *split);

#endif
