/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema is registered once, so it may take memory from NVTX's store. It is copied, because the
 * program may free its own.
 *
 * The writer decodes payloads into lines of "name=value", for the log. The data come from the
 * program, so any of them may be wrong. Nothing is read outside of the copy, and output and steps
 * are bounded. Values that cannot be decoded or do not fit are shown in brackets.
 */
#include "inject/nvtx/nvtx_schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "inject/memory/memory.h"

#define TEXT_STORE_BYTES (4u << 20)

static _Atomic(char *) text_store;

static atomic_size_t text_store_used;

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

/* Takes bytes from the store, aligned for any schema. NULL if it is full. */
static void *take_from_store(size_t bytes)
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
	char *kept = take_from_store(bytes);

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

#define SCHEMAS_MAX 1024 /* per process; payloads of further ones are not decoded */

#define SLOTS (2 * SCHEMAS_MAX)

#define PAYLOAD_TYPE(name, id, bytes, class) [XT_NVTX_TYPE_##name] = {bytes, CLASS_##class},
static const struct payload_type types[XT_NVTX_TYPES] = {XT_NVTX_TYPE_LIST(PAYLOAD_TYPE)};

struct payload_type payload_type(uint64_t type)
{
	return type < XT_NVTX_TYPES ? types[type] : (struct payload_type){0};
}

/* Whether the value is at an offset stated in the payload. Such entries are not decoded. */
static bool payload_has_offset(const struct payload_entry *entry)
{
	return entry->flags & (XT_NVTX_ENTRY_OFFSET_FROM_BASE | XT_NVTX_ENTRY_OFFSET_FROM_HERE);
}

static enum xt_nvtx_array payload_array(const struct payload_entry *entry)
{
	return (enum xt_nvtx_array)((entry->flags & XT_NVTX_ENTRY_ARRAY) >>
				    XT_NVTX_ENTRY_ARRAY_BIT);
}

/* Whether the value is a pointer, as a text without a length is. */
static bool payload_is_pointer(const struct payload_entry *entry)
{
	return entry->flags & XT_NVTX_ENTRY_POINTER ||
	       (payload_type(entry->type).class == CLASS_TEXT && !entry->detail &&
		payload_array(entry) == XT_NVTX_ARRAY_NONE);
}

bool payload_is_pointed_text(const struct payload_entry *entry)
{
	enum payload_class class = payload_type(entry->type).class;

	if (entry->nested || payload_has_offset(entry) || entry->flags & XT_NVTX_ENTRY_POINTER)
		return false;
	return class == CLASS_REGISTERED || (class == CLASS_TEXT && payload_is_pointer(entry) &&
					     payload_type(entry->type).bytes != 2);
}

bool payload_extent(const struct payload_entry *entry, uint64_t *bytes, uint32_t *align,
		    uint64_t *count)
{
	struct payload_type type = payload_type(entry->type);
	enum xt_nvtx_array array = payload_array(entry);
	uint64_t element = entry->nested ? entry->nested->bytes : type.bytes;

	*bytes = *count = 0;
	*align = 1;
	if (payload_has_offset(entry))
		return false;
	if (payload_is_pointer(entry)) {
		*align = sizeof(void *);
		*bytes = sizeof(void *);
		*count = 1;
		return true;
	}
	*align = entry->nested ? entry->nested->align : type.bytes ? type.bytes : 1;
	if (!element || array > XT_NVTX_ARRAY_FIXED)
		return false;
	*count = array == XT_NVTX_ARRAY_FIXED || type.class == CLASS_TEXT ? entry->detail : 1;
	if (*count > UINT32_MAX)
		return false;
	*bytes = *count * element;
	return *bytes <= UINT32_MAX;
}

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

const struct payload_schema *nvtx_find_schema(uint32_t domain, uint64_t id)
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

static struct payload_schema *new_schema(uint32_t domain, uint64_t id, size_t entry_count,
					 const char *name)
{
	struct payload_schema *schema;
	unsigned number = atomic_fetch_add(&schema_count, 1) + 1;

	if (number > SCHEMAS_MAX) {
		atomic_store(&schema_count, SCHEMAS_MAX);
		return NULL;
	}
	schema = take_from_store(sizeof(*schema) + entry_count * sizeof(schema->entries[0]));
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

/* Texts that a nested schema points to also belong to the outer one. */
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

/* Computes the offset of each entry, unless it depends on the data. */
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
		.nested = is_own ? nvtx_find_schema(domain, entry->type) : NULL,
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

uint64_t nvtx_register_schema(uint32_t domain, const struct xt_nvtx_schema *attributes)
{
	const uint64_t needed = XT_NVTX_SCHEMA_HAS_ENTRIES | XT_NVTX_SCHEMA_HAS_COUNT;
	struct payload_schema *schema;
	uint64_t fields, id;

	if (!attributes || (attributes->fields & needed) != needed || !attributes->entries ||
	    !attributes->entry_count || attributes->entry_count > SCHEMA_ENTRIES_MAX)
		return XT_NVTX_TYPE_NONE;
	fields = attributes->fields;
	id = fields & XT_NVTX_SCHEMA_HAS_ID ? attributes->schema_id : 0;
	if (id && is_same_schema(nvtx_find_schema(domain, id), attributes))
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

uint64_t nvtx_register_enum(uint32_t domain, const struct xt_nvtx_enum *attributes)
{
	const uint64_t needed = XT_NVTX_ENUM_HAS_ENTRIES | XT_NVTX_ENUM_HAS_COUNT;
	struct payload_schema *schema;
	uint64_t fields, id;

	if (!attributes || (attributes->fields & needed) != needed || !attributes->values ||
	    attributes->value_count > SCHEMA_ENTRIES_MAX)
		return XT_NVTX_TYPE_NONE;
	fields = attributes->fields;
	id = fields & XT_NVTX_ENUM_HAS_ID ? attributes->schema_id : 0;
	if (id && nvtx_find_schema(domain, id))
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

#define DEPTH_MAX      4    /* nested schemas */
#define STEPS_MAX      4096 /* entries decoded per event */
#define ELEMENTS_MAX   32   /* printed per array */
#define NAME_BYTES     128
#define CUT_LINE       "[cut]=the payload is larger than what is recorded\n"
#define ALIGNED(bytes) (((bytes) + 7) & ~(size_t)7)

/* State of decoding one payload. */
struct decoder {
	const struct payload_schema *root;
	const uint8_t *data;
	uint64_t bytes; /* of data */
	struct {
		const char *text; /* NULL: the pointer was NULL */
		size_t length;
		bool is_cut;
	} texts[SCHEMA_TEXTS_MAX];
	uint32_t text_count; /* texts that were copied */
	char *out;
	size_t length;
	unsigned steps;
	bool is_full;
};

#define ROOM (VALUES_BYTES_MAX - sizeof(CUT_LINE))

static void put(struct decoder *d, const char *text, size_t length)
{
	d->is_full |= length > ROOM - d->length;
	if (d->is_full)
		return;
	memcpy(d->out + d->length, text, length);
	d->length += length;
}

static void put_string(struct decoder *d, const char *text)
{
	put(d, text, strlen(text));
}

/* A text must not contain a line end, nor a name its end mark. */
static void put_clean(struct decoder *d, const char *text, size_t length, char forbidden)
{
	for (size_t i = 0; i < length && !d->is_full; i++) {
		char c = text[i];

		put(d, (unsigned char)c < ' ' || c == 0x7f ? " " : c == forbidden ? "_" : &c, 1);
	}
}

static void put_number(struct decoder *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void put_number(struct decoder *d, const char *format, ...)
{
	char text[64];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	put_string(d, text);
}

static void put_hex(struct decoder *d, const uint8_t *data, size_t bytes, bool is_number)
{
	put_string(d, "0x");
	for (size_t i = 0; i < bytes && i < ELEMENTS_MAX; i++)
		put_number(d, "%02x", data[is_number ? bytes - 1 - i : i]);
	if (bytes > ELEMENTS_MAX)
		put_string(d, "...");
}

static uint64_t unsigned_at(const uint8_t *data, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, data, bytes < sizeof(value) ? bytes : sizeof(value));
	return value;
}

static int64_t signed_at(const uint8_t *data, size_t bytes)
{
	unsigned unused_bits = bytes < 8 ? 64 - 8 * (unsigned)bytes : 0;

	return (int64_t)(unsigned_at(data, bytes) << unused_bits) >> unused_bits;
}

static void put_real(struct decoder *d, const uint8_t *data, size_t bytes)
{
	double value;
	float small;

	if (bytes == sizeof(small)) {
		memcpy(&small, data, sizeof(small));
		put_number(d, "%.9g", (double)small);
	} else {
		memcpy(&value, data, sizeof(value));
		put_number(d, "%.17g", value);
	}
}

/* Prints the name of an enum value, or the names of its flags. */
static void put_enum(struct decoder *d, const struct payload_schema *schema, uint64_t value)
{
	uint64_t rest = value;
	bool is_first = true;

	for (uint32_t i = 0; i < schema->entry_count; i++)
		if (schema->entries[i].detail == value) {
			put_clean(d, schema->entries[i].name, strlen(schema->entries[i].name), 0);
			return;
		}
	for (uint32_t i = 0; i < schema->entry_count; i++) {
		const struct payload_entry *flag = &schema->entries[i];

		if (!flag->flags || !flag->detail || (rest & flag->detail) != flag->detail)
			continue;
		put_string(d, is_first ? "" : "|");
		put_clean(d, flag->name, strlen(flag->name), 0);
		rest &= ~flag->detail;
		is_first = false;
	}
	if (rest || is_first)
		put_number(d, is_first ? "%" PRIu64 : "|%" PRIu64, rest);
}

static void put_value(struct decoder *d, const struct payload_entry *entry, const uint8_t *data)
{
	struct payload_type type = payload_type(entry->type);

	if (entry->nested && entry->nested->kind == SCHEMA_ENUM) {
		put_enum(d, entry->nested, unsigned_at(data, entry->nested->bytes));
		return;
	}
	if (entry->nested) { /* a union; its selected member is not decoded */
		put_hex(d, data, entry->nested->bytes, false);
		return;
	}
	switch (type.class) {
	case CLASS_SIGNED:
		put_number(d, "%" PRId64, signed_at(data, type.bytes));
		break;
	case CLASS_UNSIGNED:
		put_number(d, "%" PRIu64, unsigned_at(data, type.bytes));
		break;
	case CLASS_REAL:
		put_real(d, data, type.bytes);
		break;
	case CLASS_CHARACTER:
		put_clean(d, (const char *)data, 1, 0);
		break;
	default:
		put_hex(d, data, type.bytes, true);
		break;
	}
}

static void put_pointed_text(struct decoder *d, uint64_t offset)
{
	for (uint32_t t = 0; t < d->text_count; t++) {
		if (d->root->texts[t].offset != offset)
			continue;
		if (d->texts[t].text)
			put_clean(d, d->texts[t].text, d->texts[t].length, 0);
		else
			put_string(d, "[null]");
		if (d->texts[t].is_cut)
			put_string(d, "...");
		return;
	}
	put_string(d, "[not recorded]");
}

/* Prints consecutive values: a text, raw bytes, or a list. */
static void put_elements(struct decoder *d, const struct payload_entry *entry, uint64_t offset,
			 uint64_t count)
{
	struct payload_type type = payload_type(entry->type);
	size_t bytes = entry->nested ? entry->nested->bytes : type.bytes;
	const uint8_t *data = d->data + offset;

	if (!entry->nested &&
	    (type.class == CLASS_CHARACTER || (type.class == CLASS_TEXT && type.bytes == 1))) {
		put_clean(d, (const char *)data, strnlen((const char *)data, count), 0);
		return;
	}
	if (!entry->nested && (entry->type == XT_NVTX_TYPE_BYTE || type.class == CLASS_TEXT)) {
		put_hex(d, data, count * bytes, false);
		return;
	}
	put_string(d, "[");
	for (uint64_t i = 0; i < count && i < ELEMENTS_MAX; i++) {
		put_string(d, i ? ", " : "");
		put_value(d, entry, data + i * bytes);
	}
	put_string(d, count > ELEMENTS_MAX ? ", ...]" : "]");
}

static void decode_schema(struct decoder *d, const struct payload_schema *schema, uint64_t base,
			  const char *prefix, unsigned depth);

/* Prints an entry whose data were copied. */
static void decode_entry(struct decoder *d, const struct payload_entry *entry, uint64_t offset,
			 uint64_t count, const char *name, unsigned depth)
{
	const struct payload_schema *nested = entry->nested;
	bool is_array = payload_array(entry) != XT_NVTX_ARRAY_NONE ||
			payload_type(entry->type).class == CLASS_TEXT;
	char element[NAME_BYTES];

	if (nested && nested->kind <= XT_NVTX_SCHEMA_DYNAMIC && !payload_is_pointer(entry) &&
	    depth < DEPTH_MAX) {
		for (uint64_t i = 0; i < count && i < ELEMENTS_MAX; i++) {
			snprintf(element, sizeof(element), is_array ? "%s[%u]" : "%s", name,
				 (unsigned)i);
			decode_schema(d, nested, offset + i * nested->bytes, element, depth + 1);
		}
		return;
	}
	put_clean(d, name, strlen(name), '=');
	put_string(d, "=");
	if (payload_is_pointed_text(entry))
		put_pointed_text(d, offset);
	else if (payload_is_pointer(entry))
		put_hex(d, d->data + offset, sizeof(void *), true);
	else if (is_array)
		put_elements(d, entry, offset, count);
	else
		put_value(d, entry, d->data + offset);
	put_string(d, "\n");
}

static void put_note(struct decoder *d, const char *name, const char *note)
{
	put_clean(d, name, strlen(name), '=');
	put_string(d, "=");
	put_string(d, note);
	put_string(d, "\n");
}

/* The length of an array whose length is in the data. False if unknown. */
static bool find_count(const struct decoder *d, const struct payload_schema *schema,
		       const uint32_t *offsets, uint32_t place, uint64_t *count)
{
	const struct payload_entry *entry = &schema->entries[place], *length;
	struct payload_type type = payload_type(entry->type);

	if (payload_array(entry) == XT_NVTX_ARRAY_ZERO_TERMINATED && type.bytes == 1) {
		const uint8_t *data = d->data + offsets[place];

		*count = strnlen((const char *)data, d->bytes - offsets[place]);
		return true;
	}
	if (payload_array(entry) != XT_NVTX_ARRAY_LENGTH_INDEX || entry->detail >= place)
		return false;
	length = &schema->entries[entry->detail];
	type = payload_type(length->type);
	if (length->nested || payload_array(length) != XT_NVTX_ARRAY_NONE || !type.bytes ||
	    type.bytes > 8 || (type.class != CLASS_SIGNED && type.class != CLASS_UNSIGNED) ||
	    offsets[entry->detail] == OFFSET_UNKNOWN)
		return false;
	*count = unsigned_at(d->data + offsets[entry->detail], type.bytes);
	return true;
}

/* The start and end of an entry. False if unknown. */
static bool find_entry(const struct decoder *d, const struct payload_schema *schema,
		       uint32_t *offsets, uint32_t place, uint64_t base, uint64_t *end,
		       uint64_t *count)
{
	const struct payload_entry *entry = &schema->entries[place];
	uint64_t offset, bytes, element;
	uint32_t align;
	bool is_fixed = payload_extent(entry, &bytes, &align, count);

	if (entry->offset != OFFSET_UNKNOWN)
		offset = base + entry->offset;
	else if (*end != UINT64_MAX)
		offset = base + (*end - base + align - 1) / align * align;
	else
		return false;
	*end = UINT64_MAX;
	if (offset > d->bytes)
		return false;
	offsets[place] = (uint32_t)offset;
	if (!is_fixed) {
		element = entry->nested ? entry->nested->bytes : payload_type(entry->type).bytes;
		if (payload_has_offset(entry) || !element ||
		    !find_count(d, schema, offsets, place, count) ||
		    *count > (d->bytes - offset) / element)
			return false;
		bytes = *count * element;
	}
	if (bytes > d->bytes - offset)
		return false;
	*end = offset + bytes;
	if (payload_array(entry) == XT_NVTX_ARRAY_ZERO_TERMINATED)
		*end += *end < d->bytes;
	return true;
}

static void decode_schema(struct decoder *d, const struct payload_schema *schema, uint64_t base,
			  const char *prefix, unsigned depth)
{
	uint32_t offsets[SCHEMA_ENTRIES_MAX];
	uint64_t end = base, count;
	char name[NAME_BYTES];

	for (uint32_t i = 0; i < schema->entry_count && !d->is_full; i++) {
		const struct payload_entry *entry = &schema->entries[i];
		bool is_found;

		d->is_full |= ++d->steps > STEPS_MAX;
		offsets[i] = OFFSET_UNKNOWN;
		is_found = find_entry(d, schema, offsets, i, base, &end, &count);
		if (!is_found)
			offsets[i] = OFFSET_UNKNOWN;
		if (entry->flags & XT_NVTX_ENTRY_HIDE)
			continue;
		if (entry->name[0])
			snprintf(name, sizeof(name), "%s%s%.100s", prefix, prefix[0] ? "." : "",
				 entry->name);
		else
			snprintf(name, sizeof(name), "%s%s%u", prefix, prefix[0] ? "." : "", i);
		if (is_found)
			decode_entry(d, entry, offsets[i], count, name, depth);
		else
			put_note(d, name, "[not decoded]");
	}
}

/* Prints a payload without a schema: values of a type, or bytes. */
static void decode_plain(struct decoder *d, const struct taken_payload *taken)
{
	struct payload_type type = payload_type(taken->schema_id);
	struct payload_entry entry = {
		.type = (uint16_t)(type.class == CLASS_NONE ? XT_NVTX_TYPE_BYTE : taken->schema_id),
		.flags = XT_NVTX_ARRAY_FIXED << XT_NVTX_ENTRY_ARRAY_BIT,
	};
	uint64_t count;

	if (taken->schema_id == XT_NVTX_SCHEMA_REFERENCED)
		return;
	if (type.class == CLASS_NONE && taken->schema_id != XT_NVTX_SCHEMA_RAW)
		put_number(d, "[unknown schema %" PRIu64 "]=", taken->schema_id);
	else
		put_string(d, "payload=");
	count = d->bytes / payload_type(entry.type).bytes;
	if (count == 1 && type.class != CLASS_TEXT)
		put_value(d, &entry, d->data);
	else
		put_elements(d, &entry, 0, count);
	if (type.class == CLASS_NONE && taken->stated_bytes > d->bytes)
		put_string(d, "...");
	put_string(d, "\n");
}

/* Reads a payload and its texts. Returns their end, or NULL. */
static const uint8_t *read_taken(struct decoder *d, const struct taken_payload *taken,
				 const uint8_t *p, const uint8_t *end)
{
	if (taken->data_bytes > (size_t)(end - p))
		return NULL;
	d->root = taken->schema ? nvtx_schema(taken->schema) : NULL;
	d->data = p;
	d->bytes = taken->data_bytes;
	d->text_count = 0;
	p += ALIGNED(taken->data_bytes);
	for (uint32_t t = 0; d->root && t < d->root->text_count; t++) {
		struct taken_text text = {.text_bytes = TEXT_NULL};
		bool is_taken = d->root->texts[t].offset + sizeof(char *) <= d->bytes;

		if (is_taken && (size_t)(end - p) < sizeof(text))
			return NULL;
		if (is_taken) {
			memcpy(&text, p, sizeof(text));
			p += sizeof(text);
		}
		d->texts[t].text = text.text_bytes == TEXT_NULL ? NULL : (const char *)p;
		d->texts[t].length = text.text_bytes == TEXT_NULL ? 0 : text.text_bytes;
		d->texts[t].is_cut = text.text_bytes != TEXT_NULL && text.is_cut;
		p += ALIGNED(d->texts[t].length);
		d->text_count++;
	}
	return p;
}

size_t nvtx_payload_values(const struct xt_record_range *record, char *out)
{
	const uint8_t *p = record->text + ALIGNED(record->text_bytes);
	const uint8_t *end = p + record->payload_bytes;
	struct decoder d = {.out = out};
	bool is_cut = false;

	while (p && (size_t)(end - p) >= sizeof(struct taken_payload) && !d.is_full) {
		struct taken_payload taken;
		size_t before = d.length;

		memcpy(&taken, p, sizeof(taken));
		p = read_taken(&d, &taken, p + sizeof(taken), end);
		if (!p)
			break;
		if (taken.schema_id == XT_NVTX_TYPE_NONE)
			is_cut = true;
		else if (d.root)
			decode_schema(&d, d.root, 0, "", 0);
		else
			decode_plain(&d, &taken);
		is_cut |= d.root && taken.data_bytes < taken.stated_bytes &&
			  (!d.root->bytes || taken.data_bytes < d.root->bytes);
		/* Keep whole lines only. */
		while (d.is_full && d.length > before && out[d.length - 1] != '\n')
			d.length--;
	}
	if (is_cut || d.is_full) {
		memcpy(out + d.length, CUT_LINE, strlen(CUT_LINE));
		d.length += strlen(CUT_LINE);
	}
	return d.length;
}
