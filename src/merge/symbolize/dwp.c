/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presents each unit of a package or .dwo file to libdw as a file of its own.
 *
 * The parts that are needed are copied to a file in memory, because the package may be truncated
 * meanwhile. An image is a private mapping of that file, followed by new section headers, their
 * names and the sections copied from the program.
 */
#include "merge/symbolize/dwp.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

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
	struct image *images;
	size_t image_count;
	size_t image_capacity;
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
	while (dwp->image_count) {
		struct image *image = &dwp->images[--dwp->image_count];

		dwarf_end(image->dwarf);
		elf_end(image->elf);
		munmap(image->memory, image->bytes);
	}
	free(dwp->images);
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
	xt_grow(&dwp->images, &dwp->image_capacity, dwp->image_count + 1, sizeof(*dwp->images));
	image = &dwp->images[dwp->image_count];
	if (!make_image(dwp, file, skeleton, parts, image))
		return false;
	dwp->image_count++;
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
