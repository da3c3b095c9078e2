/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the list of loaded modules. Runs on the writer thread alone.
 *
 * Between two scans modules may have come and gone unseen, at addresses of others. The loader counts
 * what it adds: where all that it added since the last scan is there, nothing was missed, and what is
 * new was there from then on. Otherwise what was mapped between the two scans is not known; stacks of
 * that time are told by the count, which each has. So time is made of spans, in each of which an
 * address means one thing at most, and of the gaps between them: one nanosecond before a span begins
 * stands for the gap, and what is mapped then is what is certain.
 *
 * The callback of dl_iterate_phdr() runs under the loader's list lock: it only copies into memory
 * that exists already.
 */
#include "inject/modules.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject/clock.h"
#include "inject/loader_watch.h"

#define MODULES_MAX 8192
#define SPANS_KEPT  256 /* rings are emptied every few milliseconds: older stacks are rare */

static struct {
	struct module *known; /* MODULES_MAX of them, touched as far as used */
	struct module *seen;
	uint32_t known_count;
	uint32_t seen_count;
	uint32_t last_id;
	uint64_t last_scan_ns;
	uint64_t generation;
	uint64_t seen_generation; /* as of the list that was seen last */
	bool scanned;
	uint64_t failed_count;		      /* scans for which there was no memory */
	struct module_span spans[SPANS_KEPT]; /* by number, modulo their count */
	uint64_t span_count;
} state;

static struct module *map_modules(void)
{
	void *memory = mmap(NULL, MODULES_MAX * sizeof(struct module), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* The GNU build id among the notes of one PT_NOTE segment. */
static void read_build_id(struct module *module, const uint8_t *notes, size_t bytes)
{
	const ElfW(Nhdr) * note;

	for (size_t at = 0; at + sizeof(*note) <= bytes;) {
		size_t name_bytes, description_bytes;

		note = (const ElfW(Nhdr) *)(notes + at);
		name_bytes = (note->n_namesz + 3u) & ~3u;
		description_bytes = (note->n_descsz + 3u) & ~3u;
		at += sizeof(*note);
		if (name_bytes > bytes - at || description_bytes > bytes - at - name_bytes)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && note->n_descsz <= MODULE_BUILD_ID_MAX) {
			module->build_id_bytes = note->n_descsz;
			memcpy(module->build_id, notes + at + name_bytes, note->n_descsz);
			return;
		}
		at += name_bytes + description_bytes;
	}
}

/* Notes may be in the file without being mapped. */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * notes)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_R) &&
		    notes->p_vaddr >= segment->p_vaddr &&
		    notes->p_vaddr + notes->p_memsz <= segment->p_vaddr + segment->p_filesz)
			return true;
	}
	return false;
}

static int see_module(struct dl_phdr_info *info, size_t info_bytes, void *unused)
{
	struct module *module = &state.seen[state.seen_count];

	(void)info_bytes, (void)unused;
	state.seen_generation = info->dlpi_adds;
	if (state.seen_count == MODULES_MAX)
		return 1;
	memset(module, 0, offsetof(struct module, path));
	module->build_id_bytes = 0;
	module->bias = info->dlpi_addr;
	module->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD) {
			if (start < module->start)
				module->start = start;
			if (start + segment->p_memsz > module->end)
				module->end = start + segment->p_memsz;
		} else if (segment->p_type == PT_NOTE && !module->build_id_bytes &&
			   is_loaded(info, segment)) {
			read_build_id(module, (const uint8_t *)start, segment->p_memsz);
		}
	}
	if (module->start >= module->end)
		return 0;
	snprintf(module->path, sizeof(module->path), "%s", info->dlpi_name ? info->dlpi_name : "");
	state.seen_count++;
	return 0;
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       !memcmp(a->build_id, b->build_id, a->build_id_bytes) && !strcmp(a->path, b->path);
}

/* The program itself has no name in the loader's list. */
static void name_program(struct module *module)
{
	ssize_t length;

	if (module->path[0])
		return;
	length = readlink("/proc/self/exe", module->path, sizeof(module->path) - 1);
	module->path[length > 0 ? length : 0] = '\0';
}

static struct module *find_known(const struct module *seen)
{
	for (uint32_t i = 0; i < state.known_count; i++)
		if (is_same(&state.known[i], seen))
			return &state.known[i];
	return NULL;
}

/* What a scan has to tell apart. */
struct change {
	const struct module_sink *sink;
	uint64_t now_ns;
	uint64_t added;	    /* by the loader, since the last scan */
	uint32_t new_count; /* that are there */
	uint32_t gone_count;
	bool is_complete; /* nothing came and went unseen */
};

static bool is_span_over(const struct change *change)
{
	return state.scanned && (!change->is_complete || change->gone_count);
}

static void count_changes(struct change *change)
{
	change->new_count = change->gone_count = 0;
	for (uint32_t i = 0; i < state.known_count; i++)
		state.known[i].present = false;
	for (uint32_t i = 0; i < state.seen_count; i++) {
		struct module *module;

		name_program(&state.seen[i]);
		module = find_known(&state.seen[i]);
		state.seen[i].present = module;
		if (module)
			module->present = true;
		else
			change->new_count++;
	}
	for (uint32_t i = 0; i < state.known_count; i++)
		change->gone_count += !state.known[i].present;
	change->added = state.seen_generation - state.generation;
	change->is_complete = change->added == change->new_count;
}

static bool overlap(const struct module *a, const struct module *b)
{
	return a->start < b->end && b->start < a->end;
}

/* Is a module that went where the new one is, or one that is new where the other was? */
static bool is_place_shared(const struct module *module, const struct module *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!list[i].present && overlap(module, &list[i]))
			return true;
	return false;
}

static bool drop_absent(const struct change *change)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < state.known_count; i++) {
		struct module *module = &state.known[i];

		if (!module->present) {
			/* It may have been there until now, if it was it. */
			bool is_certain = change->is_complete &&
					  !is_place_shared(module, state.seen, state.seen_count);

			change->sink->unloaded(change->sink->context, module->id,
					       is_certain ? change->now_ns + 1
							  : change->now_ns - 1);
			continue;
		}
		if (kept != i)
			state.known[kept] = *module;
		kept++;
	}
	if (kept == state.known_count)
		return false;
	state.known_count = kept;
	return true;
}

static bool is_of_start(uint32_t seen)
{
	/* What is before the loader in its list came with the program, and stays. */
	for (uint32_t i = seen; i < state.seen_count; i++)
		if (state.seen[i].bias == getauxval(AT_BASE))
			return true;
	return false;
}

/*
 * A module may have gone, and come again to the same place, with others there in between: then it was
 * added at the end of the list, and all that stand behind it were added later still.
 */
static bool may_have_gone(const struct change *change, uint32_t seen)
{
	return state.scanned && !change->is_complete &&
	       change->added >= 2u + (state.seen_count - 1 - seen) && !is_of_start(seen);
}

static void add_new(const struct change *change, const struct module *seen, uint64_t start_ns)
{
	struct module *module = &state.known[state.known_count];

	if (state.known_count == MODULES_MAX)
		return;
	*module = *seen;
	module->present = true;
	module->id = ++state.last_id;
	if (!state.scanned)
		module->load_ns = start_ns;
	else if (!is_span_over(change))
		module->load_ns = state.last_scan_ns;
	else
		module->load_ns =
			change->now_ns - (change->is_complete &&
					  !is_place_shared(module, state.known, state.known_count));
	state.known_count++;
	change->sink->loaded(change->sink->context, module);
}

static void add_again(const struct change *change, struct module *module)
{
	change->sink->unloaded(change->sink->context, module->id, change->now_ns - 1);
	module->id = ++state.last_id;
	module->load_ns = change->now_ns;
	change->sink->loaded(change->sink->context, module);
}

static struct module_span *span_at(uint64_t number)
{
	return &state.spans[number % SPANS_KEPT];
}

static void note_span(const struct change *change, uint64_t start_ns)
{
	if (!state.scanned)
		*span_at(state.span_count++) = (struct module_span){.from_ns = start_ns};
	else if (is_span_over(change))
		*span_at(state.span_count++) = (struct module_span){
			.first_generation = state.seen_generation, .from_ns = change->now_ns};
	span_at(state.span_count - 1)->last_generation = state.seen_generation;
}

bool modules_scan(const struct module_sink *sink, uint64_t start_ns)
{
	/* The time first: what is loaded from here on was not seen before. */
	struct change change = {.sink = sink, .now_ns = monotonic_ns()};
	uint64_t generation = loader_watch_ask();
	bool changed;

	if (!state.known)
		state.known = map_modules();
	if (!state.seen)
		state.seen = map_modules();
	if (!state.known || !state.seen) {
		state.failed_count++;
		return false;
	}
	/* An unload alone does not move the count, and harms nothing until the next load. */
	if (state.scanned && generation == state.generation) {
		state.last_scan_ns = change.now_ns;
		return false;
	}
	state.seen_count = 0;
	loader_lock();
	dl_iterate_phdr(see_module, NULL);
	loader_unlock();
	count_changes(&change);
	for (uint32_t i = 0; i < state.seen_count; i++)
		if (state.seen[i].present && may_have_gone(&change, i))
			add_again(&change, find_known(&state.seen[i]));
		else if (!state.seen[i].present)
			add_new(&change, &state.seen[i], start_ns);
	changed = drop_absent(&change) || change.new_count;
	note_span(&change, start_ns);
	state.scanned = true;
	state.generation = state.seen_generation;
	state.last_scan_ns = change.now_ns;
	return changed;
}

bool modules_moment(uint16_t generation, uint64_t seen_ns, struct module_moment *out)
{
	uint64_t full = state.generation +
			(uint64_t)(int64_t)(int16_t)(generation - (uint16_t)state.generation);
	uint64_t last = state.span_count - 1, number = last;

	*out = (struct module_moment){.time_ns = 0, .number = UINT64_MAX};
	if (!state.span_count) {
		out->time_ns = seen_ns;
		return true; /* nothing is known of modules */
	}
	if ((int64_t)(full - state.generation) > 0)
		return false;
	while (full < span_at(number)->first_generation && last - number + 1 < SPANS_KEPT)
		number--;
	if (full < span_at(number)->first_generation)
		return true; /* too long ago */
	out->number = 2 * number;
	out->time_ns = seen_ns;
	if (number < last && full > span_at(number)->last_generation) {
		out->number++;
		out->time_ns = span_at(number + 1)->from_ns - 1;
		return true;
	}
	if (out->time_ns < span_at(number)->from_ns)
		out->time_ns = span_at(number)->from_ns;
	if (number < last && out->time_ns > span_at(number + 1)->from_ns - 2)
		out->time_ns = span_at(number + 1)->from_ns - 2;
	return true;
}

uint64_t modules_lost(void)
{
	return state.failed_count > 1 ? state.failed_count : 0;
}

struct module_span modules_span(void)
{
	return state.span_count ? *span_at(state.span_count - 1) : (struct module_span){0};
}

void modules_repeat(const struct module_sink *sink)
{
	for (uint32_t i = 0; i < state.known_count; i++)
		sink->loaded(sink->context, &state.known[i]);
}
