/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/naming/torch_nodes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define OPERATORS    "_ZN2at4_ops"
#define CPP_NODE     "N5torch8autograd7CppNodeI"
#define BACKWARD     "Backward"
#define OPERATOR_MAX 256

/* A part of a mangled name: its length in decimal, then its text. */
struct part {
	const char *text;
	size_t length;
};

/* Reads the part at *at and moves behind it. False if there is none. */
static bool read_part(const char **at, struct part *part)
{
	size_t length = 0;
	const char *p = *at;

	while (isdigit((unsigned char)*p) && length < OPERATOR_MAX)
		length = length * 10 + (size_t)(*p++ - '0');
	if (!length || length >= OPERATOR_MAX || strnlen(p, length) < length)
		return false;
	*part = (struct part){p, length};
	*at = p + length;
	return true;
}

/* The last part of a nested name: AddmmBackward0 of N5torch8autograd9generated14AddmmBackward0E. */
static bool last_part(const char *type, struct part *last)
{
	bool found = false;

	for (type += *type == 'N'; read_part(&type, last);)
		found = true;
	return found;
}

void torch_node_label(const char *type, const char *class_name, char *out, size_t out_bytes)
{
	struct part part;

	if (class_name[0])
		snprintf(out, out_bytes, "%s", class_name);
	else if (!strncmp(type, CPP_NODE, strlen(CPP_NODE)) &&
		 last_part(type + strlen(CPP_NODE), &part))
		snprintf(out, out_bytes, "CppNode<%.*s>", (int)part.length, part.text);
	else if (last_part(type, &part))
		snprintf(out, out_bytes, "%.*s", (int)part.length, part.text);
	else
		snprintf(out, out_bytes, "%s", type);
}

/* Lower case, without underscores. */
static size_t plain(const char *text, size_t length, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i] != '_')
			out[used++] = (char)tolower((unsigned char)text[i]);
	return used;
}

/*
 * The name of a node is that of its operator in camel case, then "Backward" and a number. The
 * operator's function has the name of the overload appended: add_Tensor.
 */
static bool operator_makes(const struct part *operator, const struct part * node)
{
	char node_name[OPERATOR_MAX], name[OPERATOR_MAX];
	const char *end = memmem(node->text, node->length, BACKWARD, strlen(BACKWARD));
	size_t node_length = end ? plain(node->text, (size_t)(end - node->text), node_name) : 0;

	for (size_t i = 1; i <= operator->length && node_length; i++) {
		if (i < operator->length && operator->text[i] != '_')
			continue;
		if (plain(operator->text, i, name) == node_length &&
		    !memcmp(name, node_name, node_length))
			return true;
	}
	return false;
}

/* The class of CppNode<T>, as it is mangled in the names of its functions. */
static bool is_of_class(const char *type, const char *function)
{
	const char *class = type + strlen(CPP_NODE);
	size_t length = strlen(class);

	/* "EE" ends the arguments and the nested name. */
	if (length < 4)
		return false;
	length -= 2;
	if (*class == 'N') { /* of a nested class: without N and E */
		class ++;
		length -= 2;
	}
	return memmem(function, strlen(function), class, length) != NULL;
}

bool torch_node_is_made_by(const char *type, const char *function)
{
	const char *at = function + strlen(OPERATORS);
	struct part operator, node;

	if (!strncmp(type, CPP_NODE, strlen(CPP_NODE)))
		return is_of_class(type, function) && !strstr(function, "CppNode");
	return !strncmp(function, OPERATORS, strlen(OPERATORS)) && read_part(&at, &operator) &&
	       last_part(type, &node) && operator_makes(&operator, & node);
}

bool torch_class_is_made_by(const char *class_name, const char *function)
{
	static const char forward[] = "forward";
	size_t length = strlen(function), class_length = strlen(class_name);
	const char *class;

	if (class_length <= strlen(BACKWARD))
		return false;
	class_length -= strlen(BACKWARD);
	if (strcmp(class_name + class_length, BACKWARD) != 0 || length < strlen(forward) ||
	    strcmp(function + length - strlen(forward), forward) != 0)
		return false;
	if (length == strlen(forward)) /* the plain name, up to Python 3.10 */
		return true;
	class = function + length - strlen(forward) - 1 - class_length;
	return class >= function && (class == function || class[-1] == '.') &&
	       class[class_length] == '.' && !strncmp(class, class_name, class_length);
}
