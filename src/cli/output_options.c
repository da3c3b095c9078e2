/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output_options.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/compare.h"

/* Returns 0, or -errno if the directory of the file is missing. */
static int check_folder(const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= (int)sizeof(copy))
		return -ENAMETOOLONG;
	return access(dirname(copy), F_OK) ? -errno : 0;
}

int outputs_add(struct outputs *outputs, const struct output_choice *choice, const char *name,
		const char *path)
{
	struct output_format format;
	int error;

	if (!*path)
		return -EINVAL;
	for (size_t i = 0; choice->format(i, &format) && strcmp(format.name, name) != 0; i++)
		;
	if (format.absent) {
		print_error("cannot write --%s: %s", format.name, format.absent);
		return -ENOENT;
	}
	for (size_t i = 0; i < outputs->count; i++) {
		if (strcmp(outputs->list[i].path, path) != 0)
			continue;
		print_error("cannot write two outputs to '%s'", path);
		return -EEXIST;
	}
	if (format.needs && !strcmp(path, "-")) {
		print_error("cannot write --%s to stdout: it needs a %s", format.name,
			    format.needs);
		return -ENOENT;
	}
	if (outputs->count == OUTPUTS_MAX) {
		print_error("cannot write more than %d outputs", OUTPUTS_MAX);
		return -ENOENT;
	}
	error = choice->checks_folder ? check_folder(path) : 0;
	if (error) {
		print_error("cannot write '%s': %s", path, strerror(-error));
		return -ENOENT;
	}
	outputs->list[outputs->count++] = (struct output_option){format.writer, path};
	return 0;
}

static int apply_format(void *context, const struct option_row *row, const char *path)
{
	struct outputs *outputs = (void *)((char *)context + row->choice->offset);

	return outputs_add(outputs, row->choice, row->name, path);
}

/* Takes the format from the ending of the path, and "text" for "-". */
static int apply_output(void *context, const struct option_row *row, const char *path)
{
	struct outputs *outputs = (void *)((char *)context + row->choice->offset);
	char known[256] = "";

	if (!strcmp(path, "-"))
		return outputs_add(outputs, row->choice, "text", path);
	if (!*path)
		return -EINVAL;
	for (const struct output_ending *e = row->choice->endings; e->ending; e++) {
		char ending[32];

		snprintf(ending, sizeof(ending), ".%s", e->ending);
		if (has_ending(path, ending))
			return outputs_add(outputs, row->choice, e->name, path);
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s", ending);
	}
	print_error("cannot tell the format of '%s' from its ending, which is none of%s: name the "
		    "format, as in '--text %s' (see %s --help)",
		    path, known, path, message_name());
	return -ENOENT;
}

void output_options_list(struct option_list *list, const struct output_choice *choice,
			 const struct option_row *others)
{
	static const struct option_row headings[][2] = {
		{{.help = "Outputs (FILE may be - for stdout; the default is --text -)"}},
		{{.help = "Options"}}};
	const struct option_row output[2] = {{"output", 'o', .value = "FILE", .choice = choice,
					      .expected = "a file name", .help = choice->help,
					      .apply = apply_output}};
	struct output_format format;

	option_list_add(list, headings[0]);
	for (size_t i = 0; choice->format(i, &format); i++) {
		const struct option_row row[2] = {
			{format.name, .value = format.value ? format.value : "FILE",
			 .help = format.help, .expected = "a file name", .is_output = true,
			 .choice = choice, .apply = apply_format}};

		option_list_add(list, row);
	}
	option_list_add(list, output);
	option_list_add(list, headings[1]);
	option_list_add(list, others);
}
