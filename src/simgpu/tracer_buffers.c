/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of activity buffers. A thread without room for its record requests a buffer from
 * the client. The record is written at once, with times of 0, and gets its times when they have
 * passed. A full buffer goes to the worker, which returns it once all its records are complete. A
 * flush returns complete buffers on its own thread; a forced flush returns all.
 *
 * Each thread has its buffer in a slot with its own lock, which only flushes contend for. The
 * client can request one slot for all threads instead, as before CUPTI 13.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_abi/cupti_record_bytes.h"
#include "simgpu/tracer.h"

/* Each attribute is stored and returned in its own width. Four of them have an effect. */
static struct {
	size_t value_bytes;
	_Atomic uint64_t value;
} attribute_values[] = {
	[XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE] = {sizeof(size_t), 3200000},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {sizeof(size_t), 250},
	[XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {sizeof(uint8_t), 0},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_PRE_ALLOCATE] = {sizeof(size_t), 3},
	[XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED] = {sizeof(uint8_t), 0},
	[XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {sizeof(uint8_t), 1},
	[XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {sizeof(size_t),
							    SIM_DEVICE_GRAPHS_BYTES},
};

static uint64_t attribute_value(uint32_t attribute)
{
	return atomic_load_explicit(&attribute_values[attribute].value, memory_order_relaxed);
}

static int check(uint32_t attribute, const size_t *value_bytes, const void *value)
{
	if (!value_bytes || !value ||
	    attribute >= sizeof(attribute_values) / sizeof(attribute_values[0]) ||
	    !attribute_values[attribute].value_bytes)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	if (*value_bytes < attribute_values[attribute].value_bytes)
		return XT_CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityGetAttribute(uint32_t attribute, size_t *value_bytes, void *value_out)
{
	int result = tracer_enter(__func__, true);
	uint64_t value;

	if (!result)
		result = check(attribute, value_bytes, value_out);
	if (result)
		return result;
	value = attribute_value(attribute);
	*value_bytes = attribute_values[attribute].value_bytes;
	memcpy(value_out, &value, *value_bytes); /* little endian: the low bytes come first */
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *value_bytes, void *value)
{
	int result = tracer_enter(__func__, true);
	uint64_t widened = 0;

	if (!result)
		result = check(attribute, value_bytes, value);
	if (result)
		return result;
	memcpy(&widened, value, attribute_values[attribute].value_bytes);
	atomic_store(&attribute_values[attribute].value, widened);
	if (attribute == XT_CUPTI_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS)
		atomic_store(&tracer_seam()->switches->device_graphs_bytes, widened);
	if (attribute == XT_CUPTI_ATTR_MEM_ALLOCATION_HOST_PINNED)
		atomic_store(&tracer_seam()->switches->has_host_records, widened != 0);
	return XT_CUPTI_SUCCESS;
}

#define WORKER_PERIOD_NS 5000000
#define RETRY_NS	 10000000
#define RECORD_BYTES_MIN 32

struct pending {
	size_t offset;
	struct sim_span span;
};

struct buffer {
	uint8_t *data;
	size_t data_bytes;
	size_t used_bytes;
	size_t records_max; /* 0: as many as fit */
	size_t record_count;
	struct pending *pending; /* records without times yet */
	size_t pending_count;
	uint64_t complete_ns; /* when it was found complete; 0: not yet */
	struct buffer *next;
};

struct slot {
	pthread_mutex_t lock;
	struct buffer *buffer; /* under lock */
	struct slot *next;
	struct slot *next_free;
};

static __thread struct slot *own_slot __attribute__((tls_model("initial-exec")));
static struct slot shared_slot = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t shared_request_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t slot_key;
static pthread_once_t slot_key_once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct slot *slots = &shared_slot; /* under lock; never freed */
static struct slot *free_slots;		  /* of exited threads; under lock */
static struct buffer *full_buffers;	  /* newest first; under lock */
static unsigned int delivering_count;	  /* buffers being returned to the client; under lock */
static struct {
	struct slot *slots;
	struct buffer *full_buffers;
	struct buffer *shared_buffer;
} abandoned;		       /* by a fork */
static bool worker_is_started; /* under lock */

static _Atomic(xt_cupti_buffer_requested) client_requested;
static _Atomic(xt_cupti_buffer_completed) client_completed;
static _Atomic uint64_t dropped_count;

/* Atomic stores: the buffer may be in a file that other processes read at any time. */
static void fill_in_times(struct buffer *buffer, const struct pending *pending, bool is_over)
{
	uint8_t *record = buffer->data + pending->offset;
	uint64_t start_ns = tracer_clock_convert(pending->span.start_ns);
	uint64_t end_ns = is_over ? tracer_clock_convert(pending->span.end_ns) : 0;
	uint32_t kind = ((struct cupti_activity *)record)->kind & ~XT_CUPTI_RECORD_BEGUN;
	size_t place = offsetof(struct cupti_activity_kernel, start_ns);

	if (kind == XT_CUPTI_ACTIVITY_DRIVER)
		place = offsetof(struct cupti_activity_api, start_ns);
	else if (kind == XT_CUPTI_ACTIVITY_GRAPH_TRACE)
		place = offsetof(struct cupti_activity_graph_trace, start_ns);
	if (tracer_fault_strikes(FAULT_ZERO_TIMES))
		start_ns = end_ns = 0;
	if (tracer_fault_strikes(FAULT_REVERSED_TIMES)) {
		uint64_t swapped_ns = start_ns;

		start_ns = end_ns;
		end_ns = swapped_ns;
	}
	__atomic_store_n((uint64_t *)(record + place), start_ns, __ATOMIC_RELAXED);
	__atomic_store_n((uint64_t *)(record + place) + 1, end_ns, __ATOMIC_RELEASE);
}

/* While the times of a record are missing, its kind has a bit that no kind uses. */
static void mark_begun(uint8_t *record)
{
	__atomic_fetch_or((uint32_t *)record, XT_CUPTI_RECORD_BEGUN, __ATOMIC_RELAXED);
}

static void mark_done(uint8_t *record)
{
	__atomic_fetch_and((uint32_t *)record, ~XT_CUPTI_RECORD_BEGUN, __ATOMIC_RELEASE);
}

/* A look by the worker, or a flush. */
enum sweep { SWEEP_LOOK, SWEEP_FLUSH, SWEEP_FORCED };

/* CUPTI before CUDA 13 gives these records away without times if it is flushed. */
static bool loses_times(const uint8_t *record)
{
	uint32_t kind = ((const struct cupti_activity *)record)->kind & ~XT_CUPTI_RECORD_BEGUN;

	return kind == XT_CUPTI_ACTIVITY_GRAPH_TRACE && tracer_fault_is_on(FAULT_VERSION) &&
	       tracer_fault_value(FAULT_VERSION) < XT_CUPTI_OF_CUDA13;
}

static void complete(struct buffer *buffer, uint64_t now_ns, enum sweep sweep)
{
	bool is_forced = sweep == SWEEP_FORCED;
	size_t kept = 0;

	for (size_t i = 0; i < buffer->pending_count; i++) {
		const struct pending pending = buffer->pending[i];
		uint8_t *record = buffer->data + pending.offset;
		bool is_over = pending.span.end_ns <= now_ns;
		bool is_taken =
			is_over || is_forced || (sweep == SWEEP_FLUSH && loses_times(record));

		if (is_over || (is_forced && pending.span.start_ns <= now_ns))
			fill_in_times(buffer, &pending, is_over);
		else if (!is_taken)
			buffer->pending[kept++] = pending;
		if (is_taken)
			mark_done(record);
	}
	buffer->pending_count = kept;
	if (!kept && !buffer->complete_ns)
		buffer->complete_ns = now_ns;
}

static bool may_go(const struct buffer *buffer, uint64_t now_ns, enum sweep sweep)
{
	uint64_t delay_ns = 0;

	if (tracer_fault_is_on(FAULT_LATE_BUFFERS) && sweep != SWEEP_FORCED)
		delay_ns = tracer_fault_value(FAULT_LATE_BUFFERS) * 1000000;
	return !buffer->pending_count && buffer->complete_ns + delay_ns <= now_ns;
}

static void give_back(const struct buffer *buffer, xt_cupti_buffer_completed completed)
{
	size_t valid_bytes = buffer->used_bytes;

	if (tracer_fault_strikes(FAULT_LONG_BUFFERS))
		valid_bytes += buffer->data_bytes;
	completed(NULL, 0, buffer->data, buffer->data_bytes, valid_bytes);
	if (tracer_fault_strikes(FAULT_TWICE_BUFFERS))
		completed(NULL, 0, buffer->data, buffer->data_bytes, valid_bytes);
}

/* Returns a list of buffers to the client, oldest first. Called without locks. */
static void deliver(struct buffer *list)
{
	xt_cupti_buffer_completed completed = atomic_load(&client_completed);
	unsigned int count = 0;

	while (list) {
		struct buffer *buffer = list;

		list = buffer->next;
		if (completed && !tracer_fault_strikes(FAULT_LOST_BUFFERS))
			give_back(buffer, completed);
		free(buffer->pending);
		free(buffer);
		count++;
	}
	pthread_mutex_lock(&lock);
	delivering_count -= count;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Removes the returnable buffers from the list of full ones. Under lock. */
static struct buffer *take_full(uint64_t now_ns, enum sweep sweep)
{
	struct buffer *taken = NULL;
	struct buffer **place = &full_buffers;

	while (*place) {
		struct buffer *buffer = *place;

		complete(buffer, now_ns, sweep);
		if (!may_go(buffer, now_ns, sweep)) {
			place = &buffer->next;
			continue;
		}
		*place = buffer->next;
		buffer->next = taken;
		taken = buffer;
		delivering_count++;
	}
	return taken;
}

/* Fills in times in all threads' buffers. A flush also takes the returnable ones. Under lock. */
static struct buffer *sweep_slots(uint64_t now_ns, enum sweep sweep, struct buffer *taken)
{
	for (struct slot *slot = slots; slot; slot = slot->next) {
		struct buffer *buffer;

		pthread_mutex_lock(&slot->lock);
		buffer = slot->buffer;
		if (buffer)
			complete(buffer, now_ns, sweep);
		if (buffer && sweep != SWEEP_LOOK && buffer->record_count &&
		    may_go(buffer, now_ns, sweep)) {
			slot->buffer = NULL;
			buffer->next = taken;
			taken = buffer;
			delivering_count++;
		}
		pthread_mutex_unlock(&slot->lock);
	}
	return taken;
}

static void *worker(void *unused)
{
	const struct timespec period = {.tv_nsec = WORKER_PERIOD_NS};
	struct buffer *taken;

	for (;;) {
		uint64_t now_ns = tracer_monotonic_ns();

		pthread_mutex_lock(&lock);
		taken = take_full(now_ns, SWEEP_LOOK);
		sweep_slots(now_ns, SWEEP_LOOK, NULL);
		pthread_mutex_unlock(&lock);
		deliver(taken);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
	}
	return unused;
}

static void retire(struct buffer *buffer)
{
	pthread_mutex_lock(&lock);
	buffer->next = full_buffers;
	full_buffers = buffer;
	pthread_mutex_unlock(&lock);
}

/* At thread exit, the buffer goes to the worker and the slot to the next thread. */
static void release_slot(void *data)
{
	struct slot *slot = data;
	struct buffer *buffer;

	pthread_mutex_lock(&slot->lock);
	buffer = slot->buffer;
	slot->buffer = NULL;
	pthread_mutex_unlock(&slot->lock);
	if (buffer)
		retire(buffer);
	pthread_mutex_lock(&lock);
	slot->next_free = free_slots;
	free_slots = slot;
	pthread_mutex_unlock(&lock);
	own_slot = NULL;
}

static void make_slot_key(void)
{
	pthread_key_create(&slot_key, release_slot);
}

static struct slot *make_own_slot(void)
{
	struct slot *slot;

	pthread_once(&slot_key_once, make_slot_key);
	pthread_mutex_lock(&lock);
	slot = free_slots;
	if (slot) {
		free_slots = slot->next_free;
	} else {
		slot = calloc(1, sizeof(*slot));
		if (slot) {
			pthread_mutex_init(&slot->lock, NULL);
			slot->next = slots;
			slots = slot;
		}
	}
	pthread_mutex_unlock(&lock);
	pthread_setspecific(slot_key, slot);
	own_slot = slot;
	return slot;
}

static bool has_room(const struct buffer *buffer, size_t record_bytes)
{
	return buffer && buffer->used_bytes + record_bytes <= buffer->data_bytes &&
	       (!buffer->records_max || buffer->record_count < buffer->records_max);
}

/* A failure costs tens of microseconds, so it is not repeated for each record. */
static bool grow_pending(struct buffer *buffer, size_t data_bytes)
{
	static _Atomic uint64_t failed_ns;
	size_t bytes = (data_bytes / RECORD_BYTES_MIN + 1) * sizeof(*buffer->pending);
	uint64_t now_ns = tracer_monotonic_ns();
	struct pending *pending;

	if (now_ns < atomic_load(&failed_ns) + RETRY_NS)
		return false;
	pending = realloc(buffer->pending, bytes);
	if (pending)
		buffer->pending = pending;
	else
		atomic_store(&failed_ns, now_ns);
	return pending != NULL;
}

/* Requests a buffer from the client. NULL if it gave none, or one too small for a record. */
static struct buffer *request(size_t record_bytes)
{
	static _Atomic size_t last_bytes; /* of a buffer; the client is not asked without memory */
	xt_cupti_buffer_requested requested = atomic_load(&client_requested);
	xt_cupti_buffer_completed completed = atomic_load(&client_completed);
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer || !requested || !grow_pending(buffer, atomic_load(&last_bytes)))
		goto fail;
	requested(&buffer->data, &buffer->data_bytes, &buffer->records_max);
	if (!buffer->data || buffer->data_bytes < record_bytes)
		goto fail;
	atomic_store(&last_bytes, buffer->data_bytes);
	if (!grow_pending(buffer, buffer->data_bytes)) {
		if (completed)
			give_back(buffer, completed);
		goto fail;
	}
	if (!attribute_value(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER))
		memset(buffer->data, 0, buffer->data_bytes);
	return buffer;
fail:
	if (buffer)
		free(buffer->pending);
	free(buffer);
	return NULL;
}

static void write_record(struct buffer *buffer, const void *record, size_t record_bytes,
			 struct sim_span span)
{
	memcpy(buffer->data + buffer->used_bytes, record, record_bytes);
	if (span.end_ns) {
		buffer->pending[buffer->pending_count++] =
			(struct pending){buffer->used_bytes, span};
		mark_begun(buffer->data + buffer->used_bytes);
	}
	buffer->used_bytes += record_bytes;
	buffer->record_count++;
	buffer->complete_ns = 0;
}

/* Returns false if there is no room. *full_out is then the buffer to retire, or NULL. */
static bool try_append(struct slot *slot, const void *record, size_t record_bytes,
		       struct sim_span span, struct buffer **full_out)
{
	bool is_written;

	*full_out = NULL;
	pthread_mutex_lock(&slot->lock);
	is_written = has_room(slot->buffer, record_bytes);
	if (is_written) {
		write_record(slot->buffer, record, record_bytes, span);
	} else {
		*full_out = slot->buffer;
		slot->buffer = NULL;
	}
	pthread_mutex_unlock(&slot->lock);
	return is_written;
}

static void append_in_new_buffer(struct slot *slot, const void *record, size_t record_bytes,
				 struct sim_span span)
{
	struct buffer *buffer = request(record_bytes);

	if (!buffer) {
		atomic_fetch_add(&dropped_count, 1);
		return;
	}
	write_record(buffer, record, record_bytes, span);
	pthread_mutex_lock(&slot->lock);
	slot->buffer = buffer;
	pthread_mutex_unlock(&slot->lock);
}

void tracer_append(const void *record, size_t record_bytes, struct sim_span span)
{
	struct slot *slot = own_slot ? own_slot : make_own_slot();
	bool is_in_shared = !attribute_value(XT_CUPTI_ATTR_PER_THREAD_ACTIVITY_BUFFER);
	struct buffer *full;

	if (!slot || tracer_fault_strikes(FAULT_DROP_RECORDS)) {
		atomic_fetch_add(&dropped_count, 1);
		return;
	}
	if (is_in_shared) {
		slot = &shared_slot;
		pthread_mutex_lock(&shared_request_lock);
	}
	if (!try_append(slot, record, record_bytes, span, &full)) {
		if (full)
			retire(full);
		append_in_new_buffer(slot, record, record_bytes, span);
	}
	if (is_in_shared)
		pthread_mutex_unlock(&shared_request_lock);
}

/* For a forked child: abandons the parent's buffers, which it must not touch. */
void tracer_buffers_reset(void)
{
	abandoned.slots = slots;
	abandoned.full_buffers = full_buffers;
	abandoned.shared_buffer = shared_slot.buffer;
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&shared_request_lock, NULL);
	pthread_cond_init(&changed, NULL);
	pthread_mutex_init(&shared_slot.lock, NULL);
	shared_slot.buffer = NULL;
	shared_slot.next = NULL; /* the last of the list, as before */
	slots = &shared_slot;
	free_slots = NULL;
	full_buffers = NULL;
	delivering_count = 0;
	worker_is_started = false;
	own_slot = NULL;
	pthread_setspecific(slot_key, NULL);
	atomic_store(&client_requested, NULL);
	atomic_store(&client_completed, NULL);
}

SIM_EXPORT int cuptiActivityRegisterCallbacks(xt_cupti_buffer_requested requested,
					      xt_cupti_buffer_completed completed)
{
	int result = tracer_enter(__func__, requested && completed);

	if (result)
		return result;
	atomic_store(&client_requested, requested);
	atomic_store(&client_completed, completed);
	pthread_mutex_lock(&lock);
	if (!worker_is_started)
		worker_is_started = !sim_start_thread(worker);
	pthread_mutex_unlock(&lock);
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	int result = tracer_enter(__func__, true);
	enum sweep sweep = flag & XT_CUPTI_FLUSH_FORCED ? SWEEP_FORCED : SWEEP_FLUSH;
	uint64_t now_ns = tracer_monotonic_ns();
	struct buffer *taken;

	if (result)
		return result;
	while (tracer_fault_is_on(FAULT_HANG_FLUSH))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_sec = 1}, NULL);
	pthread_mutex_lock(&lock);
	taken = take_full(now_ns, sweep);
	taken = sweep_slots(now_ns, sweep, taken);
	pthread_mutex_unlock(&lock);
	deliver(taken);
	pthread_mutex_lock(&lock);
	while (delivering_count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return XT_CUPTI_SUCCESS;
}

/* Full buffers are returned at once, so any period is satisfied. */
SIM_EXPORT int cuptiActivityFlushPeriod(uint32_t period_ms)
{
	(void)period_ms;
	return tracer_enter(__func__, true);
}

SIM_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream_id,
						 size_t *dropped_out)
{
	int result = tracer_enter(__func__, dropped_out);

	(void)context;
	(void)stream_id;
	if (result)
		return result;
	*dropped_out = atomic_exchange(&dropped_count, 0);
	return XT_CUPTI_SUCCESS;
}
