/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/cluster/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/cluster/build_name.h"
#include "merge/cluster/pack_inputs.h"
#include "merge/cluster/pack_reading.h"
#include "merge/worker_pool.h"

/* Sends a packed message. Returns 0 or the error of the pack. */
static int send_pack(struct cluster *cluster, enum message_kind kind, struct pack *pack)
{
	struct message message = {.kind = kind};

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
	send_pack(cluster, kind, &pack);
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

/* Reads a log and sends the result. A log that cannot be opened here is left to the coordinator. */
static int read_log(struct cluster *cluster, const struct run *run, struct sink *sinks,
		    size_t sink_count, uint32_t index)
{
	struct log_job *job = calloc(1, sizeof(*job));
	struct pack pack;
	int error;

	if (!job)
		return -ENOMEM;
	log_job_init(job, run, sinks, sink_count, index);
	if (is_same_log(job->reading.process.log))
		log_job_read(job, run->settings->jobs > 1);
	pack_begin(&pack);
	PACK(&pack, index);
	pack_bool(&pack, &job->is_opened);
	PACK(&pack, job->reading.error);
	if (job->is_opened && !job->reading.error)
		pack_reading(&pack, job);
	error = send_pack(cluster, MESSAGE_RESULT, &pack);
	log_job_free(job);
	free(job);
	return error;
}

int worker_serve(struct cluster *cluster, const struct run *run, struct sink *sinks,
		 size_t sink_count)
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
		if (!error)
			error = read_log(cluster, run, sinks, sink_count, index);
	}
	return error;
}
