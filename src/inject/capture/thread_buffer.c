/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates and claims thread buffers: at a thread's first recorded call, and ahead of need on the
 * writer thread. Identifies the modules of new stacks and assigns slots. Cold path: system calls,
 * but no lock and no malloc.
 */
#include "inject/capture/thread_buffer.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject/capture/ring.h"
#include "inject/cupti/cupti.h"
#include "inject/memory/crash_buffer.h"
#include "inject/memory/memory.h"
#include "inject/runtime/clock.h"

atomic_uint_fast64_t torch_threads_seen;

void torch_thread_forget(struct torch_thread *torch)
{
	for (uint32_t i = 0; i < 1u << TORCH_RECENT_BITS; i++)
		torch->recent[i].task = 0;
	torch->outside.task = 0;
	torch->slot_count = 0;
}

void torch_thread_clear(struct torch_thread *torch)
{
	if (!torch->is_ready) /* do not touch pages that the thread does not use */
		return;
	torch_thread_forget(torch);
	torch->caller_count = torch->caller_last = 0;
	for (uint32_t i = 0; i < TORCH_TASKS_RECENT; i++)
		torch->tasks[i] = (struct torch_task){.id = -1};
}

/* A new thread owns the buffer. */
static void torch_thread_begin(struct torch_thread *torch)
{
	torch_thread_clear(torch);
	torch->is_ready = false;
	torch->thread = torch->last_node_sequence = 0;
	torch->cold_begin_ns = torch->search_ns = torch->definition_ns = 0;
	atomic_store_explicit(&torch->shared_thread, 0, memory_order_relaxed);
	atomic_store_explicit(&torch->python_state, 0, memory_order_relaxed);
}

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

#define RING_TOUCHED_BYTES (8u << 10) /* faulted in by a thread that creates its own buffer */

#define THREAD_BUFFER_STACK_BYTES (64u << 10) /* for walks; uses pages as needed */

/*
 * While the log cannot be written, rings stay full and threads do not wait. Rings of ended threads
 * keep their events, so only THREAD_BUFFERS_STALLED more rings are created. Calls without a ring
 * are counted. Writer thread.
 */
#define THREAD_BUFFERS_STALLED 256

_Thread_local struct thread_buffer *current_thread_buffer
	__attribute__((tls_model("initial-exec")));

atomic_uint_fast64_t thread_buffer_calls_missed;

static _Atomic(struct thread_buffer *) thread_buffers[THREAD_BUFFERS_MAX];
static atomic_uint thread_buffers_reserved;
static atomic_uint thread_buffers_limit = THREAD_BUFFERS_MAX;
static atomic_uint thread_ids;
static atomic_bool has_writer;

static void *map_private(size_t bytes)
{
	void *memory = map_memory(bytes);

	if (!memory)
		return NULL;
	/* A huge page would exceed the budget of eight threads. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	/* Zeroed in a child: the pointers refer to the parent's crash buffer. */
	madvise(memory, bytes, MADV_WIPEONFORK);
	return memory;
}

/* A call or callback that lasts longer was left by a jump. */
#define LEFT_CALL_NS	 UINT64_C(600000000000)
#define LEFT_CALLBACK_NS UINT64_C(200000000)
#define AWAIT_NAP_NS	 100000

/*
 * Memory that a thread buffer uses from the start: ring, walk results, first stack cache entries.
 */
#define INITIAL_BYTES (RING_FIRST_BYTES + CACHE_OWN_BYTES + (64u << 10))
_Static_assert(INITIAL_BYTES <= BUDGET_THREAD_BYTES, "a thread adds the size of its buffer");

/*
 * The thread buffer, its stack cache's arena and the stack for its walks. One mapping, because a
 * thread's first call waits for it. A stack overflow would hit the end of the arena, which is
 * rarely used.
 */
#define THREAD_BUFFER_BYTES                                                                        \
	((sizeof(struct thread_buffer) + MACHINE_PAGE_BYTES_MAX - 1) &                             \
	 ~(size_t)(MACHINE_PAGE_BYTES_MAX - 1))
_Static_assert(CACHE_ARENA_BYTES % MACHINE_PAGE_BYTES_MAX == 0, "the arena is whole pages");
#define THREAD_BUFFER_MAPPED (THREAD_BUFFER_BYTES + CACHE_ARENA_BYTES + THREAD_BUFFER_STACK_BYTES)

/*
 * Faults in the first pages of the ring: its header, and the window with one more page for the
 * padding. A thread that creates its own buffer faults in only what it needs first.
 */
static void touch_ring(struct thread_buffer *tb, enum thread_buffer_state state)
{
	crash_buffer_touch(tb->ring, XT_CRASH_BUFFER_PAGE_BYTES);
	crash_buffer_touch(tb->data, state == THREAD_BUFFER_FREE
					     ? RING_FIRST_BYTES + XT_CRASH_BUFFER_PAGE_BYTES
					     : RING_TOUCHED_BYTES);
	tb->window = RING_FIRST_BYTES;
	tb->window_ready = RING_FIRST_BYTES;
}

static struct thread_buffer *create_thread_buffer(enum thread_buffer_state state)
{
	struct thread_buffer *tb;
	unsigned index;

	/* Check before creating: a ring is never freed. */
	if (atomic_load(&thread_buffers_reserved) >= atomic_load(&thread_buffers_limit) ||
	    map_has_failed_lately())
		return NULL;
	tb = map_private(THREAD_BUFFER_MAPPED);
	if (!tb)
		return NULL;
	tb->cache.arena = (uint8_t *)tb + THREAD_BUFFER_BYTES;
	tb->walk_stack_top = (uint8_t *)tb + THREAD_BUFFER_MAPPED;
	tb->ring = crash_buffer_area(XT_RING_DATA_OFFSET + RING_DATA_BYTES, XT_AREA_RING);
	index = tb->ring ? atomic_fetch_add(&thread_buffers_reserved, 1) : THREAD_BUFFERS_MAX;
	if (index >= THREAD_BUFFERS_MAX) {
		munmap(tb, THREAD_BUFFER_MAPPED);
		return NULL;
	}
	tb->data = (uint8_t *)tb->ring + XT_RING_DATA_OFFSET;
	tb->is_unbacked = !crash_buffer_contains(tb->ring);
	tb->within = THREAD_BUFFER_IDLE;
	stack_cache_begin(&tb->cache);
	touch_ring(tb, state);
	tb->ring->data_bytes = RING_DATA_BYTES;
	atomic_store(&tb->state, state);
	/* Pairs with thread_buffer_at(). */
	atomic_store_explicit(&thread_buffers[index], tb, memory_order_release);
	return tb;
}

uint32_t thread_buffer_count(void)
{
	unsigned count = atomic_load(&thread_buffers_reserved);

	return count < THREAD_BUFFERS_MAX ? count : THREAD_BUFFERS_MAX;
}

struct thread_buffer *thread_buffer_at(uint32_t index)
{
	return atomic_load_explicit(&thread_buffers[index], memory_order_acquire);
}

struct thread_buffer *thread_buffer_next(uint32_t *index)
{
	struct thread_buffer *tb = NULL;

	while (!tb && *index < thread_buffer_count())
		tb = thread_buffer_at((*index)++);
	return tb;
}

void thread_buffers_abandon(void)
{
	current_thread_buffer = NULL;
	for (uint32_t i = 0; i < THREAD_BUFFERS_MAX && i < thread_buffer_count(); i++)
		atomic_store(&thread_buffers[i], NULL);
	atomic_store(&thread_buffers_reserved, 0);
	atomic_store(&has_writer, false);
	thread_buffers_stall(false);
}

void thread_buffers_stall(bool is_stalled)
{
	unsigned limit = thread_buffer_count() + THREAD_BUFFERS_STALLED;

	atomic_store(&thread_buffers_limit,
		     is_stalled && limit < THREAD_BUFFERS_MAX ? limit : THREAD_BUFFERS_MAX);
	atomic_store(&thread_buffers_are_stalled, is_stalled);
}

void thread_buffers_set_writer(void)
{
	atomic_store(&has_writer, true);
}

bool thread_buffer_is_orphaned(const struct thread_buffer *tb)
{
	/* Relaxed: its next thread may store another id meanwhile. */
	uint32_t tid = __atomic_load_n(&tb->ring->tid, __ATOMIC_RELAXED);

	return syscall(SYS_tgkill, getpid(), tid, 0) && errno == ESRCH;
}

bool thread_buffer_create_spare(void)
{
	return create_thread_buffer(THREAD_BUFFER_FREE) != NULL;
}

static struct thread_buffer *take_free_thread_buffer(void)
{
	struct thread_buffer *tb;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));) {
		unsigned expected = THREAD_BUFFER_FREE;

		if (atomic_load_explicit(&tb->state, memory_order_relaxed) == THREAD_BUFFER_FREE &&
		    atomic_compare_exchange_strong(&tb->state, &expected, THREAD_BUFFER_CLAIMED))
			return tb;
	}
	return NULL;
}

/* Drops the events of the previous thread; the next one must not own them. */
static void empty_thread_buffer(struct thread_buffer *tb)
{
	uint64_t *counters = tb->ring->counters;

	tb->read_pos = ring_written(tb);
	ring_free(tb, tb->read_pos);
	tb->backoff_pos = 0;
	tb->within = THREAD_BUFFER_IDLE;
	__atomic_store_n(&counters[XT_RING_RANGES_LOST], counters[XT_RING_RANGES_SEEN],
			 __ATOMIC_RELAXED);
}

/*
 * Takes the buffer of an ended thread. For NVTX in a program that does not use CUDA, or not yet,
 * and so has no writer. A writer that starts meanwhile skips inherited buffers: each side publishes
 * its state, then checks the other's.
 */
static struct thread_buffer *inherit_thread_buffer(void)
{
	uint32_t count = thread_buffer_count();

	for (uint32_t i = 0; i < count && count >= THREAD_BUFFERS_KEPT && !atomic_load(&has_writer);
	     i++) {
		struct thread_buffer *tb = thread_buffer_at(i);
		unsigned expected = THREAD_BUFFER_CLAIMED;

		if (!tb || atomic_load(&tb->state) != THREAD_BUFFER_CLAIMED ||
		    !thread_buffer_is_orphaned(tb) ||
		    !atomic_compare_exchange_strong(&tb->state, &expected, THREAD_BUFFER_INHERITED))
			continue;
		/* Another thread may have inherited it in between. */
		if (!atomic_load(&has_writer) && thread_buffer_is_orphaned(tb)) {
			empty_thread_buffer(tb);
			return tb;
		}
		atomic_store(&tb->state, THREAD_BUFFER_CLAIMED);
	}
	return NULL;
}

uint32_t thread_buffer_used_bytes(const struct thread_buffer *tb)
{
	uint64_t free_pos = tb->ring->free_pos;
	uint32_t from = free_pos & (RING_DATA_BYTES - 1);
	uint32_t to = tb->read_pos & (RING_DATA_BYTES - 1);
	uint32_t window = tb->window_ready;

	if (free_pos / RING_DATA_BYTES == tb->read_pos / RING_DATA_BYTES)
		return to - from;
	return to + (from < window ? window - from : 0);
}

void thread_buffer_widen(struct thread_buffer *tb)
{
	uint32_t window = tb->window_ready;
	uint32_t behind = window + XT_CRASH_BUFFER_PAGE_BYTES; /* already faulted in */

	if (window == RING_DATA_BYTES || !budget_take(window))
		return;
	crash_buffer_touch(tb->data + behind,
			   2 * window == RING_DATA_BYTES ? RING_DATA_BYTES - behind : window);
	/* Pairs with the acquire in ring_turn(). */
	atomic_store_explicit(&tb->window_ready, 2 * window, memory_order_release);
}

void thread_buffer_shrink(struct thread_buffer *tb)
{
	if (tb->cache.arena_bytes > CACHE_OWN_BYTES)
		madvise(tb->cache.arena, tb->cache.arena_bytes, MADV_DONTNEED);
	stack_cache_begin(&tb->cache);
}

/*
 * Whether the NVTX call was left by a jump: while it runs, nothing overwrites its return address.
 */
static bool nvtx_call_was_left(const struct thread_buffer *tb)
{
	const struct caller_regs *event = (const struct caller_regs *)tb->within;
	uintptr_t place = (uintptr_t)&event->return_address;
	int saved_errno = errno;
	bool can_read = stack_walk_can_read(place & ~(uintptr_t)(XT_CRASH_BUFFER_PAGE_BYTES - 1));

	errno = saved_errno;
	return !can_read || event->return_address != tb->event_return;
}

bool thread_buffer_recover_from_jump(struct thread_buffer *tb, const struct caller_regs *regs)
{
	uintptr_t lowest = (uintptr_t)__builtin_frame_address(0);
	uint64_t *counters, counted;

	if ((tb->within < lowest || tb->within >= (uintptr_t)(regs + 1)) &&
	    !(tb->event_return && nvtx_call_was_left(tb)))
		return false;
	tb->event_return = 0;
	/* Not earlier: in a forked child the thread buffer is zeroed and has no ring. */
	counters = tb->ring->counters;
	counted = counters[XT_RING_CALLS_COMMITTED] + counters[XT_RING_LOST_RING_FULL] +
		  counters[XT_RING_LOST_NESTED] + tb->ring->shutdown_drop_count;
	/* The jump may have interrupted a walk, or a call between being seen and being counted. */
	stack_cache_clear(&tb->cache);
	counter_add_lost(&counters[XT_RING_LOST_NESTED], counters[XT_RING_CALLS_SEEN] - counted);
	return true;
}

static bool has_open_work(const struct thread_buffer *tb)
{
	uint32_t count = __atomic_load_n(&tb->ring->open_count, __ATOMIC_ACQUIRE);

	/* The thread may begin another call meanwhile, so what is read may be newer. */
	for (uint32_t i = 0; i < count && i < XT_RING_OPEN_CALLS_MAX; i++) {
		const struct xt_open_call *call = &tb->ring->open_calls[i];
		uint32_t api = __atomic_load_n(&call->api, __ATOMIC_RELAXED);
		uint64_t enter_ns = __atomic_load_n(&call->enter_ns, __ATOMIC_RELAXED);

		if (api_uses[api & (API_CBID_END - 1)] & API_MAKES_WORK &&
		    monotonic_ns() - enter_ns < LEFT_CALL_NS)
			return !thread_buffer_is_orphaned(tb);
	}
	return false;
}

bool thread_buffers_await_work(uint64_t deadline_ns)
{
	const struct thread_buffer *tb;

	for (uint32_t i = 0; (tb = thread_buffer_next(&i));) {
		uint64_t left_ns = monotonic_ns() + LEFT_CALLBACK_NS;

		while ((__atomic_load_n(&tb->within, __ATOMIC_ACQUIRE) != THREAD_BUFFER_IDLE &&
			monotonic_ns() < left_ns) ||
		       has_open_work(tb)) {
			if (monotonic_ns() >= deadline_ns)
				return false;
			xt_sleep_ns(AWAIT_NAP_NS);
		}
	}
	return true;
}

struct thread_buffer *thread_buffer_claim(void)
{
	int saved_errno = errno;
	struct thread_buffer *tb = take_free_thread_buffer();

	if (!tb)
		tb = inherit_thread_buffer();
	if (!tb)
		tb = create_thread_buffer(THREAD_BUFFER_CLAIMED);
	if (tb) {
		struct xt_ring_header *ring = tb->ring;

		if (!tb->is_budgeted)
			budget_add_thread_buffer(INITIAL_BYTES);
		tb->is_budgeted = true;
		/* The previous owner's entries are for another stack. */
		stack_cache_clear(&tb->cache);
		torch_thread_begin(&tb->torch);
		__atomic_store_n(&ring->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
		ring->start_ns = monotonic_ns();
		__atomic_store_n(&ring->open_count, 0, __ATOMIC_RELAXED);
		prctl(PR_GET_NAME, tb->first_name);
		/* The writer reads the ring once it has a thread id. */
		__atomic_store_n(&ring->thread_id, atomic_fetch_add(&thread_ids, 1) + 1,
				 __ATOMIC_RELEASE);
		atomic_store(&tb->state, THREAD_BUFFER_CLAIMED);
		current_thread_buffer = tb;
	}
	errno = saved_errno;
	return tb;
}
