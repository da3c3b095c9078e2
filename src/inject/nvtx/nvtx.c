/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that NVTX calls instead of its own. They run in the program's threads. Ranges and
 * marks keep the hot-path rules (inject/runtime/hotpath.h): they commit an event, its payloads and
 * the texts that these point to, to the ring of the calling thread. Creating domains and
 * registering strings, which happens once, takes memory from our own store.
 *
 * A range may begin before CUDA is initialised. It is committed without a stack, and the writer
 * reads it when it starts. If the ring is full it is lost at once, because there may never be a
 * writer.
 *
 * A payload is the program's memory. Never read more than the program states, the schema needs, or
 * the ring record has room for.
 */
#include "inject/nvtx/nvtx.h"

#include <errno.h>
#include <string.h>

#include "inject/capture/callbacks.h"
#include "inject/capture/ring.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/thread_buffer.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/process.h"
#include "xtrace/log_format.h"

/*
 * Defines the function nvtx_##name for a table of NVTX. The arguments are NVTX's, as integers; regs
 * are the caller's registers. Without them, a siglongjmp() out of the tracer would go undetected.
 */
#define NVTX_FUNCTION(name)                                                                        \
	TRAMPOLINE(".text", nvtx_##name, nvtx_body_##name);                                        \
	void nvtx_##name(void);                                                                    \
	__attribute__((visibility("hidden"), used))                                                \
	uint64_t nvtx_body_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,              \
				  const struct caller_regs *regs);                                 \
	uint64_t nvtx_body_##name(                                                                 \
		__attribute__((unused)) uintptr_t a, __attribute__((unused)) uintptr_t b,          \
		__attribute__((unused)) uintptr_t c, __attribute__((unused)) uintptr_t d,          \
		__attribute__((unused)) const struct caller_regs *regs)

/* Returns value of push and pop: nesting levels are not counted. */
#define NVTX_NO_TRACKING ((uint64_t)(uint32_t)XT_NVTX_NO_PUSH_POP_TRACKING)

/* An NVTX event, independent of the function that reported it. */
struct nvtx_event {
	uint32_t operation; /* enum xt_range_operation */
	uint32_t domain;
	uint64_t key;
	const char *text;
	size_t text_bytes;	  /* of a text without terminator; 0: terminated */
	const wchar_t *wide_text; /* instead of text */
	uint64_t payload;	  /* used without attributes */
	uint32_t category, color; /* used without attributes */
	const struct xt_nvtx_attributes *attributes;
	const struct xt_nvtx_payload *payloads; /* of the payload extension */
	size_t payload_count;
};

#define POINTED_TEXT_BYTES 256

#define PAYLOADS_MAX	 16 /* per event */
#define OPAQUE_BYTES_MAX 32 /* copied from a payload without a schema */
#define ALIGNED(bytes)	 (((bytes) + 7) & ~(size_t)7)

static bool has_entry(const struct payload_schema *schema, uint32_t place, uint32_t bytes,
		      const struct xt_nvtx_payload *payload)
{
	uint64_t end, all = payload->bytes == SIZE_MAX ? schema->bytes : payload->bytes;

	if (place >= schema->entry_count || schema->entries[place].offset == OFFSET_UNKNOWN)
		return false;
	end = schema->entries[place].offset + (uint64_t)bytes;
	return end <= all && (!schema->bytes || end <= schema->bytes);
}

static uint32_t number_at(const struct payload_schema *schema, uint32_t place,
			  const struct xt_nvtx_payload *payload)
{
	uint32_t number = 0;

	if (has_entry(schema, place, sizeof(number), payload))
		memcpy(&number, (const uint8_t *)payload->data + schema->entries[place].offset,
		       sizeof(number));
	return number;
}

static void take_message(const struct payload_schema *schema, struct nvtx_event *event,
			 const struct xt_nvtx_payload *payload)
{
	const struct payload_entry *entry = &schema->entries[schema->message];
	const uint8_t *data = (const uint8_t *)payload->data + entry->offset;
	uint64_t bytes, count;
	uint32_t align;

	if (payload_is_pointed_text(entry)) {
		const char *text;

		if (!has_entry(schema, schema->message, sizeof(text), payload))
			return;
		memcpy(&text, data, sizeof(text));
		if (entry->type == XT_NVTX_TYPE_CSTRING_UTF32)
			event->wide_text = (const wchar_t *)text;
		else if (entry->type != XT_NVTX_TYPE_REGISTERED_STRING || nvtx_is_registered(text))
			event->text = text;
	} else if (payload_type(entry->type).class == CLASS_TEXT &&
		   payload_type(entry->type).bytes == 1 &&
		   payload_extent(entry, &bytes, &align, &count) && bytes &&
		   has_entry(schema, schema->message, (uint32_t)bytes, payload)) {
		event->text = (const char *)data;
		event->text_bytes = bytes;
	}
}

/* Takes message, category and color of an event without attributes from its payloads. */
static void payload_describe(struct nvtx_event *event)
{
	if (event->operation == XT_RANGE_POP || event->operation == XT_RANGE_END)
		return;
	for (size_t i = 0; event->payloads && i < event->payload_count && i < PAYLOADS_MAX; i++) {
		const struct xt_nvtx_payload *payload = &event->payloads[i];
		const struct payload_schema *schema =
			nvtx_find_schema(event->domain, payload->schema_id);

		if (!schema || !payload->data || schema->kind > XT_NVTX_SCHEMA_DYNAMIC)
			continue;
		if (schema->message < schema->entry_count)
			take_message(schema, event, payload);
		if (!event->text && !event->wide_text && schema->name[0])
			event->text = schema->name;
		if (!event->category)
			event->category = number_at(schema, schema->category, payload);
		if (!event->color)
			event->color = number_at(schema, schema->color, payload);
	}
}

/* How many bytes of a payload are useful. */
static size_t wanted_bytes(const struct payload_schema *schema,
			   const struct xt_nvtx_payload *payload, size_t room)
{
	struct payload_type type = payload_type(payload->schema_id);
	size_t stated = payload->bytes;

	if (!payload->data || payload->schema_id == XT_NVTX_SCHEMA_REFERENCED)
		return 0;
	if (schema) {
		if (schema->bytes && stated > schema->bytes)
			return schema->bytes;
		return stated == SIZE_MAX ? 0 : stated;
	}
	if (type.class == CLASS_TEXT && type.bytes == 1)
		return strnlen(payload->data, stated < room ? stated : room);
	if (stated == SIZE_MAX)
		return type.bytes;
	return type.class == CLASS_NONE && stated > OPAQUE_BYTES_MAX ? OPAQUE_BYTES_MAX : stated;
}

/* Copies the text that the pointer at `from` refers to. Returns the end of the output. */
static uint8_t *take_text(uint32_t type, const uint8_t *from, uint8_t *out, const uint8_t *end)
{
	size_t room = (size_t)(end - out) - sizeof(struct taken_text);
	struct taken_text taken = {.text_bytes = TEXT_NULL};
	char *copy = (char *)out + sizeof(taken);
	const char *text;

	memcpy(&text, from, sizeof(text));
	room = room < POINTED_TEXT_BYTES ? room & ~(size_t)7 : POINTED_TEXT_BYTES;
	if (type == XT_NVTX_TYPE_REGISTERED_STRING && !nvtx_is_registered(text))
		text = NULL;
	if (text && type == XT_NVTX_TYPE_CSTRING_UTF32) {
		taken.text_bytes =
			room ? (uint32_t)nvtx_narrow((const wchar_t *)text, copy, room) : 0;
		taken.is_cut = taken.text_bytes + 4 >= room;
	} else if (text) {
		taken.text_bytes = (uint32_t)strnlen(text, room);
		taken.is_cut = taken.text_bytes == room;
		memcpy(copy, text, taken.text_bytes);
	}
	memcpy(out, &taken, sizeof(taken));
	return out + sizeof(taken) + (text ? ALIGNED(taken.text_bytes) : 0);
}

static uint8_t *take_payload(uint32_t domain, const struct xt_nvtx_payload *payload, uint8_t *out,
			     const uint8_t *end)
{
	const struct payload_schema *schema = nvtx_find_schema(domain, payload->schema_id);
	/* Reserve at least the head of each text. */
	size_t heads = schema ? schema->text_count * sizeof(struct taken_text) : 0;
	size_t left = (size_t)(end - out) - sizeof(struct taken_payload);
	size_t room = left > heads ? (left - heads) & ~(size_t)7 : 0;
	size_t bytes = wanted_bytes(schema, payload, room);
	uint8_t *data = out + sizeof(struct taken_payload), *p;
	struct taken_payload taken = {
		.schema = schema ? schema->number : 0,
		.data_bytes = (uint32_t)(bytes < room ? bytes : room),
		.schema_id = payload->schema_id,
		.stated_bytes = payload->bytes,
	};

	memcpy(out, &taken, sizeof(taken));
	if (taken.data_bytes)
		memcpy(data, payload->data, taken.data_bytes);
	p = data + ALIGNED(taken.data_bytes);
	for (uint32_t t = 0; schema && t < schema->text_count; t++) {
		heads -= sizeof(struct taken_text);
		if (schema->texts[t].offset + sizeof(char *) <= taken.data_bytes)
			p = take_text(schema->texts[t].type, data + schema->texts[t].offset, p,
				      end - heads);
	}
	return p;
}

/* Copies the payloads of an event; returns how many bytes that took, a multiple of 8. */
static size_t payload_take(const struct nvtx_event *event, uint8_t *out, size_t room)
{
	/* Reserve room for the count of payloads that did not fit. */
	const uint8_t *end = out + room - sizeof(struct taken_payload);
	uint8_t *p = out;
	size_t i = 0;

	if (!event->payloads)
		return 0;
	for (; i < event->payload_count && i < PAYLOADS_MAX; i++) {
		if ((size_t)(end - p) < sizeof(struct taken_payload))
			break;
		if (event->payloads[i].schema_id == XT_NVTX_TYPE_NONE)
			continue;
		p = take_payload(event->domain, &event->payloads[i], p, end);
	}
	if (i < event->payload_count) {
		struct taken_payload rest = {.stated_bytes = event->payload_count - i};

		memcpy(p, &rest, sizeof(rest));
		p += sizeof(rest);
	}
	return (size_t)(p - out);
}

#define NVTX_DOMAINS_MAX 256 /* more count as the default domain */

/* A domain handle that we returned points to this. */
struct domain {
	uint32_t number;
	const char *name;
};

static struct domain domains[NVTX_DOMAINS_MAX]; /* [0] is the default domain */
static atomic_uint domain_count = 1;

static atomic_uint_fast64_t range_keys;

static atomic_bool abandoned;

atomic_uint_fast64_t nvtx_events_without_thread_buffer;

static size_t event_text(const struct nvtx_event *event, char *out)
{
	const struct xt_nvtx_attributes *attributes = event->attributes;
	const char *text = event->text;
	const wchar_t *wide_text = event->wide_text;
	size_t length;

	if (attributes && attributes->message) {
		if (attributes->message_type == XT_NVTX_MESSAGE_UNICODE)
			wide_text = attributes->message;
		else if (attributes->message_type == XT_NVTX_MESSAGE_ASCII ||
			 attributes->message_type == XT_NVTX_MESSAGE_REGISTERED)
			text = attributes->message; /* a registered string's handle is the string */
	}
	if (wide_text)
		return nvtx_narrow(wide_text, out, TEXT_BYTES_MAX);
	length = text ? strnlen(text, event->text_bytes && event->text_bytes < TEXT_BYTES_MAX
					      ? event->text_bytes
					      : TEXT_BYTES_MAX)
		      : 0;
	if (length)
		memcpy(out, text, length);
	return length;
}

static bool has_place(uint32_t operation)
{
	return operation == XT_RANGE_PUSH || operation == XT_RANGE_START ||
	       operation == XT_RANGE_MARK;
}

static void commit_event(struct thread_buffer *tb, const struct nvtx_event *event,
			 size_t text_bytes, size_t payload_bytes, const struct caller_regs *regs)
{
	const struct xt_nvtx_attributes *attributes = event->attributes;
	size_t text_room = (text_bytes + 7) & ~(size_t)7;
	uint32_t bytes = (uint32_t)(sizeof(struct xt_record_range) + text_room + payload_bytes);
	bool is_recorded = atomic_load_explicit(&callbacks_active, memory_order_acquire);
	uint32_t slot = XT_STACK_SLOT_NONE;
	struct xt_record_range *record;

	/* Before CUDA starts, stacks cannot be walked. */
	if (has_place(event->operation) && is_recorded)
		slot = capture_stack(tb, regs);
	thread_buffer_count_up(tb, XT_RING_RANGES_SEEN);
	record = is_recorded ? ring_reserve_or_wait(tb, bytes) : ring_reserve(tb, bytes);
	if (!record) {
		thread_buffer_count_up(tb, XT_RING_RANGES_LOST);
		return;
	}
	memset(record, 0, bytes);
	record->head.type = XT_RECORD_RANGE;
	record->head.bytes = (uint16_t)bytes;
	record->stack_slot = slot;
	record->time_ns = monotonic_ns();
	record->key = event->key;
	record->domain = event->domain;
	record->operation = event->operation;
	record->text_bytes = (uint32_t)text_bytes;
	memcpy(record->text, tb->text, text_bytes);
	record->payload_bytes = (uint32_t)payload_bytes;
	memcpy(record->text + text_room, tb->payload, payload_bytes);
	record->payload = event->payload;
	record->category = event->category;
	record->color = event->color;
	if (attributes) {
		if (attributes->payload_type != XT_NVTX_PAYLOAD_EXTENDED) {
			record->payload = attributes->payload;
			record->payload_type = (uint32_t)attributes->payload_type;
		}
		record->category = attributes->category;
		record->color = attributes->color_type ? attributes->color : 0;
	}
	ring_commit(tb, bytes);
}

static bool is_extended(const struct xt_nvtx_attributes *attributes)
{
	return attributes && attributes->payload_type == XT_NVTX_PAYLOAD_EXTENDED;
}

/*
 * Copies the event's payloads into the thread buffer. Values that describe the event itself go into
 * the event.
 */
static size_t take_payloads(struct thread_buffer *tb, struct nvtx_event *event)
{
	const struct xt_nvtx_attributes *attributes = event->attributes;

	if (attributes) {
		event->payloads = (const struct xt_nvtx_payload *)attributes->payload;
		event->payload_count =
			attributes->reserved0 > 0 ? (size_t)attributes->reserved0 : 0;
	} else {
		payload_describe(event);
	}
	return payload_take(event, tb->payload, sizeof(tb->payload));
}

/* Commits the event to the ring of the calling thread. */
static void nvtx_commit(const struct nvtx_event *event, const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;
	struct nvtx_event described;
	size_t payload_bytes = 0;

	if (atomic_load_explicit(&abandoned, memory_order_relaxed) ||
	    (event->operation <= XT_RANGE_MARK &&
	     atomic_load_explicit(&recording_paused, memory_order_relaxed) & PAUSED_STOPPED))
		return;
	if (!tb)
		tb = thread_buffer_claim();
	if (!tb || !thread_buffer_enter(tb, regs)) { /* a signal handler interrupted the tracer */
		atomic_fetch_add_explicit(&nvtx_events_without_thread_buffer, 1,
					  memory_order_relaxed);
		return;
	}
	tb->event_return = regs ? regs->return_address : 0;
	if (event->payload_count || is_extended(event->attributes)) {
		described = *event;
		payload_bytes = take_payloads(tb, &described);
		event = &described;
	}
	commit_event(tb, event, event_text(event, tb->text), payload_bytes, regs);
	tb->event_return = 0;
	thread_buffer_leave(tb);
}

void nvtx_note_name(uint32_t operation, uint64_t key, uint64_t payload, const char *text,
		    const wchar_t *wide_text, const struct caller_regs *regs)
{
	nvtx_commit(&(struct nvtx_event){.operation = operation,
					 .key = key,
					 .payload = payload,
					 .text = text,
					 .wide_text = wide_text},
		    regs);
}

/* The number of the domain with that handle; 0 is the default domain. */
static uint32_t nvtx_domain_number(uintptr_t handle)
{
	const struct domain *domain = (const struct domain *)handle;

	return domain >= domains && domain < domains + NVTX_DOMAINS_MAX ? domain->number : 0;
}

/* A unique number for a started range. */
static uint64_t nvtx_next_key(void)
{
	return atomic_fetch_add_explicit(&range_keys, 1, memory_order_relaxed) + 1;
}

uint64_t nvtx_last_key(void)
{
	return atomic_load(&range_keys);
}

/* Creates a domain and returns its handle, or that of the default domain if there are too many. */
static uintptr_t nvtx_create_domain(const char *name)
{
	unsigned number = atomic_fetch_add(&domain_count, 1);

	if (number >= NVTX_DOMAINS_MAX) {
		atomic_store(&domain_count, NVTX_DOMAINS_MAX);
		return (uintptr_t)&domains[0];
	}
	domains[number].name = nvtx_keep_text(name);
	/* Pairs with the acquire in nvtx_domain_name(). */
	__atomic_store_n(&domains[number].number, number, __ATOMIC_RELEASE);
	return (uintptr_t)&domains[number];
}

const char *nvtx_domain_name(uint64_t domain)
{
	if (!domain || domain >= NVTX_DOMAINS_MAX ||
	    !__atomic_load_n(&domains[domain].number, __ATOMIC_ACQUIRE))
		return "";
	return domains[domain].name;
}

void nvtx_abandon(void)
{
	atomic_store(&abandoned, true);
}

_Static_assert(TEXT_BYTES_MAX <= THREAD_BUFFER_TEXT_BYTES, "a text fits into a thread buffer");

/*
 * Forms in the lists of NVTX's functions: EVENT(place in the table, name, result, members of
 * struct nvtx_event), START(place, name, members) for starts of ranges, and OTHER(place, name).
 * The result of START is the key of the range. TEXT() is a pair of events: char and wchar_t.
 */
#define DEFINE_EVENT(place, name, result, ...)                                                     \
	NVTX_FUNCTION(name)                                                                        \
	{                                                                                          \
		nvtx_commit(&(struct nvtx_event){__VA_ARGS__}, regs);                              \
		return result;                                                                     \
	}
#define DEFINE_START(place, name, ...)                                                             \
	NVTX_FUNCTION(name)                                                                        \
	{                                                                                          \
		uint64_t key = nvtx_next_key();                                                    \
                                                                                                   \
		nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_START,                      \
						 .key = key,                                       \
						 __VA_ARGS__},                                     \
			    regs);                                                                 \
		return key;                                                                        \
	}
#define DEFINE_OTHER(place, name) /* below */
#define ENTRY(place, name, ...)	  {XT_NVTX_##place, nvtx_##name},
#define TEXT(EVENT, place, name, result, argument, ...)                                            \
	EVENT(place##_A, name##_a, result, __VA_ARGS__, .text = (const char *)argument)            \
	EVENT(place##_W, name##_w, result, __VA_ARGS__, .wide_text = (const wchar_t *)argument)

/*
 * Names that programs give to devices, contexts, streams and events. NVTX passes CUDA handles,
 * records of GPU work have CUPTI's ids, so this asks for the ids. Programs name an object once, so
 * calls to the loader and the driver are acceptable. An object without an id gets no name.
 */

/* Once recording has started, CUPTI and CUDA are initialised. */
static bool is_ready(void)
{
	return atomic_load_explicit(&callbacks_active, memory_order_acquire);
}

static bool context_number(void *context, uint64_t *number)
{
	uint32_t id;

	if (!is_ready() || !cupti.cuptiGetContextId ||
	    cupti.cuptiGetContextId(context, &id) != XT_CUPTI_SUCCESS)
		return false;
	*number = id;
	return true;
}

/* Stream ids are unique within a context. */
static bool stream_numbers(void *stream, uint64_t *number, uint64_t *context)
{
	int (*get_context)(void *, void **);
	int saved_errno = errno;
	void *owner = NULL;
	uint32_t id;

	if (!is_ready() || !cupti.cuptiGetStreamIdEx)
		return false;
	get_context = driver_function("cuStreamGetCtx");
	if (get_context && get_context(stream, &owner))
		owner = NULL;
	errno = saved_errno;
	if (!owner || !context_number(owner, context) ||
	    cupti.cuptiGetStreamIdEx(owner, stream, 0, &id) != XT_CUPTI_SUCCESS)
		return false;
	*number = id;
	return true;
}

static void name_context(uintptr_t context, const char *text, const wchar_t *wide_text,
			 const struct caller_regs *regs)
{
	uint64_t number;

	if (context_number((void *)context, &number))
		nvtx_note_name(XT_RANGE_NAME_CONTEXT, number, 0, text, wide_text, regs);
}

static void name_stream(uintptr_t stream, const char *text, const wchar_t *wide_text,
			const struct caller_regs *regs)
{
	uint64_t number, context;

	if (stream_numbers((void *)stream, &number, &context))
		nvtx_note_name(XT_RANGE_NAME_STREAM, number, context, text, wide_text, regs);
}

/* Handles are pointers, except that a device is an ordinal. */
#define NAMING_FUNCTIONS(object)                                                                   \
	NVTX_FUNCTION(name_##object##_a)                                                           \
	{                                                                                          \
		name_##object(a, (const char *)b, NULL, regs);                                     \
		return 0;                                                                          \
	}                                                                                          \
	NVTX_FUNCTION(name_##object##_w)                                                           \
	{                                                                                          \
		name_##object(a, NULL, (const wchar_t *)b, regs);                                  \
		return 0;                                                                          \
	}
NAMING_FUNCTIONS(context)
NAMING_FUNCTIONS(stream)

#define CUDA_FUNCTIONS(EVENT, OTHER)                                                               \
	TEXT(EVENT, NAME_CU_DEVICE, name_device, 0, b, .operation = XT_RANGE_NAME_DEVICE,          \
	     .key = (uint32_t)a)                                                                   \
	TEXT(EVENT, NAME_CU_EVENT, name_event, 0, b, .operation = XT_RANGE_NAME_EVENT, .key = a)   \
	OTHER(NAME_CU_CONTEXT_A, name_context_a)                                                   \
	OTHER(NAME_CU_CONTEXT_W, name_context_w)                                                   \
	OTHER(NAME_CU_STREAM_A, name_stream_a)                                                     \
	OTHER(NAME_CU_STREAM_W, name_stream_w)
CUDA_FUNCTIONS(DEFINE_EVENT, DEFINE_OTHER)

const struct nvtx_entry nvtx_cuda_entries[] = {CUDA_FUNCTIONS(ENTRY, ENTRY){0, NULL}};

/* The runtime API's streams and events are the driver's. */
static const struct nvtx_entry nvtx_cudart_entries[] = {
	{XT_NVTX_NAME_CUDA_DEVICE_A, nvtx_name_device_a},
	{XT_NVTX_NAME_CUDA_DEVICE_W, nvtx_name_device_w},
	{XT_NVTX_NAME_CUDA_STREAM_A, nvtx_name_stream_a},
	{XT_NVTX_NAME_CUDA_STREAM_W, nvtx_name_stream_w},
	{XT_NVTX_NAME_CUDA_EVENT_A, nvtx_name_event_a},
	{XT_NVTX_NAME_CUDA_EVENT_W, nvtx_name_event_w},
	{0, NULL},
};

#define CORE_FUNCTIONS(EVENT, START)                                                               \
	EVENT(MARK_EX, mark_ex, 0, .operation = XT_RANGE_MARK, .attributes = (const void *)a)      \
	TEXT(EVENT, MARK, mark, 0, a, .operation = XT_RANGE_MARK)                                  \
	START(RANGE_START_EX, range_start_ex, .attributes = (const void *)a)                       \
	START(RANGE_START_A, range_start_a, .text = (const char *)a)                               \
	START(RANGE_START_W, range_start_w, .wide_text = (const wchar_t *)a)                       \
	EVENT(RANGE_END, range_end, 0, .operation = XT_RANGE_END, .key = a)                        \
	EVENT(RANGE_PUSH_EX, range_push_ex, NVTX_NO_TRACKING, .operation = XT_RANGE_PUSH,          \
	      .attributes = (const void *)a)                                                       \
	TEXT(EVENT, RANGE_PUSH, range_push, NVTX_NO_TRACKING, a, .operation = XT_RANGE_PUSH)       \
	EVENT(RANGE_POP, range_pop, NVTX_NO_TRACKING, .operation = XT_RANGE_POP)                   \
	TEXT(EVENT, NAME_OS_THREAD, name_os_thread, 0, b, .operation = XT_RANGE_NAME_THREAD,       \
	     .key = (uint32_t)a)                                                                   \
	TEXT(EVENT, NAME_CATEGORY, name_category, 0, b, .operation = XT_RANGE_NAME_CATEGORY,       \
	     .key = (uint32_t)a)
CORE_FUNCTIONS(DEFINE_EVENT, DEFINE_START)

static const struct nvtx_entry core_entries[] = {CORE_FUNCTIONS(ENTRY, ENTRY){0, NULL}};

/* The same in a domain, their first argument. */
#define DOMAIN_FUNCTIONS(EVENT, START, OTHER)                                                      \
	EVENT(DOMAIN_MARK_EX, domain_mark_ex, 0, .operation = XT_RANGE_MARK,                       \
	      .domain = nvtx_domain_number(a), .attributes = (const void *)b)                      \
	START(DOMAIN_RANGE_START_EX, domain_range_start_ex, .domain = nvtx_domain_number(a),       \
	      .attributes = (const void *)b)                                                       \
	EVENT(DOMAIN_RANGE_END, domain_range_end, 0, .operation = XT_RANGE_END,                    \
	      .domain = nvtx_domain_number(a), .key = b)                                           \
	EVENT(DOMAIN_RANGE_PUSH_EX, domain_range_push_ex, NVTX_NO_TRACKING,                        \
	      .operation = XT_RANGE_PUSH, .domain = nvtx_domain_number(a),                         \
	      .attributes = (const void *)b)                                                       \
	EVENT(DOMAIN_RANGE_POP, domain_range_pop, NVTX_NO_TRACKING, .operation = XT_RANGE_POP,     \
	      .domain = nvtx_domain_number(a))                                                     \
	TEXT(EVENT, DOMAIN_NAME_CATEGORY, domain_name_category, 0, c,                              \
	     .operation = XT_RANGE_NAME_CATEGORY, .domain = nvtx_domain_number(a),                 \
	     .key = (uint32_t)b)                                                                   \
	OTHER(DOMAIN_REGISTER_STRING_A, domain_register_string_a)                                  \
	OTHER(DOMAIN_REGISTER_STRING_W, domain_register_string_w)                                  \
	OTHER(DOMAIN_CREATE_A, domain_create_a)                                                    \
	OTHER(DOMAIN_CREATE_W, domain_create_w)
DOMAIN_FUNCTIONS(DEFINE_EVENT, DEFINE_START, DEFINE_OTHER)

/* The handle of a registered string is the string. */
NVTX_FUNCTION(domain_register_string_a)
{
	return (uintptr_t)nvtx_keep_text((const char *)b);
}

NVTX_FUNCTION(domain_register_string_w)
{
	char text[TEXT_BYTES_MAX];

	nvtx_narrow((const wchar_t *)b, text, sizeof(text));
	return (uintptr_t)nvtx_keep_text(text);
}

NVTX_FUNCTION(domain_create_a)
{
	return nvtx_create_domain((const char *)a);
}

NVTX_FUNCTION(domain_create_w)
{
	char text[TEXT_BYTES_MAX];

	nvtx_narrow((const wchar_t *)a, text, sizeof(text));
	return nvtx_create_domain(text);
}

static const struct nvtx_entry core2_entries[] = {DOMAIN_FUNCTIONS(ENTRY, ENTRY, ENTRY){0, NULL}};

/* The functions of the payload extension. Their first argument is the domain. */
#define PAYLOADS(data, count)                                                                      \
	.domain = nvtx_domain_number(a), .payloads = (const struct xt_nvtx_payload *)(data),       \
	.payload_count = count
#define PAYLOAD_FUNCTIONS(EVENT, START, OTHER)                                                     \
	OTHER(SCHEMA_REGISTER, schema_register)                                                    \
	OTHER(ENUM_REGISTER, enum_register)                                                        \
	EVENT(MARK_PAYLOAD, mark_payload, 0, .operation = XT_RANGE_MARK, PAYLOADS(b, c))           \
	EVENT(RANGE_PUSH_PAYLOAD, range_push_payload, NVTX_NO_TRACKING,                            \
	      .operation = XT_RANGE_PUSH, PAYLOADS(b, c))                                          \
	EVENT(RANGE_POP_PAYLOAD, range_pop_payload, NVTX_NO_TRACKING, .operation = XT_RANGE_POP,   \
	      PAYLOADS(b, c))                                                                      \
	START(RANGE_START_PAYLOAD, range_start_payload, PAYLOADS(b, c))                            \
	EVENT(RANGE_END_PAYLOAD, range_end_payload, 0, .operation = XT_RANGE_END, .key = b,        \
	      PAYLOADS(c, d))
PAYLOAD_FUNCTIONS(DEFINE_EVENT, DEFINE_START, DEFINE_OTHER)

NVTX_FUNCTION(schema_register)
{
	return nvtx_register_schema(nvtx_domain_number(a), (const struct xt_nvtx_schema *)b);
}

NVTX_FUNCTION(enum_register)
{
	return nvtx_register_enum(nvtx_domain_number(a), (const struct xt_nvtx_enum *)b);
}

static const struct nvtx_entry payload_entries[] = {
	PAYLOAD_FUNCTIONS(ENTRY, ENTRY, ENTRY){0, NULL}};

static void fill_table(const struct xt_nvtx_export_callbacks *callbacks, uint32_t module,
		       const struct nvtx_entry *entries)
{
	xt_nvtx_function_table table = NULL;
	unsigned size = 0;

	if (!callbacks->get_module_function_table(module, &table, &size) || !table)
		return;
	for (const struct nvtx_entry *entry = entries; entry->place; entry++)
		if (entry->place < size && table[entry->place])
			*table[entry->place] = entry->function;
}

int nvtx_take_over(xt_nvtx_get_export_table get_export_table)
{
	const struct xt_nvtx_export_callbacks *callbacks =
		get_export_table(XT_NVTX_EXPORT_CALLBACKS);

	if (atomic_load(&abandoned) || !callbacks || callbacks->struct_bytes < sizeof(*callbacks))
		return 0;
	fill_table(callbacks, XT_NVTX_CORE, core_entries);
	fill_table(callbacks, XT_NVTX_CORE2, core2_entries);
	fill_table(callbacks, XT_NVTX_CUDA, nvtx_cuda_entries);
	fill_table(callbacks, XT_NVTX_CUDART, nvtx_cudart_entries);
	return 1;
}

int nvtx_take_over_extension(const struct xt_nvtx_extension *extension)
{
	if (atomic_load(&abandoned) || !extension || extension->struct_bytes < sizeof(*extension) ||
	    extension->module_id != XT_NVTX_PAYLOAD_MODULE ||
	    extension->compat_id >> 8 != XT_NVTX_PAYLOAD_MAJOR || !extension->segment_count)
		return 0;
	for (const struct nvtx_entry *entry = payload_entries; entry->function; entry++)
		if (entry->place < extension->segments[0].slot_count)
			extension->segments[0].slots[entry->place] = (intptr_t)entry->function;
	return 1;
}
