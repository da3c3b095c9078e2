/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks run in the threads of the other tool. They hold no lock during a CUPTI call.
 */
#include "inject/cupti/cupti_handoff.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/cupti.h"
#include "inject/cupti/cupti_owner.h"
#include "inject/cupti/cupti_subscriber.h"
#include "inject/runtime/loader_lock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/symbol_hooks.h"

#define UNNAMED "another tool"

static atomic_bool is_active; /* the hooks have an effect */

/* State of the other tool. */
#define KINDS_COUNT 256
static atomic_bool has_unsubscribed;
static atomic_bool enabled_kinds[KINDS_COUNT];
static _Atomic(xt_cupti_buffer_requested) foreign_requested;
static uintptr_t cupti_begin, cupti_end; /* CUPTI's address range */

static int (*find_object)(void *address,
			  struct dl_find_object *result); /* NULL: glibc is too old */

/*
 * Runs in the tool's thread. It may hold a lock that a holder of the loader's lock waits for. So
 * this must not take the loader's lock, as dladdr() would. The caller's own module stays loaded.
 */
static void module_name(const void *address, char *out, size_t out_bytes)
{
	struct dl_find_object object;
	const char *path, *slash;

	if (!find_object || find_object((void *)(uintptr_t)address, &object)) {
		snprintf(out, out_bytes, UNNAMED);
		return;
	}
	path = object.dlfo_link_map->l_name;
	if (!path || !*path)
		path = program_invocation_short_name;
	slash = strrchr(path, '/');
	snprintf(out, out_bytes, "%s", slash ? slash + 1 : path);
}

/* The effects of a CUPTI function when another tool calls it. */
enum effect {
	ACQUIRES = 1 << 0,
	RELEASES = 1 << 1,
	SETS_CLOCK = 1 << 2,
	RESETS_CLOCK = 1 << 3,
	NEEDS_CLOCK = 1 << 4,
	SUBSCRIBES = 1 << 5,
	ENABLES = 1 << 6,
	DISABLES = 1 << 7,
	FINALIZES = 1 << 8,
};

static bool is_foreign_call(const void *caller)
{
	/* CUPTI calls some of its functions itself. Not dladdr(), which takes the loader's lock. */
	return atomic_load(&is_active) &&
	       !((uintptr_t)caller >= cupti_begin && (uintptr_t)caller < cupti_end);
}

static uint32_t (*real_cuptiActivityEnable)(uint32_t kind);

/* Stopping our records also disabled these kinds for the tool. */
static void restore_kinds(void)
{
	for (uint32_t kind = 0; kind < KINDS_COUNT; kind++)
		if (atomic_load(&enabled_kinds[kind]))
			real_cuptiActivityEnable(kind);
}

static void yield_to_tool(const char *function, const void *caller)
{
	char who[CUPTI_OWNER_NAME_BYTES];

	module_name(caller, who, sizeof(who));
	if (cupti_owner_yield(function, who))
		restore_kinds();
}

static void before_foreign_call(const char *function, enum effect effect, const void *caller)
{
	/*
	 * While we are subscribed, CUPTI refuses other subscribers. Enabling a kind alone is
	 * harmless: libraries try which kinds exist.
	 */
	bool comes = effect & ACQUIRES && !(effect & ENABLES) &&
		     (cupti_owner_yields() || !(effect & SUBSCRIBES));

	if (!(effect & ACQUIRES) || !is_foreign_call(caller))
		return;
	if (comes)
		yield_to_tool(function, caller);
	if (comes && effect & SUBSCRIBES)
		atomic_store(&has_unsubscribed, false);
	if (!cupti_owner_is_released())
		return;
	if (effect & (SETS_CLOCK | RESETS_CLOCK))
		cupti_owner_tool_sets_clock();
	else if (effect & NEEDS_CLOCK)
		cupti_owner_tool_needs_clock();
}

static bool wants_records(void)
{
	for (size_t i = 0; i < KINDS_COUNT; i++)
		if (atomic_load(&enabled_kinds[i]))
			return true;
	return false;
}

static void after_foreign_call(enum effect effect, uint32_t kind, uint32_t result,
			       const void *caller)
{
	bool is_refused = effect & SUBSCRIBES && result != XT_CUPTI_SUCCESS;

	if (!(effect & (SUBSCRIBES | RELEASES | ENABLES | DISABLES)) ||
	    (result != XT_CUPTI_SUCCESS && !is_refused) || !is_foreign_call(caller))
		return;
	if (effect & (ENABLES | DISABLES) && kind < KINDS_COUNT)
		atomic_store(&enabled_kinds[kind], effect & ENABLES);
	if (effect & FINALIZES)
		atomic_store(&cupti_subscriber_lost_memory, true);
	for (size_t i = 0; effect & FINALIZES && i < KINDS_COUNT; i++)
		atomic_store(&enabled_kinds[i], false);
	if (!cupti_owner_is_released())
		return;
	if (effect & RELEASES || is_refused)
		atomic_store(&has_unsubscribed, true);
	if (cupti_owner_yields() && atomic_load(&has_unsubscribed) && !wants_records())
		cupti_owner_tool_left();
}

/*
 * CUPTI returns all buffers to the last registered callback. For both tools that is
 * activity_completed(), which tells them apart.
 */
static void requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	atomic_load (&foreign_requested)(buffer_out, bytes_out, max_records_out);
}

/* X(name, effect, parameters, argument names, record kind) */
#define HOOKS(X)                                                                                   \
	X(cuptiSubscribe, ACQUIRES | SUBSCRIBES,                                                   \
	  (void **out, xt_cupti_callback callback, void *userdata), (out, callback, userdata), 0)  \
	X(cuptiSubscribe_v2, ACQUIRES | SUBSCRIBES,                                                \
	  (void **out, xt_cupti_callback callback, void *userdata,                                 \
	   struct cupti_subscriber_params *params),                                                \
	  (out, callback, userdata, params), 0)                                                    \
	X(cuptiActivityRegisterTimestampCallback, ACQUIRES | SETS_CLOCK,                           \
	  (xt_cupti_timestamp timestamp), (timestamp), 0)                                          \
	X(cuptiActivityEnable, ACQUIRES | NEEDS_CLOCK | ENABLES, (uint32_t kind), (kind), kind)    \
	X(cuptiActivityEnableContext, ACQUIRES | NEEDS_CLOCK | ENABLES,                            \
	  (void *context, uint32_t kind), (context, kind), kind)                                   \
	X(cuptiActivityDisable, DISABLES, (uint32_t kind), (kind), kind)                           \
	X(cuptiUnsubscribe, RELEASES, (void *subscriber), (subscriber), 0)                         \
	X(cuptiFinalize, ACQUIRES | RELEASES | RESETS_CLOCK | FINALIZES, (void), (), 0)

#define HOOK(name, effect, arguments, passed, kind)                                                \
	static uint32_t(*real_##name) arguments;                                                   \
	static uint32_t hook_##name arguments                                                      \
	{                                                                                          \
		const void *caller = __builtin_return_address(0);                                  \
		uint32_t result;                                                                   \
                                                                                                   \
		symbol_hook_entered();                                                             \
		before_foreign_call(#name, effect, caller);                                        \
		result = real_##name passed;                                                       \
		after_foreign_call(effect, kind, result, caller);                                  \
		return result;                                                                     \
	}
HOOKS(HOOK)

static uint32_t (*real_register)(xt_cupti_buffer_requested, xt_cupti_buffer_completed);

static uint32_t hook_register(xt_cupti_buffer_requested theirs, xt_cupti_buffer_completed completed)
{
	const void *caller = __builtin_return_address(0);

	symbol_hook_entered();
	if (!theirs || !completed || !is_foreign_call(caller))
		return real_register(theirs, completed);
	/* The tool may have enabled kinds before, which changed nothing then. */
	before_foreign_call("cuptiActivityRegisterCallbacks",
			    wants_records() ? ACQUIRES | NEEDS_CLOCK : ACQUIRES, caller);
	atomic_store(&foreign_requested, theirs);
	atomic_store(&activity_foreign_completed, completed);
	return real_register(requested, activity_completed);
}

#define HOOK_ROW(name, effect, arguments, passed, kind)                                            \
	{#name, (void *)(uintptr_t)hook_##name, (void **)&real_##name},
static const struct symbol_hook hooks[] = {HOOKS(HOOK_ROW){"cuptiActivityRegisterCallbacks",
							   (void *)(uintptr_t)hook_register,
							   (void **)&real_register}};

static int find_cupti(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	uintptr_t function = (uintptr_t)cupti.cuptiSubscribe, end = 0;
	bool is_within = false;

	(void)info_bytes, (void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		is_within |= function >= from && function < from + part->p_memsz;
		if (from + part->p_memsz > end)
			end = from + part->p_memsz;
	}
	if (!is_within)
		return 0;
	cupti_begin = info->dlpi_addr;
	cupti_end = end;
	return 1;
}

void cupti_handoff_begin(void)
{
	int rc;

	find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
	loader_iterate(find_cupti, NULL);
	if (!cupti_end)
		return;
	rc = symbol_hooks_install(cupti.library, hooks, sizeof(hooks) / sizeof(*hooks));
	atomic_store(&is_active, !rc);
	if (rc && cupti_owner_yields())
		log_message("cannot step back for another profiler in this program: cannot hook "
			    "%s: %s",
			    cupti.path, strerror(-rc));
}

void cupti_handoff_abandon(void)
{
	atomic_store(&is_active, false);
}
