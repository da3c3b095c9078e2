/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sinks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unfinished.h"
#include "merge/sums/exporter.h"

/* Returns whether one of the sinks writes to that file. */
static bool is_taken(const struct sink *sinks, size_t count, const char *target)
{
	bool taken = false;

	for (size_t s = 0; s < count && target; s++) {
		const struct sink *sink = &sinks[s];

		taken |= sink->out.file.target && !strcmp(sink->out.file.target, target);
		for (size_t f = 0; f < sink->file_count; f++)
			taken |= sink->files[f].out.file.target &&
				 !strcmp(sink->files[f].out.file.target, target);
	}
	return taken;
}

static int open_folder(struct sink *sink)
{
	struct stat status;

	sink->out.fd = -1;
	if (!mkdir(sink->out.path, 0777)) {
		sink->is_new_folder = true;
		unfinished_add(sink->out.path);
		return 0;
	}
	if (errno != EEXIST || stat(sink->out.path, &status) < 0)
		return -errno;
	if (xt_new_file_check(sink->out.path))
		return XT_NEW_FILE_PLANTED;
	return S_ISDIR(status.st_mode) ? 0 : OUTPUT_WANTS_FOLDER;
}

static void report_open(const struct sink *sink, int error, struct report *report)
{
	const char *path = sink->out.path;

	switch (error) {
	case 0:
		break;
	case XT_NEW_FILE_IS_A_LOG:
		report_error(
			report, STATUS_FAILED,
			"cannot write '%s': it is a log; --%s is followed by the file to write",
			path, sink->exporter->name);
		break;
	case OUTPUT_NAMED_TWICE:
		report_error(report, STATUS_FAILED, "cannot write '%s': two outputs name it", path);
		break;
	case OUTPUT_WANTS_FILE:
		report_error(report, STATUS_FAILED, "cannot write '%s': --%s needs a file", path,
			     sink->exporter->name);
		break;
	case OUTPUT_WANTS_FOLDER:
		report_error(report, STATUS_FAILED, "cannot write '%s': --%s needs a directory",
			     path, sink->exporter->name);
		break;
	default:
		report_error(report, STATUS_FAILED, "cannot write '%s': %s%s", path,
			     xt_new_file_error(error),
			     error == -EACCES || error == -EROFS
				     ? "; write to another place with --output"
				     : "");
	}
}

int sinks_open(struct sink *sinks, size_t count, struct report *report)
{
	int error = 0;

	for (size_t e = 0; e < count && !error; e++) {
		struct sink *sink = &sinks[e];

		if (sink->out.path)
			error = sink->exporter->uses & USES_FOLDER
					? open_folder(sink)
					: output_open(&sink->out, sink->out.path);
		if (!error && sink->exporter->begin)
			error = sink->exporter->begin(sink);
		if (!error && is_taken(sinks, e, sink->out.file.target))
			error = OUTPUT_NAMED_TWICE;
		for (size_t f = 0; f < sink->file_count && !error; f++)
			if (is_taken(sinks, e, sink->files[f].out.file.target))
				error = OUTPUT_NAMED_TWICE;
		report_open(sink, error, report);
	}
	return error;
}

static struct sink make_sink(const struct exporter *exporter, const char *path,
			     const struct settings *settings)
{
	return (struct sink){.exporter = exporter,
			     .settings = settings,
			     .out = {.path = path, .fd = -1, .file = XT_NEW_FILE_NONE}};
}

static bool is_listed(const struct sink *sinks, size_t count, const struct exporter *exporter)
{
	for (size_t s = 0; s < count; s++)
		if (sinks[s].exporter == exporter)
			return true;
	return false;
}

size_t sinks_list(const struct options *options, struct sink *sinks, size_t *analysis_count)
{
	size_t count = 0;

	for (size_t e = 0; e < options->outputs.count; e++) {
		const struct exporter *exporter = options->outputs.list[e].writer;
		const struct exporter *const *analyses = exporter->analyses;

		for (size_t a = 0; analyses && analyses[a]; a++)
			if (!is_listed(sinks, count, analyses[a]))
				sinks[count++] = make_sink(analyses[a], NULL, &options->settings);
	}
	*analysis_count = count;
	for (size_t e = 0; e < options->outputs.count; e++)
		sinks[count++] = make_sink(options->outputs.list[e].writer,
					   options->outputs.list[e].path, &options->settings);
	return count;
}

static void report_write(const char *path, int error, struct report *report)
{
	bool is_stdout = !strcmp(path, "-");

	if (error == -EPIPE && is_stdout) {
		/* The reader, such as head, has read what it wanted. */
		if (report->status < STATUS_FAILED)
			report->status = STATUS_FAILED;
	} else if (error) {
		report_error(report, STATUS_FAILED, "cannot write '%s': %s",
			     is_stdout ? "stdout" : path, strerror(-error));
	}
}

static void close_output(struct output *out, const char *path, bool whole, struct report *report)
{
	if (whole)
		report_write(path, output_commit(out), report);
	else
		output_discard(out);
}

/* Commits all files of a directory, or none. */
static void close_folder(struct sink *sink, bool whole, struct report *report)
{
	for (size_t f = 0; f < sink->file_count && whole; f++) {
		int error = output_complete(&sink->files[f].out);

		report_write(sink->files[f].path, error, report);
		whole = !error;
	}
	for (size_t f = 0; f < sink->file_count; f++) {
		close_output(&sink->files[f].out, sink->files[f].path, whole, report);
		free(sink->files[f].path);
	}
	free(sink->files);
	if (!whole && sink->is_new_folder)
		rmdir(sink->out.path);
	unfinished_remove(sink->out.path);
}

void sinks_close(struct sink *sinks, size_t count, bool whole, struct report *report)
{
	for (size_t e = 0; e < count; e++) {
		struct sink *sink = &sinks[e];

		if (!sink->exporter)
			continue;
		if (sink->exporter->uses & USES_FOLDER)
			close_folder(sink, whole, report);
		else if (sink->out.path)
			close_output(&sink->out, sink->out.path, whole, report);
		if (sink->exporter->free)
			sink->exporter->free(sink);
	}
}
