/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The different addresses in the stacks of a log, and the functions they lie in.
 *
 * Names are had module by module, each ELF file being open only as long as its addresses are
 * looked up: memory does not grow with the number of modules.
 */
#ifndef XT_MERGE_ADDRESSES_H
#define XT_MERGE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/model.h"
#include "merge/report.h"

struct address {
	uint64_t frame;	 /* as in the log: kind and value */
	uint32_t module; /* place in the model's modules, 0: in none */
	uint32_t name;	 /* name in the model, mangled; NAME_EMPTY: not known */
	uint64_t start;	 /* of the function, ELF virtual address; if the name is known */
	uint64_t bytes;
};

struct addresses {
	struct address *list;
	uint32_t count;
	uint32_t *by_frame; /* by place in the model's frames: index in list */
};

/* Which addresses get names. */
enum addresses_scope {
	ADDRESSES_SHOWN, /* those of modules that are shown: see module_is_driver() */
	ADDRESSES_ALL,
};

/*
 * Finds module and function of every frame of the model, whose frames are given up for it. What
 * cannot be had for want of a file is reported. 0 or -ENOMEM; addresses_free() in any case.
 */
int addresses_resolve(struct addresses *addresses, struct model *model, enum addresses_scope scope,
		      struct report *report);
void addresses_free(struct addresses *addresses);

/* The address itself, without the kind. */
static inline uint64_t address_value(const struct address *address)
{
	return address->frame & XT_FRAME_VALUE_MASK;
}

/* The last component of a module's path. */
const char *module_file_name(const struct model *model, uint32_t module);

/* Is this the driver, CUPTI or the tracer itself, whose frames are not shown? */
bool module_is_driver(const struct model *model, uint32_t module);

/* Does the file name belong to that library: "libx.so" itself or any of its versions? */
bool module_is_library(const char *file_name, const char *library);

#endif
