/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the program's threads and keeps the hot-path rules.
 *
 * A payload is the program's memory. Never read more than the program states, the schema needs, or
 * the ring record has room for.
 */
#include "inject/nvtx/nvtx_payload.h"

#include <string.h>

#include "inject/nvtx/nvtx_store.h"
#include "xtrace/log_format.h"

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

void nvtx_payload_describe(struct nvtx_event *event)
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

size_t nvtx_payload_take(const struct nvtx_event *event, uint8_t *out, size_t room)
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
