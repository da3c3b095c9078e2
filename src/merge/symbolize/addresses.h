/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct addresses in the stacks of a log, and the functions that contain them. Where debug
 * information exists, also their source lines.
 *
 * Modules are resolved one after the other. Unless the module cache keeps it for other logs, an ELF
 * file is closed after its addresses are resolved. Memory therefore does not grow with the number
 * of modules.
 *
 * Modules with functions that have no name, neither in the module nor in a debug file. They are
 * shown as "module+0x1f3c".
 */
#ifndef XT_MERGE_ADDRESSES_H
#define XT_MERGE_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "merge/base/report.h"
#include "merge/read/model.h"
#include "merge/symbolize/module_cache.h"

struct address {
	uint64_t frame;	 /* as in the log: kind and value */
	uint32_t module; /* index in the model's modules, 0: none */
	uint32_t name;	 /* mangled name in the model; NAME_EMPTY: unknown */
	uint64_t start;	 /* of the function, as ELF virtual address, if the name is known */
	uint64_t bytes;
	uint32_t first_place; /* index in places */
	uint32_t place_count;
};

struct addresses {
	struct address *list;
	uint32_t count;
	uint32_t *by_frame; /* by index in the model's frames: index in list */
	/*
	 * For each address with debug information: the functions inlined there, innermost first,
	 * then the function itself.
	 */
	LIST(struct place) places;
};

/* Which addresses get names, and how much is looked up. */
struct resolve_options {
	bool drivers; /* include hidden modules: see module_is_driver() */
	bool places;  /* find inlined functions and lines */
	struct debug_search *search;
	const char *log_path;
};

/*
 * Collects the addresses of the model, frees its frames, and names the addresses. Reports modules
 * whose names cannot be found. Free it with addresses_free().
 */
void addresses_resolve(struct addresses *addresses, struct model *model,
		       const struct resolve_options *options, struct report *report);
void addresses_free(struct addresses *addresses);

/* The address without its kind. */
static inline uint64_t address_value(const struct address *address)
{
	return address->frame & XT_FRAME_VALUE_MASK;
}

/* A return address may be the first byte of the next function, so look up the call before it. */
static inline uint64_t address_lookup(const struct address *address)
{
	bool returns = address->frame >> XT_FRAME_KIND_SHIFT == XT_FRAME_RETURN;

	return address_value(address) - returns;
}

/* address_lookup() as an ELF virtual address. */
static inline uint64_t address_virtual(const struct address *address, const struct module *module)
{
	return address_lookup(address) - module->bias;
}

/* The last component of a module's path. */
const char *module_file_name(const struct model *model, uint32_t module);

/* Returns whether the module is the driver, CUPTI or the tracer. Their frames are hidden. */
bool module_is_driver(const struct model *model, uint32_t module);

/* Returns whether the file is this library in any version: "libx.so", "libx.so.1". */
bool module_is_library(const char *file_name, const char *library);

struct unnamed_module {
	char *path;	      /* printable, see text_clean() */
	uint64_t place_count; /* distinct unnamed addresses in it that are shown */
};

/* Modules of all logs. */
struct unnamed_modules {
	LIST(struct unnamed_module);
};

/*
 * Adds the modules of a log and sorts by place_count, largest first. shown: by index in the
 * addresses, 0 if hidden. Free it with unnamed_modules_free().
 */
void unnamed_modules_add(struct unnamed_modules *unnamed, const struct model *model,
			 const struct addresses *addresses, const uint32_t *shown);
void unnamed_modules_free(struct unnamed_modules *unnamed);

#endif
