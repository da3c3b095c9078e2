/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of NVTX's payload extension. They run in the application's threads. Events keep the
 * hot-path law. Registering schemas, which programs do once, takes memory from NVTX's store.
 *
 * A payload is the program's memory: at most as much of it is read as the program states, as its
 * schema needs, and as there is room for. Schemas are copied when they are registered.
 */
#include "inject/nvtx/nvtx_payload.h"

#include <stdatomic.h>
#include <string.h>

#define PAYLOADS_MAX	 16 /* of one event */
#define SLOTS		 (2 * SCHEMAS_MAX)
#define OPAQUE_BYTES_MAX 32 /* as much is shown of payloads without a schema */
#define ALIGNED(bytes)	 (((bytes) + 7) & ~(size_t)7)

static _Atomic(const struct payload_schema *) by_number[SCHEMAS_MAX + 1];
static _Atomic(const struct payload_schema *) by_id[SLOTS]; /* by hash of domain and id */
static atomic_uint schema_count;

const struct payload_schema *nvtx_schema(uint32_t number)
{
	/* Pairs with the store in publish(). */
	return number <= SCHEMAS_MAX
		       ? atomic_load_explicit(&by_number[number], memory_order_acquire)
		       : NULL;
}

static size_t slot_of(uint32_t domain, uint64_t id)
{
	return (size_t)((id + domain * 0x9e3779b9u) * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
}

static const struct payload_schema *find_schema(uint32_t domain, uint64_t id)
{
	const struct payload_schema *schema;

	for (size_t s = slot_of(domain, id);; s = (s + 1) % SLOTS) {
		schema = atomic_load_explicit(&by_id[s], memory_order_acquire);
		if (!schema || (schema->id == id && schema->domain == domain))
			return schema;
	}
}

/* A later schema with the same id replaces the earlier. */
static void publish(struct payload_schema *schema)
{
	atomic_store_explicit(&by_number[schema->number], schema, memory_order_release);
	for (size_t s = slot_of(schema->domain, schema->id);; s = (s + 1) % SLOTS) {
		const struct payload_schema *known = atomic_load(&by_id[s]);

		while (!known || (known->id == schema->id && known->domain == schema->domain))
			if (atomic_compare_exchange_weak(&by_id[s], &known, schema))
				return;
	}
}

/* ---- registering */

static struct payload_schema *new_schema(uint32_t domain, uint64_t id, size_t entry_count,
					 const char *name)
{
	struct payload_schema *schema;
	unsigned number = atomic_fetch_add(&schema_count, 1) + 1;

	if (number > SCHEMAS_MAX) {
		atomic_store(&schema_count, SCHEMAS_MAX);
		return NULL;
	}
	schema = nvtx_store(sizeof(*schema) + entry_count * sizeof(schema->entries[0]));
	if (!schema)
		return NULL;
	schema->id = id ? id : XT_NVTX_SCHEMA_DYNAMIC_FIRST + number;
	schema->domain = domain;
	schema->number = number;
	schema->align = 1;
	schema->entry_count = (uint32_t)entry_count;
	schema->message = schema->category = schema->color = schema->entry_count;
	schema->name = name ? nvtx_keep_text(name) : "";
	return schema;
}

/* The texts that a nested schema points to are also the outer one's. */
static void note_texts(struct payload_schema *schema, const struct payload_entry *entry,
		       uint64_t count)
{
	const struct payload_schema *nested = entry->nested;
	uint32_t type = entry->type;

	if (payload_is_pointed_text(entry) && schema->text_count < SCHEMA_TEXTS_MAX)
		schema->texts[schema->text_count++] = (struct payload_text){entry->offset, type};
	if (!nested || !nested->text_count || entry->flags & XT_NVTX_ENTRY_POINTER)
		return;
	for (uint64_t i = 0; i < count && schema->text_count < SCHEMA_TEXTS_MAX; i++)
		for (uint32_t t = 0; t < nested->text_count; t++) {
			if (schema->text_count == SCHEMA_TEXTS_MAX)
				return;
			schema->texts[schema->text_count++] = (struct payload_text){
				entry->offset + (uint32_t)(i * nested->bytes) +
					nested->texts[t].offset,
				nested->texts[t].type};
		}
}

static void note_meaning(struct payload_schema *schema, uint32_t place)
{
	const struct payload_entry *entry = &schema->entries[place];

	if (entry->flags & XT_NVTX_ENTRY_EVENT_MESSAGE)
		schema->message = place;
	else if (entry->type == XT_NVTX_TYPE_CATEGORY)
		schema->category = place;
	else if (entry->type == XT_NVTX_TYPE_COLOR_ARGB)
		schema->color = place;
}

/* Finds where each entry lies, as far as that does not depend on the data. */
static void lay_out(struct payload_schema *schema, uint64_t pack_align)
{
	bool is_known = true;
	uint64_t end = 0;

	for (uint32_t i = 0; i < schema->entry_count; i++) {
		struct payload_entry *entry = &schema->entries[i];
		uint64_t bytes = 0, count = 0;
		uint32_t align = 1;
		bool has_extent = payload_extent(entry, &bytes, &align, &count);

		if (pack_align && align > pack_align)
			align = (uint32_t)pack_align;
		if (align > schema->align)
			schema->align = align;
		if (entry->offset || !i)
			is_known = true;
		else if (is_known)
			entry->offset = (uint32_t)((end + align - 1) / align * align);
		else
			entry->offset = OFFSET_UNKNOWN;
		if (entry->offset != OFFSET_UNKNOWN) {
			end = entry->offset + bytes;
			note_texts(schema, entry, count);
			note_meaning(schema, i);
		}
		is_known &= has_extent && end < OFFSET_UNKNOWN / 2;
	}
	if (!schema->bytes && is_known && schema->kind == XT_NVTX_SCHEMA_STATIC)
		schema->bytes =
			(uint32_t)((end + schema->align - 1) / schema->align * schema->align);
}

static struct payload_entry copy_entry(uint32_t domain, const struct xt_nvtx_schema_entry *entry)
{
	bool is_own = entry->type >= XT_NVTX_SCHEMA_STATIC_FIRST;

	return (struct payload_entry){
		.name = entry->name ? nvtx_keep_text(entry->name) : "",
		.nested = is_own ? find_schema(domain, entry->type) : NULL,
		.detail = entry->detail,
		.offset = entry->offset < OFFSET_UNKNOWN / 2 ? (uint32_t)entry->offset
							     : OFFSET_UNKNOWN / 2,
		.type = entry->type < XT_NVTX_TYPES ? (uint16_t)entry->type : 0,
		.flags = (uint16_t)entry->flags,
	};
}

/* Programs may register the same schema many times. */
static bool is_same_schema(const struct payload_schema *known, const struct xt_nvtx_schema *schema)
{
	if (!known || known->entry_count != schema->entry_count || known->kind != schema->kind)
		return false;
	for (uint32_t i = 0; i < known->entry_count; i++) {
		const struct xt_nvtx_schema_entry *entry = &schema->entries[i];
		const char *name = entry->name ? entry->name : "";

		if (known->entries[i].flags != (uint16_t)entry->flags ||
		    known->entries[i].detail != entry->detail ||
		    (entry->type < XT_NVTX_TYPES && known->entries[i].type != entry->type) ||
		    (entry->offset && known->entries[i].offset != entry->offset) ||
		    strcmp(known->entries[i].name, name))
			return false;
	}
	return true;
}

static uint64_t register_schema(uint32_t domain, const struct xt_nvtx_schema *attributes)
{
	const uint64_t needed = XT_NVTX_SCHEMA_HAS_ENTRIES | XT_NVTX_SCHEMA_HAS_COUNT;
	struct payload_schema *schema;
	uint64_t fields, id;

	if (!attributes || (attributes->fields & needed) != needed || !attributes->entries ||
	    !attributes->entry_count || attributes->entry_count > SCHEMA_ENTRIES_MAX)
		return XT_NVTX_TYPE_NONE;
	fields = attributes->fields;
	id = fields & XT_NVTX_SCHEMA_HAS_ID ? attributes->schema_id : 0;
	if (id && is_same_schema(find_schema(domain, id), attributes))
		return id;
	schema = new_schema(domain, id, attributes->entry_count,
			    fields & XT_NVTX_SCHEMA_HAS_NAME ? attributes->name : NULL);
	if (!schema)
		return id;
	schema->kind = fields & XT_NVTX_SCHEMA_HAS_KIND &&
				       attributes->kind <= XT_NVTX_SCHEMA_UNION_SELECTED
			       ? (uint32_t)attributes->kind
			       : XT_NVTX_SCHEMA_STATIC;
	if (fields & XT_NVTX_SCHEMA_HAS_BYTES && attributes->static_bytes < OFFSET_UNKNOWN / 2 &&
	    schema->kind != XT_NVTX_SCHEMA_DYNAMIC)
		schema->bytes = (uint32_t)attributes->static_bytes;
	for (size_t i = 0; i < attributes->entry_count; i++)
		schema->entries[i] = copy_entry(domain, &attributes->entries[i]);
	if (schema->kind <= XT_NVTX_SCHEMA_DYNAMIC)
		lay_out(schema, fields & XT_NVTX_SCHEMA_HAS_ALIGN ? attributes->pack_align : 0);
	publish(schema);
	return schema->id;
}

static uint64_t register_enum(uint32_t domain, const struct xt_nvtx_enum *attributes)
{
	const uint64_t needed = XT_NVTX_ENUM_HAS_ENTRIES | XT_NVTX_ENUM_HAS_COUNT;
	struct payload_schema *schema;
	uint64_t fields, id;

	if (!attributes || (attributes->fields & needed) != needed || !attributes->values ||
	    attributes->value_count > SCHEMA_ENTRIES_MAX)
		return XT_NVTX_TYPE_NONE;
	fields = attributes->fields;
	id = fields & XT_NVTX_ENUM_HAS_ID ? attributes->schema_id : 0;
	if (id && find_schema(domain, id))
		return id;
	schema = new_schema(domain, id, attributes->value_count,
			    fields & XT_NVTX_ENUM_HAS_NAME ? attributes->name : NULL);
	if (!schema)
		return id;
	schema->kind = SCHEMA_ENUM;
	schema->bytes = sizeof(int);
	if (fields & XT_NVTX_ENUM_HAS_BYTES && attributes->bytes && attributes->bytes <= 8)
		schema->bytes = (uint32_t)attributes->bytes;
	schema->align = schema->bytes;
	for (size_t i = 0; i < attributes->value_count; i++) {
		const struct xt_nvtx_enum_value *value = &attributes->values[i];

		schema->entries[i] = (struct payload_entry){
			.name = value->name ? nvtx_keep_text(value->name) : "",
			.detail = value->value,
			.flags = value->is_flag != 0,
		};
	}
	publish(schema);
	return schema->id;
}

/* ---- events */

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
			find_schema(event->domain, payload->schema_id);

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

/* How much of a payload is worth taking. */
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

/* Copies the text that a pointer at `from` leads to. Returns the end of what was written. */
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
	const struct payload_schema *schema = find_schema(domain, payload->schema_id);
	/* Each text that follows has room for its head at least. */
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
	/* There is always room to say how many were not taken. */
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

/* The functions of the slots; the domain comes first. */
#define PAYLOAD_EVENT(event_operation, event_key, data, count)                                     \
	nvtx_commit(&(struct nvtx_event){.operation = event_operation,                             \
					 .domain = nvtx_domain_number(a),                          \
					 .key = event_key,                                         \
					 .payloads = (const struct xt_nvtx_payload *)(data),       \
					 .payload_count = count},                                  \
		    regs)

NVTX_FUNCTION(schema_register)
{
	return register_schema(nvtx_domain_number(a), (const struct xt_nvtx_schema *)b);
}

NVTX_FUNCTION(enum_register)
{
	return register_enum(nvtx_domain_number(a), (const struct xt_nvtx_enum *)b);
}

NVTX_FUNCTION(mark_payload)
{
	PAYLOAD_EVENT(XT_RANGE_MARK, 0, b, c);
	return 0;
}

NVTX_FUNCTION(range_push_payload)
{
	PAYLOAD_EVENT(XT_RANGE_PUSH, 0, b, c);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_pop_payload)
{
	PAYLOAD_EVENT(XT_RANGE_POP, 0, b, c);
	return NVTX_NO_TRACKING;
}

NVTX_FUNCTION(range_start_payload)
{
	uint64_t key = nvtx_next_key();

	PAYLOAD_EVENT(XT_RANGE_START, key, b, c);
	return key;
}

NVTX_FUNCTION(range_end_payload)
{
	PAYLOAD_EVENT(XT_RANGE_END, b, c, d);
	return 0;
}

const struct nvtx_entry nvtx_payload_entries[] = {
	{XT_NVTX_SCHEMA_REGISTER, nvtx_schema_register},
	{XT_NVTX_ENUM_REGISTER, nvtx_enum_register},
	{XT_NVTX_MARK_PAYLOAD, nvtx_mark_payload},
	{XT_NVTX_RANGE_PUSH_PAYLOAD, nvtx_range_push_payload},
	{XT_NVTX_RANGE_POP_PAYLOAD, nvtx_range_pop_payload},
	{XT_NVTX_RANGE_START_PAYLOAD, nvtx_range_start_payload},
	{XT_NVTX_RANGE_END_PAYLOAD, nvtx_range_end_payload},
	{0, NULL},
};
