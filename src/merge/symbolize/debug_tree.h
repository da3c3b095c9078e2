/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One DWARF unit: the address ranges of its functions, and the scopes that contain them.
 */
#ifndef XT_MERGE_DEBUG_TREE_H
#define XT_MERGE_DEBUG_TREE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/address_ranges.h"

#define DEBUG_DEPTH_MAX 200 /* nesting of entries; compilers stay far below */

/*
 * Zero bytes before the copy of .debug_ranges in the image of a split unit. They keep every list at
 * an offset other than 0.
 */
#define DWP_RANGES_SHIFT 16

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
	struct debug_scope *scopes; /* in the order of the unit */
	size_t scope_count;
	size_t scope_capacity;
	struct address_ranges functions; /* their code; value: index of the scope */
	bool is_damaged;		 /* entries read before the damage are kept */
};

/* Reads the unit with this root entry. Free it with debug_tree_free(). */
void debug_tree_read(struct debug_tree *tree, Dwarf_Die *unit_die, const struct split_unit *split);
void debug_tree_free(struct debug_tree *tree);

/* Returns the index of the entry's scope + 1, or 0. */
uint32_t debug_tree_scope(const struct debug_tree *tree, const Dwarf_Die *die);

/* dwarf_ranges() that also works for split units. */
ptrdiff_t debug_ranges(Dwarf_Die *die, const struct split_unit *split, ptrdiff_t at,
		       Dwarf_Addr *base, Dwarf_Addr *start, Dwarf_Addr *end);

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

#endif
