/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One unit of DWARF, walked once: where its functions are, and the scopes that functions stand in.
 */
#ifndef XT_MERGE_DEBUG_TREE_H
#define XT_MERGE_DEBUG_TREE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/address_ranges.h"

#define DEBUG_DEPTH_MAX 200 /* entries inside entries; compilers stay far below */

/* The copy of .debug_ranges in an image of a .dwp unit starts with this many zero bytes: no list is at offset 0. */
#define DWP_RANGES_SHIFT 16

/* A namespace, type or function: what a qualified name is made of. */
struct debug_scope {
	Dwarf_Die die;
	uint32_t parent; /* place of the scope around it + 1, or 0 */
};

/* What a unit out of a package lacks. */
struct split_unit {
	bool is_split;	      /* it is one */
	uint64_t base;	      /* what ranges begin at: the low address of its skeleton */
	const uint8_t *lists; /* its .debug_rnglists */
	uint64_t list_bytes;
};

struct debug_tree {
	Dwarf_CU *unit;
	struct split_unit split;
	struct debug_scope *scopes; /* in the order of the unit */
	size_t scope_count;
	size_t scope_capacity;
	struct address_ranges functions; /* their code; what: the place of the scope */
	bool is_damaged;		 /* what was read so far is kept */
};

/* Walks the unit whose first entry is given. 0 or -ENOMEM; free it in any case. */
int debug_tree_read(struct debug_tree *tree, Dwarf_Die *unit_die, const struct split_unit *split);
void debug_tree_free(struct debug_tree *tree);

/* The place of an entry among the scopes + 1, or 0. */
uint32_t debug_tree_scope(const struct debug_tree *tree, const Dwarf_Die *die);

/* As dwarf_ranges(), of an entry of such a unit. */
ptrdiff_t debug_ranges(Dwarf_Die *die, const struct split_unit *split, ptrdiff_t at,
		       Dwarf_Addr *base, Dwarf_Addr *start, Dwarf_Addr *end);

/* Does the entry's code contain the address? */
bool debug_has_address(Dwarf_Die *die, const struct split_unit *split, uint64_t address);

/* Linkers leave the functions that they drop at address 0 or 1. */
static inline bool debug_is_code(Dwarf_Addr start, Dwarf_Addr end)
{
	return start > 1 && start < end;
}

/* A walk of one unit. Each step leads behind all that was visited, so that no damage makes it longer
 * than the unit. */
struct debug_walk {
	const char *reached;	/* the last entry visited; NULL: none */
	uint64_t *entries_left; /* that may be visited, over several walks; NULL: any number */
};

/*
 * The first entry inside die, or the one next to it, in *out. 0, 1 if there is none, -1 if the DWARF
 * is damaged.
 */
int debug_child(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out);
int debug_next(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out);

#endif
