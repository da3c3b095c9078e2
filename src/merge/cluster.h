/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes that read the logs of one merge, each on some host.
 *
 * Process 0 is the coordinator: it hands out logs, adds the results to the run in the order of the
 * logs, and writes the outputs. The others are workers. The transport, such as MPI, is behind this
 * interface, and merge knows nothing else of it.
 *
 * worker -> coordinator   HELLO: its build
 * coordinator -> worker   BEGIN: command line and inputs (pack_inputs())
 * coordinator -> worker   READ: number of a log. Several may be under way
 * worker -> coordinator   RESULT: what it read (pack_reading.h)
 * worker -> coordinator   FAILED: why it gave up, as text
 * coordinator -> worker   STOP: nothing more follows
 */
#ifndef XT_MERGE_CLUSTER_H
#define XT_MERGE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum message_kind {
	MESSAGE_HELLO,
	MESSAGE_BEGIN,
	MESSAGE_READ,
	MESSAGE_RESULT,
	MESSAGE_FAILED,
	MESSAGE_STOP,
	MESSAGE_KINDS
};

/* The receiver frees the data. */
struct message {
	unsigned process; /* the other one */
	enum message_kind kind;
	uint8_t *data; /* NULL if there is none */
	size_t bytes;
};

struct cluster {
	unsigned process; /* this one */
	unsigned process_count;
	/* The command line; a worker gets that of the coordinator. */
	int argc;
	char **argv;
	/* Sends a message. Takes ownership of its data. Returns at once. Any thread may call it. */
	void (*send)(struct cluster *cluster, const struct message *message);
	/* Gets the next message. waits: until there is one. Returns false if there is none. */
	bool (*receive)(struct cluster *cluster, bool waits, struct message *message_out);
};

static inline bool cluster_is_worker(const struct cluster *cluster)
{
	return cluster && cluster->process;
}

#endif
