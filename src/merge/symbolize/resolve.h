/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions, and where debug information exists the source lines, of a log's addresses.
 *
 * Modules are resolved one after the other. Unless the module cache keeps it for other logs, an ELF
 * file is closed after its addresses are resolved. Memory therefore does not grow with the number
 * of modules.
 *
 * Cache of open ELF files for several logs. Processes of one program share most modules, and
 * reading symbols takes longer than looking them up.
 *
 * Any thread may call. A module belongs to one thread from module_cache_open() to
 * module_cache_release(), because libelf and libdw are not thread-safe.
 */
#ifndef XT_MERGE_RESOLVE_H
#define XT_MERGE_RESOLVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "merge/base/report.h"
#include "merge/read/model.h"
#include "merge/symbolize/addresses.h"
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

/* Which addresses get names, and how much is looked up. */
struct resolve_options {
	bool drivers; /* include hidden modules: see module_is_driver() */
	bool places;  /* find inlined functions and lines */
	struct debug_search *search;
	const char *log_path;
};

/*
 * Collects the addresses of the model with addresses_collect() and names them. Reports modules
 * whose names cannot be found. Free it with addresses_free().
 */
void addresses_resolve(struct addresses *addresses, struct model *model,
		       const struct resolve_options *options, struct report *report);

#endif
