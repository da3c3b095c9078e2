/* SPDX-License-Identifier: Apache-2.0 */
#include "explorer_memory.h"

#include <stdatomic.h>
#include <string.h>

struct clock {
	uint32_t time[EXPLORER_THREADS_MAX];
	uint8_t view[LOCATIONS_MAX]; /* by location: index of the oldest store that may be read */
};

struct store {
	uint64_t value;
	struct clock released; /* what an acquire load of this store joins */
	bool is_change;	       /* a read-modify-write: reads the store before it */
};

struct location {
	uintptr_t place;
	unsigned bytes;
	unsigned count;
	unsigned first; /* stores before this one were overwritten by a plain write */
	struct store stores[STORES_MAX];
};

struct thread {
	struct clock now;
	struct clock to_acquire;     /* joined by an acquire fence */
	struct clock released_fence; /* clock at the last release fence */
};

/* Last accesses of a byte, by thread. Time 0: none. */
struct byte {
	uintptr_t place;
	uint32_t plain_read[EXPLORER_THREADS_MAX], plain_write[EXPLORER_THREADS_MAX];
	uint32_t atomic_read[EXPLORER_THREADS_MAX], atomic_write[EXPLORER_THREADS_MAX];
};
#define BYTES_COUNT (1u << 14) /* a power of two */

static struct memory {
	struct thread threads[EXPLORER_THREADS_MAX];
	struct clock seq_cst; /* joined by seq_cst fences */
	struct location locations[LOCATIONS_MAX];
	unsigned location_count;
	struct byte bytes[BYTES_COUNT];
	unsigned used_bytes[BYTES_COUNT], used_count;
	bool is_active;
} * memory;

/* Not part of an execution. */
static struct {
	enum explorer_weaken what;
	const void *place;
} * weakened;

static void join_views(struct clock *clock, const struct clock *other)
{
	for (unsigned l = 0; l < memory->location_count; l++)
		if (clock->view[l] < other->view[l])
			clock->view[l] = other->view[l];
}

static void join(struct clock *clock, const struct clock *other)
{
	for (unsigned t = 0; t < EXPLORER_THREADS_MAX; t++)
		if (clock->time[t] < other->time[t])
			clock->time[t] = other->time[t];
	join_views(clock, other);
}

void memory_reset(void)
{
	if (!memory) {
		memory = explorer_allocate(sizeof(*memory));
		weakened = explorer_allocate(sizeof(*weakened));
	}
	for (unsigned i = 0; i < memory->used_count; i++)
		memset(&memory->bytes[memory->used_bytes[i]], 0, sizeof(struct byte));
	memset(memory->threads, 0, sizeof(memory->threads));
	memset(&memory->seq_cst, 0, sizeof(memory->seq_cst));
	memory->used_count = memory->location_count = 0;
	memory->is_active = false;
}

void memory_begin_threads(void)
{
	memory->is_active = true;
	for (unsigned t = 0; t < EXPLORER_THREADS_MAX; t++)
		memory->threads[t].now.time[t] = 1;
}

bool memory_is_active(void)
{
	return memory && memory->is_active;
}

void memory_weaken(enum explorer_weaken what, const void *place)
{
	weakened->what = what;
	weakened->place = place;
}

static bool is_weakened(enum explorer_weaken what, const volatile void *place)
{
	return weakened->what == what && weakened->place == place;
}

static struct thread *thread_now(void)
{
	return &memory->threads[explorer_thread()];
}

/* ---- races */

static struct byte *byte_at(uintptr_t place)
{
	unsigned at = (unsigned)(place * 0x9e3779b1u >> 4) % BYTES_COUNT;

	while (memory->bytes[at].place && memory->bytes[at].place != place)
		at = (at + 1) % BYTES_COUNT;
	if (!memory->bytes[at].place) {
		if (memory->used_count == BYTES_COUNT / 2)
			explorer_fail("the program touches too many bytes");
		memory->bytes[at].place = place;
		memory->used_bytes[memory->used_count++] = at;
	}
	return &memory->bytes[at];
}

static bool has_unordered(const uint32_t times[EXPLORER_THREADS_MAX])
{
	const struct thread *thread = thread_now();

	for (unsigned t = 0; t < EXPLORER_THREADS_MAX; t++)
		if (t != explorer_thread() && times[t] > thread->now.time[t])
			return true;
	return false;
}

static void note_access(uintptr_t place, size_t bytes, bool is_atomic, bool is_write)
{
	unsigned self = explorer_thread();
	uint32_t time = ++thread_now()->now.time[self];

	for (size_t i = 0; i < bytes; i++) {
		struct byte *byte = byte_at(place + i);

		if (has_unordered(byte->plain_write) ||
		    (is_write && has_unordered(byte->plain_read)) ||
		    (!is_atomic && (has_unordered(byte->atomic_write) ||
				    (is_write && has_unordered(byte->atomic_read)))))
			explorer_fail("data race");
		if (is_atomic)
			(is_write ? byte->atomic_write : byte->atomic_read)[self] = time;
		else
			(is_write ? byte->plain_write : byte->plain_read)[self] = time;
	}
}

void memory_plain(const void *place, size_t bytes, bool is_write)
{
	if (memory_is_active())
		note_access((uintptr_t)place, bytes, false, is_write);
}

/* ---- atomic operations */

static uint64_t value_in_memory(const volatile void *place, unsigned bytes)
{
	switch (bytes) {
	case 1:
		return *(const volatile uint8_t *)place;
	case 2:
		return *(const volatile uint16_t *)place;
	case 4:
		return *(const volatile uint32_t *)place;
	default:
		return *(const volatile uint64_t *)place;
	}
}

static void set_in_memory(volatile void *place, unsigned bytes, uint64_t value)
{
	switch (bytes) {
	case 1:
		*(volatile uint8_t *)place = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)place = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)place = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)place = value;
	}
}

static unsigned number_of(const struct location *location)
{
	return (unsigned)(location - memory->locations);
}

static void shift_view(struct clock *clock, unsigned number, unsigned at)
{
	clock->view[number] += clock->view[number] >= at;
}

/* Makes room for a store before the store `at`. */
static void shift_stores(struct location *location, unsigned at)
{
	unsigned number = number_of(location);

	for (unsigned t = 0; t < EXPLORER_THREADS_MAX; t++) {
		shift_view(&memory->threads[t].now, number, at);
		shift_view(&memory->threads[t].to_acquire, number, at);
		shift_view(&memory->threads[t].released_fence, number, at);
	}
	shift_view(&memory->seq_cst, number, at);
	for (unsigned l = 0; l < memory->location_count; l++)
		for (unsigned i = 0; i < memory->locations[l].count; i++)
			shift_view(&memory->locations[l].stores[i].released, number, at);
	memmove(&location->stores[at + 1], &location->stores[at],
		(location->count - at) * sizeof(*location->stores));
}

static struct store *add_store(struct location *location, unsigned at, uint64_t value)
{
	struct store *store = &location->stores[at];

	if (location->count == STORES_MAX)
		explorer_fail("the program stores too often to one location");
	if (at < location->count)
		shift_stores(location, at);
	location->count++;
	memset(store, 0, sizeof(*store));
	store->value = value;
	return store;
}

static struct location *location_at(volatile void *place, unsigned bytes)
{
	uint64_t value = value_in_memory(place, bytes);
	struct location *location = memory->locations;
	const struct location *end = location + memory->location_count;

	while (location < end && location->place != (uintptr_t)place)
		location++;
	if (location == end) {
		if (memory->location_count++ == LOCATIONS_MAX)
			explorer_fail("the program has too many atomic objects");
		*location = (struct location){.place = (uintptr_t)place, .bytes = bytes};
		add_store(location, 0, value);
	}
	if (location->bytes != bytes)
		explorer_fail("an atomic object is accessed in two sizes");
	/* A plain write changed it. Accesses that it does not precede are races. */
	if (location->stores[location->count - 1].value != value) {
		add_store(location, location->count, value);
		location->first = location->count - 1;
	}
	return location;
}

static bool acquires(int order)
{
	return order == memory_order_acquire || order == memory_order_consume ||
	       order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static bool releases(int order)
{
	return order == memory_order_release || order == memory_order_acq_rel ||
	       order == memory_order_seq_cst;
}

static bool is_seq_cst(int order, const volatile void *place)
{
	return order == memory_order_seq_cst && !is_weakened(WEAKEN_SEQ_CST, place) &&
	       !is_weakened(WEAKEN_STORES, place) && !is_weakened(WEAKEN_LOADS, place);
}

/* Orders what seq_cst fences see. It does not order plain accesses. */
static void join_seq_cst(void)
{
	join_views(&thread_now()->now, &memory->seq_cst);
	join_views(&memory->seq_cst, &thread_now()->now);
}

/* A seq_cst operation is one of acquire and release behind a seq_cst fence, as on POWER. */
static void order_seq_cst(int order, const volatile void *place)
{
	if (is_seq_cst(order, place))
		join_seq_cst();
}

static uint64_t read_store(struct location *location, unsigned index, int order)
{
	struct thread *thread = thread_now();
	const struct store *store = &location->stores[index];

	thread->now.view[number_of(location)] = (uint8_t)index;
	join(&thread->to_acquire, &store->released);
	if (acquires(order) && !is_weakened(WEAKEN_LOADS, (const void *)location->place))
		join(&thread->now, &store->released);
	return store->value;
}

/*
 * Adds a store at a place of the location's order. is_change: a read-modify-write, which continues
 * the release sequence of the store before it.
 */
static void write_store(struct location *location, unsigned at, uint64_t value, int order,
			bool is_change)
{
	struct thread *thread = thread_now();
	volatile void *place = (volatile void *)location->place;
	struct store *store = add_store(location, at, value);

	thread->now.view[number_of(location)] = (uint8_t)at;
	if (releases(order) && !is_weakened(WEAKEN_STORES, place))
		store->released = thread->now;
	else
		store->released = thread->released_fence;
	store->is_change = is_change;
	if (is_change)
		join(&store->released, &location->stores[at - 1].released);
	if (at == location->count - 1)
		set_in_memory(place, location->bytes, value);
}

/* False if store i is followed by the read-modify-write that read it: nothing comes between. */
static bool may_follow(const struct location *location, unsigned i)
{
	return i == location->count - 1 || !location->stores[i + 1].is_change;
}

static unsigned oldest_readable(const struct location *location)
{
	unsigned oldest = thread_now()->now.view[number_of(location)];

	if (oldest < location->first)
		oldest = location->first;
	return oldest;
}

uint64_t memory_load(volatile void *place, unsigned bytes, int order)
{
	struct location *location = location_at(place, bytes);
	unsigned oldest;

	order_seq_cst(order, place);
	oldest = oldest_readable(location);
	note_access((uintptr_t)place, bytes, true, false);
	/* The newest value first, as in a sequentially consistent run. */
	return read_store(location, location->count - 1 - explorer_choose(location->count - oldest),
			  order);
}

/*
 * Chooses the store that a new one follows, the newest first. Stores need not take effect in the
 * order in which threads run.
 */
static unsigned choose_followed(const struct location *location)
{
	unsigned options[STORES_MAX], count = 0;

	for (unsigned i = oldest_readable(location); i < location->count; i++)
		if (may_follow(location, i))
			options[count++] = i;
	return options[count - 1 - explorer_choose(count)];
}

void memory_store(volatile void *place, unsigned bytes, uint64_t value, int order)
{
	struct location *location = location_at(place, bytes);

	order_seq_cst(order, place);
	note_access((uintptr_t)place, bytes, true, true);
	write_store(location, choose_followed(location) + 1, value, order, false);
}

uint64_t memory_change(volatile void *place, unsigned bytes,
		       uint64_t (*change)(uint64_t old, uint64_t operand), uint64_t operand,
		       int order)
{
	struct location *location = location_at(place, bytes);
	uint64_t old;
	unsigned i;

	order_seq_cst(order, place);
	i = choose_followed(location);
	note_access((uintptr_t)place, bytes, true, true);
	old = read_store(location, i, order);
	write_store(location, i + 1, change(old, operand), order, true);
	return old;
}

bool memory_compare_exchange(volatile void *place, unsigned bytes, uint64_t *expected,
			     uint64_t wanted, int order, int failure_order)
{
	struct location *location = location_at(place, bytes);
	unsigned options[STORES_MAX], count = 0, chosen;
	bool is_equal;

	order_seq_cst(order, place);
	for (unsigned i = oldest_readable(location); i < location->count; i++)
		if (may_follow(location, i) || location->stores[i].value != *expected)
			options[count++] = i;
	chosen = options[count - 1 - explorer_choose(count)];
	is_equal = location->stores[chosen].value == *expected;
	note_access((uintptr_t)place, bytes, true, is_equal);
	*expected = read_store(location, chosen, is_equal ? order : failure_order);
	if (is_equal)
		write_store(location, chosen + 1, wanted, order, true);
	return is_equal;
}

void memory_fence(int order)
{
	struct thread *thread = thread_now();

	thread->now.time[explorer_thread()]++;
	if (acquires(order) && !is_weakened(WEAKEN_ACQUIRE_FENCES, NULL))
		join(&thread->now, &thread->to_acquire);
	if (order == memory_order_seq_cst)
		join_seq_cst();
	if (releases(order) && !is_weakened(WEAKEN_RELEASE_FENCES, NULL))
		thread->released_fence = thread->now;
}
