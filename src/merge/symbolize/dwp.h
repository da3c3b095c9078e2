/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packages of split DWARF: program.dwp, in which the .dwo files of a program are one.
 *
 * libdw reads .dwo files, and packages only since version 0.191. A package is the sections of all
 * .dwo files, one behind the other, with an index of where each unit's part is; so the package seen
 * through section headers of one unit's parts is that unit's .dwo file, and that is what is shown to
 * libdw here. What is not in .dwo files, as addresses, is copied from the program.
 */
#ifndef XT_MERGE_DWP_H
#define XT_MERGE_DWP_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "merge/symbolize/debug_tree.h"
#include "merge/symbolize/elf_file.h"

struct dwp;

/* The package of the module at path, or NULL if there is none that can be read. */
struct dwp *dwp_open(const char *path);

/* Accepts NULL. Ends all units. */
void dwp_close(struct dwp *dwp);

/*
 * The first entry of the unit with that id, whose skeleton is in the file. False if it is not in the
 * package, or cannot be read. What it lacks is put into
 * *apart. It lives as long as the package is open.
 */
bool dwp_unit(struct dwp *dwp, const struct elf_file *file, Dwarf_Die *skeleton, uint64_t id,
	      Dwarf_Die *unit_die, struct split_unit *split);

#endif
