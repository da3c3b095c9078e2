/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One DWARF unit: the address ranges of its functions, and the scopes that contain them. Ranges may
 * be nested; the innermost one around an address counts.
 *
 * Split DWARF: .dwo files, and packages (program.dwp) that combine the .dwo files of a program.
 * libdw reads packages only since version 0.191, and maps files that others can truncate. A package
 * concatenates the sections of the .dwo files and has an index of each unit's parts. dwp_unit()
 * builds section headers for the parts of one unit, so libdw sees a file in memory. It copies what
 * .dwo files lack, such as addresses, from the program.
 */
#ifndef XT_MERGE_DEBUG_TREE_H
#define XT_MERGE_DEBUG_TREE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "log/base/grow.h"
#include "merge/symbolize/debug_files.h"

struct dwp;

struct address_range {
	uint64_t start;
	uint64_t end;	  /* exclusive */
	uint64_t max_end; /* largest end of this and all earlier ranges, after sorting */
	uint32_t value;	  /* of the caller */
};

struct address_ranges {
	LIST(struct address_range); /* owner frees it */
};

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			uint32_t value);

/* Call once, after the last address_ranges_add(). */
void address_ranges_sort(struct address_ranges *ranges);

/* Returns the range around address that starts last, the smallest of several, or NULL. */
const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address);

#define DEBUG_DEPTH_MAX 200 /* nesting of entries; compilers stay far below */

/* A namespace, type or function: one component of a qualified name. */
struct debug_scope {
	Dwarf_Die die;
	uint32_t parent; /* index of the enclosing scope + 1, or 0 */
};

/* Data of the skeleton that a split unit needs. */
struct split_unit {
	bool is_split;	      /* the unit is from a package or a .dwo file */
	uint64_t base;	      /* base of its ranges: the low address of its skeleton */
	const uint8_t *lists; /* its .debug_rnglists */
	uint64_t list_bytes;
};

struct debug_tree {
	Dwarf_CU *unit;
	struct split_unit split;
	LIST(struct debug_scope) scopes; /* in the order of the unit */
	struct address_ranges functions; /* their code; value: index of the scope */
	bool is_damaged;		 /* entries read before the damage are kept */
};

/* Reads the unit with this root entry. Free it with debug_tree_free(). */
void debug_tree_read(struct debug_tree *tree, Dwarf_Die *unit_die, const struct split_unit *split);
void debug_tree_free(struct debug_tree *tree);

/* Returns the index of the entry's scope + 1, or 0. */
uint32_t debug_tree_scope(const struct debug_tree *tree, const Dwarf_Die *die);

/* Returns whether the entry's code contains the address. */
bool debug_has_address(Dwarf_Die *die, const struct split_unit *split, uint64_t address);

/* Linkers move functions that they drop to address 0 or 1. */
static inline bool debug_is_code(Dwarf_Addr start, Dwarf_Addr end)
{
	return start > 1 && start < end;
}

/* A walk over one unit. Each step goes forward, so damage cannot make it longer than the unit. */
struct debug_walk {
	const char *reached;	/* last entry visited, or NULL */
	uint64_t *entries_left; /* limit over several walks; NULL: none */
};

/*
 * Set *out to the first child of die, or to its next sibling. Return 0, 1 if there is none, or -1
 * if the DWARF is damaged.
 */
int debug_child(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out);
int debug_next(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out);

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
