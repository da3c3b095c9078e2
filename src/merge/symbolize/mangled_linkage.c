/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans C++ names (Itanium C++ ABI, 5.1) for marks of internal linkage. The meaning of a letter
 * depends on the construct around it, so the scan tracks nesting. It does not decode the rest.
 */
#include "merge/symbolize/mangled_linkage.h"

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
