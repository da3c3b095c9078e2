/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stub goes, and the functions that it calls.
 *
 * The code segments of ELF files end with unused bytes up to the end of a page. Writing there makes
 * a private copy of that page; the file and other processes keep theirs. A stub that has run is
 * never overwritten, because one of its threads may still be in it. A later attempt uses the next
 * place.
 */
#ifndef XT_ATTACH_CODE_SITE_H
#define XT_ATTACH_CODE_SITE_H

#include <stddef.h>
#include <stdint.h>

#include "attach/address_map.h"
#include "attach/target.h"

enum site_function {
	SITE_CREATE, /* pthread_create */
	SITE_DETACH,
	SITE_ERRNO,
	SITE_DLOPEN,
	SITE_DLSYM,
	SITE_DLERROR,
	SITE_FUNCTIONS
};

struct code_site {
	uint64_t code; /* for the stub */
	uint64_t block;
	uint64_t functions[SITE_FUNCTIONS];
};

/* Returns 0, or -errno with *why. Reads the map of the process. */
int code_site_find(struct code_site *site, const struct target *target, struct address_map *map,
		   char *why, size_t why_bytes);

#endif
