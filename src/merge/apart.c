/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/apart.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "merge/log_job.h"
#include "merge/pack_reading.h"
#include "merge/events.h"
#include "merge/read/model_load.h"
#include "merge/symbolize/resolve.h"

/* The reading of one log, with names and sinks of its own. */
struct apart {
	struct log_job job;
	struct sink *sinks;
	struct paths paths;
	struct file_names file_names;
	struct addresses addresses;
	struct demangle_cache names;
	struct report report; /* not shown: the run reports the same later */
};

static bool wants_events(const struct sink *sink)
{
	return sinks_want_events(sink, 1);
}

bool apart_is_possible(const struct run *run, const struct sink *sinks, size_t sink_count)
{
	/* Numbers of --redact come from all logs together. */
	bool is_possible = !run->selection && !run->needs.alignment && !run->settings->is_redacted;

	for (size_t e = 0; e < sink_count; e++)
		is_possible &= !wants_events(&sinks[e]) || sinks[e].exporter->pack;
	return is_possible;
}

/* Returns whether this host has the same log under its path. */
static bool is_same_log(const struct input *log)
{
	struct xt_reader *reader;
	bool is_same;

	if (xt_reader_open(log->path, &reader) != XT_OPEN_OK)
		return false;
	is_same = !memcmp(xt_reader_header(reader), &log->header, sizeof(log->header));
	xt_reader_close(reader);
	return is_same;
}

/* Names functions, but neither lines nor inlined functions. */
static void name_frames(struct apart *apart, struct debug_search *search)
{
	struct reading *reading = &apart->job.reading;
	const struct run *run = reading->run;
	struct process *process = &reading->process;
	const struct frame_style style = {.python = run->settings->frames.python,
					  .backward = run->settings->frames.backward};

	paths_init(&apart->paths);
	apart->report = (struct report){.quiet = true, .is_held = true};
	addresses_resolve(
		&apart->addresses, reading->model,
		&(struct resolve_options){.search = search, .log_path = process->log->path},
		&apart->report);
	apart->names = (struct demangle_cache){.mangled = &reading->model->names,
					       .style = DEMANGLE_PLAIN,
					       .shown = &apart->paths.names};
	frames_build(&reading->frames, reading->model, &apart->addresses, &style, &apart->names,
		     &apart->file_names, &apart->paths, PATH_ROOT);
	process->paths = &apart->paths;
	process->frames = &reading->frames;
	process->addresses = &apart->addresses;
	process->names = &apart->names;
	process->label = "";
	process->process_count = run->inputs->count;
}

static int begin_sinks(struct apart *apart)
{
	struct reading *reading = &apart->job.reading;
	int error = 0;

	for (size_t e = 0; e < reading->sink_count && !error; e++) {
		struct sink *sink = &apart->sinks[e];

		if (!wants_events(sink))
			continue;
		error = sink->exporter->begin(sink);
		if (!error && sink->exporter->process)
			sink->exporter->process(sink, &reading->process);
	}
	return error;
}

static int read_log(struct apart *apart, struct debug_search *search)
{
	struct log_job *job = &apart->job;
	struct reading *reading = &job->reading;
	bool has_events = sinks_want_events(reading->sinks, reading->sink_count);
	size_t jobs = reading->run->settings->jobs, helpers = jobs ? jobs - 1 : 0;
	struct xt_reader *reader = NULL;
	int error = model_open(reading->process.log, NULL, &reading->model, &reader);

	job->is_opened = error || reader;
	reading->process.model = reading->model;
	if (!error && reader && has_events)
		name_frames(apart, search);
	if (!error && reader && has_events)
		error = begin_sinks(apart);
	if (!error && reader)
		reading_events(reading, reader, helpers, NULL);
	xt_reader_close(reader);
	return error;
}

static void free_apart(struct apart *apart)
{
	struct reading *reading = &apart->job.reading;

	for (size_t e = 0; apart->sinks && e < reading->sink_count; e++)
		if (apart->sinks[e].exporter->free)
			apart->sinks[e].exporter->free(&apart->sinks[e]);
	frames_free(&reading->frames);
	addresses_free(&apart->addresses);
	demangle_cache_free(&apart->names);
	log_job_free(&apart->job);
	file_names_free(&apart->file_names);
	paths_free(&apart->paths);
	report_free(&apart->report);
	free(apart->sinks);
	free(apart);
}

/* Each sink gets a state of its own. Sinks without events are only looked at. */
static struct apart *new_apart(struct run *run, const struct sink *sinks, size_t sink_count,
			       size_t index)
{
	struct apart *apart = xt_calloc(1, sizeof(*apart));

	apart->sinks = xt_calloc(sink_count + 1, sizeof(*apart->sinks));
	for (size_t e = 0; e < sink_count; e++)
		apart->sinks[e] = (struct sink){.exporter = sinks[e].exporter,
						.settings = sinks[e].settings,
						.out.fd = -1,
						.is_apart = true};
	log_job_init(&apart->job, run, apart->sinks, sink_count, index);
	return apart;
}

void apart_pack_head(struct pack *pack, struct apart_head *head)
{
	PACK(pack, head->index);
	pack_bool(pack, &head->is_opened);
	pack_error_number(pack, &head->error);
	PACK(pack, head->file_bytes);
}

uint64_t apart_file_bytes(const struct input *log)
{
	struct stat status;

	return stat(log->path, &status) < 0 ? 0 : (uint64_t)status.st_size;
}

static void pack_log(struct pack *pack, struct apart *apart, struct apart_head *head)
{
	struct reading *reading = &apart->job.reading;

	pack_begin(pack);
	apart_pack_head(pack, head);
	if (!head->is_opened || head->error)
		return;
	pack_reading(pack, reading);
	for (size_t e = 0; e < reading->sink_count; e++)
		if (wants_events(&apart->sinks[e]))
			apart->sinks[e].exporter->pack(&apart->sinks[e], &reading->process, pack);
}

void apart_read(struct pack *pack, struct run *run, const struct sink *sinks, size_t sink_count,
		struct debug_search *search, uint32_t index)
{
	struct apart *apart = new_apart(run, sinks, sink_count, index);
	const struct input *log = &run->inputs->logs[index];
	struct apart_head head = {.index = index, .file_bytes = apart_file_bytes(log)};

	if (is_same_log(log))
		head.error = read_log(apart, search);
	head.is_opened = apart->job.is_opened;
	pack_log(pack, apart, &head);
	free_apart(apart);
	if (pack->error != -E2BIG)
		return;
	free(pack->data);
	pack_begin(pack);
	head.is_opened = false;
	apart_pack_head(pack, &head);
}
