/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/cluster_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/apart.h"
#include "merge/build_name.h"
#include "merge/read/inputs.h"
#include "merge/sums/run.h"

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
		error = send_pack(cluster, MESSAGE_RESULT, &pack);
	}
	return error;
}
