/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that share a mangled name, and qualifiers that distinguish them.
 */
#include "merge/naming/disambiguate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/naming/demangle.h"
#include "merge/symbolize/mangled_linkage.h"
#include "merge/symbolize/symbols.h"

struct sorting {
	const struct model *model;
	const struct addresses *addresses;
	struct name_qualifier *qualifiers; /* by address */
	uint32_t *files; /* by address: source file of its function; NAME_EMPTY: unknown */
};

static const struct module *module_of(const struct sorting *s, uint32_t a)
{
	return &s->model->modules.rows[s->addresses->list[a].module];
}

static const char *name_of(const struct sorting *s, uint32_t a, size_t *length_out)
{
	size_t length;
	const char *name = names_text(&s->model->names, s->addresses->list[a].name, &length);

	*length_out = demangle_length(name, length);
	return name;
}

/* Compares mangled names without the suffixes of compilers. */
static int compare_names(const struct sorting *s, uint32_t i, uint32_t j)
{
	size_t x, y;
	const char *a = name_of(s, i, &x), *b = name_of(s, j, &y);

	return x == y ? memcmp(a, b, x) : x < y ? -1 : 1;
}

/*
 * Returns the suffix that marks a part or copy of a function. Ignores the numbers of ".lto_priv.",
 * which separate functions that share a name.
 */
static const char *clone_of(const struct sorting *s, uint32_t a)
{
	static const char number[] = ".lto_priv.";
	size_t length;
	const char *clone = name_of(s, a, &length) + length;

	if (!strncmp(clone, number, strlen(number)))
		clone += strlen(number) + strspn(clone + strlen(number), "0123456789");
	return clone;
}

static int compare_numbers(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* Compares path and build id of the modules. */
static int compare_builds(const struct sorting *s, uint32_t i, uint32_t j)
{
	const struct module *x = module_of(s, i), *y = module_of(s, j);
	int by_path = compare_numbers(x->path, y->path);

	return by_path ? by_path : compare_numbers(x->build_id, y->build_id);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct sorting *s = context;
	int order = compare_names(s, i, j);

	if (!order)
		order = compare_builds(s, i, j);
	if (!order)
		order = strcmp(clone_of(s, i), clone_of(s, j));
	if (!order)
		order = compare_numbers(s->addresses->list[i].start, s->addresses->list[j].start);
	return order ? order : compare_numbers(i, j);
}

/*
 * Returns whether two functions of one module and name are different. They are if both exist at the
 * same time.
 */
static bool are_different(const struct sorting *s, uint32_t i, uint32_t j)
{
	return !compare_builds(s, i, j) && !strcmp(clone_of(s, i), clone_of(s, j)) &&
	       s->addresses->list[i].start != s->addresses->list[j].start;
}

static bool is_same_function(const struct sorting *s, uint32_t i, uint32_t j)
{
	return !compare_builds(s, i, j) &&
	       s->addresses->list[i].start == s->addresses->list[j].start;
}

/* Returns the source file of an address, or NAME_EMPTY. */
static uint32_t file_of(const struct sorting *s, uint32_t a)
{
	const struct address *address = &s->addresses->list[a];

	return address->place_count
		       ? s->addresses->places[address->first_place + address->place_count - 1].file
		       : NAME_EMPTY;
}

/*
 * Sets the file of each function: any of its addresses may know it. order[0 .. count) share a name.
 */
static void find_files(struct sorting *s, const uint32_t *order, uint32_t count)
{
	for (uint32_t first = 0, next; first < count; first = next) {
		uint32_t file = NAME_EMPTY;

		for (next = first; next < count && is_same_function(s, order[next], order[first]);
		     next++)
			if (file == NAME_EMPTY)
				file = file_of(s, order[next]);
		for (uint32_t i = first; i < next; i++)
			s->files[order[i]] = file;
	}
}

/* Sets the qualifiers of functions with the same name and module path, order[0 .. count). */
static void find_qualifiers(struct sorting *s, const uint32_t *order, uint32_t count)
{
	bool are_many = false;

	for (uint32_t i = 1; i < count; i++)
		are_many |= s->files[order[i]] == NAME_EMPTY &&
			    are_different(s, order[i], order[i - 1]);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t file = s->files[order[i]];

		s->qualifiers[order[i]] = (struct name_qualifier){
			.path = file == NAME_EMPTY ? module_of(s, order[i])->path : file,
			.has_address = file == NAME_EMPTY && are_many,
		};
	}
}

/*
 * Returns whether the qualifiers show that two functions are different. Copies of a function with
 * global linkage may come from several paths to the same file, but not from files of different
 * names.
 */
static bool is_elsewhere(const struct sorting *s, uint32_t i, uint32_t j, bool is_global)
{
	const struct name_qualifier *x = &s->qualifiers[i], *y = &s->qualifiers[j];

	if (x->path == y->path)
		return x->has_address && y->has_address &&
		       s->addresses->list[i].start != s->addresses->list[j].start;
	if (!is_global)
		return true;
	return s->files[i] != NAME_EMPTY && s->files[j] != NAME_EMPTY &&
	       strcmp(path_file_name(names_text(&s->model->names, x->path, NULL)),
		      path_file_name(names_text(&s->model->names, y->path, NULL))) != 0;
}

/* Qualifies the functions order[0 .. count), which share a name, if they differ. */
static void qualify_name(struct sorting *s, const uint32_t *order, uint32_t count)
{
	const char *name = names_text(&s->model->names, s->addresses->list[order[0]].name, NULL);
	bool is_global = mangled_linkage_is_global(name), are_many = false;
	uint32_t known = order[0];

	find_files(s, order, count);
	for (uint32_t first = 0, next; first < count; first = next) {
		uint32_t path = module_of(s, order[first])->path;

		for (next = first; next < count; next++)
			if (module_of(s, order[next])->path != path)
				break;
		find_qualifiers(s, order + first, next - first);
	}
	for (uint32_t i = 1; i < count; i++) {
		if (s->files[known] == NAME_EMPTY && s->files[order[i]] != NAME_EMPTY && is_global)
			known = order[i];
		are_many |= is_elsewhere(s, order[i], known, is_global);
	}
	for (uint32_t i = 0; i < count && !are_many; i++)
		s->qualifiers[order[i]] = (struct name_qualifier){.path = NAME_EMPTY};
}

static bool is_function(const struct sorting *s, uint32_t a)
{
	const struct address *address = &s->addresses->list[a];
	const char *name = names_text(&s->model->names, address->name, NULL);

	/* Code generated at run time is excluded: a function may be compiled several times. */
	return address->module && name[0] && strcmp(name, SYMBOLS_PLT) != 0 &&
	       !module_is_driver(s->model, address->module);
}

struct name_qualifier *disambiguate_functions(const struct model *model,
					      const struct addresses *addresses)
{
	struct sorting s = {
		.model = model,
		.addresses = addresses,
		.qualifiers = xt_calloc(addresses->count + 1, sizeof(*s.qualifiers)),
		.files = xt_calloc(addresses->count + 1, sizeof(*s.files)),
	};
	uint32_t *order = xt_calloc(addresses->count + 1, sizeof(*order)), count = 0;

	for (uint32_t a = 0; a < addresses->count; a++)
		if (is_function(&s, a))
			order[count++] = a;
	if (count)
		qsort_r(order, count, sizeof(*order), compare_functions, &s);
	for (uint32_t first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (compare_names(&s, order[next], order[first]))
				break;
		qualify_name(&s, order + first, next - first);
	}
	free(s.files);
	free(order);
	return s.qualifiers;
}
