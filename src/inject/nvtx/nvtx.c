/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that NVTX calls in our place. They run in the application's threads. Ranges and
 * marks keep the hot-path law; making domains and registering strings, which programs do once,
 * take memory from a reserve of our own.
 *
 * Ranges may be pushed before CUDA is initialised: they are committed to the thread's ring all
 * the same, without a stack, and the writer finds them there when it starts. What does not fit is lost
 * at once: nobody knows whether there will ever be a writer. Nor do threads that have gone keep theirs for it,
 * when there were many (lane.c).
 */
#include "inject/nvtx/nvtx.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>

#include "inject/capture/callbacks.h"
#include "inject/runtime/clock.h"
#include "inject/capture/thread_buffer.h"
#include "inject/runtime/map_memory.h"
#include "inject/nvtx/nvtx_objects.h"
#include "inject/nvtx/nvtx_payload.h"
#include "inject/capture/stack_capture.h"

#define TEXT_BYTES_MAX	 4096
#define TEXT_STORE_BYTES (4u << 20) /* for names of domains and registered strings */

/* What a handle that we gave out points to. */
struct domain {
	uint32_t number;
	const char *name;
};

static struct domain domains[NVTX_DOMAINS_MAX]; /* [0] is the default one */
static atomic_uint domain_count = 1;
static atomic_uint_fast64_t range_keys;
static _Atomic(char *) text_store;
static atomic_size_t text_store_used;
static atomic_bool abandoned;
atomic_uint_fast64_t nvtx_events_without_thread_buffer;

/* UTF-8 of a wide text, cut at the end of a character; returns the length. */
size_t nvtx_narrow(const wchar_t *wide, char *out, size_t out_bytes)
{
	size_t length = 0;

	for (; *wide && length + 4 < out_bytes; wide++) {
		uint32_t c = (uint32_t)*wide;

		if (c < 0x80) {
			out[length++] = (char)c;
		} else if (c < 0x800) {
			out[length++] = (char)(0xc0 | c >> 6);
			out[length++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			out[length++] = (char)(0xe0 | c >> 12);
			out[length++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[length++] = (char)(0x80 | (c & 0x3f));
		} else {
			out[length++] = (char)(0xf0 | (c >> 18 & 0x07));
			out[length++] = (char)(0x80 | (c >> 12 & 0x3f));
			out[length++] = (char)(0x80 | (c >> 6 & 0x3f));
			out[length++] = (char)(0x80 | (c & 0x3f));
		}
	}
	out[length] = '\0';
	return length;
}

/* Aligned for any schema; whoever gets it is the only one who has it. */
void *nvtx_store(size_t bytes)
{
	char *store = atomic_load(&text_store);
	size_t at;

	if (!store) {
		char *fresh = map_memory(TEXT_STORE_BYTES);

		if (!fresh)
			return NULL;
		if (!atomic_compare_exchange_strong(&text_store, &store, fresh))
			munmap(fresh, TEXT_STORE_BYTES);
		else
			store = fresh;
	}
	bytes = (bytes + 7) & ~(size_t)7;
	at = atomic_fetch_add(&text_store_used, bytes);
	if (at + bytes > TEXT_STORE_BYTES) {
		atomic_fetch_sub(&text_store_used, bytes);
		return NULL;
	}
	return store + at;
}

const char *nvtx_keep_text(const char *text)
{
	size_t bytes = strnlen(text, TEXT_BYTES_MAX - 1) + 1;
	char *kept = nvtx_store(bytes);

	if (!kept)
		return "";
	memcpy(kept, text, bytes - 1);
	kept[bytes - 1] = '\0';
	return kept;
}

int nvtx_is_registered(const char *text)
{
	const char *store = atomic_load(&text_store);

	return store && text >= store && text < store + TEXT_STORE_BYTES;
}

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
			text = attributes->message; /* handles of strings are the strings */
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

	/* Before CUDA is there, nothing is ready for a walk. */
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

/* Copies the event's payloads into the thread buffer; what they say of the event itself goes into it. */
static size_t take_payloads(struct thread_buffer *tb, struct nvtx_event *event)
{
	const struct xt_nvtx_attributes *attributes = event->attributes;

	if (attributes) {
		event->payloads = (const struct xt_nvtx_payload *)attributes->payload;
		event->payload_count =
			attributes->reserved0 > 0 ? (size_t)attributes->reserved0 : 0;
	} else {
		nvtx_payload_describe(event);
	}
	return nvtx_payload_take(event, tb->payload, sizeof(tb->payload));
}

void nvtx_commit(const struct nvtx_event *event, const struct caller_regs *regs)
{
	struct thread_buffer *tb = current_thread_buffer;
	struct nvtx_event described;
	size_t payload_bytes = 0;

	if (atomic_load_explicit(&abandoned, memory_order_relaxed))
		return;
	if (!tb)
		tb = thread_buffer_claim();
	if (!tb ||
	    !thread_buffer_enter(tb, regs)) { /* in a signal handler, in the middle of our work */
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
_Static_assert(TEXT_BYTES_MAX <= THREAD_BUFFER_TEXT_BYTES, "a text fits into a lane's room for it");

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

uint32_t nvtx_domain_number(uintptr_t handle)
{
	const struct domain *domain = (const struct domain *)handle;

	return domain >= domains && domain < domains + NVTX_DOMAINS_MAX ? domain->number : 0;
}

uint64_t nvtx_next_key(void)
{
	return atomic_fetch_add_explicit(&range_keys, 1, memory_order_relaxed) + 1;
}

/* One function each for what NVTX may ask for. */
NVTX_FUNCTION(mark_ex)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_MARK, .attributes = (const void *)a},
		    regs);
	return 0;
}

NVTX_FUNCTION(mark_a)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_MARK, .text = (const char *)a},
		    regs);
	return 0;
}

NVTX_FUNCTION(mark_w)
{
	nvtx_commit(
		&(struct nvtx_event){.operation = XT_RANGE_MARK, .wide_text = (const wchar_t *)a},
		regs);
	return 0;
}

NVTX_FUNCTION(range_start_ex)
{
	uint64_t key = nvtx_next_key();

	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_START,
					 .key = key,
					 .attributes = (const void *)a},
		    regs);
	return key;
}

NVTX_FUNCTION(range_start_a)
{
	uint64_t key = nvtx_next_key();

	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_START,
					 .key = key,
					 .text = (const char *)a},
		    regs);
	return key;
}

NVTX_FUNCTION(range_start_w)
{
	uint64_t key = nvtx_next_key();

	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_START,
					 .key = key,
					 .wide_text = (const wchar_t *)a},
		    regs);
	return key;
}

NVTX_FUNCTION(range_end)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_END, .key = a}, regs);
	return 0;
}

NVTX_FUNCTION(range_push_ex)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_PUSH, .attributes = (const void *)a},
		    regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_push_a)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_PUSH, .text = (const char *)a},
		    regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_push_w)
{
	nvtx_commit(
		&(struct nvtx_event){.operation = XT_RANGE_PUSH, .wide_text = (const wchar_t *)a},
		regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_pop)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_POP}, regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(name_os_thread_a)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_THREAD,
					 .key = (uint32_t)a,
					 .text = (const char *)b},
		    regs);
	return 0;
}

NVTX_FUNCTION(name_os_thread_w)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_THREAD,
					 .key = (uint32_t)a,
					 .wide_text = (const wchar_t *)b},
		    regs);
	return 0;
}

NVTX_FUNCTION(name_category_a)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_CATEGORY,
					 .key = (uint32_t)a,
					 .text = (const char *)b},
		    regs);
	return 0;
}

NVTX_FUNCTION(name_category_w)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_CATEGORY,
					 .key = (uint32_t)a,
					 .wide_text = (const wchar_t *)b},
		    regs);
	return 0;
}

NVTX_FUNCTION(domain_mark_ex)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_MARK,
					 .domain = nvtx_domain_number(a),
					 .attributes = (const void *)b},
		    regs);
	return 0;
}

NVTX_FUNCTION(domain_range_start_ex)
{
	uint64_t key = nvtx_next_key();

	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_START,
					 .domain = nvtx_domain_number(a),
					 .key = key,
					 .attributes = (const void *)b},
		    regs);
	return key;
}

NVTX_FUNCTION(domain_range_end)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_END,
					 .domain = nvtx_domain_number(a),
					 .key = b},
		    regs);
	return 0;
}

NVTX_FUNCTION(domain_range_push_ex)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_PUSH,
					 .domain = nvtx_domain_number(a),
					 .attributes = (const void *)b},
		    regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(domain_range_pop)
{
	nvtx_commit(
		&(struct nvtx_event){.operation = XT_RANGE_POP, .domain = nvtx_domain_number(a)},
		regs);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(domain_name_category_a)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_CATEGORY,
					 .domain = nvtx_domain_number(a),
					 .key = (uint32_t)b,
					 .text = (const char *)c},
		    regs);
	return 0;
}

NVTX_FUNCTION(domain_name_category_w)
{
	nvtx_commit(&(struct nvtx_event){.operation = XT_RANGE_NAME_CATEGORY,
					 .domain = nvtx_domain_number(a),
					 .key = (uint32_t)b,
					 .wide_text = (const wchar_t *)c},
		    regs);
	return 0;
}

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

static uintptr_t create_domain(const char *name)
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

NVTX_FUNCTION(domain_create_a)
{
	return create_domain((const char *)a);
}

NVTX_FUNCTION(domain_create_w)
{
	char text[TEXT_BYTES_MAX];

	nvtx_narrow((const wchar_t *)a, text, sizeof(text));
	return create_domain(text);
}

const char *nvtx_domain_name(uint64_t domain)
{
	if (!domain || domain >= NVTX_DOMAINS_MAX ||
	    !__atomic_load_n(&domains[domain].number, __ATOMIC_ACQUIRE))
		return "";
	return domains[domain].name;
}

static const struct nvtx_entry core_entries[] = {
	{XT_NVTX_MARK_EX, nvtx_mark_ex},
	{XT_NVTX_MARK_A, nvtx_mark_a},
	{XT_NVTX_MARK_W, nvtx_mark_w},
	{XT_NVTX_RANGE_START_EX, nvtx_range_start_ex},
	{XT_NVTX_RANGE_START_A, nvtx_range_start_a},
	{XT_NVTX_RANGE_START_W, nvtx_range_start_w},
	{XT_NVTX_RANGE_END, nvtx_range_end},
	{XT_NVTX_RANGE_PUSH_EX, nvtx_range_push_ex},
	{XT_NVTX_RANGE_PUSH_A, nvtx_range_push_a},
	{XT_NVTX_RANGE_PUSH_W, nvtx_range_push_w},
	{XT_NVTX_RANGE_POP, nvtx_range_pop},
	{XT_NVTX_NAME_CATEGORY_A, nvtx_name_category_a},
	{XT_NVTX_NAME_CATEGORY_W, nvtx_name_category_w},
	{XT_NVTX_NAME_OS_THREAD_A, nvtx_name_os_thread_a},
	{XT_NVTX_NAME_OS_THREAD_W, nvtx_name_os_thread_w},
	{0, NULL},
};

static const struct nvtx_entry core2_entries[] = {
	{XT_NVTX_DOMAIN_MARK_EX, nvtx_domain_mark_ex},
	{XT_NVTX_DOMAIN_RANGE_START_EX, nvtx_domain_range_start_ex},
	{XT_NVTX_DOMAIN_RANGE_END, nvtx_domain_range_end},
	{XT_NVTX_DOMAIN_RANGE_PUSH_EX, nvtx_domain_range_push_ex},
	{XT_NVTX_DOMAIN_RANGE_POP, nvtx_domain_range_pop},
	{XT_NVTX_DOMAIN_NAME_CATEGORY_A, nvtx_domain_name_category_a},
	{XT_NVTX_DOMAIN_NAME_CATEGORY_W, nvtx_domain_name_category_w},
	{XT_NVTX_DOMAIN_REGISTER_STRING_A, nvtx_domain_register_string_a},
	{XT_NVTX_DOMAIN_REGISTER_STRING_W, nvtx_domain_register_string_w},
	{XT_NVTX_DOMAIN_CREATE_A, nvtx_domain_create_a},
	{XT_NVTX_DOMAIN_CREATE_W, nvtx_domain_create_w},
	{0, NULL},
};

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
	for (const struct nvtx_entry *entry = nvtx_payload_entries; entry->function; entry++)
		if (entry->place < extension->segments[0].slot_count)
			extension->segments[0].slots[entry->place] = (intptr_t)entry->function;
	return 1;
}

void nvtx_abandon(void)
{
	atomic_store(&abandoned, true);
}
