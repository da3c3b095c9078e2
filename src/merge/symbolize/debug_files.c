/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and identifies ELF files with libelf, and searches for debug files. The size of what
 * .gnu_debugdata expands to and the memory of its decoder are limited. The library of debuginfod is
 * loaded only when needed, because it depends on libcurl and much else, and few users have servers.
 */
#include "merge/symbolize/debug_files.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "log/base/monotonic.h"
#include "log/base/regular_file.h"

#define CRC_READ_BYTES 65536
/* libelf reads whole sections into memory. Holes may be compressed blocks, which are less dense. */
#define SPARSE_RATIO_MAX 16
#define SPARSE_BYTES	 (64 << 20)

bool elf_file_adopt(struct elf_file *file, int fd)
{
	struct stat status;

	file->fd = fd;
	file->elf = NULL;
	if (fd < 0)
		return false;
	if (fstat(fd, &status) ||
	    status.st_size > SPARSE_BYTES + status.st_blocks * 512 * SPARSE_RATIO_MAX)
		return true;
	elf_version(EV_CURRENT);
	/* Not ELF_C_READ_MMAP: the file may be truncated meanwhile. */
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	return true;
}

bool elf_file_open(struct elf_file *file, const char *path)
{
	struct stat status;
	int fd = xt_regular_open(path, &status);

	errno = fd < 0 ? -fd : 0;
	return elf_file_adopt(file, fd < 0 ? -1 : fd);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = ELF_FILE_NONE;
}

int elf_file_open_beside(const struct elf_file *file, const char *folder, const char *name)
{
	char link[32], path[PATH_MAX] = "";
	struct stat status;
	int beside, inner, fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	if (readlink(link, path, sizeof(path) - 1) > 0 && strrchr(path, '/'))
		strrchr(path, '/')[1] = '\0';
	beside = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	inner = openat(beside, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = xt_regular_open_at(inner, name, 0, &status);
	close(inner);
	close(beside);
	return fd;
}

bool elf_file_has_build_id(const struct elf_file *file, const void *build_id, size_t build_id_bytes)
{
	const void *found;
	ssize_t bytes = dwelf_elf_gnu_build_id(file->elf, &found);

	if (bytes <= 0)
		return !build_id_bytes;
	return (size_t)bytes == build_id_bytes && !memcmp(found, build_id, build_id_bytes);
}

/* Computes the CRC-32 of the whole file, as debug links use it. Returns false on a read error. */
static bool elf_file_crc32(const struct elf_file *file, uint32_t *crc_out)
{
	uint8_t buffer[CRC_READ_BYTES];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t bytes;

	while ((bytes = pread(file->fd, buffer, sizeof(buffer), at)) > 0) {
		crc = crc32(crc, buffer, (uInt)bytes);
		at += bytes;
	}
	*crc_out = (uint32_t)crc;
	return bytes == 0;
}

Elf_Scn *elf_file_section(const struct elf_file *file, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(file->elf, section)))
		if (gelf_getshdr(section, header) && header->sh_type == type && header->sh_size)
			return section;
	return NULL;
}

bool elf_file_has_symtab(const struct elf_file *file)
{
	GElf_Shdr header;

	return elf_file_section(file, SHT_SYMTAB, &header);
}

Elf_Scn *elf_file_section_named(const struct elf_file *file, const char *name, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(file->elf, section))) {
		const char *found;

		if (!gelf_getshdr(section, header) || header->sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(file->elf, names, header->sh_name);
		if (found && !strcmp(found, name))
			return section;
	}
	return NULL;
}

bool elf_file_has_debug_info(const struct elf_file *file)
{
	GElf_Shdr header;

	return elf_file_section_named(file, ".debug_info", &header) ||
	       elf_file_section_named(file, ".zdebug_info", &header);
}

#define SECTION_NAME	 ".gnu_debugdata"
#define IMAGE_BYTES_MAX	 (256u << 20)
#define MEMORY_BYTES_MAX (128u << 20)

/* Returns NULL if the data is damaged or too large, or if out of memory. Otherwise munmap() it. */
static char *unpack(const Elf_Data *packed, size_t *bytes_out)
{
	uint64_t memory_bytes_max = MEMORY_BYTES_MAX;
	size_t packed_at = 0;
	char *image = mmap(NULL, IMAGE_BYTES_MAX, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*bytes_out = 0;
	if (image == MAP_FAILED)
		return NULL;
	if (lzma_stream_buffer_decode(&memory_bytes_max, 0, NULL, packed->d_buf, &packed_at,
				      packed->d_size, (uint8_t *)image, bytes_out,
				      IMAGE_BYTES_MAX) == LZMA_OK &&
	    *bytes_out && mremap(image, IMAGE_BYTES_MAX, *bytes_out, 0) == image)
		return image;
	munmap(image, IMAGE_BYTES_MAX);
	return NULL;
}

bool mini_debug_open(struct mini_debug *mini, const struct elf_file *module)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_file_section_named(module, SECTION_NAME, &header);
	Elf_Data *packed = section ? elf_rawdata(section, NULL) : NULL;

	*mini = (struct mini_debug){.file = ELF_FILE_NONE};
	if (!packed || !packed->d_buf)
		return false;
	mini->image = unpack(packed, &mini->image_bytes);
	if (mini->image)
		mini->file.elf = elf_memory(mini->image, mini->image_bytes);
	if (elf_file_is_elf(&mini->file))
		return true;
	mini_debug_close(mini);
	mini->is_damaged = true;
	return false;
}

void mini_debug_close(struct mini_debug *mini)
{
	elf_file_close(&mini->file);
	if (mini->image)
		munmap(mini->image, mini->image_bytes);
	mini->image = NULL;
}

#define IDLE_NS_MAX    UINT64_C(20000000000)
#define TOTAL_NS_MAX   UINT64_C(300000000000) /* for all files of a run */
#define FILE_BYTES_MAX (INT64_C(1) << 31)

typedef int (*progress_function)(void *client, long done, long total);

static void *(*begin)(void);
static void (*end)(void *client);
static int (*find_debuginfo)(void *client, const unsigned char *build_id, int build_id_bytes,
			     char **path_out);
static void (*set_progress)(void *client, progress_function function);
static void (*set_user_data)(void *client, void *data);
static void *(*get_user_data)(void *client);

static const struct {
	const char *name;
	void *place;
} functions[] = {
	{"debuginfod_begin", &begin},
	{"debuginfod_end", &end},
	{"debuginfod_find_debuginfo", &find_debuginfo},
	{"debuginfod_set_progressfn", &set_progress},
	{"debuginfod_set_user_data", &set_user_data},
	{"debuginfod_get_user_data", &get_user_data},
};

/*
 * Progress callback of the client, called several times a second. A nonzero result aborts the
 * download. Until a server answers, the client increments done at each call, so a step of one is
 * not progress.
 */
static int on_progress(void *client, long done, long total)
{
	struct debuginfod *server = get_user_data(client);
	uint64_t now = monotonic_ns();

	server->is_too_large = done > FILE_BYTES_MAX || total > FILE_BYTES_MAX;
	if ((uint64_t)done > server->last_bytes + 1)
		server->progress_ns = now;
	server->last_bytes = (uint64_t)done;
	server->timed_out = now - server->progress_ns > IDLE_NS_MAX ||
			    server->spent_ns + now - server->started_ns > TOTAL_NS_MAX;
	return server->timed_out || server->is_too_large;
}

static bool open_library(struct debuginfod *server)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (server->client)
		return true;
	if (server->disabled || !urls || !urls[strspn(urls, " ")])
		return false;
	server->disabled = true;
	server->library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!server->library) {
		if (server->report)
			report_note(server->report,
				    "DEBUGINFOD_URLS is ignored: libdebuginfod.so.1 is not "
				    "installed");
		return false;
	}
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
		void *function = dlsym(server->library, functions[f].name);

		if (!function)
			return false;
		memcpy(functions[f].place, &function, sizeof(function));
	}
	server->client = begin();
	if (!server->client)
		return false;
	set_user_data(server->client, server);
	set_progress(server->client, on_progress);
	server->disabled = false;
	return true;
}

/*
 * Fetches the debug file with this build id. Returns a descriptor that the caller closes, or -1.
 * Stops asking servers after 20 seconds without data, and after 5 minutes in total. Rejects files
 * larger than 2 GiB.
 */
static int debuginfod_fetch(struct debuginfod *server, const char *path, const void *build_id,
			    size_t build_id_bytes)
{
	int fd;

	if (server->disabled || !open_library(server))
		return -1;
	server->last_bytes = 0;
	server->timed_out = server->is_too_large = false;
	server->started_ns = server->progress_ns = monotonic_ns();
	fd = find_debuginfo(server->client, build_id, (int)build_id_bytes, NULL);
	server->spent_ns += monotonic_ns() - server->started_ns;
	if (fd >= 0)
		return fd;
	if (fd == -ENOENT && !server->timed_out && !server->is_too_large)
		return -1;
	if (server->is_too_large) {
		if (server->report)
			report_note(server->report,
				    "%s: debuginfod: the debug file is larger than 2 GiB", path);
		return -1;
	}
	server->disabled = true;
	if (server->report)
		report_note(server->report, "%s: debuginfod: %s; not asking servers again", path,
			    server->timed_out ? "no answer in time" : strerror(-fd));
	return -1;
}

/* Closes the client. A disabled server stays disabled. */
static void debuginfod_end(struct debuginfod *server)
{
	if (server->client)
		end(server->client);
	/* Do not unload the library: its dependencies have threads and exit handlers. */
	server->client = NULL;
}

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
