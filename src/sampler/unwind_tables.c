/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two caches: entries by address, direct mapped, and pages of modules, in sets of two. Sampler
 * thread only.
 *
 * Pages are read from the file, or from the process if the file is not open. Either fails if the
 * file has shrunk.
 */
#include "sampler/unwind_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/regular_file.h"
#include "sampler/elf_image.h"
#include "sampler/process_memory.h"

#define ENTRY_BITS 13
#define SET_BITS   10
#define PAGE_BYTES UINT64_C(4096)

struct cached_page {
	uint64_t image_id; /* 0: empty */
	uint64_t address;  /* ELF virtual address of the page */
	size_t first, end; /* [first, end): the bytes that the segment has */
	uint8_t bytes[PAGE_BYTES];
};

/* A walk reads the same pages each time, so that two of them in one place would always miss. */
struct page_set {
	unsigned last_used; /* 0 or 1 */
	struct cached_page pages[2];
};

static struct unwind_entry *entries;
static struct page_set *page_sets;

static size_t place_of(uint64_t key, uint64_t image_id, unsigned bits)
{
	return (key ^ image_id << 40) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

int unwind_tables_open(void)
{
	if (!entries)
		entries = calloc((size_t)1 << ENTRY_BITS, sizeof(*entries));
	if (!page_sets)
		page_sets = calloc((size_t)1 << SET_BITS, sizeof(*page_sets));
	return entries && page_sets ? 0 : -ENOMEM;
}

void unwind_tables_close(void)
{
	free(entries);
	free(page_sets);
	entries = NULL;
	page_sets = NULL;
}

struct unwind_entry *unwind_tables_entry(const struct process_module *module, uint64_t address)
{
	uint64_t image_id = module->elf->id;
	struct unwind_entry *entry = &entries[place_of(address, image_id, ENTRY_BITS)];

	if (entry->address != address || entry->image_id != image_id ||
	    entry->bias != module->bias) {
		entry->image_id = image_id;
		entry->bias = module->bias;
		entry->address = address;
		entry->has_info = entry->has_frame_bytes = entry->is_checked = false;
	}
	return entry;
}

static bool load_page(struct cached_page *page, const struct process_module *module, pid_t pid,
		      uint64_t address, const Elf64_Phdr *segment)
{
	uint64_t start = address & ~(PAGE_BYTES - 1), end = start + PAGE_BYTES;
	uint64_t offset;

	if (start < segment->p_vaddr)
		start = segment->p_vaddr;
	if (end > segment->p_vaddr + segment->p_filesz)
		end = segment->p_vaddr + segment->p_filesz;
	page->image_id = 0;
	page->address = address & ~(PAGE_BYTES - 1);
	page->first = start - page->address;
	page->end = end - page->address;
	offset = segment->p_offset + (start - segment->p_vaddr);
	if (module->elf->fd < 0
		    ? !process_memory_read(pid, page->bytes + page->first, module->bias + start,
					   end - start)
		    : offset > INT64_MAX || xt_read_at(module->elf->fd, page->bytes + page->first,
						       end - start, offset))
		return false;
	page->image_id = module->elf->id;
	return true;
}

static bool has_address(const struct cached_page *page, uint64_t image_id, uint64_t address)
{
	size_t at = address & (PAGE_BYTES - 1);

	/* Two segments can share a page. */
	return page->image_id == image_id && page->address == address - at && at >= page->first &&
	       at < page->end;
}

static const struct cached_page *page_at(const struct process_module *module, pid_t pid,
					 uint64_t address)
{
	uint64_t image_id = module->elf->id;
	struct page_set *set = &page_sets[place_of(address / PAGE_BYTES, image_id, SET_BITS)];
	const Elf64_Phdr *segment;

	if (has_address(&set->pages[set->last_used], image_id, address))
		return &set->pages[set->last_used];
	set->last_used ^= 1;
	if (has_address(&set->pages[set->last_used], image_id, address))
		return &set->pages[set->last_used];
	segment = elf_image_segment(module->elf, address, 1);
	if (!segment || (segment->p_flags & PF_W))
		return NULL;
	return load_page(&set->pages[set->last_used], module, pid, address, segment)
		       ? &set->pages[set->last_used]
		       : NULL;
}

bool unwind_tables_read(const struct process_module *module, pid_t pid, void *to, uint64_t from,
			size_t bytes)
{
	uint8_t *target = to;

	while (bytes) {
		const struct cached_page *page = page_at(module, pid, from - module->bias);
		size_t at = (from - module->bias) & (PAGE_BYTES - 1), part;

		if (!page)
			return false;
		part = page->end - at < bytes ? page->end - at : bytes;
		memcpy(target, page->bytes + at, part);
		target += part;
		from += part;
		bytes -= part;
	}
	return true;
}

uint64_t unwind_tables_eh_frame_hdr(const struct process_module *module)
{
	for (size_t i = 0; i < module->elf->header_count; i++)
		if (module->elf->headers[i].p_type == PT_GNU_EH_FRAME)
			return module->bias + module->elf->headers[i].p_vaddr;
	return 0;
}
