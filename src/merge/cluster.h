/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several processes that read the logs of one merge, each on some host.
 *
 * Process 0 is the coordinator: it hands out logs, adds the results to the run in the order of the
 * logs, and writes the outputs. The others are workers. The transport, such as MPI, is behind
 * struct cluster, and merge knows nothing else of it.
 *
 * worker -> coordinator   HELLO: its build
 * coordinator -> worker   BEGIN: command line and inputs (pack_inputs())
 * coordinator -> worker   READ: number of a log. Several may be under way
 * worker -> coordinator   RESULT: what it read (apart.h)
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

/* The rest of this header is for merge.c and merge_command.c. */

struct debug_search;
struct inputs;
struct reading;
struct run;
struct sink;

/* Says which build this worker is. Call it first. */
void worker_greet(struct cluster *cluster);

/*
 * Waits for the merge to begin. Returns 0, and the inputs and cluster's argv, which the caller
 * frees; -ECANCELED if there is none; or another error.
 */
int worker_begin(struct cluster *cluster, struct inputs *inputs);

/* Reads logs until the coordinator stops the worker. Returns 0 or an error. */
int worker_serve(struct cluster *cluster, struct run *run, const struct sink *sinks,
		 size_t sink_count, struct debug_search *search);

/* Tells the coordinator why this worker gives up. */
void worker_fail(struct cluster *cluster, const char *why);

/*
 * The coordinator hands out logs to the workers, and reads logs itself meanwhile.
 *
 * Workers ask for nothing: each has two logs at a time, so it can go on while the coordinator is
 * busy. Results are taken in the order of the logs, so outputs do not depend on timing. A few logs
 * per process are read ahead, which bounds the memory.
 *
 * The coordinator reads three kinds of logs itself: those that are still being written, those that
 * a worker cannot open, and those that changed while a worker read them.
 */
struct coordinator;

/* run and sinks must outlive it. */
struct coordinator *coordinator_start(struct cluster *cluster, struct run *run, struct sink *sinks,
				      size_t sink_count, struct debug_search *search);

/*
 * Waits for the log with that index, as worker_pool_wait() does. Reports workers that failed, and
 * sets the error of the reading.
 */
struct reading *coordinator_wait(struct coordinator *coordinator, size_t index);

/* Reports that the packed part of a reading was damaged. */
void coordinator_reject(struct coordinator *coordinator, size_t index);
void coordinator_release(struct coordinator *coordinator, size_t index);

/* Frees the results that were not taken. Accepts NULL. */
void coordinator_free(struct coordinator *coordinator);

/* Tells all workers that nothing more follows. */
void coordinator_stop_workers(struct cluster *cluster);

#endif
