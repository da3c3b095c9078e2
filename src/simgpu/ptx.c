/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses PTX text for what the simulation needs: the names of the kernels, the shared memory that
 * they declare, and an estimate of their registers. Instructions are not executed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/sim.h"

#define TOKEN_BYTES_MAX 1024

struct scanner {
	const char *at;
	char token[TOKEN_BYTES_MAX];
};

static void skip_blanks(struct scanner *s)
{
	for (;;) {
		const char *end = NULL;

		while (isspace((unsigned char)*s->at))
			s->at++;
		if (s->at[0] == '/' && s->at[1] == '/')
			end = strchr(s->at, '\n');
		else if (s->at[0] == '/' && s->at[1] == '*')
			end = strstr(s->at, "*/");
		else
			return;
		s->at = end ? end + 1 + (*end == '*') : s->at + strlen(s->at);
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* The next word, or a single character; false at the end of the text. */
static bool next_token(struct scanner *s)
{
	size_t length = 0;

	skip_blanks(s);
	if (!*s->at)
		return false;
	do {
		if (length < sizeof(s->token) - 1)
			s->token[length++] = *s->at;
		s->at++;
	} while (is_word(s->token[0]) && is_word(*s->at));
	s->token[length] = '\0';
	return true;
}

static uint32_t type_bytes(const char *type)
{
	const char *digits = type + strcspn(type, "0123456789");
	uint32_t bits = (uint32_t)strtoul(digits, NULL, 10);

	return bits < 8 ? 1 : bits / 8;
}

/* `.shared .align 4 .b8 name[bytes];` or `.reg .b32 %r<count>;`: element size times count. */
static uint32_t declared_bytes(struct scanner *s)
{
	uint32_t element_bytes = 4;
	uint32_t count = 1;

	while (next_token(s) && strcmp(s->token, ";")) {
		if (!strcmp(s->token, ".align"))
			next_token(s);
		else if (s->token[0] == '.')
			element_bytes = type_bytes(s->token);
		else if ((*s->token == '[' || *s->token == '<') && next_token(s))
			count = (uint32_t)strtoul(s->token, NULL, 0);
	}
	return element_bytes * count;
}

/* Reads from the name to the closing brace of the body. */
static void parse_body(struct scanner *s, CUfunction function)
{
	uint32_t register_bytes = 0;
	int depth = 0;

	while (next_token(s)) {
		if (!strcmp(s->token, "{"))
			depth++;
		else if (!strcmp(s->token, "}") && --depth == 0)
			break;
		else if (!strcmp(s->token, ";") && depth == 0)
			break;
		else if (!strcmp(s->token, ".shared") && depth)
			function->static_shared_bytes += declared_bytes(s);
		else if (!strcmp(s->token, ".reg") && depth)
			register_bytes += declared_bytes(s);
	}
	function->registers_per_thread = 16 + register_bytes / 4;
	if (function->registers_per_thread > 255)
		function->registers_per_thread = 255;
}

static CUfunction add_function(CUmodule module, const char *name)
{
	CUfunction function = calloc(1, sizeof(*function));

	if (!function)
		return NULL;
	function->name = sim_kernel_name_make(name);
	if (!function->name) {
		free(function);
		return NULL;
	}
	function->magic = SIM_MAGIC_FUNCTION;
	function->module = module;
	function->name_hash = sim_hash(name, strlen(name), 0);
	function->next = module->functions;
	module->functions = function;
	return function;
}

int sim_ptx_parse(CUmodule module)
{
	struct scanner s = {.at = module->image};
	bool has_version = false;

	while (next_token(&s)) {
		CUfunction function;

		if (!strcmp(s.token, ".version"))
			has_version = true;
		if (strcmp(s.token, ".entry") || !has_version)
			continue;
		if (!next_token(&s))
			return -EINVAL;
		function = add_function(module, s.token);
		if (!function)
			return -ENOMEM;
		parse_body(&s, function);
	}
	return has_version ? 0 : -EINVAL;
}
