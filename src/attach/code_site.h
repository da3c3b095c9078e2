/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stub goes, and the functions that it calls.
 *
 * The code segments of ELF files end with unused bytes up to the end of a page. Writing there makes
 * a private copy of that page; the file and other processes keep theirs. A stub is never
 * overwritten, because a thread may still be in it. Later attempts of this version run the same
 * bytes again, and other versions use the next place.
 */
#ifndef XT_ATTACH_CODE_SITE_H
#define XT_ATTACH_CODE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/target.h"

/* A mapping of the process, of a file or other, from /proc/PID/maps. */
struct address_range {
	uint64_t start, end;
	bool can_write, can_execute, is_private, is_main_stack;
};

struct address_map {
	struct address_range *ranges; /* by address */
	size_t count, capacity;
};

void address_map_free(struct address_map *map);

/* The mapping that contains an address, or NULL. */
const struct address_range *address_map_find(const struct address_map *map, uint64_t address);

enum site_function {
	SITE_CREATE, /* pthread_create */
	SITE_DETACH,
	SITE_ATTR, /* pthread_attr_init */
	SITE_SIZE, /* pthread_attr_setstacksize */
	SITE_ERRNO,
	SITE_DLOPEN,
	SITE_DLSYM,
	SITE_DLERROR,
	SITE_FUNCTIONS
};

struct code_site {
	uint64_t code; /* for the stub */
	uint64_t block;
	uint64_t stack_bytes; /* for the worker, with the static TLS that is a part of it */
	uint64_t functions[SITE_FUNCTIONS];
};

/* Returns 0, or -errno with *why. Reads the map of the process. */
int code_site_find(struct code_site *site, const struct target *target, struct address_map *map,
		   const struct why *why);

/*
 * Whether the stub may be written at site->code, or is there already: *is_written. Anything else
 * may have been written there since the site was found.
 */
bool code_site_is_free(const struct code_site *site, pid_t pid, bool *is_written);

/* The file of glibc that has the functions above. */
bool module_is_glibc(const struct process_module *module);

#endif
