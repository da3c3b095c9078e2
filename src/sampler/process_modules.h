/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF files that a sampled process has mapped, from /proc/PID/maps. Sampler thread only.
 */
#ifndef XT_SAMPLER_PROCESS_MODULES_H
#define XT_SAMPLER_PROCESS_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_MODULE_BUILD_ID_MAX 64

struct elf_image;
struct memory_mapping;

struct process_module {
	uint64_t start, end; /* [start, end): from the first to the last mapped byte */
	uint64_t bias;	     /* address - bias = ELF virtual address */
	char *path;	     /* as in /proc/PID/maps, less " (deleted)"; owned by the list */
	uint8_t build_id[PROCESS_MODULE_BUILD_ID_MAX];
	uint32_t build_id_bytes;
	uint32_t log_id;       /* for the caller: XT_MODULE_ID once written; 0 at first */
	struct elf_image *elf; /* elf_image.h */
};

struct process_modules {
	struct process_module *list; /* by start */
	size_t count;
	size_t capacity;
	uint64_t generation;	 /* changes with every change of the list; unique among processes */
	uint64_t refresh_due_ns; /* for the caller: not earlier if an address is in none */
};

/* Splits a line of /proc/PID/maps in place, which mapping->path is in. False if it is none. */
bool memory_mapping_parse(char *line, struct memory_mapping *mapping);

/*
 * Reads the mappings again. Modules that stayed keep their log_id. Returns 0, -ENOMEM, or -ESRCH if
 * the process is gone or may not be read.
 */
int process_modules_refresh(struct process_modules *modules, pid_t pid);

/* The module that contains an address, or NULL. Valid until the next refresh. */
struct process_module *process_modules_find(const struct process_modules *modules,
					    uint64_t address);

void process_modules_free(struct process_modules *modules);

#endif
