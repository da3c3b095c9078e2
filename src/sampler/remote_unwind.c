/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk and libunwind's accessors. Sampler thread only. A frame is added only if its return
 * address follows a call: unwind tables of hand-written code can be wrong.
 */
#include "sampler/remote_unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libunwind-x86_64.h>

#include "log/base/compare.h"
#include "log/base/monotonic.h"
#include "log/base/regular_file.h"
#include "log/base/unwind_stubs.h"
#include "sampler/frame_size.h"
#include "sampler/process_read.h"

static struct unwind_library lib;

/*
 * Two caches: entries by address, direct mapped, and pages of modules, in sets of two. Processes
 * that have the same file at the same address share entries. Pages are read from the file, or from
 * the process if the file is not open. Either fails if the file has shrunk.
 */
#define UNWIND_INFO_WORDS 32 /* libunwind's description of one function */
#define ENTRY_BITS	  13
#define SET_BITS	  10
#define PAGE_BYTES	  UINT64_C(4096)

/* The unwind information of an address, which libunwind looks up for each frame. */
struct unwind_entry {
	uint64_t image_id, bias, address; /* the key */
	bool has_info;
	bool has_frame_bytes;
	bool is_checked, is_after_call; /* whether a call ends with the byte at the address */
	uint32_t frame_bytes;		/* by frame_size_find() */
	unw_proc_info_t info;		/* its member unwind_info is not valid */
	uint64_t unwind_info[UNWIND_INFO_WORDS];
};

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

static size_t remote_unwind_place_of(uint64_t key, uint64_t image_id, unsigned bits)
{
	return (key ^ image_id << 40) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

/* The entry of an address, empty if it is new. Valid until the next call. */
static struct unwind_entry *unwind_tables_entry(const struct process_module *module,
						uint64_t address)
{
	uint64_t image_id = module->elf->id;
	struct unwind_entry *entry =
		&entries[remote_unwind_place_of(address, image_id, ENTRY_BITS)];

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

	start = larger(start, segment->p_vaddr);
	end = smaller(end, segment->p_vaddr + segment->p_filesz);
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
	struct page_set *set =
		&page_sets[remote_unwind_place_of(address / PAGE_BYTES, image_id, SET_BITS)];
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

/*
 * Reads read-only bytes of a module from its file, or from the process if the file is not readable.
 * False if a byte is in no read-only segment or cannot be read.
 */
static bool unwind_tables_read(const struct process_module *module, pid_t pid, void *to,
			       uint64_t from, size_t bytes)
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

/* The address of the module's .eh_frame_hdr; 0: none. */
static uint64_t unwind_tables_eh_frame_hdr(const struct process_module *module)
{
	for (size_t i = 0; i < module->elf->header_count; i++)
		if (module->elf->headers[i].p_type == PT_GNU_EH_FRAME)
			return module->bias + module->elf->headers[i].p_vaddr;
	return 0;
}

#define FUNCTION_BYTES_MAX  (256u << 10) /* larger ones get no size by their code */
#define REFRESH_INTERVAL_NS UINT64_C(100000000)
#define REFRESH_BURST	    10 /* that may follow each other at once */
#define CALL_BYTES_MAX	    8

static unw_addr_space_t space;

/* One walk. `registers` are those of the innermost frame, which outer frames may have kept. */
struct remote_walk {
	struct native_stack *out;
	struct process_modules *modules;
	pid_t pid;
	struct thread_registers registers;
	const struct stack_copy *stack;
	const struct process_module *tables; /* whose tables libunwind reads now */
	bool has_refreshed;
	bool is_searching; /* for a function in `tables` */
	bool lacks_rbp;	   /* this step needed RBP, which is unknown */
	uint64_t lookup_address, function_start, function_end; /* of this step */
	uint64_t unwind_info[UNWIND_INFO_WORDS];
	uint64_t popped[THREAD_REGISTERS]; /* where a register was saved before it was popped */
	uint64_t live_page;		   /* copy of a page of the process; 0: none */
	size_t live_bytes;
	uint8_t live[4096];
	unw_cursor_t cursor, before_step;
};
static struct remote_walk the_walk;
static uint8_t function_code[FUNCTION_BYTES_MAX];

static const struct process_module *find_module(struct remote_walk *walk, uint64_t address)
{
	const struct process_module *module = walk->tables;
	uint64_t *due_ns = &walk->modules->refresh_due_ns, now_ns;

	if (module && address >= module->start && address < module->end)
		return module;
	module = process_modules_find(walk->modules, address);
	if (module || walk->has_refreshed)
		return module;
	now_ns = monotonic_ns();
	if (*due_ns > now_ns)
		return NULL;
	/* A program that starts maps several libraries within a moment. */
	if (*due_ns + REFRESH_BURST * REFRESH_INTERVAL_NS < now_ns)
		*due_ns = now_ns - REFRESH_BURST * REFRESH_INTERVAL_NS;
	*due_ns += REFRESH_INTERVAL_NS;
	walk->has_refreshed = true;
	walk->tables = NULL;
	process_modules_refresh(walk->modules, walk->pid);
	return process_modules_find(walk->modules, address);
}

static bool read_live(struct remote_walk *walk, uint64_t address, uint64_t *value)
{
	uint64_t page = address & ~(PAGE_BYTES - 1);

	if (page != walk->live_page) {
		walk->live_page = page;
		walk->live_bytes =
			process_memory_read_some(walk->pid, walk->live, page, PAGE_BYTES);
	}
	if ((address & 7) || address - page + sizeof(*value) > walk->live_bytes)
		return false;
	memcpy(value, walk->live + (address - page), sizeof(*value));
	return true;
}

/*
 * In an epilogue, compilers leave the rule of a popped register: saved at an address that is now
 * below RSP, so not in the copy. The register has the value again.
 */
static bool read_popped(const struct remote_walk *walk, uint64_t address, uint64_t *value)
{
	for (size_t i = 0; i < THREAD_REGISTERS; i++)
		if (walk->popped[i] == address && (walk->registers.known & 1u << i)) {
			*value = walk->registers.value[i];
			return true;
		}
	return false;
}

static bool read_stack(struct remote_walk *walk, uint64_t address, uint64_t *value)
{
	const struct stack_copy *stack = walk->stack;

	if (stack && address >= stack->address && stack->byte_count >= sizeof(*value) &&
	    address - stack->address <= stack->byte_count - sizeof(*value)) {
		memcpy(value, stack->bytes + (address - stack->address), sizeof(*value));
		return true;
	}
	if (address < walk->registers.value[THREAD_RSP] && read_popped(walk, address, value))
		return true;
	return (!stack || stack->is_live) && read_live(walk, address, value);
}

/* The last word of a segment may be incomplete; libunwind reads whole words. */
static bool read_tables(struct remote_walk *walk, uint64_t address, uint64_t *value)
{
	size_t bytes = sizeof(*value);

	if (!walk->tables || address < walk->tables->start || address >= walk->tables->end)
		return false;
	*value = 0;
	while (bytes && !unwind_tables_read(walk->tables, walk->pid, value, address, bytes))
		bytes--;
	return bytes > 0;
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write,
		      void *arg)
{
	struct remote_walk *walk = arg;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (read_tables(walk, address, value) || read_stack(walk, address, value))
		return 0;
	/* Tables refer to constant pointers in a module's data, such as to personality routines. */
	if (walk->is_searching && read_live(walk, address, value))
		return 0;
	return -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	static const uint8_t numbers[] = {
		[UNW_X86_64_RIP] = THREAD_RIP + 1, [UNW_X86_64_RSP] = THREAD_RSP + 1,
		[UNW_X86_64_RBP] = THREAD_RBP + 1, [UNW_X86_64_RBX] = THREAD_RBX + 1,
		[UNW_X86_64_R12] = THREAD_R12 + 1, [UNW_X86_64_R13] = THREAD_R13 + 1,
		[UNW_X86_64_R14] = THREAD_R14 + 1, [UNW_X86_64_R15] = THREAD_R15 + 1,
	};
	struct remote_walk *walk = arg;
	int number;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg < 0 || (size_t)reg >= sizeof(numbers) || !numbers[reg])
		return -UNW_EBADREG;
	number = numbers[reg] - 1;
	if (!(walk->registers.known & 1u << number)) {
		walk->lacks_rbp |= number == THREAD_RBP;
		return -UNW_EBADREG;
	}
	*value = walk->registers.value[number];
	return 0;
}

/* Returns 0 or a negative error, of which -UNW_ENOINFO must not reach libunwind's step. */
static int search_tables(struct remote_walk *walk, unw_word_t ip, unw_proc_info_t *info,
			 int need_unwind_info)
{
	uint64_t address = unwind_tables_eh_frame_hdr(walk->tables);
	struct eh_frame_hdr hdr;
	unw_dyn_info_t table;
	int rc;

	if (!address || !unwind_tables_read(walk->tables, walk->pid, &hdr, address, sizeof(hdr)) ||
	    !unwind_describe_table(&table, &hdr, address))
		return -UNW_EBADFRAME;
	table.start_ip = walk->tables->start;
	table.end_ip = walk->tables->end;
	walk->is_searching = true;
	rc = lib.search_unwind_table(space, ip, &table, info, need_unwind_info, walk);
	walk->is_searching = false;
	return rc;
}

static void keep_info(struct unwind_entry *entry, const unw_proc_info_t *info)
{
	if (!info->unwind_info || info->unwind_info_size <= 0 ||
	    (size_t)info->unwind_info_size > sizeof(entry->unwind_info))
		return;
	entry->info = *info;
	memcpy(entry->unwind_info, info->unwind_info, (size_t)info->unwind_info_size);
	entry->has_info = true;
}

/*
 * Returns -UNW_EBADFRAME on errors, never -UNW_ENOINFO. On the latter, libunwind guesses by frame
 * pointers.
 */
static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *arg)
{
	struct remote_walk *walk = arg;
	struct unwind_entry *entry;

	(void)as;
	walk->tables = find_module(walk, ip);
	walk->function_start = walk->function_end = 0;
	if (!walk->tables)
		return -UNW_EBADFRAME;
	entry = unwind_tables_entry(walk->tables, ip);
	if (entry->has_info) {
		*info = entry->info;
		memcpy(walk->unwind_info, entry->unwind_info, sizeof(walk->unwind_info));
		/* libunwind uses a block of this format but does not free it. */
		info->format = UNW_INFO_FORMAT_REMOTE_TABLE;
		info->unwind_info = walk->unwind_info;
	} else {
		if (search_tables(walk, ip, info, need_unwind_info) < 0)
			return -UNW_EBADFRAME;
		if (need_unwind_info)
			keep_info(entry, info);
	}
	walk->lookup_address = ip;
	walk->function_start = info->start_ip;
	walk->function_end = info->end_ip;
	return 0;
}

static union unwind_access our_access = UNWIND_ACCESS(find_proc_info, access_mem, access_reg);

static bool read_code(struct remote_walk *walk, const struct process_module *module, void *to,
		      uint64_t from, size_t bytes)
{
	const Elf64_Phdr *segment;

	if (!module)
		return process_memory_read(walk->pid, to, from, bytes);
	segment = elf_image_segment(module->elf, from - module->bias, bytes);
	return segment && (segment->p_flags & PF_X) &&
	       unwind_tables_read(module, walk->pid, to, from, bytes);
}

/* A handler returns to `mov $15,%rax; syscall` (rt_sigreturn), which no call precedes. */
static bool is_signal_trampoline(struct remote_walk *walk, const struct process_module *module,
				 uint64_t address)
{
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
	uint8_t code[sizeof(trampoline)];

	return read_code(walk, module, code, address, sizeof(code)) &&
	       !memcmp(code, trampoline, sizeof(code));
}

static bool is_return_address(struct remote_walk *walk, uint64_t address)
{
	const struct process_module *module = find_module(walk, address - 1);
	struct unwind_entry *entry = NULL;
	uint8_t code[CALL_BYTES_MAX];
	bool is_after_call;

	if (module) {
		entry = unwind_tables_entry(module, address - 1);
		if (entry->is_checked)
			return entry->is_after_call;
	}
	is_after_call = address > sizeof(code) &&
			((read_code(walk, module, code, address - sizeof(code), sizeof(code)) &&
			  frame_size_ends_with_call(code, sizeof(code))) ||
			 is_signal_trampoline(walk, module, address));
	if (entry) {
		entry->is_checked = true;
		entry->is_after_call = is_after_call;
	}
	return is_after_call;
}

/* CFA - RSP of the frame that libunwind could not step over, by its function's code. */
static uint32_t find_frame_bytes(struct remote_walk *walk, uint64_t ip, enum xt_frame_kind kind)
{
	struct unwind_entry *entry;
	uint64_t bytes = walk->function_end - walk->function_start;

	if (!walk->tables || ip < walk->function_start || ip > walk->function_end ||
	    bytes > sizeof(function_code))
		return FRAME_SIZE_UNKNOWN;
	entry = unwind_tables_entry(walk->tables, walk->lookup_address);
	if (!entry->has_frame_bytes) {
		entry->has_frame_bytes = true;
		entry->frame_bytes = FRAME_SIZE_UNKNOWN;
		if (read_code(walk, walk->tables, function_code, walk->function_start, bytes))
			entry->frame_bytes =
				frame_size_find(function_code, bytes, ip - walk->function_start,
						kind == XT_FRAME_EXACT);
	}
	return entry->frame_bytes;
}

static bool find_rbp(struct remote_walk *walk, uint64_t ip, uint64_t sp, enum xt_frame_kind kind)
{
	uint64_t frame_bytes = find_frame_bytes(walk, ip, kind), return_address;

	if (frame_bytes == FRAME_SIZE_UNKNOWN ||
	    !read_stack(walk, sp + frame_bytes - 8, &return_address) ||
	    !is_return_address(walk, return_address))
		return false;
	walk->registers.value[THREAD_RBP] = sp + frame_bytes - 16;
	walk->registers.known |= 1u << THREAD_RBP;
	return true;
}

/*
 * If RBP is unknown at first, no frame so far has saved it. So it is still the register of the
 * innermost frame, and the step can be repeated with its value.
 */
static int step(struct remote_walk *walk, uint64_t ip, uint64_t sp, enum xt_frame_kind kind)
{
	bool is_rbp_known = walk->registers.known & 1u << THREAD_RBP;
	int rc;

	walk->lacks_rbp = false;
	if (!is_rbp_known)
		walk->before_step = walk->cursor;
	rc = lib.step(&walk->cursor);
	if (rc >= 0 || !walk->lacks_rbp || !find_rbp(walk, ip, sp, kind))
		return rc;
	walk->cursor = walk->before_step;
	return lib.step(&walk->cursor);
}

/* After the step out of the innermost frame. */
static void note_popped(struct remote_walk *walk)
{
	static const struct {
		enum thread_register number;
		int unwind_number;
	} saved[] = {
		{THREAD_RBP, UNW_X86_64_RBP}, {THREAD_RBX, UNW_X86_64_RBX},
		{THREAD_R12, UNW_X86_64_R12}, {THREAD_R13, UNW_X86_64_R13},
		{THREAD_R14, UNW_X86_64_R14}, {THREAD_R15, UNW_X86_64_R15},
	};
	unw_save_loc_t location;

	for (size_t i = 0; i < sizeof(saved) / sizeof(*saved); i++)
		if (!lib.get_save_loc(&walk->cursor, saved[i].unwind_number, &location) &&
		    location.type == UNW_SLT_MEMORY &&
		    location.u.addr < walk->registers.value[THREAD_RSP])
			walk->popped[saved[i].number] = location.u.addr;
}

static void add_frame(struct native_stack *out, uint64_t ip, uint64_t sp, enum xt_frame_kind kind)
{
	out->stack_pointers[out->frame_count] = sp;
	out->frames[out->frame_count++] =
		(ip & XT_FRAME_VALUE_MASK) | (uint64_t)kind << XT_FRAME_KIND_SHIFT;
}

/* Returns true if the walk reached the start of the thread. */
static bool walk_frames(struct remote_walk *walk)
{
	enum xt_frame_kind kind = XT_FRAME_EXACT;
	unw_word_t ip, sp, last_sp = 0;
	int rc = lib.init_remote(&walk->cursor, space, walk);

	while (rc >= 0 && walk->out->frame_count < XT_STACK_FRAMES_MAX) {
		if (lib.get_reg(&walk->cursor, UNW_X86_64_RIP, &ip) < 0 ||
		    lib.get_reg(&walk->cursor, UNW_X86_64_RSP, &sp) < 0)
			return false;
		if (!ip)
			return true;
		if (kind == XT_FRAME_RETURN && (sp <= last_sp || !is_return_address(walk, ip)))
			return false;
		last_sp = sp;
		add_frame(walk->out, ip, sp, kind);
		rc = step(walk, ip, sp, kind);
		if (!rc)
			return true;
		if (rc > 0 && walk->out->frame_count == 1)
			note_popped(walk);
		/* After a step, libunwind reports whether it passed a signal trampoline. */
		kind = lib.is_signal_frame(&walk->cursor) > 0 ? XT_FRAME_EXACT : XT_FRAME_RETURN;
	}
	return false;
}

void remote_unwind(struct native_stack *out, struct process_modules *modules, pid_t pid,
		   const struct thread_registers *registers, const struct stack_copy *stack)
{
	const uint32_t needed = 1u << THREAD_RIP | 1u << THREAD_RSP;
	struct remote_walk *walk = &the_walk;

	walk->out = out;
	walk->modules = modules;
	walk->pid = pid;
	walk->registers = *registers;
	walk->stack = stack;
	walk->tables = NULL;
	walk->has_refreshed = walk->is_searching = false;
	walk->live_page = walk->live_bytes = 0;
	memset(walk->popped, 0, sizeof(walk->popped));
	out->frame_count = out->flags = 0;
	if (space && (registers->known & needed) == needed && walk_frames(walk))
		return;
	out->flags = XT_STACK_TRUNCATED;
	if (!out->frame_count && (registers->known & 1u << THREAD_RIP))
		add_frame(out, registers->value[THREAD_RIP], registers->value[THREAD_RSP],
			  XT_FRAME_EXACT);
}

int remote_unwind_open(const char *library_dir, char *why, size_t why_bytes)
{
	int error = unwind_open(&lib, library_dir, why, why_bytes);

	if (!error) {
		entries = calloc((size_t)1 << ENTRY_BITS, sizeof(*entries));
		page_sets = calloc((size_t)1 << SET_BITS, sizeof(*page_sets));
		if (entries && page_sets)
			space = lib.create_addr_space(&our_access.accessors, __LITTLE_ENDIAN);
		if (!space) {
			snprintf(why, why_bytes, "out of memory");
			error = -ENOMEM;
		}
	}
	if (error)
		remote_unwind_close();
	else
		lib.set_caching_policy(space, UNW_CACHE_NONE);
	return error;
}

void remote_unwind_close(void)
{
	if (space)
		lib.destroy_addr_space(space);
	space = NULL;
	if (lib.handle)
		dlclose(lib.handle);
	lib.handle = NULL;
	free_all(entries, page_sets);
	entries = NULL;
	page_sets = NULL;
}
