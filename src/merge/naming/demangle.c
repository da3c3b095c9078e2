/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles names.
 *
 * Names come from untrusted files, and a few bytes can demangle to gigabytes. The demangler is
 * aborted if its output exceeds SHOWN_BYTES_MAX. The mangled name is then shown.
 */
#include "merge/naming/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>

#include "log/base/grow.h"
#include "merge/base/text.h"
#include "merge/naming/short_names.h"

#define MANGLED_BYTES_MAX 32768
#define SHOWN_BYTES_MAX	  65536

struct result {
	char *text; /* SHOWN_BYTES_MAX bytes */
	size_t length;
	jmp_buf too_long;
};

/*
 * Demangler callback. Leaving it with longjmp() leaks nothing, because the callback interface does
 * not allocate.
 */
static void append(const char *text, size_t length, void *context)
{
	struct result *result = context;

	if (length > SHOWN_BYTES_MAX - result->length)
		longjmp(result->too_long, 1);
	memcpy(result->text + result->length, text, length);
	result->length += length;
}

static bool run_demangler(struct result *result, const char *mangled, enum demangle_style style)
{
	int options = style == DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;

	if (setjmp(result->too_long))
		return false;
	if (rust_demangle_callback(mangled, options, append, result))
		return true;
	result->length = 0;
	return cplus_demangle_v3_callback(mangled, options, append, result);
}

size_t demangle_length(const char *name, size_t length)
{
	static const char *const suffixes[] = {".cold",	     ".part.", ".constprop.", ".isra.",
					       ".lto_priv.", ".llvm.", ".localalias"};
	const char *at = memchr(name, '@', length);
	const char *dot;

	if (at && at != name)
		length = (size_t)(at - name);
	dot = memchr(name, '.', length);
	for (; dot; dot = memchr(dot + 1, '.', length - (size_t)(dot + 1 - name)))
		for (size_t i = 0; dot != name && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
			if (!strncmp(dot, suffixes[i], strlen(suffixes[i])))
				return (size_t)(dot - name);
	return length;
}

/* Buffers: text for a copy of the name and the demangled name, clean for the printable result. */
static uint32_t show(struct demangle_cache *cache, const char *name, size_t length,
		     enum demangle_style style, char *text, char *clean)
{
	struct result result = {.text = text + length + 1};
	char *shown = text;

	memcpy(text, name, length);
	length = demangle_length(text, length);
	text[length] = '\0';
	if (length < MANGLED_BYTES_MAX && text[0] == '_' && run_demangler(&result, text, style)) {
		shown = result.text;
		length = result.length;
	}
	if (style == DEMANGLE_SHORT)
		length = name_shorten(shown, length);
	length = text_clean(clean, shown, length, ';');
	return names_try_intern(cache->shown, clean, length);
}

uint32_t demangle_try(struct demangle_cache *cache, uint32_t mangled, enum demangle_style style)
{
	uint32_t **known = &cache->known[style];
	uint32_t shown;
	size_t length;
	const char *name;
	char *text, *clean;

	if (mangled == NAME_EMPTY)
		return names_try_intern(cache->shown, "[no name]", strlen("[no name]"));
	if (grow(known, &cache->capacity[style], mangled + 1, sizeof(**known)) < 0)
		return NAME_FAILED;
	if ((*known)[mangled])
		return (*known)[mangled] - 1;
	name = names_text(cache->mangled, mangled, &length);
	text = malloc(length + 1 + SHOWN_BYTES_MAX);
	clean = malloc(text_clean_bound(length + SHOWN_BYTES_MAX));
	shown = text && clean ? show(cache, name, length, style, text, clean) : NAME_FAILED;
	free(text);
	free(clean);
	if (shown != NAME_FAILED)
		(*known)[mangled] = shown + 1;
	return shown;
}

void demangle_cache_free(struct demangle_cache *cache)
{
	for (int style = 0; style < DEMANGLE_STYLES; style++)
		free(cache->known[style]);
	*cache = (struct demangle_cache){0};
}
