/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs register with NVTX: strings, and payload schemas, the layouts of payloads. Kept for
 * the life of the process, in memory that is never freed. Any thread; no lock, no malloc.
 */
#ifndef XT_INJECT_NVTX_SCHEMA_H
#define XT_INJECT_NVTX_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "cuda_abi/nvtx_abi.h"
#include "xtrace/crash_buffer_format.h"

#define SCHEMA_ENTRIES_MAX 128 /* larger schemas are refused */
#define SCHEMA_TEXTS_MAX   16  /* per payload, by pointer */
#define SCHEMA_ENUM	   100 /* kind of an enum, whose entries are its values */
#define OFFSET_UNKNOWN	   UINT32_MAX

/* A text that an entry points to. */
struct payload_text {
	uint32_t offset; /* of the pointer in the payload */
	uint32_t type;	 /* enum xt_nvtx_type */
};

struct payload_entry {
	const char *name;
	const struct payload_schema *nested; /* a schema or enum; NULL: use `type` */
	uint64_t detail;		     /* array length, or enum value */
	uint32_t offset;		     /* OFFSET_UNKNOWN: follows the previous entry */
	uint16_t type;			     /* enum xt_nvtx_type; 0: unknown */
	uint16_t flags; /* enum xt_nvtx_entry_flag; for an enum: whether it is a bit flag */
};

/* Immutable once published, never freed. */
struct payload_schema {
	uint64_t id; /* NVTX's, unique in the domain */
	uint32_t domain;
	uint32_t number; /* the tracer's, from 1 */
	uint32_t kind;	 /* enum xt_nvtx_schema_kind or SCHEMA_ENUM */
	uint32_t bytes;	 /* 0: variable or unknown */
	uint32_t align;
	uint32_t entry_count;
	const char *name;
	/* Indexes of the entries that describe the event itself; entry_count: none. */
	uint32_t message, category, color;
	uint32_t text_count;
	struct payload_text texts[SCHEMA_TEXTS_MAX];
	struct payload_entry entries[];
};

/* The size of a type and how its values are printed. */
enum payload_class {
	CLASS_NONE,
	CLASS_SIGNED,
	CLASS_UNSIGNED,
	CLASS_REAL,
	CLASS_HEX,
	CLASS_CHARACTER,
	CLASS_TEXT,	  /* size of a character */
	CLASS_REGISTERED, /* size of a pointer */
};

struct payload_type {
	uint8_t bytes;
	uint8_t class; /* enum payload_class */
};

/* CLASS_NONE for an unknown type. */
struct payload_type payload_type(uint64_t type);

/* Whether the entry's value is a pointer to a text outside of the payload. */
bool payload_is_pointed_text(const struct payload_entry *entry);

/*
 * Size and alignment of an entry and its number of elements. False if they depend on the data or
 * the entry cannot be decoded.
 */
bool payload_extent(const struct payload_entry *entry, uint64_t *bytes, uint32_t *align,
		    uint64_t *count);

/* Registers a schema or an enum and returns its id, or 0. */
uint64_t nvtx_register_schema(uint32_t domain, const struct xt_nvtx_schema *schema);
uint64_t nvtx_register_enum(uint32_t domain, const struct xt_nvtx_enum *described);

/* The schema with our number, or with NVTX's id in a domain; NULL if there is none. */
const struct payload_schema *nvtx_schema(uint32_t number);
const struct payload_schema *nvtx_find_schema(uint32_t domain, uint64_t id);

#define TEXT_BYTES_MAX 4096 /* longer texts are cut */

/* Copies the text into the store. "" if it is full. */
const char *nvtx_keep_text(const char *text);

/* Whether the text is a registered string in the store. */
int nvtx_is_registered(const char *text);

/* Converts to UTF-8. Cuts at the end of a character; returns the length. */
size_t nvtx_narrow(const wchar_t *wide, char *out, size_t out_bytes);

/*
 * A payload in a ring record. Its data follow, then a struct taken_text for each text that the
 * schema points to; each padded to a multiple of 8 bytes.
 */
struct taken_payload {
	uint32_t schema; /* number; 0: not registered */
	uint32_t data_bytes;
	uint64_t schema_id;    /* NVTX's id; XT_NVTX_TYPE_NONE: payloads that did not fit */
	uint64_t stated_bytes; /* stated by the program; or how many payloads did not fit */
};

struct taken_text {
	uint32_t text_bytes; /* or TEXT_NULL */
	uint32_t is_cut;     /* the text may be longer */
};
#define TEXT_NULL UINT32_MAX

#define VALUES_BYTES_MAX 4096

/*
 * Writer: decodes what payload_take() copied into at most VALUES_BYTES_MAX bytes. Returns the
 * length.
 */
size_t nvtx_payload_values(const struct xt_record_range *record, char *out);

#endif
