/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a result in each format that the command line asks for.
 */
#include "diff/base/outputs.h"

#include <errno.h>

#include "cli/command.h"
bool outputs_format(const struct output_writer *writer, struct output_format *out)
{
	if (!writer->name)
		return false;
	*out = (struct output_format){.name = writer->name,
				      .help = writer->help,
				      .absent = writer->is_there && !writer->is_there()
							? "this build does not include it"
							: NULL,
				      .writer = writer};
	return true;
}

int outputs_write(const struct outputs *outputs, const void *result)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < outputs->count; i++) {
		const struct output_writer *writer = outputs->list[i].writer;
		const char *path = outputs->list[i].path;
		struct output out;
		int error = output_open(&out, path);

		if (!error)
			error = writer->write(&out, result);
		if (!error)
			error = output_commit(&out);
		output_discard(&out);
		if (!error)
			continue;
		print_error("cannot write '%s': %s", path,
			    error == -ENODATA ? "no runs were compared" : xt_new_file_error(error));
		status = STATUS_FAILED;
	}
	return status;
}

const char *const json_units[] = {[UNIT_NS] = "ns", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "count"};

void json_begin_document(struct json *json, const char *format, int version)
{
	json_begin_object(json, NULL);
	json_string(json, "format", format);
	json_i64(json, "version", version);
	json_string(json, "generator", "xtrace " XTRACE_VERSION);
}

void json_lines(struct json *json, const char *key, const struct problems *lines)
{
	json_strings(json, key, (const char *const *)lines->lines, lines->count);
}
