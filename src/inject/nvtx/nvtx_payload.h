/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's payload extension: structured data that programs attach to ranges and marks.
 *
 * A program registers schemas, which are kept for the life of the process. At an event, its thread
 * copies the payloads into the ring record, and the texts that they point to. The writer thread
 * decodes them by their schemas into lines of "name=value".
 */
#ifndef XT_INJECT_NVTX_PAYLOAD_H
#define XT_INJECT_NVTX_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inject/nvtx/nvtx_events.h"
#include "xtrace/crash_buffer_format.h"

#define SCHEMAS_MAX	   1024 /* of a process; payloads of others are not decoded */
#define SCHEMA_ENTRIES_MAX 128	/* larger schemas are refused */
#define SCHEMA_TEXTS_MAX   16	/* that entries of one payload point to */
#define SCHEMA_ENUM	   100	/* kind: the entries are values (else enum xt_nvtx_schema_kind) */
#define OFFSET_UNKNOWN	   UINT32_MAX
#define POINTED_TEXT_BYTES 256
#define VALUES_BYTES_MAX   4096

/* A text that an entry points to. */
struct payload_text {
	uint32_t offset; /* of the pointer in the payload */
	uint32_t type;	 /* enum xt_nvtx_type */
};

struct payload_entry {
	const char *name;
	const struct payload_schema *nested; /* a schema or enum; NULL: type says what it is */
	uint64_t detail;		     /* length; of an enum: the value */
	uint32_t offset;		     /* OFFSET_UNKNOWN: behind the entry before it */
	uint16_t type;			     /* enum xt_nvtx_type; 0: not known */
	uint16_t flags;			     /* enum xt_nvtx_entry_flag; of an enum: is it a flag */
};

/* Never changes once it is published, and is never freed. */
struct payload_schema {
	uint64_t id; /* NVTX's, unique in the domain */
	uint32_t domain;
	uint32_t number; /* the tracer's, from 1 */
	uint32_t kind;	 /* enum xt_nvtx_schema_kind or SCHEMA_ENUM */
	uint32_t bytes;	 /* 0: varies, or not known */
	uint32_t align;
	uint32_t entry_count;
	const char *name;
	/* What describes the event itself: places in entries, or entry_count. */
	uint32_t message, category, color;
	uint32_t text_count;
	struct payload_text texts[SCHEMA_TEXTS_MAX];
	struct payload_entry entries[];
};

/* A payload in a ring record. Its data follow, then a struct taken_text for each text of its schema
 * whose pointer is in the data; each padded to a multiple of 8 bytes. */
struct taken_payload {
	uint32_t schema; /* number; 0: none is registered */
	uint32_t data_bytes;
	uint64_t schema_id;    /* NVTX's; XT_NVTX_TYPE_NONE: payloads that were not taken */
	uint64_t stated_bytes; /* by the program; of these: how many */
};

struct taken_text {
	uint32_t text_bytes; /* or TEXT_NULL */
	uint32_t is_cut;     /* the text may be longer */
};
#define TEXT_NULL UINT32_MAX

/* How long a type is and how its values are written. */
enum payload_class {
	CLASS_NONE,
	CLASS_SIGNED,
	CLASS_UNSIGNED,
	CLASS_REAL,
	CLASS_HEX,
	CLASS_CHARACTER,
	CLASS_TEXT,	  /* bytes: of a character */
	CLASS_REGISTERED, /* a pointer */
};

struct payload_type {
	uint8_t bytes;
	uint8_t class; /* enum payload_class */
};

/* CLASS_NONE for what is no type. */
struct payload_type payload_type(uint64_t type);

/* Is the entry's value a pointer to a text that is not part of the payload? */
bool payload_is_pointed_text(const struct payload_entry *entry);

/*
 * Bytes and alignment of an entry and its number of elements. False if they depend on the data, or
 * if it cannot be decoded at all.
 */
bool payload_extent(const struct payload_entry *entry, uint64_t *bytes, uint32_t *align,
		    uint64_t *count);

static inline enum xt_nvtx_array payload_array(const struct payload_entry *entry)
{
	return (enum xt_nvtx_array)((entry->flags & XT_NVTX_ENTRY_ARRAY) >>
				    XT_NVTX_ENTRY_ARRAY_BIT);
}

/* For the slots of the extension; ends with a NULL function. */
extern const struct nvtx_entry nvtx_payload_entries[];

/* The schema with that number, or NULL. Any thread. */
const struct payload_schema *nvtx_schema(uint32_t number);

/* Takes message, category and color of an event without attributes from its payloads. */
void nvtx_payload_describe(struct nvtx_event *event);

/* Copies the payloads of an event; returns how many bytes that took, a multiple of 8. Hot path. */
size_t nvtx_payload_take(const struct nvtx_event *event, uint8_t *out, size_t room);

/* The writer: decodes what nvtx_payload_take() copied, into at most VALUES_BYTES_MAX bytes.
 * Returns the length. */
size_t nvtx_payload_values(const struct xt_record_range *record, char *out);

#endif
