/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache of open ELF files for several logs. Processes of one program share most modules, and
 * reading symbols takes longer than looking them up. Returns errors if memory runs out, because
 * xtrace top and serve use it, too.
 *
 * Any thread may call. A module belongs to one thread from module_cache_open() to
 * module_cache_release(), because libelf and libdw are not thread-safe.
 */
#ifndef XT_MERGE_MODULE_CACHE_H
#define XT_MERGE_MODULE_CACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/symbolize/debug_files.h"
#include "merge/symbolize/debug_info.h"
#include "merge/symbolize/symbols.h"

/* Default limit, compared with an estimate from symbols and debug files. */
#define MODULE_CACHE_BYTES (UINT64_C(512) << 20)

struct open_module {
	enum symbols_result result;
	int error_number;	       /* errno of the result */
	struct symbols *symbols;       /* NULL unless the result is SYMBOLS_OK */
	struct debug_info *debug_info; /* NULL: missing or not requested */
};

struct module_cache {
	uint64_t limit_bytes; /* for unused modules; 0: close them at once */
	pthread_mutex_t lock;
	struct cached_module *modules; /* most recently used first */
};
#define MODULE_CACHE(limit)                                                                        \
	{                                                                                          \
		.limit_bytes = (limit), .lock = PTHREAD_MUTEX_INITIALIZER                          \
	}

/*
 * Opens a module in the cache search->modules. Waits while another thread uses it. See
 * symbols_open() and debug_info_open(). Returns NULL if out of memory.
 */
struct open_module *module_cache_open(struct debug_search *search, const char *path,
				      const void *build_id, size_t build_id_bytes,
				      bool wants_debug_info);
void module_cache_release(struct module_cache *cache, struct open_module *module);

/* Closes all modules. None may be in use. */
void module_cache_free(struct module_cache *cache);

#endif
