/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/safe_stack.h"

#include <stdio.h>
#include <string.h>

#include "sampler/elf_image.h"
#include "sampler/elf_symbols.h"
#include "sampler/remote_unwind.h"

/*
 * A thread in one of these may hold a lock that pthread_create() needs, or its stack is about to
 * end. Allocators of other libraries have the names of malloc, too.
 */
static const char *const unsafe_functions[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"reallocarray",
	"memalign",
	"posix_memalign",
	"aligned_alloc",
	"valloc",
	"pvalloc",
	"malloc_trim",
	"malloc_info",
	"mallopt",
	"_Znwm",
	"_Znam",
	"_ZdlPv",
	"_ZdaPv",
	"_ZdlPvm",
	"_ZdaPvm",
	/* waits for a lock of the C library */
	"__lll_lock_wait_private",
	/* of the loader */
	"dlopen",
	"dlmopen",
	"dlclose",
	"dlsym",
	"dlvsym",
	"dl_iterate_phdr",
	"__libc_dlopen_mode",
	"__tls_get_addr",
	/* have the list of threads, or wait for all of them */
	"pthread_create",
	"pthread_exit",
	"setuid",
	"setgid",
	"seteuid",
	"setegid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setgroups",
	"pthread_getattr_np",
	/* the process may end or change */
	"fork",
	"_Fork",
	"vfork",
	"__libc_fork",
	"posix_spawn",
	"posix_spawnp",
	"system",
	"popen",
	"exit",
	"quick_exit",
	"_exit",
	"abort",
	"__cxa_finalize",
	"__call_tls_dtors",
};

static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-2.", 5) ||
	       !strcmp(name, "ld.so");
}

/*
 * Results by file and address, because some libraries have 300,000 symbols. The stack of a stopped
 * thread was looked at just before, so the second look is short.
 */
#define KNOWN_PLACES 4096 /* power of two */

static struct known_place {
	uint64_t image_id, address; /* address 0: empty */
	const char *function;
} known_places[KNOWN_PLACES];

/* The unsafe function at an address, or NULL. */
static const char *unsafe_function_at(const struct process_module *module, uint64_t address)
{
	uint64_t at = address - module->bias;
	struct known_place *known =
		&known_places[(at ^ at >> 12 ^ module->elf->id << 5) & (KNOWN_PLACES - 1)];

	if (!module->image)
		return NULL;
	if (known->address != at || known->image_id != module->elf->id)
		*known = (struct known_place){
			.image_id = module->elf->id,
			.address = at,
			.function = elf_symbols_named_at(
				module->image, module->image_bytes, at, unsafe_functions,
				sizeof(unsafe_functions) / sizeof(*unsafe_functions)),
		};
	return known->function;
}

static bool is_frame_safe(const struct process_modules *modules, const struct native_stack *stack,
			  uint32_t i, char *why, size_t why_bytes)
{
	bool is_exact = stack->frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT;
	uint64_t address = (stack->frames[i] & XT_FRAME_VALUE_MASK) - !is_exact;
	const struct process_module *module = process_modules_find(modules, address);
	const char *function;

	if (i && is_exact) {
		snprintf(why, why_bytes, "is in a signal handler");
		return false;
	}
	if (!module)
		return true; /* compiled at run time */
	if (is_loader(module->path)) {
		snprintf(why, why_bytes, "is in the loader");
		return false;
	}
	function = unsafe_function_at(module, address);
	if (function)
		snprintf(why, why_bytes, "is in %s()", function);
	return !function;
}

enum stack_safety safe_stack_check(struct process_modules *modules, pid_t pid,
				   const struct thread_registers *registers, char *why,
				   size_t why_bytes)
{
	static struct native_stack stack;
	const struct stack_copy copy = {.is_live = true};

	remote_unwind(&stack, modules, pid, registers, &copy);
	for (uint32_t i = 0; i < stack.frame_count; i++)
		if (!is_frame_safe(modules, &stack, i, why, why_bytes))
			return STACK_UNSAFE;
	if (!(stack.flags & XT_STACK_TRUNCATED))
		return STACK_SAFE;
	snprintf(why, why_bytes, "has a stack that cannot be walked beyond %u frames",
		 stack.frame_count);
	return STACK_UNKNOWN;
}
