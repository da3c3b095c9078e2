/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps addresses to inlined functions and lines.
 *
 * A unit has a set of address ranges and a line table. Its functions have ranges, and so have the
 * functions inlined into them, which also have a call site. A unit of split DWARF keeps its
 * functions in a separate file. Entries shared by several files may be in another file (dwz).
 * Without that file, no unit can be read. libdw would wait for a FIFO and map these files, so they
 * are opened here.
 */
#include "merge/symbolize/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/regular_file.h"
#include "merge/symbolize/debug_tree.h"

#define ORIGINS_MAX	16 /* length of a chain of entries that refer to each other */
#define UNIT_RANGES_MAX (1u << 20)
#define NAME_BYTES_MAX	4096 /* of a qualified name built here */
/*
 * Entries visited in search of inlined functions, over all addresses of a log. Undamaged files stay
 * far below.
 */
#define ENTRIES_MAX UINT64_C(200000000)

struct unit {
	Dwarf_Die die;
	Dwarf_Die code; /* root entry of the DWARF that has the functions */
	bool has_code;	/* code is set */
	struct split_unit split;
	struct dwp *dwo; /* the unit's own file; NULL: none, or the package has the unit */
};

struct debug_info {
	const struct elf_file *file;
	const char *path;
	Dwarf *dwarf;
	struct elf_file shared_file;
	Dwarf *shared;	 /* of shared_file; NULL: none */
	struct dwp *dwp; /* NULL: missing, or not needed yet */
	LIST(struct unit) units;
	struct address_ranges ranges; /* value: index of the unit */
	void *trees;		      /* by Dwarf_CU, for tsearch() */
	struct debug_place places[DEBUG_DEPTH_MAX];
	LIST(char *) texts; /* names built for the places */
	uint64_t entries_left;
	bool is_damaged;
	char *problem;
};

static void free_texts(struct debug_info *info)
{
	while (info->texts.count)
		free(info->texts.list[--info->texts.count]);
}

/* Damage takes precedence over a missing file: see debug_info_problem(). */
static void note_missing(struct debug_info *info, const char *file)
{
	if (!info->problem)
		info->problem = xt_asprintf("is split, and %s is missing or of another build",
					    file ? file : "a part");
}

/*
 * Returns whether all of the file's DWARF is available. Entries shared by several files may be in
 * another file (dwz), which must have the right build id. DWARF 5's .debug_sup is not supported.
 */
static bool has_shared_part(struct debug_info *info)
{
	const char *name;
	const void *build_id;
	ssize_t build_id_bytes = dwelf_dwarf_gnu_debugaltlink(info->dwarf, &name, &build_id);
	GElf_Shdr header;
	struct elf_file *shared = &info->shared_file;

	if (build_id_bytes <= 0 && elf_file_section_named(info->file, ".debug_sup", &header))
		info->problem = xt_strdup("needs a .debug_sup file, which is not supported");
	if (build_id_bytes <= 0)
		return !info->problem;
	debug_files_find_shared(info->file, name, build_id, (size_t)build_id_bytes, shared);
	if (elf_file_is_elf(shared) &&
	    elf_file_has_build_id(shared, build_id, (size_t)build_id_bytes))
		info->shared = dwarf_begin_elf(shared->elf, DWARF_C_READ, NULL);
	if (info->shared) {
		dwarf_setalt(info->dwarf, info->shared);
		dwarf_setalt(info->shared, info->shared); /* not a file that it may name */
		return true;
	}
	info->problem = xt_asprintf("needs %s, which is %s", name,
				    shared->elf ? "of another build" : "missing");
	return false;
}

static void add_unit(struct debug_info *info, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool is_new = true;

	for (size_t i = 0; i < UNIT_RANGES_MAX; i++) {
		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at <= 0)
			break;
		if (!debug_is_code(start, end))
			continue;
		if (is_new) {
			list_append(info->units, (struct unit){.die = *die});
			is_new = false;
		}
		address_ranges_add(&info->ranges, start, end, (uint32_t)info->units.count - 1);
	}
	info->is_damaged |= at < 0;
}

static void add_units(struct debug_info *info)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	int rc;

	while (!(rc = dwarf_get_units(info->dwarf, unit, &unit, NULL, &type, &die, NULL))) {
		if ((type == DW_UT_compile || type == DW_UT_skeleton) && die.addr)
			add_unit(info, &die);
	}
	info->is_damaged |= rc < 0;
	address_ranges_sort(&info->ranges);
}

/* Without it, libdw would exit and leave unfinished outputs behind. */
static _Noreturn void end_without_memory(void)
{
	xt_out_of_memory(0);
}

struct debug_info *debug_info_open(const struct elf_file *file, const char *path)
{
	struct debug_info *info = xt_calloc(1, sizeof(*info));

	info->entries_left = ENTRIES_MAX;
	info->file = file;
	info->path = path;
	info->shared_file = ELF_FILE_NONE;
	info->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (info->dwarf)
		dwarf_new_oom_handler(info->dwarf, end_without_memory);
	if (!info->dwarf)
		info->is_damaged = true;
	else if (has_shared_part(info))
		add_units(info);
	return info;
}

void debug_info_begin_log(struct debug_info *info)
{
	info->entries_left = ENTRIES_MAX;
}

static void free_tree(void *tree)
{
	debug_tree_free(tree);
	free(tree);
}

void debug_info_close(struct debug_info *info)
{
	if (!info)
		return;
	free_texts(info);
	free_all(info->texts.list, info->problem);
	tdestroy(info->trees, free_tree);
	free(info->ranges.list);
	for (size_t i = 0; i < info->units.count; i++)
		dwp_close(info->units.list[i].dwo);
	free(info->units.list);
	dwp_close(info->dwp);
	dwarf_end(info->dwarf);
	dwarf_end(info->shared);
	elf_file_close(&info->shared_file);
	free(info);
}

COMPARE_BY(compare_trees, struct debug_tree, UP(unit))

/* Returns the tree of the unit, and reads it on first use. */
static const struct debug_tree *tree_of(struct debug_info *info, Dwarf_Die *unit_die,
					const struct split_unit *split)
{
	struct debug_tree key = {.unit = unit_die->cu}, *tree;
	void **place = tsearch(&key, &info->trees, compare_trees);

	if (!place)
		xt_out_of_memory(0);
	if (*place != &key)
		return *place;
	tree = xt_calloc(1, sizeof(*tree));
	*place = tree;
	debug_tree_read(tree, unit_die, split);
	info->is_damaged |= tree->is_damaged;
	return tree;
}

static const char *text_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static bool find_in_package(struct debug_info *info, struct unit *unit, uint64_t id)
{
	struct stat status;
	char *path;

	if (!info->dwp) {
		path = xt_asprintf("%s.dwp", info->path);
		info->dwp = dwp_open(xt_regular_open(path, &status));
		free(path);
	}
	return info->dwp &&
	       dwp_unit(info->dwp, info->file, &unit->die, id, &unit->code, &unit->split);
}

/* Searches beside the debug file, then in the folder of the compiler. */
static bool find_in_dwo(struct debug_info *info, struct unit *unit, uint64_t id, const char *name)
{
	const char *folders[] = {".", text_of(&unit->die, DW_AT_comp_dir)};

	for (int i = 0; i < 2 && name && folders[i]; i++) {
		unit->dwo = dwp_open(elf_file_open_beside(info->file, folders[i], name));
		if (unit->dwo &&
		    dwp_unit(unit->dwo, info->file, &unit->die, id, &unit->code, &unit->split))
			return true;
		dwp_close(unit->dwo);
		unit->dwo = NULL;
	}
	return false;
}

/* Finds the DWARF that has the unit's functions. If it is missing, code.addr stays NULL. */
static void find_code(struct debug_info *info, struct unit *unit)
{
	const char *name;
	uint64_t id;
	uint8_t type;

	unit->has_code = true;
	unit->code = unit->die;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, NULL, &id, NULL, NULL) < 0 ||
	    type != DW_UT_skeleton)
		return;
	name = text_of(&unit->die, DW_AT_dwo_name);
	if (!name)
		name = text_of(&unit->die, DW_AT_GNU_dwo_name);
	if (find_in_dwo(info, unit, id, name) || find_in_package(info, unit, id))
		return;
	unit->code.addr = NULL;
	note_missing(info, name);
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) < 0 ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Follows an entry to the one it completes. Returns false at the end of the chain. */
static bool to_origin(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	return (dwarf_attr(die, DW_AT_abstract_origin, &attribute) ||
		dwarf_attr(die, DW_AT_specification, &attribute)) &&
	       dwarf_formref_die(&attribute, die);
}

/*
 * Writes the name of a scope and "::". The name may be at an entry that this one refers to. A type
 * without a name that contains an inlined function is a lambda, identified by its line and column.
 * Returns the length as snprintf() does.
 */
static int put_scope_name(Dwarf_Die die, char *out, size_t room)
{
	const char *name = NULL;
	uint32_t line = 0, column = 0;

	for (int i = 0; i < ORIGINS_MAX; i++) {
		name = text_of(&die, DW_AT_name);
		if (!line) {
			line = number_of(&die, DW_AT_decl_line);
			column = number_of(&die, DW_AT_decl_column);
		}
		if (name || !to_origin(&die))
			break;
	}
	if (!name && dwarf_tag(&die) == DW_TAG_namespace)
		name = "(anonymous namespace)";
	if (name)
		return snprintf(out, room, "%s::", name);
	if (!line)
		return snprintf(out, room, "{lambda}::");
	if (!column)
		return snprintf(out, room, "{lambda:%u}::", line);
	return snprintf(out, room, "{lambda:%u:%u}::", line, column);
}

/*
 * Returns the declaration of a scope (index + 1). A definition may be outside the scope it belongs
 * to.
 */
static uint32_t declared_scope(const struct debug_tree *tree, uint32_t scope)
{
	Dwarf_Die die = tree->scopes.list[scope - 1].die;
	uint32_t declared;

	for (int i = 0; i < ORIGINS_MAX && to_origin(&die); i++)
		;
	declared = debug_tree_scope(tree, &die);
	return declared ? declared : scope;
}

/* Writes "ns::type::" for the scope (index + 1) and its parents, as far as there is room. */
static size_t put_scopes(const struct debug_tree *tree, uint32_t scope, int depth, char *out,
			 size_t room)
{
	size_t length = 0;
	int written;

	if (!scope || depth == DEBUG_DEPTH_MAX)
		return 0;
	scope = declared_scope(tree, scope);
	length = put_scopes(tree, tree->scopes.list[scope - 1].parent, depth + 1, out, room);
	written = put_scope_name(tree->scopes.list[scope - 1].die, out + length, room - length);
	return written < 0 || (size_t)written >= room - length ? length : length + (size_t)written;
}

/* Prefixes the name with its scopes. Functions without a mangled name, such as lambdas, need it. */
static void qualify(struct debug_info *info, Dwarf_Die *die, const char *name,
		    const char **qualified_out)
{
	const struct debug_tree *tree;
	uint32_t scope, parent;
	Dwarf_Die unit_die;
	char *text;
	size_t length;

	*qualified_out = name;
	if (!dwarf_diecu(die, &unit_die, NULL, NULL))
		return;
	tree = tree_of(info, &unit_die, &(struct split_unit){0});
	scope = debug_tree_scope(tree, die); /* die is already the declaration */
	parent = scope ? tree->scopes.list[scope - 1].parent : 0;
	if (!parent)
		return;
	text = xt_malloc(NAME_BYTES_MAX + strlen(name) + 1);
	list_append(info->texts, text);
	length = put_scopes(tree, parent, 0, text, NAME_BYTES_MAX);
	strcpy(text + length, name);
	*qualified_out = text;
}

/* Sets the name of a function, NULL if it has none. */
static void function_name(struct debug_info *info, Dwarf_Die die, const char **name_out)
{
	const char *name = NULL;

	*name_out = NULL;
	for (int i = 0; i < ORIGINS_MAX; i++) {
		*name_out = text_of(&die, DW_AT_linkage_name);
		if (!*name_out)
			*name_out = text_of(&die, DW_AT_MIPS_linkage_name);
		if (*name_out)
			return;
		if (!name)
			name = text_of(&die, DW_AT_name);
		if (!to_origin(&die))
			break;
	}
	if (name)
		qualify(info, &die, name, name_out);
}

/*
 * Returns the path of a file that the compiler was given from its own folder. ".." is resolved as
 * text, so that units compiled in several folders agree.
 */
static const char *absolute_path(struct debug_info *info, struct unit *unit, const char *file)
{
	const char *folder = text_of(&unit->die, DW_AT_comp_dir);
	char *text, *up;

	if (!file || file[0] == '/' || !folder || folder[0] != '/' ||
	    strlen(folder) + strlen(file) >= PATH_MAX)
		return file;
	text = xt_asprintf("%s/%s", folder, file);
	list_append(info->texts, text);
	while ((up = strstr(text, "//")))
		memmove(up, up + 1, strlen(up + 1) + 1);
	while ((up = strstr(text, "/./")))
		memmove(up, up + strlen("/."), strlen(up + strlen("/.")) + 1);
	while ((up = strstr(text, "/../"))) {
		char *parent = up;

		while (parent > text && *--parent != '/')
			;
		memmove(parent, up + strlen("/.."), strlen(up + strlen("/..")) + 1);
	}
	return text;
}

/*
 * Sets where an inlined function was called. Some units of a package use the file table of their
 * skeleton.
 */
static void find_call(struct debug_info *info, struct unit *unit, Dwarf_Die *die,
		      struct debug_place *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Die unit_die;
	Dwarf_Files *files;
	Dwarf_Word file;
	size_t count;

	caller->line = number_of(die, DW_AT_call_line);
	if (!dwarf_attr(die, DW_AT_call_file, &attribute) || dwarf_formudata(&attribute, &file) ||
	    !dwarf_diecu(die, &unit_die, NULL, NULL))
		return;
	if (!dwarf_getsrcfiles(&unit_die, &files, &count) ||
	    (unit->split.is_split && !dwarf_getsrcfiles(&unit->die, &files, &count)))
		caller->file = absolute_path(info, unit, dwarf_filesrc(files, file, NULL, NULL));
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* Searches for functions inlined at an address. */
struct search {
	const struct split_unit *split;
	uint64_t address;
	struct debug_walk walk;
	Dwarf_Die inlined[DEBUG_DEPTH_MAX];
	size_t count;
	bool is_damaged;
};

/*
 * Appends the functions inlined at the address below die, outermost first. Returns whether there
 * are any. Blocks may lack ranges, so they are searched too.
 */
static bool find_inlined(struct search *search, Dwarf_Die *die, int depth)
{
	Dwarf_Die child;
	int rc = depth < DEBUG_DEPTH_MAX - 1 ? debug_child(&search->walk, die, &child) : -1;

	for (; !rc; rc = debug_next(&search->walk, &child, &child)) {
		int tag = dwarf_tag(&child);
		bool is_inlined = tag == DW_TAG_inlined_subroutine;
		bool is_block = tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
				tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
		bool is_here = (is_inlined || is_block) &&
			       debug_has_address(&child, search->split, search->address);

		if (is_inlined && is_here) {
			search->inlined[search->count++] = child;
			find_inlined(search, &child, depth + 1);
			return true;
		}
		if (is_block && (is_here || !has_code(&child)) &&
		    find_inlined(search, &child, depth + 1))
			return true;
	}
	search->is_damaged |= rc < 0;
	return false;
}

/*
 * Returns whether one part of the function starts where the symbol does. Each part has its own
 * symbol.
 */
static bool agrees(const struct debug_tree *tree, uint32_t scope, const struct symbol *symbol)
{
	const struct address_ranges *functions = &tree->functions;

	for (size_t i = 0; i < functions->count; i++)
		if (functions->list[i].value == scope && functions->list[i].start == symbol->start)
			return true;
	return false;
}

/*
 * Appends the inlined functions and the function itself after the innermost place, whose line is
 * set.
 */
static void put_places(struct debug_info *info, struct unit *unit, Dwarf_Die *function,
		       uint64_t address, size_t *count)
{
	struct search search = {.split = &unit->split,
				.address = address,
				.walk.entries_left = &info->entries_left};

	find_inlined(&search, function, 0);
	info->is_damaged |= search.is_damaged;
	for (size_t i = search.count; i--;) {
		function_name(info, search.inlined[i], &info->places[*count - 1].function);
		info->places[*count] = (struct debug_place){0};
		find_call(info, unit, &search.inlined[i], &info->places[(*count)++]);
	}
	function_name(info, *function, &info->places[*count - 1].function);
}

void debug_info_find(struct debug_info *info, uint64_t address, const struct symbol *symbol,
		     const struct debug_place **places_out, size_t *count_out)
{
	const struct address_range *range = address_ranges_find(&info->ranges, address),
				   *code = NULL;
	struct debug_place *first = &info->places[0];
	const struct debug_tree *tree;
	struct unit *unit;
	Dwarf_Line *line;
	size_t count = 1;
	int number;

	*places_out = info->places;
	*count_out = 0;
	free_texts(info);
	if (!range)
		return;
	unit = &info->units.list[range->value];
	if (!unit->has_code)
		find_code(info, unit);
	*first = (struct debug_place){0};
	line = dwarf_getsrc_die(&unit->die, address);
	if (line && !dwarf_lineno(line, &number) && number > 0) {
		first->line = (uint32_t)number;
		first->file = absolute_path(info, unit, dwarf_linesrc(line, NULL, NULL));
	}
	if (unit->code.addr) {
		tree = tree_of(info, &unit->code, &unit->split);
		code = address_ranges_find(&tree->functions, address);
		if (code && symbol && !agrees(tree, code->value, symbol))
			return;
		if (code)
			put_places(info, unit, &tree->scopes.list[code->value].die, address,
				   &count);
	}
	/* The symbol table has the better name for the function itself. */
	if (symbol) {
		info->places[count - 1].function = NULL;
	} else {
		info->places[count - 1].start = code ? code->start : address;
		info->places[count - 1].bytes = code ? code->end - code->start : 1;
	}
	*count_out = first->line || count > 1 || first->function ? count : 0;
}

const char *debug_info_problem(const struct debug_info *info)
{
	return info->is_damaged ? "is damaged" : info->problem;
}
