/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for debug files and checks their identity.
 */
#include "merge/symbolize/debug_files.h"

#include <elfutils/libdwelf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_ROOT	   "/usr/lib/debug"
#define BUILD_ID_BYTES_MAX 64

/* Identity of the debug file. */
struct wanted {
	const void *build_id;
	size_t build_id_bytes;
	uint32_t crc; /* CRC-32 of the file, if the module has no build id */
};

static bool is_wanted(const struct elf_file *file, const struct wanted *wanted)
{
	uint32_t crc;

	if (!elf_file_is_elf(file) ||
	    !(elf_file_has_symtab(file) || elf_file_has_debug_info(file)) ||
	    !elf_file_has_build_id(file, wanted->build_id, wanted->build_id_bytes))
		return false;
	return wanted->build_id_bytes || (elf_file_crc32(file, &crc) && crc == wanted->crc);
}

/* Takes ownership of path. */
static bool try_path(char *path, const struct wanted *wanted, struct elf_file *found)
{
	bool is_found = false;

	if (elf_file_open(found, path)) {
		is_found = is_wanted(found, wanted);
		if (!is_found)
			elf_file_close(found);
	}
	free(path);
	return is_found;
}

static bool find_by_build_id(const char *root, const struct wanted *wanted, struct elf_file *found)
{
	const uint8_t *id = wanted->build_id;
	char hex[2 * BUILD_ID_BYTES_MAX + 1], *path;

	if (wanted->build_id_bytes < 2 || wanted->build_id_bytes > BUILD_ID_BYTES_MAX)
		return false;
	for (size_t i = 0; i < wanted->build_id_bytes; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2) < 0)
		return false;
	return try_path(path, wanted, found);
}

static bool find_by_link(const char *const *roots, size_t root_count, const char *link,
			 const char *module_path, const struct wanted *wanted,
			 struct elf_file *found)
{
	static const char *const beside[] = {"", ".debug/"};
	const char *slash = strrchr(module_path, '/');
	int directory = slash ? (int)(slash - module_path + 1) : 0;
	char *path;

	if (strchr(link, '/')) /* a debug link is a file name, not a path */
		return false;
	for (size_t b = 0; b < sizeof(beside) / sizeof(beside[0]); b++)
		if (asprintf(&path, "%.*s%s%s", directory, module_path, beside[b], link) >= 0 &&
		    try_path(path, wanted, found))
			return true;
	for (size_t r = 0; r < root_count; r++)
		if (asprintf(&path, "%s%.*s%s", roots[r], directory, module_path, link) >= 0 &&
		    try_path(path, wanted, found))
			return true;
	return false;
}

/* Returns a descriptor or -1. The client library supports only one thread at a time. */
static int fetch(struct debug_search *search, const char *path, const struct wanted *wanted)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int fd;

	pthread_mutex_lock(&lock);
	fd = debuginfod_fetch(&search->server, path, wanted->build_id, wanted->build_id_bytes);
	pthread_mutex_unlock(&lock);
	return fd;
}

static bool find_on_server(struct debug_search *search, const char *path,
			   const struct wanted *wanted, struct elf_file *found)
{
	int fd = wanted->build_id_bytes ? fetch(search, path, wanted) : -1;

	if (!elf_file_adopt(found, fd))
		return false;
	if (is_wanted(found, wanted))
		return true;
	elf_file_close(found);
	return false;
}

bool debug_files_find(struct debug_search *search, const struct elf_file *module, const char *path,
		      const void *build_id, size_t build_id_bytes, struct elf_file *found)
{
	struct wanted wanted = {.build_id = build_id, .build_id_bytes = build_id_bytes};
	const char *roots[2];
	size_t root_count = 0;
	GElf_Word crc = 0;
	const char *link = dwelf_elf_gnu_debuglink(module->elf, &crc);

	wanted.crc = crc;
	if (search->directory)
		roots[root_count++] = search->directory;
	roots[root_count++] = DEBUG_ROOT;
	for (size_t r = 0; r < root_count; r++)
		if (find_by_build_id(roots[r], &wanted, found))
			return true;
	if (link && find_by_link(roots, root_count, link, path, &wanted, found))
		return true;
	return find_on_server(search, path, &wanted, found);
}

void debug_files_find_shared(const struct elf_file *debug_file, const char *name,
			     const void *build_id, size_t build_id_bytes, struct elf_file *found)
{
	struct wanted wanted = {.build_id = build_id, .build_id_bytes = build_id_bytes};

	if (!find_by_build_id(DEBUG_ROOT, &wanted, found))
		elf_file_adopt(found, elf_file_open_beside(debug_file, ".", name));
}

void debug_search_end(struct debug_search *search)
{
	debuginfod_end(&search->server);
}
