/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log apart from the run, and packs what was read. Each structure has one function that
 * packs it. When it reads, it also checks the indices, which later steps trust.
 */
#include "merge/apart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tables.h"
#include "merge/events.h"
#include "merge/read/model.h"
#include "merge/sums/rank_log.h"
#include "merge/sums/run.h"
#include "merge/symbolize/addresses.h"

#define ENTRIES_MAX UINT32_MAX

static bool is_range(const struct model *model, uint32_t range)
{
	return range == RANGE_NONE || range < model->ranges.nodes.count;
}

static void pack_size(struct pack *pack, uint64_t size)
{
	uint64_t given = size;

	PACK(pack, given);
	if (!pack->error && given != size)
		pack->error = -ESTALE;
}

/* The CPU logs, which both processes have read. A log that only one can read is left out there. */
static void pack_cpu_sizes(struct pack *pack, const struct run *run)
{
	const struct cpu_logs *logs = run->cpu->logs;

	pack_size(pack, logs->count);
	for (size_t l = 0; l < logs->count; l++) {
		pack_size(pack, (uint64_t)(logs->list[l].input - run->inputs->logs));
		pack_size(pack, logs->list[l].model->stacks.count);
		pack_size(pack, logs->list[l].model->cpu_samples.count);
		pack_size(pack, logs->list[l].model->times.last_clock_ns);
	}
}

/* The sizes of the tables. They differ if the log has grown or was replaced. */
static void pack_sizes(struct pack *pack, const struct model *model)
{
	const uint64_t sizes[] = {
		model->pid,
		model->times.start_ns,
		model->times.from_ns,
		model->times.last_clock_ns,
		model->strings.count,
		model->stacks.count,
		model->python_frames.count,
		model->threads.count,
		model->streams.count,
		model->shapes.count,
		model->copy_shapes.count,
		model->modules.count,
		model->apis.count,
		model->meta.count,
		model->account.count,
		model->frames.count,
		model->python.count,
		model->ranges.nodes.count,
		model->nodes.count,
		model->nodes.creations.count,
		model->autograd.states.count,
		model->autograd.first_joined,
		model->collective_calls.count,
		model->pauses.count,
		model->stops.count,
	};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		pack_size(pack, sizes[s]);
}

/* Stacks that a joined stack consists of are older than itself. */
static bool is_older(const struct autograd *autograd, uint32_t stack, size_t joined)
{
	return stack < autograd->first_joined + joined;
}

static void check_joined(struct pack *pack, const struct autograd *autograd)
{
	for (size_t j = 0; j < autograd->joined.count; j++) {
		const struct joined_stack *row = &autograd->joined.list[j];

		pack_check_bool(pack, &row->is_certain);
		pack_check(pack, row->own < autograd->first_joined &&
					 is_older(autograd, row->at, j) &&
					 is_older(autograd, row->before, j) &&
					 is_older(autograd, row->after, j));
	}
}

/* Packs the parts of the model that events change. */
static void pack_model(struct pack *pack, struct model *model)
{
	struct autograd *autograd = &model->autograd;
	struct nodes *nodes = &model->nodes;

	PACK(pack, model->rows_read);
	PACK(pack, nodes->cyclic_count);
	pack_bytes(pack, nodes->creations.list, nodes->creations.count * sizeof(struct creation));
	for (size_t c = 0; c < nodes->creations.count; c++)
		pack_check(pack, nodes->creations.list[c].api < model->apis.count &&
					 is_range(model, nodes->creations.list[c].range));
	if (pack->is_reading) {
		free(autograd->joined.list);
		autograd->joined.list = NULL;
		autograd->joined.count = autograd->joined.capacity = 0;
	}
	PACK_ARRAY(pack, autograd->joined.list, autograd->joined.count, autograd->joined.capacity,
		   JOINED_STACKS_MAX);
	PACK(pack, autograd->left_count);
	if (!pack->error)
		check_joined(pack, autograd);
}

static bool is_root(const struct reading *reading, uint32_t root)
{
	const struct model *model = reading->model;

	switch (reading->run->settings->by) {
	case BY_STREAM:
		return root == ROOT_HOST || root < model->streams.count;
	case BY_THREAD:
		return root < model->threads.count;
	default:
		return true;
	}
}

static bool is_owner(const struct reading *reading, const struct owner *owner)
{
	const struct model *model = reading->model;

	if (owner->leaf == LEAF_IDLE &&
	    (IDLE_WHAT_CLASS(owner->what) >= IDLE_CLASSES ||
	     IDLE_WHAT_PATH(owner->what) >= IDLE_PATH_FIRST + reading->gaps.idle_paths.keys.count))
		return false;
	return owner->leaf <= LEAF_LEFT_OUT && owner->leaf != LEAF_CPU &&
	       is_range(model, owner->range) && is_root(reading, owner->root) &&
	       (!owner->creation || owner->creation < model->nodes.creations.count) &&
	       owner->stream < model->streams.count && owner->thread < model->threads.count &&
	       owner->api < model->apis.count;
}

/* Idle paths come first: owners refer to them. */
static void pack_idle_paths(struct pack *pack, struct reading *reading)
{
	struct idle_paths *paths = &reading->gaps.idle_paths;
	const struct cpu_logs *logs = reading->run->cpu->logs;
	uint64_t count = paths->keys.count;
	bool is_new;

	if (pack->is_reading)
		idle_paths_begin(paths, logs, reading->process.log, reading->model,
				 &reading->gaps.threads, &reading->aggregate);
	PACK(pack, paths->long_ns);
	PACK(pack, paths->long_covered_ns);
	PACK(pack, count);
	for (uint64_t p = 0; p < count && !pack->error; p++) {
		struct idle_path path = {0};
		const struct idle_path_part *parts[] = {&path.own, &path.other};

		if (!pack->is_reading)
			path = *idle_paths_get(paths, (uint32_t)p + IDLE_PATH_FIRST);
		PACK(pack, path);
		for (size_t i = 0; i < 1 + (path.has_other != 0); i++)
			pack_check(pack, logs && parts[i]->log < logs->count &&
						 parts[i]->state < XT_CPU_STATES);
		if (pack->is_reading)
			xt_intern(&paths->keys, &path, sizeof(path), &is_new);
	}
}

static void pack_aggregate(struct pack *pack, struct reading *reading)
{
	struct aggregate *aggregate = &reading->aggregate;
	size_t count = aggregate->count;

	PACK_ARRAY(pack, aggregate->entries, count, aggregate->capacity, ENTRIES_MAX - 1);
	if (!pack->is_reading || pack->error)
		return;
	aggregate->count = (uint32_t)count;
	for (size_t e = 0; e < count; e++) {
		pack_check(pack, is_owner(reading, &aggregate->entries[e].owner));
		aggregate->entries[e].next = 0;
	}
	aggregate_index_all(aggregate);
}

static void pack_sums(struct pack *pack, struct reading *reading)
{
	size_t copy_shapes = reading->model->copy_shapes.count;

	PACK(pack, reading->join.kernel_missing_count);
	PACK(pack, reading->join.missing.unseen_launch_count);
	PACK(pack, reading->join.kernel_invalid_count);
	PACK(pack, reading->sums.memory.pools);
	PACK(pack, reading->sums.memory.counts);
	PACK(pack, reading->sums.memsets);
	PACK(pack, reading->damage);
	pack_check_bool(pack, &reading->damage.truncated);
	pack_check_bool(pack, &reading->damage.closed);
	PACK(pack, reading->gaps.collectives);
	pack_bool(pack, &reading->gaps.is_blind);
	if (pack->is_reading)
		reading->sums.copies = xt_calloc(copy_shapes, sizeof(*reading->sums.copies));
	if (pack->is_reading && !pack->error)
		reading_find_stacks(reading);
	pack_bytes(pack, reading->sums.copies, copy_shapes * sizeof(*reading->sums.copies));
}

static bool is_callsite(const struct callsites *callsites, uint32_t callsite)
{
	return callsite < callsites->count;
}

static void check_callsites(struct pack *pack, const struct callsites *callsites)
{
	const struct model *model = callsites->model;

	for (size_t s = 0; s < callsites->count; s++) {
		const struct callsite *row = &callsites->list[s];

		pack_check_bool(pack, &row->waits);
		pack_check_bool(pack, &row->is_async);
		pack_check_bool(pack, &row->is_explained);
		pack_check_bool(pack, &row->has_streams);
		/* Each links to an older one, so a search ends. */
		pack_check(pack, row->next <= (s ? s - 1 : 0) && row->api < model->apis.count &&
					 row->stack < model_stack_limit(callsites->model) &&
					 is_range(model, row->range) &&
					 row->thread < model->threads.count &&
					 row->stream < model->streams.count);
	}
	for (size_t s = 0; s < model_stack_limit(callsites->model); s++)
		pack_check(pack, is_callsite(callsites, callsites->by_stack[s]));
	for (size_t s = 0; s <= callsites->stream_count; s++)
		pack_check(pack, is_callsite(callsites, callsites->streams[s].top_callsite));
	for (size_t d = 0; d < callsites->device_count; d++)
		pack_check(pack, is_callsite(callsites, callsites->devices[d].first_callsite) &&
					 is_callsite(callsites,
						     callsites->devices[d].longest_gap.callsite) &&
					 callsites->devices[d].longest_gap.class < IDLE_CLASSES);
}

static void pack_callsites(struct pack *pack, struct reading *reading, struct callsites *callsites)
{
	if (!reading->run->needs.findings)
		return;
	if (pack->is_reading) {
		callsites_init(callsites, reading->model, &reading->gaps.threads);
		free(callsites->list);
		callsites->list = NULL;
		callsites->count = callsites->capacity = 0;
	}
	PACK_LIST(pack, *callsites, CALLSITES_MAX);
	pack_bytes(pack, callsites->by_stack,
		   model_stack_limit(callsites->model) * sizeof(*callsites->by_stack));
	pack_bytes(pack, callsites->streams,
		   (callsites->stream_count + 1) * sizeof(*callsites->streams));
	PACK(pack, callsites->device_count);
	pack_check(pack, callsites->device_count <= CALLSITES_DEVICES_MAX && callsites->count);
	if (!pack->error)
		pack_bytes(pack, callsites->devices,
			   callsites->device_count * sizeof(*callsites->devices));
	PACK(pack, callsites->first_ns);
	PACK(pack, callsites->last_ns);
	if (!pack->error)
		check_callsites(pack, callsites);
}

/* Packs the parts of the collector that rank_log_finish() needs. */
static void pack_collector(struct pack *pack, struct rank_log *log)
{
	struct rank_collector *collector = log->collector;
	size_t count = log->count;

	PACK_LIST(pack, collector->taken, ENTRIES_MAX);
	PACK_ARRAY(pack, collector->places, count, collector->place_capacity, ENTRIES_MAX);
	pack_check(pack, count == log->count);
	PACK(pack, collector->last_place);
}

static void check_rank_log(struct pack *pack, const struct reading *reading)
{
	const struct rank_log *log = &reading->sums.rank_log;
	const struct rank_collector *collector = log->collector;
	uint32_t from = 0, places = reading->aggregate.count;

	for (size_t m = 0; m < log->members.count; m++) {
		pack_check_bool(pack, &log->members.list[m].is_by_order);
		pack_check_bool(pack, &log->members.list[m].is_rest);
		pack_check_bool(pack, &log->members.list[m].saw_join);
	}
	for (size_t c = 0; c < log->count; c++) {
		const struct rank_collective *row = &log->list[c];

		pack_check_bool(pack, &row->is_overlapped);
		pack_check(pack, collector && row->member < log->members.count &&
					 row->operation < COLLECTIVE_OPERATIONS);
		if (pack->error)
			return;
		pack_check(pack, collector->places[c] < places);
		if (log->lacks_times)
			continue;
		pack_check(pack,
			   row->times_end >= from && row->times_end <= collector->taken.count);
		from = row->times_end;
	}
	for (size_t t = 0; collector && t < collector->taken.count; t++)
		pack_check(pack, collector->taken.list[t].place < places);
	if (collector && collector->last_place != UINT32_MAX)
		pack_check(pack, collector->last_place < places);
}

static void pack_rank_log(struct pack *pack, struct reading *reading)
{
	struct rank_log *log = &reading->sums.rank_log;
	bool has_collector = log->collector;

	if (!reading->run->needs.ranks)
		return;
	if (!pack->is_reading)
		rank_log_settle(log);
	PACK_LIST(pack, log->members, RANK_MEMBERS_MAX);
	PACK_LIST(pack, *log, ENTRIES_MAX);
	pack_bool(pack, &log->lacks_times);
	pack_bool(pack, &log->has_joined_call);
	PACK(pack, log->until_ns);
	PACK(pack, log->idle_ns);
	PACK(pack, log->busy_ns);
	pack_bool(pack, &has_collector);
	if (pack->is_reading && has_collector && !pack->error) {
		log->collector = rank_collector_new();
		log->collector->is_settled = true;
	}
	if (has_collector && !pack->error)
		pack_collector(pack, log);
	if (!pack->error)
		check_rank_log(pack, reading);
}

/* The times and the name are only needed while events are read. */
static void pack_iterations(struct pack *pack, struct reading *reading)
{
	struct iterations *list = &reading->plan.iterations;

	PACK(pack, list->source);
	PACK(pack, list->count);
	PACK(pack, list->warmup_count);
	PACK(pack, reading->plan.steady_ns);
	if (!pack->is_reading && !list->name)
		list->name = xt_strdup("");
	pack_text(pack, &list->name);
	pack_check(pack, list->source <= ITERATIONS_MISSING && list->warmup_count <= list->count);
	reading->process.iterations = list;
}

/*
 * Packs the sums of a log. The message has no tables of the log: the coordinator loads them from
 * the log itself. So the message is small, and every index in it can be checked.
 */
void pack_reading(struct pack *pack, struct reading *reading)
{
	pack_sizes(pack, reading->model);
	pack_cpu_sizes(pack, reading->run);
	if (pack->error)
		return;
	PACK(pack, reading->sums.counts);
	pack_iterations(pack, reading);
	pack_model(pack, reading->model);
	pack_sums(pack, reading);
	pack_idle_paths(pack, reading);
	pack_aggregate(pack, reading);
	pack_callsites(pack, reading, &reading->sums.callsites);
	if (reading->plan.steady_ns)
		pack_callsites(pack, reading, &reading->sums.steady);
	pack_rank_log(pack, reading);
}

bool log_jobs_possible(const struct run *run, const struct sink *sinks, size_t sink_count)
{
	return !run->selection && !sinks_want_events(sinks, sink_count);
}

void log_job_init(struct log_job *job, struct run *run, struct sink *sinks, size_t sink_count,
		  size_t index)
{
	job->reading = (struct reading){
		.run = run,
		.sinks = sinks,
		.sink_count = sink_count,
		.process.log = &run->inputs->logs[index],
	};
}

void log_job_read(struct log_job *job, size_t helper_count)
{
	struct reading *reading = &job->reading;
	struct xt_reader *reader;

	reading->error = model_open(reading->process.log, NULL, &reading->model, &reader);
	job->is_opened = reading->error || reader;
	if (!reader)
		return;
	reading->process.model = reading->model;
	reading_find_iterations(reading);
	reading_events(reading, reader, helper_count, NULL);
	xt_reader_close(reader);
}

struct reading *log_job_join(struct log_job *job)
{
	log_counts_add(&job->reading.run->sums->events, &job->reading.sums.counts);
	return &job->reading;
}

void log_job_free(struct log_job *job)
{
	reading_free(&job->reading);
	model_free(job->reading.model);
	job->reading = (struct reading){0};
}

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

bool apart_is_possible(const struct run *run, const struct sink *sinks, size_t sink_count)
{
	/* Numbers of --redact come from all logs together. */
	bool is_possible = !run->selection && !run->needs.alignment && !run->settings->is_redacted;

	for (size_t e = 0; e < sink_count; e++)
		is_possible &= !sinks_want_events(&sinks[e], 1) || sinks[e].exporter->pack;
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

		if (!sinks_want_events(sink, 1))
			continue;
		error = sink_begin(sink);
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
	if (!error && reader)
		reading_find_iterations(reading);
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
		sink_free(&apart->sinks[e]);
	frames_free(&reading->frames);
	addresses_free(&apart->addresses);
	demangle_cache_free(&apart->names);
	log_job_free(&apart->job);
	file_names_free(&apart->file_names);
	paths_free(&apart->paths);
	report_free(&apart->report);
	free_all(apart->sinks, apart);
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
		if (sinks_want_events(&apart->sinks[e], 1))
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
