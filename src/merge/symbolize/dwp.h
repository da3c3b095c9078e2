/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Split DWARF: .dwo files, and packages (program.dwp) that combine the .dwo files of a program.
 *
 * libdw reads packages only since version 0.191, and maps files that others can truncate. A package
 * concatenates the sections of the .dwo files and has an index of each unit's parts. This module
 * builds section headers for the parts of one unit, so libdw sees a file in memory. It copies what
 * .dwo files lack, such as addresses, from the program.
 */
#ifndef XT_MERGE_DWP_H
#define XT_MERGE_DWP_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/debug_tree.h"
#include "merge/symbolize/elf_file.h"

struct dwp;

/*
 * Opens a package or a .dwo file, and takes ownership of fd, which may be negative. Returns NULL if
 * it cannot be read.
 */
struct dwp *dwp_open(int fd);

/* Accepts NULL. Invalidates all units. */
void dwp_close(struct dwp *dwp);

/*
 * Finds the root entry of the unit with this id, whose skeleton is in file, and fills *split.
 * Returns false if the file does not have it or it cannot be read. *unit_die is valid until
 * dwp_close(). A .dwo file is closed once a unit is found. Then no other can be read.
 */
bool dwp_unit(struct dwp *dwp, const struct elf_file *file, Dwarf_Die *skeleton, uint64_t id,
	      Dwarf_Die *unit_die, struct split_unit *split);

#endif
