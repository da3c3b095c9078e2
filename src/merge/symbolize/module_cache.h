/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF files whose names are looked up, open for several logs: processes of one program share most
 * of their modules, and reading the symbols of one takes longer than looking them up.
 *
 * Any thread. A module belongs to one thread from module_cache_open() to module_cache_release(),
 * because libelf and libdw do not allow more.
 */
#ifndef XT_MERGE_MODULE_CACHE_H
#define XT_MERGE_MODULE_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/debug_info.h"
#include "merge/symbolize/symbols.h"

/* For several logs; estimated from symbols and debug files. */
#define MODULE_CACHE_BYTES (UINT64_C(512) << 20)

struct open_module {
	enum symbols_result result;
	int error_number;	       /* errno of the result */
	struct symbols *symbols;       /* NULL unless the result is SYMBOLS_OK */
	struct debug_info *debug_info; /* NULL: there is none, or it was not asked for */
};

struct module_cache {
	uint64_t limit_bytes; /* of modules that nobody uses; 0: they are closed at once */
	pthread_mutex_t lock;
	struct cached_module *modules; /* the last used one first */
};
#define MODULE_CACHE(limit)                                                                        \
	{                                                                                          \
		.limit_bytes = (limit), .lock = PTHREAD_MUTEX_INITIALIZER                          \
	}

/*
 * Opens a module by way of search->modules, or waits until no other thread has it. See symbols_open() and debug_info_open()
 * for what is in it. NULL if memory ran out.
 */
struct open_module *module_cache_open(struct debug_search *search, const char *path,
				      const void *build_id, size_t build_id_bytes,
				      bool wants_debug_info);
void module_cache_release(struct module_cache *cache, struct open_module *module);

/* Closes all modules; none may be in use. */
void module_cache_free(struct module_cache *cache);

#endif
