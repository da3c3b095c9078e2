/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds glibc's load counter by elimination. Keeps those words of the loader's
 * data that equal the count both before and after it changes. Start-up and writer thread.
 */
#include "inject/runtime/loader_watch.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>

#include "inject/runtime/hot_state.h"
#include "inject/runtime/loader_lock.h"

#define CANDIDATES_MAX 64

static uint64_t polled_generation;
HOT_STATE const uint64_t *loader_generation_word = &polled_generation;

static struct {
	const uint64_t *words[CANDIDATES_MAX];
	unsigned count;
	uint64_t first_adds;
	uint64_t last_adds;
	bool saw_unload; /* then the counter cannot be the number of loaded libraries */
} search;

struct load_counts {
	uint64_t adds;
	uint64_t subs;
};

static int read_counts(struct dl_phdr_info *info, size_t info_bytes, void *out)
{
	struct load_counts *counts = out;

	if (info_bytes < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs))
		return 1;
	counts->adds = info->dlpi_adds;
	counts->subs = info->dlpi_subs;
	return 1;
}

static struct load_counts load_counts(void)
{
	struct load_counts counts = {0, 0};

	loader_iterate(read_counts, &counts);
	return counts;
}

void loader_watch_begin(void)
{
	struct load_counts counts = load_counts();
	size_t bytes;
	const uint64_t *words = loader_data(&bytes);

	search.count = 0;
	search.first_adds = search.last_adds = counts.adds;
	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		if (words[i] != counts.adds)
			continue;
		if (search.count == CANDIDATES_MAX) {
			search.count = 0;
			return;
		}
		search.words[search.count++] = &words[i];
	}
}

void loader_watch_narrow(void)
{
	struct load_counts counts = load_counts();
	unsigned kept = 0;

	for (unsigned i = 0; i < search.count; i++)
		if (*search.words[i] == counts.adds)
			search.words[kept++] = search.words[i];
	search.count = kept;
	search.last_adds = counts.adds;
	if (counts.subs)
		search.saw_unload = true;
}

bool loader_watch_end(void)
{
	bool moved = search.last_adds != search.first_adds;

	loader_watch_poll();
	if (search.count != 1 || !moved || !search.saw_unload)
		return false;
	__atomic_store_n(&loader_generation_word, search.words[0], __ATOMIC_RELAXED);
	return true;
}

uint64_t loader_watch_poll(void)
{
	struct load_counts counts;

	if (loader_generation_word != &polled_generation)
		return loader_generation();
	counts = load_counts();
	__atomic_store_n(&polled_generation, counts.adds, __ATOMIC_RELAXED);
	return counts.adds;
}
