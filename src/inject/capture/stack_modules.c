/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies the modules of a walk and assigns slots. Runs in the program's threads, for new
 * stacks: it makes system calls.
 */
#include "inject/capture/stack_modules.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "inject/capture/ring.h"
#include "inject/capture/thread_buffer.h"
#include "inject/unwind/stack_walk.h"

_Static_assert(WALK_MODULES_MAX < XT_MODULE_SLOT_COUNT,
	       "the modules of a stack have slots at a time");

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
	const uint8_t *p = data;
	uint64_t word;

	for (; bytes; p += sizeof(word)) {
		size_t part = bytes < sizeof(word) ? bytes : sizeof(word);

		word = part;
		memcpy(&word, p, part);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
		bytes -= part;
	}
	return hash;
}

static uint64_t identity_of(const struct module_image *image, const char *name)
{
	uint64_t hash = mix(image->build_id_bytes, image, offsetof(struct module_image, build_id));

	hash = mix(hash, image->build_id, image->build_id_bytes);
	hash = mix(hash, name, strlen(name));
	return hash ? hash : 1;
}

/*
 * Linkers put program headers at the start of a file; the loader maps them with the first segment.
 */
static bool read_headers(const struct walk_module *module, struct module_image *image)
{
	const ElfW(Ehdr) *elf = (const void *)module->start;

	if (!stack_walk_can_read(module->start) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf->e_phentsize != sizeof(ElfW(Phdr)) || elf->e_phoff % sizeof(uint64_t) ||
	    elf->e_phoff > XT_CRASH_BUFFER_PAGE_BYTES ||
	    elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) > XT_CRASH_BUFFER_PAGE_BYTES)
		return false;
	return module_image_read(image, module->bias,
				 (const ElfW(Phdr) *)(module->start + elf->e_phoff),
				 elf->e_phnum) &&
	       image->start / XT_CRASH_BUFFER_PAGE_BYTES ==
		       module->start / XT_CRASH_BUFFER_PAGE_BYTES;
}

struct image_search {
	const struct walk_module *module;
	struct module_image image;
};

static int look_at_module(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
	struct image_search *search = arg;

	(void)info_bytes;
	return info->dlpi_addr == search->module->bias &&
	       module_image_read(&search->image, info->dlpi_addr, info->dlpi_phdr,
				 info->dlpi_phnum) &&
	       search->image.start < search->module->end &&
	       search->module->start < search->image.end;
}

static void read_image(const struct walk_module *module, struct module_image *image)
{
	struct image_search search = {.module = module};

	if (read_headers(module, image))
		return;
	if (dl_iterate_phdr(look_at_module, &search))
		*image = search.image;
	else
		*image = (struct module_image){
			.start = module->start, .end = module->end, .bias = module->bias};
}

/* The index in `slots` of that identity, or of a free place. */
static uint32_t find_place(const struct stack_modules *modules, uint64_t identity)
{
	uint32_t place = (uint32_t)(identity >> 32) % MODULE_SLOTS_HASHED;

	while (modules->slots[place] && modules->identities[modules->slots[place]] != identity)
		place = (place + 1) % MODULE_SLOTS_HASHED;
	return place;
}

static bool commit_module(struct thread_buffer *tb, const struct module_image *image,
			  const char *name, uint16_t slot)
{
	size_t name_bytes = strnlen(name, XT_MODULE_PATH_MAX);
	size_t bytes = xt_module_bytes(image->build_id_bytes, (uint32_t)name_bytes);
	struct xt_record_module *record = ring_reserve_or_wait(tb, (uint32_t)bytes);

	if (!record)
		return false;
	*record = (struct xt_record_module){
		.head = {.type = XT_RECORD_MODULE, .bytes = (uint16_t)bytes},
		.module_slot = slot,
		.start = image->start,
		.end = image->end,
		.bias = image->bias,
		.build_id_bytes = image->build_id_bytes,
		.path_bytes = (uint32_t)name_bytes,
	};
	memcpy(record->text, image->build_id, image->build_id_bytes);
	memcpy(record->text + image->build_id_bytes, name, name_bytes);
	ring_commit(tb, (uint32_t)bytes);
	return true;
}

static struct recent_module *recent_place(struct stack_modules *modules, uintptr_t start)
{
	uint64_t hash = start / XT_CRASH_BUFFER_PAGE_BYTES * UINT64_C(0x9e3779b97f4a7c15);

	return &modules->recent[hash >> (64 - MODULES_RECENT_BITS)];
}

static bool define(struct thread_buffer *tb, struct walk_module *module, uint64_t generation)
{
	struct stack_modules *modules = &tb->modules;
	struct recent_module *recent = recent_place(modules, module->start);
	struct module_image image;
	uint64_t identity;
	uint32_t place;

	if (recent->start == module->start && recent->end == module->end &&
	    recent->name == module->name && recent->generation == generation) {
		module->slot = recent->slot;
		return true;
	}
	read_image(module, &image);
	identity = identity_of(&image, module->name);
	place = find_place(modules, identity);
	if (!modules->slots[place]) {
		if (!commit_module(tb, &image, module->name, (uint16_t)(modules->slot_count + 1)))
			return false;
		modules->slots[place] = (uint16_t)++modules->slot_count;
		modules->identities[modules->slot_count] = identity;
	}
	module->slot = modules->slots[place];
	*recent = (struct recent_module){.start = module->start,
					 .end = module->end,
					 .name = module->name,
					 .generation = generation,
					 .slot = module->slot};
	return true;
}

bool stack_modules_define(struct thread_buffer *tb, uint64_t generation)
{
	struct stack_walk *walk = &tb->walk;
	int saved_errno = errno;
	bool is_done = true;

	/* The stack must be committed before its slots may be redefined. */
	if (tb->modules.slot_count + walk->module_count >= XT_MODULE_SLOT_COUNT)
		stack_modules_clear(&tb->modules);
	for (uint32_t i = 1; i < walk->module_count && is_done; i++)
		is_done = define(tb, &walk->modules[i], generation);
	errno = saved_errno;
	return is_done;
}

void stack_modules_clear(struct stack_modules *modules)
{
	memset(modules, 0, sizeof(*modules));
}
