/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that share a mangled name, and qualifiers that distinguish them.
 *
 * Scans C++ names (Itanium C++ ABI, 5.1) for marks of internal linkage. The meaning of a letter
 * depends on the construct around it, so the scan tracks nesting. It does not decode the rest.
 */
#include "merge/naming/disambiguate.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "merge/naming/demangle.h"
#include "merge/symbolize/symbols.h"

#define DEPTH_MAX 256

enum bracket {
	IN_ENCODING,  /* a name, then its parameter types */
	IN_LOCAL,     /* the encoding of an enclosing function: "Z … E" */
	IN_NAME,      /* components of a nested name */
	IN_ARGUMENTS, /* template arguments and expressions */
	IN_LITERAL,
	IN_CLOSURE, /* parameters of a lambda */
	IN_TYPE,
};

struct scan {
	const char *at;
	enum bracket brackets[DEPTH_MAX];
	size_t depth;
	bool is_enclosed; /* the next name is inside a function */
	bool is_internal;
	bool is_over; /* at the end, or not a valid name */
};

static bool is_digit(char c)
{
	return isdigit((unsigned char)c);
}

/* "12_" */
static void skip_number(struct scan *s)
{
	while (is_digit(*s->at))
		s->at++;
	s->at += *s->at == '_';
}

/* "3bar": returns the end of the identifier, or NULL if the name is too short. */
static const char *end_of_identifier(const char *at, const char **begin_out)
{
	size_t length = 0;

	for (; is_digit(*at) && length < UINT16_MAX; at++)
		length = 10 * length + (size_t)(*at - '0');
	*begin_out = at;
	return strnlen(at, length) == length ? at + length : NULL;
}

static void skip_identifier(struct scan *s)
{
	const char *begin, *end = end_of_identifier(s->at, &begin);

	s->is_over |= !end;
	if (!end)
		return;
	/* Anonymous namespaces are "_GLOBAL__N_1"; clang names anonymous classes "$_0". */
	s->is_internal |= !strncmp(begin, "_GLOBAL__N_", 11) || !strncmp(begin, "$_", 2);
	s->at = end;
}

static void push(struct scan *s, enum bracket bracket)
{
	if (s->depth == DEPTH_MAX)
		s->is_over = true;
	else
		s->brackets[s->depth++] = bracket;
}

/* Begins a name: skips the two letters of an operator, or the offsets of a thunk. */
static void begin_encoding(struct scan *s, enum bracket bracket)
{
	push(s, bracket);
	if (s->at[0] == 'T' && (s->at[1] == 'h' || s->at[1] == 'v'))
		for (int numbers = s->at[1] == 'h' ? 1 : 2; numbers && *s->at; s->at++)
			numbers -= *s->at == '_';
	else if (islower((unsigned char)s->at[0]) && s->at[1])
		s->at += 2;
}

/* "Z4mainE": an enclosing C function has no parameters in its name. */
static void begin_local(struct scan *s)
{
	const char *begin, *end = is_digit(*s->at) ? end_of_identifier(s->at, &begin) : NULL;

	s->is_internal |= end && *end == 'E';
	begin_encoding(s, IN_LOCAL);
}

static void begin_name(struct scan *s)
{
	push(s, IN_NAME);
	while (*s->at && strchr("rVKRO", *s->at))
		s->at++;
	s->is_internal |= s->at[0] == 'U' && s->at[1] == 'l' && !s->is_enclosed;
	s->is_enclosed = false;
}

/* In a name, "L3barE" is a static entity. In arguments, it is an enumerator or an address. */
static void begin_literal(struct scan *s)
{
	if (s->brackets[s->depth - 1] != IN_ARGUMENTS) {
		s->is_internal |= is_digit(*s->at);
	} else if (s->at[0] == '_' && s->at[1] == 'Z') {
		s->at += 2;
		begin_encoding(s, IN_ENCODING);
	} else {
		push(s, IN_LITERAL);
		if (is_digit(*s->at))
			skip_identifier(s);
	}
}

static void end_bracket(struct scan *s)
{
	enum bracket bracket = s->brackets[--s->depth];

	s->is_over |= !s->depth;
	s->is_enclosed = bracket == IN_LOCAL;
	if (bracket == IN_CLOSURE)
		skip_number(s);
	if (bracket == IN_LOCAL && *s->at == 'd') { /* in a default argument */
		s->at++;
		skip_number(s);
	}
}

static void skip_substitution(struct scan *s)
{
	if (*s->at && strchr("tasbiod", *s->at)) {
		s->at++;
		return;
	}
	while (is_digit(*s->at) || isupper((unsigned char)*s->at))
		s->at++;
	s->at += *s->at == '_';
}

static void skip_destructor_or_type(struct scan *s)
{
	char kind = *s->at;

	s->at += kind != '\0';
	if (kind == 't' || kind == 'T' || kind == 'O')
		push(s, IN_ARGUMENTS);
	else if (kind == 'v')
		skip_number(s);
}

static void step_upper(struct scan *s, char c)
{
	switch (c) {
	case 'N':
		begin_name(s);
		break;
	case 'I':
	case 'J':
	case 'X':
		push(s, IN_ARGUMENTS);
		break;
	case 'L':
		begin_literal(s);
		break;
	case 'Z':
		begin_local(s);
		break;
	case 'E':
		end_bracket(s);
		break;
	case 'F':
		push(s, IN_TYPE);
		break;
	case 'S':
		skip_substitution(s);
		break;
	case 'T':
	case 'A':
		skip_number(s);
		break;
	case 'C':
		s->at += *s->at == 'I';
		s->at += is_digit(*s->at); /* constructor */
		break;
	case 'D':
		skip_destructor_or_type(s);
		break;
	case 'U':
		if (*s->at == 'l')
			push(s, IN_CLOSURE);
		s->at += *s->at == 'l' || *s->at == 't';
		if (s->at[-1] == 't')
			skip_number(s);
		break;
	default:
		break;
	}
}

static void step(struct scan *s)
{
	enum bracket bracket = s->brackets[s->depth - 1];
	char c = *s->at;

	if (is_digit(c) && bracket == IN_LITERAL) {
		while (*s->at && *s->at != 'E')
			s->at++;
	} else if (is_digit(c)) {
		skip_identifier(s);
	} else if (c == '_') { /* discriminator: the n-th entity of this name */
		s->at += s->at[1] == '_' ? 2 : 1;
		skip_number(s);
	} else if (c == 'f' && bracket == IN_ARGUMENTS && (s->at[1] == 'p' || s->at[1] == 'L')) {
		s->at += 2;
		skip_number(s);
	} else if (islower((unsigned char)c)) {
		s->at += bracket == IN_NAME && s->at[1] ? 2 : 1;
	} else {
		s->at++;
		step_upper(s, c);
	}
}

bool mangled_linkage_is_global(const char *mangled)
{
	struct scan s = {.at = mangled + 2};

	if (!strncmp(mangled, "_R", 2))
		return true; /* Rust names contain a hash that makes them unique */
	if (strncmp(mangled, "_Z", 2) != 0)
		return false;
	begin_encoding(&s, IN_ENCODING);
	while (*s.at && *s.at != '.' && *s.at != '@' && !s.is_over && !s.is_internal)
		step(&s);
	return !s.is_internal;
}

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
