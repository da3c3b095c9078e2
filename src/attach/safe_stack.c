/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/safe_stack.h"

#include <stdio.h>
#include <string.h>

#include "attach/code_site.h"
#include "sampler/process_modules.h"
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

/* These wait for a lock, or may do so. That is safe, unless the caller is an allocator. */
static const char *const lock_functions[] = {
	"pthread_mutex_lock",
	"pthread_mutex_timedlock",
	"pthread_mutex_clocklock",
	"pthread_rwlock_rdlock",
	"pthread_rwlock_wrlock",
	"syscall",
	"nanosleep",
	"clock_nanosleep",
	"usleep",
};
#define SURE_LOCK_FUNCTIONS 5 /* the first ones */

#define COUNT(list) (sizeof(list) / sizeof(*(list)))
static bool is_loader(const struct process_module *module)
{
	const char *name = module_name(module);

	return !strncmp(name, "ld-linux", 8) || !strncmp(name, "ld-2.", 5) ||
	       !strcmp(name, "ld.so");
}

/*
 * Results by file and address, because some libraries have 300,000 symbols. The stack of a stopped
 * thread was checked just before, so the second check is short.
 */
#define KNOWN_PLACES 4096 /* power of two */

static struct known_place {
	uint64_t image_id, address; /* address 0: empty */
	const char *unsafe, *lock;  /* names of the function, or NULL */
} known_places[KNOWN_PLACES];

static const struct known_place *place_at(const struct process_module *module, uint64_t address)
{
	uint64_t at = address - module->bias;
	struct known_place *known =
		&known_places[(at ^ at >> 12 ^ module->elf->id << 5) & (KNOWN_PLACES - 1)];

	if (known->address != at || known->image_id != module->elf->id)
		*known = (struct known_place){
			.image_id = module->elf->id,
			.address = at,
			.unsafe = elf_symbols_named_at(module->elf->fd, at, unsafe_functions,
						       COUNT(unsafe_functions)),
			.lock = elf_symbols_named_at(module->elf->fd, at, lock_functions,
						     COUNT(lock_functions)),
		};
	return known;
}

/* Allocators such as jemalloc wait in functions that have other names than malloc(). */
#define KNOWN_IMAGES 256 /* power of two */

static bool provides_malloc(const struct process_module *module)
{
	static struct {
		uint64_t image_id; /* 0: empty */
		bool provides;
	} known_images[KNOWN_IMAGES];
	size_t slot = module->elf->id & (KNOWN_IMAGES - 1);
	struct elf_symbol symbol = {.name = "malloc"};

	if (known_images[slot].image_id != module->elf->id) {
		elf_symbols_find(module->elf->fd, &symbol, 1);
		known_images[slot].image_id = module->elf->id;
		known_images[slot].provides = symbol.address != 0;
	}
	return known_images[slot].provides;
}

struct judgement {
	pid_t pid;
	bool may_lock, must_lock; /* what the frames of the C library do */
	bool has_caller;	  /* frames outside the C library were seen */
	bool is_in_handler;
	char *why;
	size_t why_bytes;
};

/* A program that contains an allocator is in each stack, so only its waits for locks count. */
static bool is_in_allocator(const struct judgement *judgement, const struct process_module *module,
			    bool is_innermost)
{
	if (module_is_glibc(module) || !provides_malloc(module))
		return false;
	return !module_is_program(judgement->pid, module) ||
	       (!judgement->has_caller && (is_innermost || judgement->may_lock));
}

static bool is_frame_safe(struct judgement *judgement, const struct process_modules *modules,
			  const struct native_stack *stack, uint32_t i)
{
	bool is_exact = stack->frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT;
	uint64_t address = (stack->frames[i] & XT_FRAME_VALUE_MASK) - !is_exact;
	const struct process_module *module = process_modules_find(modules, address);
	const struct known_place *place;
	char *why = judgement->why;
	size_t why_bytes = judgement->why_bytes;
	const char *where = judgement->is_in_handler ? "is in a signal handler, and " : "";
	bool is_safe = false;

	if (!module || module->path[0] != '/')
		return true; /* compiled at run time, or the kernel's */
	if (module->elf->fd < 0) {
		snprintf(why, why_bytes, "%sis in '%s', which was deleted or cannot be read", where,
			 module->path);
		return false;
	}
	place = place_at(module, address);
	if (is_loader(module))
		snprintf(why, why_bytes, "%sis in the loader", where);
	else if (place->unsafe)
		snprintf(why, why_bytes, "%sis in %s()", where, place->unsafe);
	else if (is_in_allocator(judgement, module, is_exact))
		snprintf(why, why_bytes, "%smay be in the allocator of '%s'", where, module->path);
	else
		is_safe = true;
	judgement->may_lock |= place->lock != NULL;
	for (size_t n = 0; n < SURE_LOCK_FUNCTIONS; n++)
		judgement->must_lock |= place->lock == lock_functions[n];
	judgement->has_caller |= !module_is_glibc(module);
	return is_safe;
}

/* Frames from here on were interrupted anywhere, not in a call. */
static void enter_handler(struct judgement *judgement)
{
	judgement->is_in_handler = true;
	judgement->may_lock = judgement->has_caller = false;
}

enum stack_safety safe_stack_check(struct process_modules *modules, pid_t pid,
				   const struct thread_registers *registers, char *why,
				   size_t why_bytes)
{
	static struct native_stack stack;
	const struct stack_copy copy = {.is_live = true};
	struct judgement judgement = {.pid = pid, .why = why, .why_bytes = why_bytes};
	bool is_safe = true;

	remote_unwind(&stack, modules, pid, registers, &copy);
	for (uint32_t i = 0; i < stack.frame_count; i++) {
		if (i && stack.frames[i] >> XT_FRAME_KIND_SHIFT == XT_FRAME_EXACT)
			enter_handler(&judgement);
		if (is_safe || judgement.is_in_handler)
			is_safe = is_frame_safe(&judgement, modules, &stack, i);
		if (!is_safe && judgement.is_in_handler)
			return STACK_INTERRUPTED;
	}
	if (stack.flags & XT_STACK_TRUNCATED) {
		snprintf(why, why_bytes, "has a stack that cannot be walked beyond %u frames",
			 stack.frame_count);
		return judgement.is_in_handler ? STACK_INTERRUPTED
		       : is_safe	       ? STACK_UNKNOWN
					       : STACK_UNSAFE;
	}
	if (judgement.is_in_handler && is_safe)
		snprintf(why, why_bytes, "is in a signal handler");
	if (judgement.is_in_handler || !is_safe)
		return STACK_UNSAFE;
	return judgement.must_lock ? STACK_WAITS_FOR_LOCK : STACK_SAFE;
}
