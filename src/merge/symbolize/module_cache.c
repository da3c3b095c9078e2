/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/symbolize/module_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"

struct cached_module {
	struct open_module open; /* must be first: callers pass its address back */
	struct cached_module *next;
	char *path;
	void *build_id;
	size_t build_id_bytes;
	/* Locked by the thread that uses the module. */
	pthread_mutex_t lock;
	bool is_open;
	bool debug_info_tried;
	/* Protected by the lock of the cache: */
	size_t user_count;
	uint64_t bytes;
};

static void free_module(struct cached_module *module)
{
	debug_info_close(module->open.debug_info);
	symbols_close(module->open.symbols);
	pthread_mutex_destroy(&module->lock);
	free_all(module->path, module->build_id, module);
}

static struct cached_module *make_module(const char *path, const void *build_id,
					 size_t build_id_bytes)
{
	struct cached_module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	pthread_mutex_init(&module->lock, NULL);
	module->path = strdup(path);
	module->build_id = malloc(build_id_bytes + 1);
	module->build_id_bytes = build_id_bytes;
	if (module->path && module->build_id) {
		memcpy(module->build_id, build_id, build_id_bytes);
		return module;
	}
	free_module(module);
	return NULL;
}

static bool is_module(const struct cached_module *module, const char *path, const void *build_id,
		      size_t build_id_bytes)
{
	return module->build_id_bytes == build_id_bytes &&
	       !memcmp(module->build_id, build_id, build_id_bytes) && !strcmp(module->path, path);
}

/* Finds or creates the module, moves it to the front and counts the caller as a user. */
static struct cached_module *take_module(struct module_cache *cache, const char *path,
					 const void *build_id, size_t build_id_bytes)
{
	struct cached_module **place, *module;

	pthread_mutex_lock(&cache->lock);
	for (place = &cache->modules; *place; place = &(*place)->next)
		if (is_module(*place, path, build_id, build_id_bytes))
			break;
	module = *place;
	if (module)
		*place = module->next;
	else
		module = make_module(path, build_id, build_id_bytes);
	if (module) {
		module->next = cache->modules;
		cache->modules = module;
		module->user_count++;
	}
	pthread_mutex_unlock(&cache->lock);
	return module;
}

/* Returns false if out of memory. */
static bool open_files(struct cached_module *module, struct debug_search *search,
		       bool wants_debug_info)
{
	struct open_module *open = &module->open;
	const struct elf_file *debug_file;

	if (!module->is_open) {
		open->result = symbols_open(module->path, module->build_id, module->build_id_bytes,
					    search, &open->symbols);
		open->error_number = errno;
		if (open->result == SYMBOLS_NO_MEMORY)
			return false;
		/* If descriptors ran out, try again for the next log. */
		module->is_open = open->symbols || (errno != EMFILE && errno != ENFILE);
	}
	if (open->debug_info)
		debug_info_begin_log(open->debug_info);
	if (!open->symbols || !wants_debug_info || module->debug_info_tried)
		return true;
	debug_file = symbols_debug_file(open->symbols);
	open->debug_info = debug_file ? debug_info_open(debug_file, module->path) : NULL;
	module->debug_info_tried = open->debug_info || !debug_file;
	return module->debug_info_tried;
}

struct open_module *module_cache_open(struct debug_search *search, const char *path,
				      const void *build_id, size_t build_id_bytes,
				      bool wants_debug_info)
{
	struct module_cache *cache = search->modules;
	struct cached_module *module = take_module(cache, path, build_id, build_id_bytes);

	if (!module)
		return NULL;
	pthread_mutex_lock(&module->lock);
	if (open_files(module, search, wants_debug_info))
		return &module->open;
	module_cache_release(cache, &module->open);
	return NULL;
}

/* Each module needs one or two of the process's descriptors, usually 1,024. */
#define KEPT_MODULES_MAX 128

/* Closes unused modules, the least recently used first, until the rest is within the limits. */
static void evict(struct module_cache *cache)
{
	uint64_t kept_bytes = 0;
	size_t kept_count = 0;

	for (struct cached_module **place = &cache->modules; *place;) {
		struct cached_module *module = *place;

		kept_bytes += module->bytes;
		kept_count++;
		if (module->user_count || (kept_bytes <= cache->limit_bytes &&
					   kept_count <= KEPT_MODULES_MAX && cache->limit_bytes)) {
			place = &module->next;
			continue;
		}
		kept_bytes -= module->bytes;
		kept_count--;
		*place = module->next;
		free_module(module);
	}
}

void module_cache_release(struct module_cache *cache, struct open_module *open)
{
	struct cached_module *module = (struct cached_module *)open;
	uint64_t bytes = open->symbols ? symbols_bytes(open->symbols, open->debug_info != NULL) : 0;

	pthread_mutex_unlock(&module->lock);
	pthread_mutex_lock(&cache->lock);
	module->bytes = bytes;
	module->user_count--;
	evict(cache);
	pthread_mutex_unlock(&cache->lock);
}

void module_cache_free(struct module_cache *cache)
{
	cache->limit_bytes = 0;
	evict(cache);
	pthread_mutex_destroy(&cache->lock);
}
