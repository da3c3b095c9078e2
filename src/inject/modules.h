/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are mapped where, and since when. Used by the writer thread alone.
 */
#ifndef XT_INJECT_MODULES_H
#define XT_INJECT_MODULES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define MODULE_BUILD_ID_MAX 64

struct module {
	uint32_t id;
	uint64_t start, end, bias;
	uint64_t load_ns; /* the last moment at which it was not seen yet */
	char path[PATH_MAX];
	uint8_t build_id[MODULE_BUILD_ID_MAX];
	uint32_t build_id_bytes;
	bool present; /* in the latest scan */
};

/* What a scan found, one call for each module; module is valid during the call. */
struct module_sink {
	void (*loaded)(void *context, const struct module *module);
	void (*unloaded)(void *context, uint32_t id, uint64_t unload_ns);
	void *context;
};

/*
 * Looks whether libraries came or went since the last call and tells the sink. start_ns: load
 * time for what is found by the first scan. True if anything changed.
 */
bool modules_scan(const struct module_sink *sink, uint64_t start_ns);

/* Tells the sink of all modules again, as loaded. */
void modules_repeat(const struct module_sink *sink);

#endif
