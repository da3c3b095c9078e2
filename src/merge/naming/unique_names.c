/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds functions that share a mangled name, and qualifiers that distinguish them. Scans C++ names
 * (Itanium C++ ABI, 5.1) for marks of internal linkage. The meaning of a letter depends on the
 * construct around it, so the scan tracks nesting. It does not decode the rest.
 *
 * For names with the same short form, removes the common start and end of the full names. The rest
 * distinguishes them. It is cut at brackets and scopes, never inside an identifier. If it is too
 * long or still equal, a hash of the full name is added.
 */
#include "merge/naming/unique_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/hash_table.h"
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

/* Compares path and build id of the modules. */
static int compare_builds(const struct sorting *s, uint32_t i, uint32_t j)
{
	const struct module *x = module_of(s, i), *y = module_of(s, j);

	return ORDER(x->path, y->path) ?: ORDER(x->build_id, y->build_id);
}

static int compare_functions(const void *a, const void *b, void *context)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct sorting *s = context;

	return compare_names(s, i, j) ?: compare_builds(s, i, j)
	       ?: strcmp(clone_of(s, i), clone_of(s, j))
	       ?: ORDER(s->addresses->list[i].start, s->addresses->list[j].start) ?: ORDER(i, j);
}

/*
 * Returns whether two functions of one module and name are different. They are if both exist at the
 * same time.
 */
static bool are_different_functions(const struct sorting *s, uint32_t i, uint32_t j)
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
		       ? s->addresses->places.list[address->first_place + address->place_count - 1]
				 .file
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
			    are_different_functions(s, order[i], order[i - 1]);
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
	       strcmp(base_name(names_text(&s->model->names, x->path, NULL)),
		      base_name(names_text(&s->model->names, y->path, NULL))) != 0;
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
	SORT_BY(order, count, compare_functions, &s);
	for (uint32_t first = 0, next; first < count; first = next) {
		for (next = first + 1; next < count; next++)
			if (compare_names(&s, order[next], order[first]))
				break;
		qualify_name(&s, order + first, next - first);
	}
	free_all(s.files, order);
	return s.qualifiers;
}

#define PART_BYTES_MAX	96 /* of a difference */
#define PART_TAIL_BYTES 29
#define BRACKETS_MAX	8 /* restored at most; beyond that, brackets stay unpaired */

/* Returns whether the character can be part of a name. */
static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_$:#~", c)) || (c & 0x80);
}

/* Returns the start of the "{lambda(int)#1}" around at, else at. */
static size_t lambda_start(const char *text, size_t at)
{
	for (size_t i = at; i-- && text[i] != '}';)
		if (text[i] == '{')
			return i;
	return at;
}

/* Returns the end of the "{lambda(int)#1}" around at, else at. */
static size_t lambda_end(const char *text, size_t at)
{
	for (size_t i = at; text[i] && text[i] != '{'; i++)
		if (text[i] == '}')
			return i + 1;
	return at;
}

/* Returns the length of the part before the first unmatched closing bracket. */
static size_t balanced(const char *text, size_t length)
{
	int depth = 0;

	for (size_t i = 0; i < length; i++) {
		depth += text[i] && strchr("<({", text[i]);
		if (text[i] && strchr(">)}", text[i]) && depth-- == 0)
			return i;
	}
	return length;
}

/* Finds the length of the common start and of the common end of all names in the list. */
static void name_common_ends(const struct names *names, const uint32_t *list, size_t count,
			     size_t *head_out, size_t *tail_out)
{
	const char *first = names_text(names, list[0], NULL);
	size_t length = strlen(first), head = length, tail = count > 1 ? length : 0;

	for (size_t i = 1; i < count; i++) {
		const char *text = names_text(names, list[i], NULL);
		size_t other = strlen(text), same = 0, room;

		while (same < head && same < other && text[same] == first[same])
			same++;
		head = same;
		room = (other < length ? other : length) - head;
		for (same = 0; same < tail && same < room &&
			       text[other - 1 - same] == first[length - 1 - same];)
			same++;
		tail = same;
	}
	/* A shorter head found later only leaves more room, so head and tail never overlap. */
	while (head && is_name_char(first[head - 1]))
		head--;
	head = lambda_start(first, head);
	while (tail && is_name_char(first[length - tail]))
		tail--;
	tail = length - lambda_end(first, length - tail);
	*head_out = head;
	*tail_out = tail;
}

/* Removes the scopes "a::b::" from names. */
static size_t drop_scopes(char *text, size_t length)
{
	size_t out = 0, word = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == ':' && i + 2 < length && text[i + 1] == ':' && out > word &&
		    (isalnum((unsigned char)text[i + 2]) || text[i + 2] == '_')) {
			out = word;
			i++;
			continue;
		}
		text[out++] = text[i];
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			word = out;
	}
	return out;
}

/* Trims separators and a pair of brackets: "(int)", ", int", "::f". */
static void trim(const char **text, size_t *length)
{
	const char *part = *text, *end = part + *length;

	while (part < end && strchr(" ,:", *part))
		part++;
	while (end > part && strchr(" ,", end[-1]))
		end--;
	if (end - part > 2 && *part == '(' && end[-1] == ')' &&
	    balanced(part + 1, (size_t)(end - part) - 1) == (size_t)(end - part) - 2) {
		part++;
		end--;
	}
	*text = part;
	*length = (size_t)(end - part);
}

/*
 * Extends a difference until its brackets match: "float>, array<char" becomes "Functor<float>,
 * array<char>".
 */
static void pair_brackets(const char *text, size_t *head, size_t *end)
{
	size_t at = *head, length = strlen(text);
	int depth = 0;

	for (int i = 0; i < BRACKETS_MAX && balanced(text + at, *end - at) < *end - at; i++) {
		for (depth = 0; at; depth += strchr(">)}", text[at]) != NULL)
			if (strchr("<({", text[--at]) && depth-- == 0)
				break;
		while (at && is_name_char(text[at - 1]))
			at--;
	}
	if (balanced(text + at, *end - at) == *end - at)
		*head = at;
	depth = 0;
	for (at = *head; at < *end; at++)
		depth += !!strchr("<({", text[at]) - !!strchr(">)}", text[at]);
	for (at = *end; depth > 0 && at < length; at++)
		depth += !!strchr("<({", text[at]) - !!strchr(">)}", text[at]);
	if (!depth)
		*end = at;
}

/*
 * Returns a readable copy of text[head .. end). Removes scopes, completes brackets, and cuts the
 * middle if the copy is long. If is_first, takes only the first of several arguments, or its start.
 * The copy may be empty. The caller frees it.
 */
static char *name_difference(const char *text, size_t head, size_t end, bool is_first)
{
	const char *part;
	size_t length;
	char *room;

	if (!is_first)
		pair_brackets(text, &head, &end);
	room = xt_strndup(text + head, end - head);
	part = room;
	length = drop_scopes(room, strlen(room));
	if (is_first)
		length = balanced(part, length);
	trim(&part, &length);
	memmove(room, part, length);
	room[name_cut_middle(room, length, PART_BYTES_MAX, PART_TAIL_BYTES)] = '\0';
	return room;
}

struct named {
	uint32_t mangled;
	uint32_t shortened, plain, full; /* names in assignment.names */
};

struct assignment {
	struct names *names;
	struct name_space *space;
	struct demangle_cache cache; /* from mangled names to names */
	LIST(struct named);
};

static const char *text_of(const struct assignment *s, uint32_t name)
{
	return names_text(s->names, name, NULL);
}

static int compare_named(const void *a, const void *b, void *context)
{
	const struct named *x = a, *y = b;
	const struct assignment *s = context;

	return strcmp(text_of(s, x->shortened), text_of(s, y->shortened))
		       ?: strcmp(text_of(s, x->full), text_of(s, y->full))
		       ?: ORDER(x->mangled, y->mangled);
}

/* Adds a mangled name, unless it equals the last one added. */
static void add_name(struct assignment *s, uint32_t mangled)
{
	struct named named = {.mangled = mangled};

	if (mangled == NAME_EMPTY || (s->count && s->list[s->count - 1].mangled == mangled))
		return;
	named.shortened = demangle(&s->cache, mangled, DEMANGLE_SHORT);
	named.plain = demangle(&s->cache, mangled, DEMANGLE_PLAIN);
	named.full = demangle(&s->cache, mangled, DEMANGLE_FULL);
	list_append(*s, named);
}

static void list_kernels(struct assignment *s, const struct model *model)
{
	for (size_t i = 0; i < model->shapes.count; i++)
		add_name(s, model_kernel_name(model, (uint32_t)i));
}

static void list_functions(struct assignment *s, const struct model *model,
			   const struct addresses *addresses)
{
	for (uint32_t a = 0; a < addresses->count; a++)
		if (!addresses->list[a].module ||
		    !module_is_driver(model, addresses->list[a].module))
			add_name(s, addresses->list[a].name);
	/* The last place of an address is the function itself. */
	for (size_t p = 0; p < addresses->places.count; p++)
		add_name(s, addresses->places.list[p].function);
}

/* Assigns the shown name to the full name. Returns false if another name owns it. */
static bool claim(struct assignment *s, uint32_t shown, uint32_t full)
{
	struct name_space *space = s->space;
	uint32_t *owner = by_id(space->full_of, shown);
	uint32_t *known = by_id(space->shown_of, full);

	if (*owner && *owner != full + 1)
		return false;
	*owner = full + 1;
	*known = shown + 1;
	return true;
}

/* Kinds of suffixes, in the order they are tried. */
enum part {
	PART_FIRST, /* the first argument that differs, or its start */
	PART_WHOLE,
	PART_NUMBERED,
	PARTS
};

/* Returns "short [with part]". */
static uint32_t lengthen(struct assignment *s, const struct named *named, uint32_t whole,
			 size_t head, size_t tail, enum part kind)
{
	const char *text = text_of(s, whole), *shortened = text_of(s, named->shortened);
	size_t length = strlen(text), same = strlen(shortened);
	const char *full = text_of(s, named->full);
	char *part, *shown, number[16] = "";
	uint32_t name;

	if (!head && !strncmp(text, shortened, same) && !is_name_char(text[same]))
		head = same;
	part = name_difference(text, head, tail > length - head ? head : length - tail,
			       kind == PART_FIRST);
	if (kind == PART_NUMBERED)
		snprintf(number, sizeof(number), "%s#%08x", part[0] ? " " : "",
			 xt_hash_bytes(full, strlen(full)));
	shown = xt_asprintf(part[0] || number[0] ? "%s [with %s%s]" : "%s", shortened, part,
			    number);
	free(part);
	name = names_intern(s->names, shown, strlen(shown));
	free(shown);
	return name;
}

static bool are_different(uint32_t *names, size_t count)
{
	bool are = true;

	qsort(names, count, sizeof(*names), compare_u32);
	for (size_t i = 1; i < count; i++)
		are &= names[i] != names[i - 1];
	return are;
}

/* Names with the same short form. */
struct group {
	const struct named *list;
	size_t count;
	/* names to compare; then the owner of the short name, if of an earlier log */
	uint32_t *wholes;
	uint32_t *firsts;  /* result of PART_FIRST for each name */
	size_t head, tail; /* length of the common start and end of all wholes */
};

/* Chooses the names to compare: without parameters if these names differ. */
static void choose_wholes(const struct assignment *s, struct group *group)
{
	uint32_t owner = by_id_get(s->space->full_of, group->list[0].shortened);
	bool is_plain = true;
	size_t count = group->count;

	for (size_t i = 0; i < count; i++) {
		group->wholes[i] = group->list[i].plain;
		if (owner == group->list[i].full + 1)
			owner = 0;
	}
	is_plain = !owner && are_different(group->wholes, count);
	for (size_t i = 0; i < count; i++)
		group->wholes[i] = is_plain ? group->list[i].plain : group->list[i].full;
	if (owner)
		group->wholes[count++] = owner - 1;
	name_common_ends(s->names, group->wholes, count, &group->head, &group->tail);
}

static bool is_assigned(const struct assignment *s, const struct named *named)
{
	return by_id_get(s->space->shown_of, named->full);
}

/* Fills firsts, sorted. */
static void name_firsts(struct assignment *s, struct group *group)
{
	for (size_t i = 0; i < group->count; i++)
		group->firsts[i] = lengthen(s, &group->list[i], group->wholes[i], group->head,
					    group->tail, PART_FIRST);
	qsort(group->firsts, group->count, sizeof(*group->firsts), compare_u32);
}

/* Returns whether other names of the group have the same first part. */
static bool is_shared(const struct group *group, uint32_t first)
{
	const uint32_t *at = SEARCH(&first, group->firsts, group->count, compare_u32);

	return (at > group->firsts && at[-1] == first) ||
	       (at + 1 < group->firsts + group->count && at[1] == first);
}

/* Assigns a unique name to one of the group, if there is one. */
static void make_one_unique(struct assignment *s, const struct group *group, size_t i)
{
	const struct named *named = &group->list[i];
	/* A complete name keeps its form: "f" next to "f(int)". */
	bool is_claimed =
		named->full == named->shortened && claim(s, named->shortened, named->full);

	for (enum part kind = 0; !is_claimed && kind < PARTS; kind++) {
		uint32_t shown =
			lengthen(s, named, group->wholes[i], group->head, group->tail, kind);

		if (kind != PART_FIRST || !is_shared(group, shown))
			is_claimed = claim(s, shown, named->full);
	}
}

/* Assigns names to list[0 .. count), whose full names differ. Earlier assignments stay. */
static void make_unique(struct assignment *s, const struct named *list, size_t count)
{
	struct group group = {
		.list = list,
		.count = count,
		.wholes = xt_calloc(count + 1, sizeof(*group.wholes)),
		.firsts = xt_calloc(count, sizeof(*group.firsts)),
	};

	choose_wholes(s, &group);
	name_firsts(s, &group);
	for (size_t i = 0; i < count; i++)
		if (!is_assigned(s, &list[i]))
			make_one_unique(s, &group, i);
	free_all(group.wholes, group.firsts);
}

/* Assigns names to a group with the same short form, sorted by full name. */
static void assign_group(struct assignment *s, const struct named *group, size_t count)
{
	struct named *list = xt_calloc(count, sizeof(*list));
	size_t different = 0;

	for (size_t i = 0; i < count; i++)
		if (!different || list[different - 1].full != group[i].full)
			list[different++] = group[i];
	/* A single name gets the short form if it is free. */
	if (different != 1 || is_assigned(s, &list[0]) ||
	    !claim(s, list[0].shortened, list[0].full))
		make_unique(s, list, different);
	free(list);
}

/* Stores an assigned name in the cache, unless it is the short form. */
static void show(const struct assignment *s, const struct named *named,
		 struct demangle_cache *cache)
{
	uint32_t assigned = s->space->shown_of.list[named->full] - 1, shown;
	const char *text = text_of(s, assigned);

	if (assigned == named->shortened)
		return;
	shown = names_intern(cache->shown, text, strlen(text));
	demangle_set_short(cache, named->mangled, shown);
}

/* Assigns names to the whole list. */
static void assign_list(struct assignment *s, struct demangle_cache *cache)
{
	SORT_BY(s->list, s->count, compare_named, s);
	for (size_t first = 0, next; first < s->count; first = next) {
		for (next = first; next < s->count; next++)
			if (s->list[next].shortened != s->list[first].shortened)
				break;
		assign_group(s, &s->list[first], next - first);
	}
	for (size_t i = 0; i < s->count; i++)
		if (is_assigned(s, &s->list[i]))
			show(s, &s->list[i], cache);
}

COMPARE_BY(compare_mangled, struct named, UP(mangled))

/*
 * A kernel and the function that launches it may have the same mangled name. Removes these
 * functions from the list and reserves their names. kernels is sorted by mangled name.
 */
static void reserve_kernels(struct assignment *s, const struct assignment *kernels)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct named *kernel =
			SEARCH(&s->list[i], kernels->list, kernels->count, compare_mangled);

		if (!kernel || !is_assigned(kernels, kernel))
			s->list[kept++] = s->list[i];
		else
			claim(s, kernels->space->shown_of.list[kernel->full] - 1, kernel->full);
	}
	s->count = kept;
}

void unique_names_assign(struct unique_names *unique, struct demangle_cache *cache,
			 const struct model *model, const struct addresses *addresses)
{
	struct assignment kernels = {.names = &unique->names,
				     .space = &unique->kernels,
				     .cache = {.mangled = cache->mangled, .shown = &unique->names}};
	struct assignment functions = kernels;

	if (!unique->names.count)
		names_init(&unique->names);
	functions.space = &unique->functions;
	list_kernels(&kernels, model);
	if (kernels.count)
		assign_list(&kernels, cache);
	list_functions(&functions, model, addresses);
	SORT(kernels.list, kernels.count, compare_mangled);
	reserve_kernels(&functions, &kernels);
	if (functions.count)
		assign_list(&functions, cache);
	demangle_cache_free(&kernels.cache);
	demangle_cache_free(&functions.cache);
	free_all(kernels.list, functions.list);
}

static void free_space(struct name_space *space)
{
	free_all(space->shown_of.list, space->full_of.list);
}

void unique_names_free(struct unique_names *unique)
{
	names_free(&unique->names);
	free_space(&unique->kernels);
	free_space(&unique->functions);
	*unique = (struct unique_names){0};
}
