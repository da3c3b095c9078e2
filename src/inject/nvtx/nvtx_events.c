/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits NVTX events to the ring of the calling thread. Runs in the application's threads and
 * keeps the hot-path rules (inject/runtime/hotpath.h).
 *
 * A range may begin before CUDA is initialised. It is committed without a stack, and the writer
 * reads it when it starts. If the ring is full it is lost at once, because there may never be a
 * writer.
 */
#include "inject/nvtx/nvtx_events.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include "inject/capture/callbacks.h"
#include "inject/capture/ring.h"
#include "inject/capture/stack_capture.h"
#include "inject/capture/thread_buffer.h"
#include "inject/nvtx/nvtx_payload.h"
#include "inject/nvtx/nvtx_store.h"
#include "inject/runtime/clock.h"
#include "inject/runtime/process.h"

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
		nvtx_payload_describe(event);
	}
	return nvtx_payload_take(event, tb->payload, sizeof(tb->payload));
}

void nvtx_commit(const struct nvtx_event *event, const struct caller_regs *regs)
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

uint32_t nvtx_domain_number(uintptr_t handle)
{
	const struct domain *domain = (const struct domain *)handle;

	return domain >= domains && domain < domains + NVTX_DOMAINS_MAX ? domain->number : 0;
}

uint64_t nvtx_next_key(void)
{
	return atomic_fetch_add_explicit(&range_keys, 1, memory_order_relaxed) + 1;
}

uint64_t nvtx_last_key(void)
{
	return atomic_load(&range_keys);
}

uintptr_t nvtx_create_domain(const char *name)
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

bool nvtx_is_abandoned(void)
{
	return atomic_load(&abandoned);
}
