/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/cluster.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/build_id.h"
#include "merge/apart.h"
#include "merge/events.h"
#include "merge/read/inputs.h"
#include "merge/read/model.h"
#include "merge/sums/reading.h"
#include "merge/sums/run.h"

#define BUILD_NAME_BYTES   128
#define BUILD_ID_BYTES_MAX 40
#define LOGS_AT_A_TIME	   2 /* of a worker */
#define LOGS_AHEAD	   4 /* of each process */
#define DAMAGED		   "it sent a damaged result"

/* Writes the build id in hexadecimal, "" if the segment has none. */
static void read_notes(const uint8_t *notes, size_t bytes, char *out)
{
	size_t id_bytes = 0;
	const uint8_t *id = xt_build_id(notes, bytes, BUILD_ID_BYTES_MAX, &id_bytes);

	for (size_t i = 0; id && i < id_bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", id[i]);
}

/* The first module is the program itself. */
static int read_module(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (size_t h = 0; h < info->dlpi_phnum; h++)
		if (info->dlpi_phdr[h].p_type == PT_NOTE)
			read_notes((const uint8_t *)info->dlpi_addr + info->dlpi_phdr[h].p_vaddr,
				   info->dlpi_phdr[h].p_memsz, out);
	return 1;
}

/*
 * Writes the version and the build id of this program. Programs of the same name have the same data
 * structures.
 */
static void build_name(char out[BUILD_NAME_BYTES])
{
	char id[2 * BUILD_ID_BYTES_MAX + 1] = "";

	dl_iterate_phdr(read_module, id);
	/* A linker may leave out build ids. Then at least the sizes tell other builds apart. */
	snprintf(out, BUILD_NAME_BYTES, "%s %s", XTRACE_VERSION, id);
	if (!id[0])
		snprintf(out, BUILD_NAME_BYTES, "%s %zu.%zu.%zu", XTRACE_VERSION,
			 sizeof(struct run), sizeof(struct reading), sizeof(struct model));
}

/* Sends a packed message. Returns 0 or the error of the pack. */
static int send_pack(struct cluster *cluster, unsigned process, enum message_kind kind,
		     struct pack *pack)
{
	struct message message = {.process = process, .kind = kind};

	message.data = pack_end(pack, &message.bytes);
	if (!message.data)
		return pack->error;
	cluster->send(cluster, &message);
	return 0;
}

static void send_text(struct cluster *cluster, enum message_kind kind, const char *text)
{
	char *copy = (char *)text;
	struct pack pack;

	pack_begin(&pack);
	pack_text(&pack, &copy);
	send_pack(cluster, 0, kind, &pack);
}

void worker_greet(struct cluster *cluster)
{
	char build[BUILD_NAME_BYTES];

	build_name(build);
	send_text(cluster, MESSAGE_HELLO, build);
}

void worker_fail(struct cluster *cluster, const char *why)
{
	send_text(cluster, MESSAGE_FAILED, why);
}

int worker_begin(struct cluster *cluster, struct inputs *inputs)
{
	struct message message;
	struct pack pack;

	*inputs = (struct inputs){0};
	if (!cluster->receive(cluster, true, &message) || message.kind == MESSAGE_STOP)
		return -ECANCELED;
	pack_open(&pack, message.data, message.bytes);
	pack_check(&pack, message.kind == MESSAGE_BEGIN);
	pack_argv(&pack, &cluster->argc, &cluster->argv);
	pack_inputs(&pack, inputs);
	free(message.data);
	return pack.error;
}

int worker_serve(struct cluster *cluster, struct run *run, const struct sink *sinks,
		 size_t sink_count, struct debug_search *search)
{
	struct message message;
	int error = 0;

	while (!error && cluster->receive(cluster, true, &message)) {
		uint32_t index = UINT32_MAX;
		struct pack pack;

		if (message.kind == MESSAGE_STOP)
			break;
		pack_open(&pack, message.data, message.bytes);
		pack_check(&pack, message.kind == MESSAGE_READ);
		PACK(&pack, index);
		pack_check(&pack, index < run->inputs->count);
		free(message.data);
		error = pack.error;
		if (error)
			break;
		apart_read(&pack, run, sinks, sink_count, search, index);
		error = send_pack(cluster, 0, MESSAGE_RESULT, &pack);
	}
	return error;
}

/* A log, and who reads it. */
struct part {
	struct log_job job;
	bool is_taken;	  /* by process */
	unsigned process; /* 0: the coordinator */
	struct message result;
	struct pack pack; /* of the result */
};

struct worker {
	bool is_ready;
	size_t log_count; /* that it has been given and has not read */
};

struct coordinator {
	struct cluster *cluster;
	struct run *run;
	struct sink *sinks;
	size_t sink_count;
	struct debug_search *search;
	bool has_events;	/* a sink wants single events */
	struct part *parts;	/* by log */
	struct worker *workers; /* by process */
	size_t at;		/* the log that is added next to the run */
	int error;
};

struct coordinator *coordinator_start(struct cluster *cluster, struct run *run, struct sink *sinks,
				      size_t sink_count, struct debug_search *search)
{
	struct coordinator *coordinator = xt_calloc(1, sizeof(*coordinator));

	*coordinator = (struct coordinator){
		.cluster = cluster,
		.run = run,
		.sinks = sinks,
		.sink_count = sink_count,
		.search = search,
		.has_events = sinks_want_events(sinks, sink_count),
		.parts = xt_calloc(run->inputs->count + 1, sizeof(*coordinator->parts)),
		.workers = xt_calloc(cluster->process_count, sizeof(*coordinator->workers)),
	};
	for (size_t l = 0; l < run->inputs->count; l++)
		log_job_init(&coordinator->parts[l].job, run, sinks, sink_count, l);
	return coordinator;
}

static void send_to(struct coordinator *coordinator, unsigned process, enum message_kind kind,
		    struct pack *pack)
{
	int error = send_pack(coordinator->cluster, process, kind, pack);

	if (error)
		coordinator->error = error;
}

/* The next log without a reader, or the count of logs. is_worker: for a worker. */
static size_t next_log(const struct coordinator *coordinator, bool is_worker)
{
	const struct inputs *inputs = coordinator->run->inputs;
	size_t end = coordinator->at + LOGS_AHEAD * coordinator->cluster->process_count;

	for (size_t l = coordinator->at; l < inputs->count && l < end; l++)
		if (!coordinator->parts[l].is_taken &&
		    !(is_worker && inputs->logs[l].has_crash_buffer))
			return l;
	return inputs->count;
}

static void hand_out(struct coordinator *coordinator)
{
	for (unsigned p = 1; p < coordinator->cluster->process_count; p++) {
		struct worker *worker = &coordinator->workers[p];

		while (worker->is_ready && worker->log_count < LOGS_AT_A_TIME) {
			uint32_t index = (uint32_t)next_log(coordinator, true);
			struct pack pack;

			if (index == coordinator->run->inputs->count)
				return;
			coordinator->parts[index].is_taken = true;
			coordinator->parts[index].process = p;
			worker->log_count++;
			pack_begin(&pack);
			PACK(&pack, index);
			send_to(coordinator, p, MESSAGE_READ, &pack);
		}
	}
}

static void fail(struct coordinator *coordinator, unsigned process, const char *why)
{
	if (!coordinator->error)
		report_error(coordinator->run->report, STATUS_FAILED, "process %u: %s", process,
			     why);
	coordinator->error = -EIO;
}

/* Begins the merge in a worker, if it is the same program. */
static void welcome(struct coordinator *coordinator, unsigned process, const char *build)
{
	struct cluster *cluster = coordinator->cluster;
	char own[BUILD_NAME_BYTES], why[3 * BUILD_NAME_BYTES];
	struct pack pack;

	build_name(own);
	if (strcmp(own, build) != 0) {
		snprintf(why, sizeof(why),
			 "it is another build of xtrace-mpi (%s) than process 0 (%s); install the "
			 "same on all hosts",
			 build, own);
		fail(coordinator, process, why);
		return;
	}
	coordinator->workers[process].is_ready = true;
	pack_begin(&pack);
	pack_argv(&pack, &cluster->argc, &cluster->argv);
	pack_inputs(&pack, (struct inputs *)coordinator->run->inputs);
	send_to(coordinator, process, MESSAGE_BEGIN, &pack);
}

/* Keeps a result. Takes ownership of its data. */
static void keep_result(struct coordinator *coordinator, const struct message *message)
{
	uint32_t index = UINT32_MAX;
	struct pack pack;

	pack_open(&pack, message->data, message->bytes);
	PACK(&pack, index);
	pack_check(&pack, index < coordinator->run->inputs->count);
	if (pack.error || coordinator->parts[index].process != message->process ||
	    coordinator->parts[index].result.data) {
		free(message->data);
		fail(coordinator, message->process, DAMAGED);
		return;
	}
	coordinator->workers[message->process].log_count--;
	coordinator->parts[index].result = *message;
}

/* Takes ownership of the message's data. */
static void handle(struct coordinator *coordinator, const struct message *message)
{
	char *text = NULL;
	struct pack pack;

	if (message->kind == MESSAGE_RESULT) {
		keep_result(coordinator, message);
		return;
	}
	pack_open(&pack, message->data, message->bytes);
	pack_text(&pack, &text);
	if (pack.error)
		fail(coordinator, message->process, "it sent a damaged message");
	else if (message->kind == MESSAGE_HELLO)
		welcome(coordinator, message->process, text);
	else
		fail(coordinator, message->process, text);
	free_all(text, message->data);
}

/* Handles what has arrived. waits: until there is something. */
static void receive(struct coordinator *coordinator, bool waits)
{
	struct cluster *cluster = coordinator->cluster;
	struct message message;

	while (!coordinator->error && cluster->receive(cluster, waits, &message)) {
		handle(coordinator, &message);
		waits = false;
	}
	if (waits && !coordinator->error)
		coordinator->error = -EPIPE;
	if (!coordinator->error)
		hand_out(coordinator);
}

/* Loads the tables of the log, which the result refers to. */
static int load_model(struct reading *reading)
{
	struct xt_reader *reader;
	int error = model_open(reading->process.log, NULL, &reading->model, &reader);

	xt_reader_close(reader);
	reading->process.model = reading->model;
	return error;
}

/* Turns a result into a reading. Returns NULL if the coordinator must read the log itself. */
static struct reading *take_result(struct coordinator *coordinator, struct part *part)
{
	struct log_job *job = &part->job;
	struct reading *reading = &job->reading;
	struct pack *pack = &part->pack;
	struct apart_head head = {0};

	pack_open(pack, part->result.data, part->result.bytes);
	apart_pack_head(pack, &head);
	reading->error = pack->error ? pack->error : head.error;
	if (!reading->error && head.file_bytes != apart_file_bytes(reading->process.log))
		return NULL;
	if (!reading->error && head.is_opened)
		reading->error = load_model(reading);
	if (!reading->error && reading->model) {
		pack_reading(pack, reading);
		reading->error = pack->error;
		reading->packed = pack;
	}
	if (reading->error == -EBADMSG)
		fail(coordinator, part->process, DAMAGED);
	if (reading->error != -ESTALE && (reading->error || reading->model))
		return log_job_join(job);
	return NULL;
}

static void free_part(struct part *part)
{
	log_job_free(&part->job);
	free(part->result.data);
	part->result = (struct message){0};
}

/*
 * Reads a log ahead. If a sink wants single events, the log must be read apart from the sink's
 * state, as a worker does.
 */
static void read_ahead(struct coordinator *coordinator, size_t index)
{
	struct part *part = &coordinator->parts[index];
	struct pack pack;

	part->is_taken = true;
	if (!coordinator->has_events) {
		log_job_read(&part->job, 0);
		part->job.is_read = true;
		return;
	}
	apart_read(&pack, coordinator->run, coordinator->sinks, coordinator->sink_count,
		   coordinator->search, (uint32_t)index);
	part->result.data = pack_end(&pack, &part->result.bytes);
	if (!part->result.data)
		coordinator->error = pack.error;
}

struct reading *coordinator_wait(struct coordinator *coordinator, size_t index)
{
	struct part *part = &coordinator->parts[index];

	coordinator->at = index;
	for (;;) {
		struct reading *reading;
		size_t ahead;

		receive(coordinator, false);
		if (coordinator->error) {
			part->job.reading.error = coordinator->error;
			return &part->job.reading;
		}
		if (part->job.is_read)
			return part->job.is_opened ? log_job_join(&part->job) : NULL;
		if (!part->is_taken) {
			part->is_taken = true;
			return NULL;
		}
		if (part->result.data) {
			reading = take_result(coordinator, part);
			if (!reading)
				free_part(part);
			return reading;
		}
		ahead = next_log(coordinator, false);
		if (ahead == coordinator->run->inputs->count) {
			receive(coordinator, true);
			continue;
		}
		read_ahead(coordinator, ahead);
	}
}

void coordinator_reject(struct coordinator *coordinator, size_t index)
{
	fail(coordinator, coordinator->parts[index].process, DAMAGED);
}

void coordinator_release(struct coordinator *coordinator, size_t index)
{
	free_part(&coordinator->parts[index]);
	coordinator->at = index + 1;
}

void coordinator_free(struct coordinator *coordinator)
{
	if (!coordinator)
		return;
	for (size_t l = 0; l < coordinator->run->inputs->count; l++)
		free_part(&coordinator->parts[l]);
	free_all(coordinator->parts, coordinator->workers, coordinator);
}

void coordinator_stop_workers(struct cluster *cluster)
{
	for (unsigned p = 1; p < cluster->process_count; p++)
		cluster->send(cluster, &(struct message){.process = p, .kind = MESSAGE_STOP});
}
