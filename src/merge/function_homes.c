/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that share their mangled name, and what tells them apart.
 */
#include "merge/function_homes.h"

#include <stdlib.h>
#include <string.h>

#include "merge/symbols.h"

struct sorting {
	const struct model *model;
	const struct addresses *addresses;
	struct function_home *homes; /* by address */
};

static uint32_t path_of(const struct sorting *s, uint32_t a)
{
	return s->model->modules.rows[s->addresses->list[a].module].path;
}

/* By mangled name, but for what tells those of one program apart that was optimised as a whole. */
static int compare_names(const struct sorting *s, uint32_t i, uint32_t j)
{
	uint32_t x = s->addresses->list[i].name, y = s->addresses->list[j].name;
	const char *a, *b, *end_a, *end_b;
	int order;

	if (x == y)
		return 0;
	a = names_text(&s->model->names, x, NULL);
	b = names_text(&s->model->names, y, NULL);
	end_a = strstr(a, ".lto_priv.");
	end_b = strstr(b, ".lto_priv.");
	if (!end_a)
		end_a = a + strlen(a);
	if (!end_b)
		end_b = b + strlen(b);
	order = (end_a - a > end_b - b) - (end_a - a < end_b - b);
	return order ? order : memcmp(a, b, (size_t)(end_a - a));
}

/* A function is its name, its module's file and its start there. */
static int compare_functions(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct sorting *s = context;
	const struct address *x = &s->addresses->list[i], *y = &s->addresses->list[j];
	int by_name = compare_names(s, i, j);

	if (by_name)
		return by_name;
	if (path_of(s, i) != path_of(s, j))
		return path_of(s, i) < path_of(s, j) ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return i < j ? -1 : i > j;
}

static bool is_same_function(const struct sorting *s, uint32_t i, uint32_t j)
{
	return path_of(s, i) == path_of(s, j) &&
	       s->addresses->list[i].start == s->addresses->list[j].start;
}

/*
 * A mangled name says all of a function that has a name beyond its file: it is one, in however many
 * modules there are copies of it.
 */
static bool is_one_everywhere(const char *name)
{
	return (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2)) &&
	       strncmp(name, "_ZL", 3) != 0 && !strstr(name, "_GLOBAL__N_");
}

/* The source file of a function, by the first of its addresses. */
static uint32_t file_of(const struct sorting *s, uint32_t a)
{
	const struct address *address = &s->addresses->list[a];

	return address->place_count
		       ? s->addresses->places[address->first_place + address->place_count - 1].file
		       : NAME_EMPTY;
}

/* order[0 .. count) is of one name. */
static void settle_name(struct sorting *s, const uint32_t *order, uint32_t count)
{
	const char *name = names_text(&s->model->names, s->addresses->list[order[0]].name, NULL);
	bool is_certain = is_one_everywhere(name), many_files = false, many_modules = false;
	uint32_t first = order[0], file = file_of(s, first);

	for (uint32_t i = 1; i < count; i++) {
		bool is_other_module = path_of(s, order[i]) != path_of(s, order[i - 1]);

		if (is_same_function(s, order[i], order[i - 1]) || (is_other_module && is_certain))
			continue;
		many_files |= file == NAME_EMPTY || file_of(s, order[i]) != file;
		many_modules |= is_other_module;
	}
	for (uint32_t i = 0; i < count && many_files; i++) {
		struct function_home *home = &s->homes[order[i]];

		if (!i || !is_same_function(s, order[i], first))
			first = order[i];
		file = file_of(s, first);
		*home = (struct function_home){
			.path = file != NAME_EMPTY ? file : path_of(s, first),
			.has_start = file == NAME_EMPTY && !many_modules,
		};
	}
}

static bool is_function(const struct sorting *s, uint32_t a)
{
	const struct address *address = &s->addresses->list[a];
	const char *name = names_text(&s->model->names, address->name, NULL);

	/* Code that was made anew at run time is the same function elsewhere. */
	return address->module && name[0] && strcmp(name, SYMBOLS_PLT) != 0 &&
	       !module_is_driver(s->model, address->module);
}

struct function_home *function_homes_find(const struct model *model,
					  const struct addresses *addresses)
{
	struct sorting s = {
		.model = model,
		.addresses = addresses,
		.homes = calloc(addresses->count + 1, sizeof(*s.homes)),
	};
	uint32_t *order = calloc(addresses->count + 1, sizeof(*order)), count = 0;

	for (uint32_t a = 0; order && s.homes && a < addresses->count; a++)
		if (is_function(&s, a))
			order[count++] = a;
	if (order && s.homes)
		qsort_r(order, count, sizeof(*order), compare_functions, &s);
	for (uint32_t first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (compare_names(&s, order[next], order[first]))
				break;
		settle_name(&s, order + first, next - first);
	}
	if (!order) {
		free(s.homes);
		s.homes = NULL;
	}
	free(order);
	return s.homes;
}
