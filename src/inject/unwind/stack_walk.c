/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk, its accessors, and a cache of unwind information by return address. And what the tracer
 * knows of modules without libunwind.
 *
 * Runs in the program's threads on the cold path: no lock, no malloc. Several threads may walk at
 * once; they share only the cache. The writer thread reads module images, too.
 */
#include "inject/unwind/stack_walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/memory/memory.h"
#include "inject/runtime/loader.h"
#include "inject/unwind/guarded_words.h"
#include "log/base/compare.h"
#include "log/base/unwind_stubs.h"
#include "log/base/build_id.h"

/*
 * libunwind's names for this processor, and where struct caller_regs has its registers.
 *
 * UNWIND_SIGNAL_IS_FOR_NEXT: unw_is_signal_frame() reports whether the frame is a signal handler's
 * return code, rather than the frame that was interrupted.
 * UNWIND_READS_CODE: libunwind reads two words of code at the frame's address to find that out.
 * They are not inputs of the walk: code changes only when a library is loaded.
 * UNWIND_RETURN: the register with the address of a frame that made a call. On aarch64 it has no
 * value if libunwind guessed, because the frame had no unwind information.
 * UNWIND_HAS_SIGNATURES: return addresses may be signed; see signed_returns_find().
 */
#define SLOT(member) (offsetof(struct caller_regs, member) + 1) /* 0: not known */

#if defined(__x86_64__)
#include <libunwind-x86_64.h>

#define UNWIND_IP		  UNW_X86_64_RIP
#define UNWIND_SP		  UNW_X86_64_RSP
#define UNWIND_RETURN		  UNW_X86_64_RIP
#define UNWIND_SIGNAL_IS_FOR_NEXT false
#define UNWIND_READS_CODE	  false
#define UNWIND_HAS_SIGNATURES	  false

static const uint8_t register_slots[] = {
	[UNW_X86_64_RBX] = SLOT(rbx),	    [UNW_X86_64_RBP] = SLOT(rbp),
	[UNW_X86_64_R12] = SLOT(r12),	    [UNW_X86_64_R13] = SLOT(r13),
	[UNW_X86_64_R14] = SLOT(r14),	    [UNW_X86_64_R15] = SLOT(r15),
	[UNWIND_IP] = SLOT(return_address),
};
#else
#include <libunwind-aarch64.h>

#define UNWIND_IP		  UNW_AARCH64_PC
#define UNWIND_SP		  UNW_AARCH64_SP
#define UNWIND_RETURN		  UNW_AARCH64_X30
#define UNWIND_SIGNAL_IS_FOR_NEXT true
#define UNWIND_READS_CODE	  true
#define UNWIND_HAS_SIGNATURES	  true

static const uint8_t register_slots[] = {
	[UNW_AARCH64_X19] = SLOT(x19), [UNW_AARCH64_X20] = SLOT(x20),
	[UNW_AARCH64_X21] = SLOT(x21), [UNW_AARCH64_X22] = SLOT(x22),
	[UNW_AARCH64_X23] = SLOT(x23), [UNW_AARCH64_X24] = SLOT(x24),
	[UNW_AARCH64_X25] = SLOT(x25), [UNW_AARCH64_X26] = SLOT(x26),
	[UNW_AARCH64_X27] = SLOT(x27), [UNW_AARCH64_X28] = SLOT(x28),
	[UNW_AARCH64_X29] = SLOT(x29), [UNWIND_IP] = SLOT(return_address),
};
#endif

#undef SLOT

#define NEGATE_RA_STATE_WITH_PC 0x2c /* the signature also depends on the code's address */
#define NEGATE_RA_STATE		0x2d
#define CFA_OFFSET		0x80 /* in the upper two bits; the others of these have no operand */
#define CFA_UPPER_BITS		0xc0
#define CFA_LOWER_BITS		0x3f

/* The operands of an instruction, in this order (DWARF 5, 6.4.2). */
struct operands {
	bool is_known;
	uint8_t bytes;	 /* of fixed size */
	uint8_t numbers; /* LEB128 */
	bool has_block;	 /* a LEB128 length, then so many bytes */
};

#define CFA_NUMBERS(count)                                                                         \
	{                                                                                          \
		.is_known = true, .numbers = count                                                 \
	}
#define CFA_BYTES(count)                                                                           \
	{                                                                                          \
		.is_known = true, .bytes = count                                                   \
	}
#define CFA_BLOCK(numbers_before)                                                                  \
	{                                                                                          \
		.is_known = true, .numbers = numbers_before, .has_block = true                     \
	}

/* DW_CFA_set_loc (0x01) is missing: the size of its operand depends on the table. */
static const struct operands operands_of[CFA_LOWER_BITS + 1] = {
	[0x00] = CFA_NUMBERS(0), /* nop */
	[0x02] = CFA_BYTES(1),	 /* advance_loc1 */
	[0x03] = CFA_BYTES(2),	 /* advance_loc2 */
	[0x04] = CFA_BYTES(4),	 /* advance_loc4 */
	[0x05] = CFA_NUMBERS(2), /* offset_extended */
	[0x06] = CFA_NUMBERS(1), /* restore_extended */
	[0x07] = CFA_NUMBERS(1), /* undefined */
	[0x08] = CFA_NUMBERS(1), /* same_value */
	[0x09] = CFA_NUMBERS(2), /* register */
	[0x0a] = CFA_NUMBERS(0), /* remember_state */
	[0x0b] = CFA_NUMBERS(0), /* restore_state */
	[0x0c] = CFA_NUMBERS(2), /* def_cfa */
	[0x0d] = CFA_NUMBERS(1), /* def_cfa_register */
	[0x0e] = CFA_NUMBERS(1), /* def_cfa_offset */
	[0x0f] = CFA_BLOCK(0),	 /* def_cfa_expression */
	[0x10] = CFA_BLOCK(1),	 /* expression */
	[0x11] = CFA_NUMBERS(2), /* offset_extended_sf */
	[0x12] = CFA_NUMBERS(2), /* def_cfa_sf */
	[0x13] = CFA_NUMBERS(1), /* def_cfa_offset_sf */
	[0x14] = CFA_NUMBERS(2), /* val_offset */
	[0x15] = CFA_NUMBERS(2), /* val_offset_sf */
	[0x16] = CFA_BLOCK(1),	 /* val_expression */
	[NEGATE_RA_STATE_WITH_PC] = CFA_NUMBERS(0),
	[NEGATE_RA_STATE] = CFA_NUMBERS(0),
	[0x2e] = CFA_NUMBERS(1), /* GNU_args_size */
	[0x2f] = CFA_NUMBERS(2), /* GNU_negative_offset_extended */
};

/* Advances *at past a LEB128 number. Returns its lower 63 bits. */
static uint64_t read_number(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift < 63)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

/* Advances *at past the operands. False if they do not end before `end`. */
static bool skip_operands(const struct operands *operands, const uint8_t **at, const uint8_t *end)
{
	uint64_t bytes = operands->bytes;

	for (unsigned i = 0; i < operands->numbers; i++)
		read_number(at, end);
	if (operands->has_block)
		bytes += read_number(at, end);
	if (bytes > (uint64_t)(end - *at))
		return false;
	*at += bytes;
	return true;
}

size_t signed_returns_find(const uint8_t *instructions, size_t byte_count, uintptr_t *addresses_out,
			   size_t count_max)
{
	static const struct operands one_number = CFA_NUMBERS(1), none = CFA_NUMBERS(0);
	const uint8_t *at = instructions, *end = instructions + byte_count;
	size_t count = 0;

	while (at < end && count < count_max) {
		uint8_t code = *at++, upper = code & CFA_UPPER_BITS;
		const struct operands *operands = &operands_of[code & CFA_LOWER_BITS];

		if (upper)
			operands = upper == CFA_OFFSET ? &one_number : &none;
		if (code == NEGATE_RA_STATE || code == NEGATE_RA_STATE_WITH_PC)
			addresses_out[count++] = (uintptr_t)(at - 1);
		if (!operands->is_known || !skip_operands(operands, &at, end))
			break;
	}
	return count;
}

void signed_returns_hide(const uintptr_t *addresses, size_t count, uintptr_t address,
			 uint64_t *word)
{
	for (size_t i = 0; i < count; i++)
		if (addresses[i] - address < sizeof(*word))
			memset((uint8_t *)word + (addresses[i] - address), 0, 1);
}

bool stack_walk_without_find_object;

static struct unwind_library lib;
static unw_addr_space_t space;
static int (*find_object)(void *address,
			  struct dl_find_object *result); /* NULL: glibc is too old */

/*
 * Caches unwind information by return address, which makes walking over known code much cheaper.
 * After each step, libunwind frees the block that describes the function. The cache keeps copies.
 *
 * Direct mapped. A torn copy counts as a miss (guarded_words.h).
 */
#define CACHE_BITS 13
struct unwind_entry {
	uint64_t generation;
	unw_word_t ip;
	unw_proc_info_t info;
	uint64_t unwind_info[UNWIND_INFO_WORDS];
};
#define ENTRY_WORDS (sizeof(struct unwind_entry) / sizeof(uint64_t))
_Static_assert(sizeof(struct unwind_entry) % sizeof(uint64_t) == 0, "an entry is whole words");

struct cached_info {
	atomic_uint_fast64_t sequence;
	atomic_uint_fast64_t words[ENTRY_WORDS];
};
static struct cached_info *cache;

static struct cached_info *cache_place(unw_word_t ip)
{
	return &cache[(ip * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - CACHE_BITS)];
}

static bool cache_find(unw_word_t ip, uint64_t generation, unw_proc_info_t *info,
		       uint64_t *unwind_info)
{
	struct cached_info *place = cache_place(ip);
	struct unwind_entry entry;
	uint64_t words[ENTRY_WORDS];

	if (!guarded_words_read(&place->sequence, place->words, ENTRY_WORDS, words))
		return false;
	memcpy(&entry, words, sizeof(entry));
	if (entry.ip != ip || entry.generation != generation)
		return false;
	*info = entry.info;
	memcpy(unwind_info, entry.unwind_info, sizeof(entry.unwind_info));
	/* libunwind uses a block of this format but does not free it. */
	info->format = UNW_INFO_FORMAT_REMOTE_TABLE;
	info->unwind_info = unwind_info;
	return true;
}

static void cache_add(unw_word_t ip, uint64_t generation, const unw_proc_info_t *info)
{
	struct unwind_entry entry = {.generation = generation, .ip = ip, .info = *info};
	struct cached_info *place = cache_place(ip);
	uint64_t words[ENTRY_WORDS];

	if (!info->unwind_info || info->unwind_info_size <= 0 ||
	    (size_t)info->unwind_info_size > sizeof(entry.unwind_info))
		return;
	memcpy(entry.unwind_info, info->unwind_info, (size_t)info->unwind_info_size);
	memcpy(words, &entry, sizeof(words));
	guarded_words_write(&place->sequence, place->words, ENTRY_WORDS, words);
}

/*
 * rt_sigprocmask() copies the mask before it checks the operation. With an invalid operation, a bad
 * address gives EFAULT, a good one EINVAL, and nothing changes. It accepts NULL, for no mask.
 */
bool stack_walk_can_read(uintptr_t page)
{
	return page &&
	       (syscall(SYS_rt_sigprocmask, -1, page, NULL, (size_t)8) == 0 || errno != EFAULT);
}

static bool is_last_input(const struct stack_walk *walk, uintptr_t address, uint64_t value)
{
	uint32_t count = walk->input_count;

	return count && walk->inputs[count - 1].address == address &&
	       walk->inputs[count - 1].value == value;
}

static int note_input(struct stack_walk *walk, uintptr_t address, uint64_t value)
{
	/* libunwind reads a return address once for the step and once for its register. */
	if (is_last_input(walk, address, value))
		return 0;
	if (walk->input_count == WALK_INPUTS_MAX) {
		walk->inputs_complete = false;
		return 0;
	}
	walk->inputs[walk->input_count].address = address;
	walk->inputs[walk->input_count++].value = value;
	return 0;
}

struct module_search {
	uintptr_t address;
	struct walk_module *result;
};

static int look_at_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct module_search *search = arg;
	uintptr_t start = UINTPTR_MAX, end = 0, eh_frame_hdr = 0;

	(void)info_bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_GNU_EH_FRAME)
			eh_frame_hdr = at;
		if (segment->p_type != PT_LOAD)
			continue;
		start = at < start ? at : start;
		end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
	}
	if (search->address < start || search->address >= end)
		return 0;
	*search->result = (struct walk_module){
		.start = start & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1),
		.end = end,
		.bias = info->dlpi_addr,
		.eh_frame_hdr = eh_frame_hdr,
		.name = info->dlpi_name ? info->dlpi_name : "",
	};
	return 1;
}

/* For glibc before 2.35. Takes the loader's list lock, which is only held briefly. */
static bool find_by_iteration(uintptr_t address, struct walk_module *module)
{
	struct module_search search = {address, module};

	return dl_iterate_phdr(look_at_module, &search) != 0;
}

static bool find_module(uintptr_t address, struct walk_module *module)
{
	struct dl_find_object object;

	if (!find_object)
		return find_by_iteration(address, module);
	if (find_object((void *)address, &object))
		return false;
	*module = (struct walk_module){
		.start = (uintptr_t)object.dlfo_map_start,
		.end = (uintptr_t)object.dlfo_map_end,
		.bias = object.dlfo_link_map->l_addr,
		.eh_frame_hdr = (uintptr_t)object.dlfo_eh_frame,
		.name = object.dlfo_link_map->l_name ? object.dlfo_link_map->l_name : "",
	};
	return true;
}

/* Whether a word that spans at most two pages can be read. Keeps the page found last. */
static bool can_read_word(uintptr_t *readable_page, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);

	if (page == *readable_page && !(address & 7))
		return true;
	if (!stack_walk_can_read(page) || !stack_walk_can_read((address + 7) & ~UINT64_C(4095)))
		return false;
	*readable_page = page;
	return true;
}

static bool is_in_tables(const struct stack_walk *walk, uintptr_t address)
{
	return address >= walk->tables->start && address + sizeof(unw_word_t) <= walk->tables->end;
}

/* Whether libunwind compares the word with the code that ends a signal handler. */
static bool is_code(const struct stack_walk *walk, uintptr_t address)
{
	return UNWIND_READS_CODE && address - walk->ip < 2 * sizeof(unw_word_t);
}

static void hide_signed_returns(const struct stack_walk *walk, uintptr_t address, uint64_t *word)
{
	if (UNWIND_HAS_SIGNATURES)
		signed_returns_hide(walk->signed_returns, walk->signed_return_count, address, word);
}

static int access_mem(unw_addr_space_t as, unw_word_t address, unw_word_t *value, int write,
		      void *arg)
{
	struct stack_walk *walk = arg;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	/*
	 * A coroutine's stack may be in the data of the module whose tables are read: memory near
	 * the callback is stack. It may also be the tables, of a module mapped behind the stack.
	 */
	if (is_in_tables(walk, address) && address - (uintptr_t)walk->regs > WALK_STACK_BYTES) {
		memcpy(value, (const void *)address, sizeof(*value));
		hide_signed_returns(walk, address, value);
		return 0;
	}
	if (is_code(walk, address)) {
		if (!can_read_word(&walk->readable_code_page, address))
			return -UNW_EINVAL;
		memcpy(value, (const void *)address, sizeof(*value));
		return 0;
	}
	if (!can_read_word(&walk->readable_page, address))
		return -UNW_EINVAL;
	memcpy(value, (const void *)address, sizeof(*value));
	note_input(walk, address, *value);
	if (is_in_tables(walk, address))
		hide_signed_returns(walk, address, value);
	else /* The word may be a signed return address. */
		*value = machine_strip_signature(*value);
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	struct stack_walk *walk = arg;
	uintptr_t address;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg == UNWIND_SP) {
		*value = (uintptr_t)(walk->regs + 1);
		return 0;
	}
	if (reg < 0 || (size_t)reg >= sizeof(register_slots) || !register_slots[reg])
		return -UNW_EBADREG;
	address = (uintptr_t)walk->regs + register_slots[reg] - 1;
	memcpy(value, (const void *)address, sizeof(*value));
	return note_input(walk, address, *value);
}

/* The walk's index of the module at an address, 0 if there is none, -1 if the walk has too many. */
static int enter_module(struct stack_walk *walk, uintptr_t address)
{
	struct walk_module *module = &walk->modules[walk->module_count];

	for (uint32_t i = walk->module_count; i-- > 1;)
		if (address >= walk->modules[i].start && address < walk->modules[i].end)
			return (int)i;
	if (walk->module_count == WALK_MODULES_MAX)
		return -1;
	return find_module(address, module) ? (int)walk->module_count++ : 0;
}

/* The start of libunwind's description of a function, the same in versions 1.1 to 1.8. */
struct unwind_instructions {
	unw_word_t cie_start, cie_end, start, end;
};

static void find_signed_returns(struct stack_walk *walk, const unw_proc_info_t *info)
{
	struct unwind_instructions instructions;

	walk->signed_return_count = 0;
	if (!UNWIND_HAS_SIGNATURES || !info->unwind_info ||
	    (size_t)info->unwind_info_size < sizeof(instructions))
		return;
	memcpy(&instructions, info->unwind_info, sizeof(instructions));
	if (instructions.start < walk->tables->start || instructions.end > walk->tables->end ||
	    instructions.start > instructions.end)
		return;
	walk->signed_return_count = signed_returns_find(
		(const uint8_t *)instructions.start, instructions.end - instructions.start,
		walk->signed_returns, WALK_SIGNED_RETURNS_MAX);
}

/*
 * Returns -UNW_EBADFRAME on errors, never -UNW_ENOINFO. On the latter, libunwind guesses by frame
 * pointers. A stack marked as truncated is better than a guess.
 */
static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *info,
			  int need_unwind_info, void *arg)
{
	struct stack_walk *walk = arg;
	uint64_t generation = loader_generation();
	const struct eh_frame_hdr *hdr;
	int module = enter_module(walk, ip);
	unw_dyn_info_t table;
	int rc;

	if (module <= 0 || !walk->modules[module].eh_frame_hdr)
		return -UNW_EBADFRAME;
	walk->tables = &walk->modules[module];
	walk->signed_return_count = 0;
	if (cache_find(ip, generation, info, walk->unwind_info)) {
		find_signed_returns(walk, info);
		return 0;
	}
	hdr = (const struct eh_frame_hdr *)walk->tables->eh_frame_hdr;
	if (!unwind_describe_table(&table, hdr, walk->tables->eh_frame_hdr))
		return -UNW_EBADFRAME;
	table.start_ip = walk->tables->start;
	table.end_ip = walk->tables->end;
	rc = lib.search_unwind_table(as, ip, &table, info, need_unwind_info, arg);
	if (rc < 0)
		return -UNW_EBADFRAME;
	if (need_unwind_info) {
		find_signed_returns(walk, info);
		cache_add(ip, generation, info);
	}
	return 0;
}

static union unwind_access our_access = UNWIND_ACCESS(find_proc_info, access_mem, access_reg);
_Static_assert(sizeof(unw_cursor_t) <= sizeof(((struct stack_walk *)0)->cursor),
	       "a cursor fits into a walk");

static bool add_frame(struct stack_walk *walk, uint64_t ip, uint64_t sp, enum xt_frame_kind kind)
{
	uint64_t frame = ip | (uint64_t)kind << XT_FRAME_KIND_SHIFT;
	int module = enter_module(walk, ip - (kind == XT_FRAME_RETURN));

	if (module < 0)
		return false;
	walk->frame_modules[walk->frame_count] = (uint16_t)module;
	walk->stack_pointers[walk->frame_count] = sp;
	walk->frames[walk->frame_count++] = frame;
	walk->frames_hash = (walk->frames_hash ^ frame) * UINT64_C(0x9e3779b97f4a7c15);
	walk->frames_hash ^= walk->frames_hash >> 32;
	return true;
}

/* An interrupted function may have no frame of its own, so that its caller has the same pointer. */
static bool is_outside(unw_word_t sp, unw_word_t last_sp, enum xt_frame_kind last_kind)
{
	return sp > last_sp || (sp == last_sp && last_kind == XT_FRAME_EXACT);
}

/*
 * Returns as unw_step() does, and the kind of the next frame. A frame that a signal interrupted is
 * exact, and may be on another stack than its handler.
 */
static int step(struct stack_walk *walk, unw_word_t ip, enum xt_frame_kind *kind_out)
{
	unw_cursor_t *cursor = (unw_cursor_t *)walk->cursor;
	bool is_signal;
	int rc;

	walk->ip = ip;
	is_signal = UNWIND_SIGNAL_IS_FOR_NEXT && lib.is_signal_frame(cursor) > 0;
	rc = lib.step(cursor);
	if (!UNWIND_SIGNAL_IS_FOR_NEXT)
		is_signal = lib.is_signal_frame(cursor) > 0;
	*kind_out = is_signal ? XT_FRAME_EXACT : XT_FRAME_RETURN;
	return rc;
}

static void walk_frames(struct stack_walk *walk)
{
	unw_cursor_t *cursor = (unw_cursor_t *)walk->cursor;
	enum xt_frame_kind kind = XT_FRAME_RETURN, last_kind = XT_FRAME_RETURN;
	unw_word_t ip, sp, last_sp = 0;
	int rc = lib.init_remote(cursor, space, walk), ip_register = UNWIND_IP;

	if (rc < 0) {
		add_frame(walk, walk->regs->return_address, (uintptr_t)(walk->regs + 1),
			  XT_FRAME_RETURN);
		walk->flags |= XT_STACK_TRUNCATED;
		walk->inputs_complete = false;
		return;
	}
	do {
		if (walk->frame_count == XT_STACK_FRAMES_MAX ||
		    lib.get_reg(cursor, ip_register, &ip) < 0 ||
		    lib.get_reg(cursor, UNWIND_SP, &sp) < 0 ||
		    (kind == XT_FRAME_RETURN && !is_outside(sp, last_sp, last_kind))) {
			rc = -1;
			break;
		}
		if (!ip)
			break;
		last_sp = sp;
		if (sp - (uintptr_t)walk->regs > WALK_STACK_BYTES)
			walk->inputs_complete = false;
		if (!add_frame(walk, ip & XT_FRAME_VALUE_MASK, sp, kind)) {
			rc = -1;
			break;
		}
		last_kind = kind;
		rc = step(walk, ip, &kind);
		ip_register = kind == XT_FRAME_EXACT ? UNWIND_IP : UNWIND_RETURN;
	} while (rc > 0);
	if (rc < 0)
		walk->flags |= XT_STACK_TRUNCATED;
}

void stack_walk(struct stack_walk *walk, const struct caller_regs *regs)
{
	int saved_errno = errno, cancelling;

	/*
	 * libunwind makes system calls that are cancellation points; pthread_cancel() would end the
	 * thread in a callback.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	walk->regs = regs;
	walk->frame_count = walk->flags = walk->input_count = 0;
	walk->frames_hash = 0;
	walk->inputs_complete = true;
	walk->module_count = 1;
	walk->modules[0] = (struct walk_module){0};
	walk->tables = &walk->modules[0];
	walk->readable_page = walk->readable_code_page = 0;
	walk->ip = 0;
	walk->signed_return_count = 0;
	walk_frames(walk);
	pthread_setcancelstate(cancelling, NULL);
	errno = saved_errno;
}

int stack_walk_open(const char *library_dir, char *why, size_t why_bytes)
{
	int error = unwind_open(&lib, library_dir, why, why_bytes);

	if (error)
		return error;
	find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
	if (stack_walk_without_find_object)
		find_object = NULL;
	if (!cache) {
		cache = map_memory(sizeof(*cache) << CACHE_BITS);
		if (!cache)
			return -ENOMEM;
	}
	return 0;
}

int stack_walk_begin(void)
{
	/* 0 is this processor's byte order. On aarch64, libunwind 1.6 rejects all other values. */
	space = lib.create_addr_space(&our_access.accessors, 0);
	if (!space)
		return -ENOMEM;
	lib.set_caching_policy(space, UNW_CACHE_NONE);
	return 0;
}

void stack_walk_close(void)
{
	if (lib.handle)
		dlclose(lib.handle);
	lib.handle = NULL;
}

/* System calls, because the kernel's signal sets are small; see signal_guard.h. */
#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Synchronous signals. If one of these is raised while blocked, the kernel kills the process. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS))

void xt_switch_stack(void *top, void (*work)(void *argument), void *argument);
SWITCH_STACK(xt_switch_stack);

void call_on_stack(void *top, void (*work)(void *argument), void *argument)
{
	uint64_t held = ~FAULTS, before;
	int saved_errno = errno;

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &held, &before, sizeof(held))) {
		work(argument);
	} else {
		xt_switch_stack(top, work, argument);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	}
	errno = saved_errno;
}

#define NOTES_BYTES_MAX 65536

static void read_build_id(struct module_image *image, const uint8_t *notes, size_t bytes)
{
	size_t id_bytes;
	const uint8_t *id = xt_build_id(notes, bytes, XT_MODULE_BUILD_ID_MAX, &id_bytes);

	if (!id)
		return;
	image->build_id_bytes = (uint32_t)id_bytes;
	memcpy(image->build_id, id, id_bytes);
}

/*
 * Whether the segment is part of a PT_LOAD segment. Notes may be in the file without being mapped.
 */
static bool is_loaded(const ElfW(Phdr) * headers, size_t header_count, const ElfW(Phdr) * notes)
{
	for (size_t i = 0; i < header_count; i++) {
		const ElfW(Phdr) *segment = &headers[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) &&
		    notes->p_vaddr >= segment->p_vaddr &&
		    notes->p_vaddr - segment->p_vaddr <= segment->p_filesz &&
		    notes->p_filesz <= segment->p_filesz - (notes->p_vaddr - segment->p_vaddr))
			return true;
	}
	return false;
}

/* The program may have unmapped these pages or truncated the mapped file. */
static bool can_read(uint64_t start, uint64_t bytes)
{
	uint64_t end = start + bytes, page = start & ~(uint64_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1);
	int saved_errno = errno;
	bool can = bytes <= NOTES_BYTES_MAX;

	for (; can && page < end; page += XT_CRASH_BUFFER_PAGE_BYTES)
		can = stack_walk_can_read(page);
	errno = saved_errno;
	return can;
}

bool module_image_read(struct module_image *image, uint64_t bias, const ElfW(Phdr) * headers,
		       size_t header_count)
{
	*image = (struct module_image){.start = UINT64_MAX, .bias = bias};
	for (size_t i = 0; i < header_count; i++) {
		const ElfW(Phdr) *segment = &headers[i];
		uint64_t start = bias + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			image->start = smaller(image->start, start);
			image->end = larger(image->end, start + segment->p_memsz);
		} else if (segment->p_type == PT_NOTE && !image->build_id_bytes &&
			   is_loaded(headers, header_count, segment) &&
			   can_read(start, segment->p_filesz)) {
			read_build_id(image, (const uint8_t *)start, segment->p_filesz);
		}
	}
	return image->start < image->end;
}

bool module_image_is_same(const struct module_image *a, const struct module_image *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}
