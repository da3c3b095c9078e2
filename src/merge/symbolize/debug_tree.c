/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a DWARF unit. References in damaged DWARF may point anywhere, so the walk only goes
 * forward, and its depth is limited.
 *
 * The parts of a package or .dwo file that are needed are copied to a file in memory, because it
 * may be truncated meanwhile. An image is a private mapping of that file, followed by new section
 * headers, their names and the sections copied from the program.
 */
#include "merge/symbolize/debug_tree.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "log/base/compare.h"

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end, uint32_t value)
{
	list_append(*ranges, (struct address_range){.start = start, .end = end, .value = value});
}

COMPARE_BY(compare, struct address_range, UP(start) DOWN(end) UP(value))

void address_ranges_sort(struct address_ranges *ranges)
{
	uint64_t max_end = 0;

	SORT(ranges->list, ranges->count, compare);
	for (size_t i = 0; i < ranges->count; i++) {
		max_end = larger(max_end, ranges->list[i].end);
		ranges->list[i].max_end = max_end;
	}
}

const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address)
{
	size_t low = FIRST_NOT(i, 0, ranges->count, ranges->list[i].start <= address);

	for (size_t i = low; i-- && ranges->list[i].max_end > address;)
		if (ranges->list[i].end > address)
			return &ranges->list[i];
	return NULL;
}

/*
 * Zero bytes before the copy of .debug_ranges in the image of a split unit. They keep every list at
 * an offset other than 0.
 */
#define DWP_RANGES_SHIFT 16

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

/* dwarf_ranges() that also works for split units. */
/*
 * libdw takes the base of the ranges from the unit, which is wrong for a split unit. Start
 * the list here, with the base of the skeleton.
 */
static ptrdiff_t debug_ranges(Dwarf_Die *die, const struct split_unit *split, ptrdiff_t at,
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
	list_append(tree->scopes, (struct debug_scope){*die, *scope});
	*scope = (uint32_t)tree->scopes.count;
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
	free_all(tree->scopes.list, tree->functions.list);
	*tree = (struct debug_tree){0};
}

uint32_t debug_tree_scope(const struct debug_tree *tree, const Dwarf_Die *die)
{
	size_t low = FIRST_NOT(i, 0, tree->scopes.count,
			       (char *)tree->scopes.list[i].die.addr <= (char *)die->addr);

	return low && tree->scopes.list[low - 1].die.addr == die->addr ? (uint32_t)low : 0;
}

#define PAGE_BYTES	       4096u
#define DECOMPRESSED_BYTES_MAX (UINT64_C(1) << 30) /* of a section */
#define COLUMNS_MAX	       16u
#define END_BYTES	       1024u /* names of the sections */

enum part { PART_INFO, PART_ABBREV, PART_LINE, PART_STR_OFFSETS, PART_RNGLISTS, PARTS };

/*
 * Sections that have a part for each unit. Each has a number in an index of version 2 (DWARF 4) and
 * of version 5, and a name in the image.
 */
static const struct {
	const char *name;
	const char *shown;
	uint32_t number[2];
} part_specs[PARTS] = {
	[PART_INFO] = {".debug_info.dwo", ".debug_info", {1, 1}},
	[PART_ABBREV] = {".debug_abbrev.dwo", ".debug_abbrev", {3, 3}},
	[PART_LINE] = {".debug_line.dwo", ".debug_line", {4, 4}},
	[PART_STR_OFFSETS] = {".debug_str_offsets.dwo", ".debug_str_offsets", {6, 6}},
	[PART_RNGLISTS] = {".debug_rnglists.dwo", ".debug_rnglists", {0, 8}},
};

struct file_range {
	uint64_t offset;
	uint64_t bytes;
};

struct image {
	void *memory;
	size_t bytes;
	Elf *elf;
	Dwarf *dwarf;
};

struct dwp {
	struct elf_file file;
	size_t file_bytes;
	int copy; /* in memory: the needed parts, where the file has them, then decompressed ones */
	size_t bytes; /* of the copy */
	struct file_range sections[PARTS];
	struct file_range strings;
	const Elf_Data *index; /* NULL: a .dwo file */
	LIST(struct image) images;
};

static uint32_t read_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Appends a decompressed section to the copy. A header that states too much is not believed. */
static struct file_range append_section(struct dwp *dwp, Elf_Scn *section)
{
	GElf_Chdr header;
	bool is_sane = gelf_getchdr(section, &header) && header.ch_size <= DECOMPRESSED_BYTES_MAX;
	Elf_Data *data =
		is_sane && elf_compress(section, 0, 0) >= 0 ? elf_getdata(section, NULL) : NULL;
	struct file_range range = {dwp->bytes, data ? data->d_size : 0};

	if (!data || pwrite(dwp->copy, data->d_buf, range.bytes, (off_t)range.offset) !=
			     (ssize_t)range.bytes)
		return (struct file_range){0, 0};
	dwp->bytes += range.bytes;
	return range;
}

/* Returns where the section is in the copy. Empty if it is missing. */
static struct file_range section_range(struct dwp *dwp, const char *name)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section_named(&dwp->file, name, &header);

	if (section && header.sh_flags & SHF_COMPRESSED)
		return append_section(dwp, section);
	if (!section || header.sh_offset > dwp->file_bytes ||
	    header.sh_size > dwp->file_bytes - header.sh_offset)
		return (struct file_range){0, 0};
	return (struct file_range){header.sh_offset, header.sh_size};
}

static bool copy_range(const struct dwp *dwp, struct file_range range)
{
	off_t at = (off_t)range.offset, end = (off_t)(range.offset + range.bytes);

	if (range.offset >= dwp->file_bytes) /* was decompressed */
		return true;
	if (lseek(dwp->copy, at, SEEK_SET) != at)
		return false;
	while (at < end)
		if (sendfile(dwp->copy, dwp->file.fd, &at, (size_t)(end - at)) <= 0)
			return false;
	return true;
}

struct dwp *dwp_open(int fd)
{
	struct dwp *dwp = xt_calloc(1, sizeof(*dwp));
	GElf_Shdr header;
	struct stat status;

	elf_file_adopt(&dwp->file, fd);
	dwp->copy = memfd_create("xtrace dwp", MFD_CLOEXEC);
	if (dwp->copy < 0 || !elf_file_is_elf(&dwp->file) || fstat(fd, &status) ||
	    gelf_getclass(dwp->file.elf) != ELFCLASS64 || ftruncate(dwp->copy, status.st_size) ||
	    (size_t)status.st_size < sizeof(Elf64_Ehdr))
		goto failed;
	dwp->bytes = dwp->file_bytes = (size_t)status.st_size;
	dwp->index =
		elf_getdata(elf_file_section_named(&dwp->file, ".debug_cu_index", &header), NULL);
	if (dwp->index && !dwp->index->d_buf)
		dwp->index = NULL;
	dwp->strings = section_range(dwp, ".debug_str.dwo");
	for (int p = 0; p < PARTS; p++)
		dwp->sections[p] = section_range(dwp, part_specs[p].name);
	if (copy_range(dwp, (struct file_range){0, sizeof(Elf64_Ehdr)}) &&
	    copy_range(dwp, dwp->strings))
		return dwp;
failed:
	dwp_close(dwp);
	return NULL;
}

void dwp_close(struct dwp *dwp)
{
	if (!dwp)
		return;
	while (dwp->images.count) {
		struct image *image = &dwp->images.list[--dwp->images.count];

		dwarf_end(image->dwarf);
		elf_end(image->elf);
		munmap(image->memory, image->bytes);
	}
	free(dwp->images.list);
	close(dwp->copy);
	elf_file_close(&dwp->file);
	free(dwp);
}

/*
 * Finds the unit's parts in the index. Its layout, with rows counted from 1:
 * - version, number of columns, units and slots
 * - for each slot the unit's id, then for each slot the row
 * - for each column the number of its section
 * - for each row the offsets, then for each row the sizes
 */
static bool find_parts(const struct dwp *dwp, uint64_t id, struct file_range *parts)
{
	const uint8_t *index = dwp->index ? dwp->index->d_buf : NULL, *rows, *table;
	uint64_t columns, units, slots, slot, needed, row = 0;
	bool is_v5;

	if (!index)
		return memcpy(parts, dwp->sections, sizeof(dwp->sections));
	if (dwp->index->d_size < 16)
		return false;
	is_v5 = (read_u32(index) & 0xffff) == 5;
	columns = read_u32(index + 4);
	units = read_u32(index + 8);
	slots = read_u32(index + 12);
	if ((!is_v5 && read_u32(index) != 2) || columns > COLUMNS_MAX || units > slots)
		return false;
	needed = 16 + slots * 12 + 4 * columns * (1 + 2 * units);
	if (needed > dwp->index->d_size)
		return false;
	rows = index + 16 + slots * 8;
	table = rows + slots * 4;
	for (slot = 0; slot < slots && !row; slot++)
		if (!memcmp(index + 16 + slot * 8, &id, sizeof(id)))
			row = read_u32(rows + slot * 4);
	if (!row || row > units)
		return false;
	for (uint64_t c = 0; c < columns; c++) {
		uint64_t offset = read_u32(table + 4 * (columns * row + c));
		uint64_t bytes = read_u32(table + 4 * (columns * (units + row) + c));

		for (int p = 0; p < PARTS; p++) {
			const struct file_range *section = &dwp->sections[p];

			if (read_u32(table + 4 * c) != part_specs[p].number[is_v5])
				continue;
			if (offset > section->bytes || bytes > section->bytes - offset)
				return false;
			parts[p] = (struct file_range){section->offset + offset, bytes};
		}
	}
	return parts[PART_INFO].bytes && parts[PART_ABBREV].bytes;
}

/* Returns the program's section for a unit, from the offset in this attribute of its skeleton. */
static struct file_range find_copied(const struct elf_file *file, const char *name,
				     Dwarf_Die *skeleton, unsigned attribute_name,
				     unsigned gnu_name, const uint8_t **data_out)
{
	Dwarf_Attribute attribute;
	Dwarf_Word base = 0;
	uint64_t bytes, length = UINT64_MAX;
	GElf_Shdr header;
	Elf_Data *data = elf_getdata(elf_file_section_named(file, name, &header), NULL);

	if (dwarf_attr(skeleton, attribute_name, &attribute) ||
	    dwarf_attr(skeleton, gnu_name, &attribute))
		dwarf_formudata(&attribute, &base);
	if (!data || !data->d_buf || base >= data->d_size)
		return (struct file_range){0, 0};
	*data_out = (const uint8_t *)data->d_buf + base;
	bytes = data->d_size - base;
	/* In DWARF 5, the length of a unit's addresses is before them, in a header of 8 bytes. */
	if (base >= 8 && dwarf_hasattr(skeleton, DW_AT_addr_base))
		length = read_u32(*data_out - 8) - 4;
	return (struct file_range){base, length < bytes ? length : bytes};
}

/* The footer after the package in an image, while it is built. */
struct image_footer {
	uint8_t *memory;
	uint64_t names; /* offset and size of the section names */
	uint64_t name_bytes;
	uint64_t copied; /* offset of the next copy */
	Elf64_Shdr headers[PARTS + 5];
	unsigned header_count;
};

static void add_section(struct image_footer *end, const char *name, uint32_t type,
			struct file_range where)
{
	strcpy((char *)end->memory + end->names + end->name_bytes, name);
	end->headers[end->header_count++] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)end->name_bytes,
		.sh_type = type,
		.sh_offset = where.offset,
		.sh_size = where.bytes,
		.sh_addralign = 1,
	};
	end->name_bytes += strlen(name) + 1;
}

static void add_copy(struct image_footer *end, const char *name, const uint8_t *data,
		     uint64_t bytes, uint64_t shift)
{
	if (!bytes)
		return;
	memcpy(end->memory + end->copied + shift, data, bytes);
	add_section(end, name, SHT_PROGBITS, (struct file_range){end->copied, bytes + shift});
	end->copied += bytes + shift;
}

static void put_footer(struct image_footer *end, uint64_t at)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)end->memory;

	add_section(end, ".shstrtab", SHT_STRTAB, (struct file_range){0, 0});
	end->headers[end->header_count - 1].sh_offset = end->names;
	end->headers[end->header_count - 1].sh_size = end->name_bytes;
	memcpy(end->memory + at, end->headers, end->header_count * sizeof(end->headers[0]));
	head->e_shoff = at;
	head->e_shnum = (Elf64_Half)end->header_count;
	head->e_shstrndx = (Elf64_Half)(end->header_count - 1);
	head->e_shentsize = sizeof(end->headers[0]);
	head->e_phnum = 0;
}

/* Maps the copy, writes the footer and opens the image. */
static bool make_image(struct dwp *dwp, const struct elf_file *file, Dwarf_Die *skeleton,
		       const struct file_range *parts, struct image *image)
{
	const uint8_t *addresses = NULL, *ranges = NULL;
	struct file_range addr_section = find_copied(file, ".debug_addr", skeleton, DW_AT_addr_base,
						     DW_AT_GNU_addr_base, &addresses);
	struct file_range ranges_section =
		find_copied(file, ".debug_ranges", skeleton, DW_AT_GNU_ranges_base,
			    DW_AT_GNU_ranges_base, &ranges);
	uint64_t at = (dwp->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	struct image_footer end = {.header_count = 1, .name_bytes = 1};

	image->bytes = at + END_BYTES + sizeof(end.headers) + addr_section.bytes +
		       ranges_section.bytes + DWP_RANGES_SHIFT;
	image->memory = mmap(NULL, image->bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image->memory == MAP_FAILED)
		return false;
	end.memory = image->memory;
	end.names = at + sizeof(end.headers);
	end.copied = end.names + END_BYTES;
	if (mmap(image->memory, dwp->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 dwp->copy, 0) == MAP_FAILED)
		goto failed;
	for (int p = 0; p < PARTS; p++) {
		if (!copy_range(dwp, parts[p]))
			goto failed;
		if (parts[p].bytes)
			add_section(&end, part_specs[p].shown, SHT_PROGBITS, parts[p]);
	}
	add_section(&end, ".debug_str", SHT_PROGBITS, dwp->strings);
	add_copy(&end, ".debug_addr", addresses, addr_section.bytes, 0);
	add_copy(&end, ".debug_ranges", ranges, ranges_section.bytes, DWP_RANGES_SHIFT);
	put_footer(&end, at);
	image->elf = elf_memory(image->memory, image->bytes);
	image->dwarf = image->elf ? dwarf_begin_elf(image->elf, DWARF_C_READ, NULL) : NULL;
	if (image->dwarf)
		return true;
	elf_end(image->elf);
failed:
	munmap(image->memory, image->bytes);
	return false;
}

bool dwp_unit(struct dwp *dwp, const struct elf_file *file, Dwarf_Die *skeleton, uint64_t id,
	      Dwarf_Die *unit_die, struct split_unit *split)
{
	const struct file_range *lists;
	Dwarf_Addr low;
	struct file_range parts[PARTS] = {{0, 0}};
	struct image *image;
	Dwarf_CU *unit = NULL;
	uint64_t unit_id;

	if (!find_parts(dwp, id, parts))
		return false;
	list_reserve(dwp->images, dwp->images.count + 1);
	image = &dwp->images.list[dwp->images.count];
	if (!make_image(dwp, file, skeleton, parts, image))
		return false;
	dwp->images.count++;
	lists = &parts[PART_RNGLISTS];
	*split = (struct split_unit){
		.is_split = true,
		.base = dwarf_lowpc(skeleton, &low) ? 0 : low,
		.lists = (const uint8_t *)image->memory + lists->offset,
		.list_bytes = lists->bytes,
	};
	do {
		if (dwarf_get_units(image->dwarf, unit, &unit, NULL, NULL, unit_die, NULL))
			return false;
	} while (!unit_die->addr ||
		 dwarf_cu_info(unit, NULL, NULL, NULL, NULL, &unit_id, NULL, NULL) ||
		 unit_id != id);
	/* A program has more .dwo files than descriptors. */
	if (!dwp->index) {
		close(dwp->copy);
		dwp->copy = -1;
		elf_file_close(&dwp->file);
	}
	return true;
}
