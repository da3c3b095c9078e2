/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a DWARF unit. References in damaged DWARF may point anywhere, so the walk only goes
 * forward, and its depth is limited.
 */
#include "merge/symbolize/debug_tree.h"

#include <dwarf.h>

#include "base/memory.h"
#include "log/base/compare.h"

#define RANGES_MAX 65536 /* of one function */

enum kind {
	KIND_OTHER,	  /* contains no functions */
	KIND_TRANSPARENT, /* may contain functions, but is not part of their names */
	KIND_SCOPE,
	KIND_FUNCTION,
};

static enum kind kind_of(Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_type_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_lexical_block:
		return KIND_TRANSPARENT;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return KIND_SCOPE;
	case DW_TAG_subprogram:
		return KIND_FUNCTION;
	default:
		return KIND_OTHER;
	}
}

/* Entries are stored in walking order, so a step back is damage. */
static int visit(struct debug_walk *walk, int rc, const Dwarf_Die *before, const Dwarf_Die *die)
{
	if (rc)
		return rc < 0 ? -1 : 1;
	if (die->cu != before->cu || (char *)die->addr <= (char *)before->addr ||
	    (char *)die->addr <= walk->reached || (walk->entries_left && !*walk->entries_left))
		return -1;
	if (walk->entries_left)
		--*walk->entries_left;
	walk->reached = die->addr;
	return 0;
}

int debug_child(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Die before = *die;
	int rc = dwarf_child(&before, out);

	return visit(walk, rc, &before, out);
}

int debug_next(struct debug_walk *walk, Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Die before = *die;
	int rc = dwarf_siblingof(&before, out);

	return visit(walk, rc, &before, out);
}

#define LISTS_HEAD_BYTES 12 /* header of .debug_rnglists with 32-bit offsets */

/* Returns the offset of the list with this number, or -1. */
static ptrdiff_t list_offset(const struct split_unit *split, uint64_t number)
{
	uint32_t count, offset;

	if (split->list_bytes < LISTS_HEAD_BYTES)
		return -1;
	memcpy(&count, split->lists + LISTS_HEAD_BYTES - sizeof(count), sizeof(count));
	if (number >= count || count > (split->list_bytes - LISTS_HEAD_BYTES) / sizeof(offset))
		return -1;
	memcpy(&offset, split->lists + LISTS_HEAD_BYTES + number * sizeof(offset), sizeof(offset));
	return LISTS_HEAD_BYTES + (ptrdiff_t)offset;
}

/*
 * libdw takes the base of the ranges from the unit, which is wrong for a split unit. Start
 * the list here, with the base of the skeleton.
 */
ptrdiff_t debug_ranges(Dwarf_Die *die, const struct split_unit *split, ptrdiff_t at,
		       Dwarf_Addr *base, Dwarf_Addr *start, Dwarf_Addr *end)
{
	Dwarf_Attribute attribute;
	Dwarf_Word list;

	if (!at && split->is_split && dwarf_attr(die, DW_AT_ranges, &attribute)) {
		if (dwarf_formudata(&attribute, &list) < 0)
			return -1;
		at = dwarf_whatform(&attribute) == DW_FORM_rnglistx ? list_offset(split, list)
		     : list < INT32_MAX ? (ptrdiff_t)(list + DWP_RANGES_SHIFT)
					: -1;
		if (at < 0)
			return -1;
		*base = split->base;
	}
	return dwarf_ranges(die, at, base, start, end);
}

bool debug_has_address(Dwarf_Die *die, const struct split_unit *split, uint64_t address)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	for (int i = 0; i < RANGES_MAX; i++) {
		at = debug_ranges(die, split, at, &base, &start, &end);
		if (at <= 0)
			return false;
		if (address >= start && address < end)
			return true;
	}
	return false;
}

static void add_function(struct debug_tree *tree, Dwarf_Die *die, uint32_t scope)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	for (int i = 0; i < RANGES_MAX; i++) {
		at = debug_ranges(die, &tree->split, at, &base, &start, &end);
		if (at <= 0)
			break;
		if (debug_is_code(start, end))
			address_ranges_add(&tree->functions, start, end, scope);
	}
	tree->is_damaged |= at < 0;
}

/* Adds a scope or function. *scope becomes the scope of its children. */
static void add_entry(struct debug_tree *tree, Dwarf_Die *die, enum kind kind, uint32_t *scope)
{
	if (kind != KIND_SCOPE && kind != KIND_FUNCTION)
		return;
	xt_append(tree->scopes, tree->scope_count, tree->scope_capacity,
		  (struct debug_scope){*die, *scope});
	*scope = (uint32_t)tree->scope_count;
	if (kind == KIND_FUNCTION)
		add_function(tree, die, *scope - 1);
}

void debug_tree_read(struct debug_tree *tree, Dwarf_Die *unit_die, const struct split_unit *split)
{
	struct level {
		Dwarf_Die die;
		uint32_t scope; /* parent scope of the entry */
	} levels[DEBUG_DEPTH_MAX];
	struct debug_walk walk = {0};
	int depth = 1, rc;

	*tree = (struct debug_tree){.unit = unit_die->cu, .split = *split};
	levels[0] = (struct level){*unit_die, 0};
	while (depth) {
		struct level *level = &levels[depth - 1];
		enum kind kind = kind_of(&level->die);
		uint32_t inner = level->scope;

		add_entry(tree, &level->die, kind, &inner);
		rc = kind == KIND_OTHER ? 1 : debug_child(&walk, &level->die, &levels[depth].die);
		if (!rc && depth + 1 < DEBUG_DEPTH_MAX) {
			levels[depth++].scope = inner;
			continue;
		}
		tree->is_damaged |= rc <= 0;
		/* The root entry has no siblings. */
		for (; depth > 1; depth--) {
			rc = debug_next(&walk, &levels[depth - 1].die, &levels[depth - 1].die);
			tree->is_damaged |= rc < 0;
			if (!rc)
				break;
		}
		if (depth == 1)
			break;
	}
	address_ranges_sort(&tree->functions);
}

void debug_tree_free(struct debug_tree *tree)
{
	free(tree->scopes);
	free(tree->functions.list);
	*tree = (struct debug_tree){0};
}

uint32_t debug_tree_scope(const struct debug_tree *tree, const Dwarf_Die *die)
{
	size_t low = FIRST_NOT(i, 0, tree->scope_count,
			       (char *)tree->scopes[i].die.addr <= (char *)die->addr);

	return low && tree->scopes[low - 1].die.addr == die->addr ? (uint32_t)low : 0;
}
