/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of interpreters.
 */
#include "log/base/script_name.h"

#include <stdio.h>
#include <string.h>

#include "log/base/compare.h"

/* Interpreters, and their options of one letter that take a value or code. */
static const struct interpreter {
	const char *name; /* a version may follow */
	const char *valued;
	const char *code;
} interpreters[] = {
	{"python", "WX", "c"}, {"pypy", "WX", "c"},    {"perl", "I", "eE"}, {"ruby", "rI", "e"},
	{"node", "r", "ep"},   {"julia", "LpJ", "eE"}, {"java", "", ""},    {"bash", "oO", "c"},
	{"sh", "oO", "c"},     {"dash", "o", "c"},
};

/* Long options that take a value. */
static const char *const valued_options[] = {
	"-cp",	    "-classpath", "--class-path",	    "--require",
	"--import", "--loader",	  "--check-hash-based-pycs"};

/* Python programs that run another Python file in the same process. */
static const char *const launchers[] = {"torchrun", "torch.distributed.run",
					"torch.distributed.launch", "accelerate", "deepspeed"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* A word of a command line. */
struct word {
	const char *start;
	size_t length;
};

static bool word_is(struct word word, const char *text)
{
	return strlen(text) == word.length && !memcmp(word.start, text, word.length);
}

/* The next word; one of length 0 at the end. *rest moves behind it. */
static struct word next_word(const char **rest)
{
	struct word word = {*rest + strspn(*rest, " "), 0};

	word.length = strcspn(word.start, " ");
	*rest = word.start + word.length;
	return word;
}

static struct word without_folder(struct word word)
{
	for (size_t i = word.length; i-- > 0;)
		if (word.start[i] == '/')
			return (struct word){word.start + i + 1, word.length - i - 1};
	return word;
}

/* Suffixes of a version: free-threaded and debug builds. */
static const char *const builds[] = {"", "t", "d", "td", "-dbg"};

static const struct interpreter *find_interpreter(const char *program)
{
	for (size_t i = 0; i < COUNT(interpreters); i++) {
		size_t length = strlen(interpreters[i].name);
		const char *build;

		if (strncmp(program, interpreters[i].name, length) != 0)
			continue;
		build = program + length + strspn(program + length, "0123456789.");
		for (size_t b = 0; b < COUNT(builds); b++)
			if (!strcmp(build, builds[b]))
				return &interpreters[i];
	}
	return NULL;
}

/* True if the last of one or more letters, as in "-uc", is one of these. */
static bool ends_in(struct word option, const char *letters)
{
	return option.length > 1 && option.start[1] != '-' &&
	       strchr(letters, option.start[option.length - 1]);
}

static bool has_value(const struct interpreter *interpreter, struct word option)
{
	for (size_t i = 0; i < COUNT(valued_options); i++)
		if (word_is(option, valued_options[i]))
			return true;
	/* "-euo" ends with an option that takes a value. "-Wdoc" includes its value. */
	for (size_t i = 1; i < option.length && option.start[1] != '-'; i++)
		if (strchr(interpreter->valued, option.start[i]))
			return i + 1 == option.length;
	return false;
}

/* The Python file that a launcher runs, or the launcher itself. */
static struct word skip_launcher(struct word script, const char *rest)
{
	bool is_launcher = false;

	for (size_t i = 0; i < COUNT(launchers); i++)
		is_launcher |= word_is(script, launchers[i]);
	while (is_launcher) {
		struct word word = next_word(&rest);

		if (!word.length)
			break;
		if (word_is(word, "-m") || word_is(word, "--module"))
			return next_word(&rest);
		if (word.length > 3 && !memcmp(word.start + word.length - 3, ".py", 3))
			return without_folder(word);
	}
	return script;
}

enum xt_script xt_script_find(char *out, size_t out_bytes, const char *program, const char *command)
{
	const struct interpreter *interpreter = find_interpreter(base_name(program));
	struct word word;

	if (!interpreter)
		return XT_SCRIPT_NONE;
	next_word(&command);
	while ((word = next_word(&command)).length && !word_is(word, "-")) {
		if (*word.start != '-') {
			word = skip_launcher(without_folder(word), command);
			snprintf(out, out_bytes, "%.*s", (int)word.length, word.start);
			return XT_SCRIPT_FILE;
		}
		/* "-Wdoc" includes its value. */
		if (word.length > 1 && !strchr(interpreter->valued, word.start[1]) &&
		    ends_in(word, interpreter->code)) {
			snprintf(out, out_bytes, "%s", command + strspn(command, " "));
			return XT_SCRIPT_INLINE;
		}
		if (has_value(interpreter, word))
			next_word(&command);
	}
	return XT_SCRIPT_NONE;
}

void xt_script_title(char *out, size_t out_bytes, const char *program, const char *command)
{
	if (xt_script_find(out, out_bytes, program, command) != XT_SCRIPT_FILE || !*out)
		snprintf(out, out_bytes, "%s", base_name(program));
}
