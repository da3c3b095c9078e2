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
	uint64_t load_ns; /* no stack that has it in it is from before */
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

/*
 * Which modules a stack is to be looked up in: those that are mapped at time_ns, by what the sink was
 * told. number: the same for stacks that are looked up alike. Where it cannot be known what was mapped
 * at an address, nothing is at that time.
 */
struct module_moment {
	uint64_t time_ns;
	uint64_t number;
};

/*
 * Finds that for a stack of a time and generation (low bits of loader_generation() before its walk).
 * False if a scan is needed first (until then nothing is mapped at that time).
 */
bool modules_moment(uint16_t generation, uint64_t seen_ns, struct module_moment *out);

/* The stacks that all has been told of: their generations, and since when. */
struct module_span {
	uint64_t first_generation, last_generation;
	uint64_t from_ns;
};
struct module_span modules_span(void);

/* Scans for which there was no memory. A single one is made good by the next. */
uint64_t modules_lost(void);

/* Tells the sink of all modules again, as loaded. */
void modules_repeat(const struct module_sink *sink);

#endif
