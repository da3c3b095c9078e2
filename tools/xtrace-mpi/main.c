/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace-mpi: xtrace merge in the processes of an MPI job. The only program of xtrace that uses
 * MPI.
 *
 * A thread of its own makes all calls of MPI. MPI moves data only while a process is in such a
 * call, so messages move while the other threads read logs. MPI's own waiting would keep a
 * processor busy: the thread sleeps between two looks instead.
 *
 * A message is a head, then its data in pieces, because MPI counts bytes as int. Messages between
 * two processes stay in order.
 *
 * If a process dies, mpirun ends the others. If MPI fails, its default is to end all processes with
 * a message.
 */
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/message.h"
#include "log/base/grow.h"
#include "base/output.h"
#include "merge/cluster.h"
#include "merge/merge_command.h"

#define PIECE_BYTES	  ((size_t)1 << 28)
#define MESSAGE_BYTES_MAX ((uint64_t)1 << 38)
#define SLEEP_MIN_NS	  20000
#define SLEEP_MAX_NS	  1000000

enum { TAG_HEAD, TAG_DATA };

struct head {
	uint32_t kind;
	uint64_t bytes;
};

struct queue {
	struct message *list;
	size_t first, count, capacity;
};

/* A message under way. */
struct transfer {
	bool is_received; /* otherwise it is sent */
	struct message message;
	struct head *head;     /* if it is sent; MPI needs it to stay where it is */
	MPI_Request *requests; /* the pieces, and the head */
	int request_count;
};

struct transport {
	struct cluster cluster; /* first: its address is that of the transport */
	pthread_t thread;
	bool is_started;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Protected by the lock: */
	struct queue outbox, inbox;
	bool is_closed; /* nothing more will be sent */
	/* Of the thread: */
	unsigned done_count; /* processes that send nothing more */
	struct transfer *transfers;
	size_t transfer_count, transfer_capacity;
};

static struct transport *of(struct cluster *cluster)
{
	return (struct transport *)cluster;
}

/* Any thread may call it. mpirun ends the other processes if one ends without MPI_Finalize(). */
static void give_up(const char *why)
{
	print_error("%s", why);
	_exit(STATUS_FAILED);
}

static void push(struct queue *queue, const struct message *message)
{
	if (grow(queue->list, queue->capacity, queue->first + queue->count + 1) < 0)
		give_up("out of memory");
	queue->list[queue->first + queue->count++] = *message;
}

static bool pop(struct queue *queue, struct message *out)
{
	if (!queue->count)
		return false;
	*out = queue->list[queue->first++];
	if (!--queue->count)
		queue->first = 0;
	return true;
}

static void send_message(struct cluster *cluster, const struct message *message)
{
	struct transport *transport = of(cluster);

	pthread_mutex_lock(&transport->lock);
	push(&transport->outbox, message);
	pthread_mutex_unlock(&transport->lock);
}

static bool receive_message(struct cluster *cluster, bool waits, struct message *out)
{
	struct transport *transport = of(cluster);
	bool is_there;

	pthread_mutex_lock(&transport->lock);
	while (!(is_there = pop(&transport->inbox, out)) && waits)
		pthread_cond_wait(&transport->changed, &transport->lock);
	pthread_mutex_unlock(&transport->lock);
	return is_there;
}

static struct transfer *add_transfer(struct transport *transport, const struct message *message)
{
	size_t pieces = (message->bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	struct transfer *transfer;

	if (grow(transport->transfers, transport->transfer_capacity,
		 transport->transfer_count + 1) < 0)
		give_up("out of memory");
	transfer = &transport->transfers[transport->transfer_count++];
	*transfer = (struct transfer){
		.message = *message,
		.head = malloc(sizeof(*transfer->head)),
		.requests = calloc(1 + pieces, sizeof(*transfer->requests)),
	};
	if (!transfer->requests || !transfer->head)
		give_up("out of memory");
	return transfer;
}

static int piece_bytes(const struct message *message, size_t at)
{
	return (int)(message->bytes - at < PIECE_BYTES ? message->bytes - at : PIECE_BYTES);
}

static void begin_to_send(struct transport *transport, const struct message *message)
{
	struct transfer *transfer = add_transfer(transport, message);
	int to = (int)message->process;

	*transfer->head = (struct head){.kind = message->kind, .bytes = message->bytes};
	MPI_Isend(transfer->head, sizeof(*transfer->head), MPI_BYTE, to, TAG_HEAD, MPI_COMM_WORLD,
		  &transfer->requests[transfer->request_count++]);
	for (size_t at = 0; at < message->bytes; at += PIECE_BYTES)
		MPI_Isend(message->data + at, piece_bytes(message, at), MPI_BYTE, to, TAG_DATA,
			  MPI_COMM_WORLD, &transfer->requests[transfer->request_count++]);
}

static bool begin_to_receive(struct transport *transport)
{
	struct message message = {0};
	struct transfer *transfer;
	MPI_Status status;
	struct head head;
	int is_there;

	MPI_Iprobe(MPI_ANY_SOURCE, TAG_HEAD, MPI_COMM_WORLD, &is_there, &status);
	if (!is_there)
		return false;
	MPI_Recv(&head, sizeof(head), MPI_BYTE, status.MPI_SOURCE, TAG_HEAD, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	message.process = (unsigned)status.MPI_SOURCE;
	message.kind = head.kind < MESSAGE_KINDS ? head.kind : MESSAGE_FAILED;
	message.bytes = head.bytes;
	if (head.bytes > MESSAGE_BYTES_MAX)
		give_up("cannot read a message of another process: it is damaged");
	message.data = malloc(head.bytes + 1);
	if (!message.data)
		give_up("out of memory");
	transfer = add_transfer(transport, &message);
	transfer->is_received = true;
	for (size_t at = 0; at < message.bytes; at += PIECE_BYTES)
		MPI_Irecv(message.data + at, piece_bytes(&message, at), MPI_BYTE, status.MPI_SOURCE,
			  TAG_DATA, MPI_COMM_WORLD, &transfer->requests[transfer->request_count++]);
	return true;
}

static void end_transfer(struct transport *transport, struct transfer *transfer)
{
	free_all(transfer->requests, transfer->head);
	if (!transfer->is_received) {
		free(transfer->message.data);
		return;
	}
	if (!transport->cluster.process && transfer->message.kind == MESSAGE_STOP) {
		free(transfer->message.data);
		transport->done_count++;
		return;
	}
	pthread_mutex_lock(&transport->lock);
	push(&transport->inbox, &transfer->message);
	pthread_cond_broadcast(&transport->changed);
	pthread_mutex_unlock(&transport->lock);
}

/* Whether an earlier message of the same process has not arrived yet. */
static bool is_behind(const struct transfer *transfers, size_t count,
		      const struct transfer *transfer)
{
	for (size_t t = 0; t < count; t++)
		if (transfers[t].is_received && transfer->is_received &&
		    transfers[t].message.process == transfer->message.process)
			return true;
	return false;
}

/* Ends the transfers that are complete, those of one process in order. */
static bool end_transfers(struct transport *transport)
{
	size_t kept = 0, count = transport->transfer_count;

	for (size_t t = 0; t < count; t++) {
		struct transfer transfer = transport->transfers[t];
		int is_done = false;

		if (!is_behind(transport->transfers, kept, &transfer))
			MPI_Testall(transfer.request_count, transfer.requests, &is_done,
				    MPI_STATUSES_IGNORE);
		if (is_done)
			end_transfer(transport, &transfer);
		else
			transport->transfers[kept++] = transfer;
	}
	transport->transfer_count = kept;
	return kept != count;
}

/* Moves messages. Returns false if there was nothing to do. */
static bool move_messages(struct transport *transport, bool *is_closed)
{
	bool has_arrival = begin_to_receive(transport), has_message;
	struct message message;

	pthread_mutex_lock(&transport->lock);
	has_message = pop(&transport->outbox, &message);
	*is_closed = transport->is_closed && !transport->outbox.count;
	pthread_mutex_unlock(&transport->lock);
	if (has_message)
		begin_to_send(transport, &message);
	return end_transfers(transport) || has_arrival || has_message;
}

static void set_numbers(struct transport *transport, unsigned process, unsigned process_count)
{
	struct cluster *cluster = &transport->cluster;

	pthread_mutex_lock(&transport->lock);
	if (cluster->process_count &&
	    (cluster->process != process || cluster->process_count != process_count))
		give_up("the environment and MPI disagree about the number of this process");
	if (!cluster->process_count) {
		cluster->process = process;
		cluster->process_count = process_count;
	}
	pthread_cond_broadcast(&transport->changed);
	pthread_mutex_unlock(&transport->lock);
}

static void *xtrace_mpi_run(void *argument)
{
	struct transport *transport = argument;
	struct timespec pause = {.tv_nsec = SLEEP_MIN_NS};
	int provided, process, process_count;
	unsigned others;
	bool is_closed;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &process);
	MPI_Comm_size(MPI_COMM_WORLD, &process_count);
	others = process ? 0 : (unsigned)process_count - 1;
	set_numbers(transport, (unsigned)process, (unsigned)process_count);
	do {
		if (move_messages(transport, &is_closed)) {
			pause.tv_nsec = SLEEP_MIN_NS;
			continue;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < SLEEP_MAX_NS)
			pause.tv_nsec *= 2;
	} while (!is_closed || transport->transfer_count || transport->done_count < others);
	MPI_Finalize();
	return NULL;
}

/* Whether a launcher of MPI started this process. */
static bool is_launched(void)
{
	static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};

	for (size_t v = 0; v < sizeof(variables) / sizeof(variables[0]); v++)
		if (getenv(variables[v]))
			return true;
	return false;
}

/* Open MPI's launcher says in advance what MPI_Init() finds out in a quarter of a second. */
static void read_numbers(struct transport *transport)
{
	const char *process = getenv("OMPI_COMM_WORLD_RANK");
	const char *process_count = getenv("OMPI_COMM_WORLD_SIZE");

	if (process && process_count)
		set_numbers(transport, (unsigned)strtoul(process, NULL, 10),
			    (unsigned)strtoul(process_count, NULL, 10));
}

/* The thread blocks all signals: handlers run on the main thread and remove unfinished files. */
static void start(struct transport *transport)
{
	sigset_t all, before;

	read_numbers(transport);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&transport->thread, NULL, xtrace_mpi_run, transport))
		give_up("cannot start a thread");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	transport->is_started = true;
	pthread_mutex_lock(&transport->lock);
	while (!transport->cluster.process_count)
		pthread_cond_wait(&transport->changed, &transport->lock);
	pthread_mutex_unlock(&transport->lock);
}

/*
 * Joins the processes that mpirun started. Alone, without a launcher of MPI, there is one process,
 * and MPI is not used. Ends the program with a message if that fails.
 */
static struct cluster *transport_open(int argc, char **argv)
{
	struct transport *transport = calloc(1, sizeof(*transport));

	if (!transport)
		give_up("out of memory");
	transport->cluster = (struct cluster){
		.argc = argc,
		.argv = argv,
		.send = send_message,
		.receive = receive_message,
	};
	pthread_mutex_init(&transport->lock, NULL);
	pthread_cond_init(&transport->changed, NULL);
	if (is_launched())
		start(transport);
	else
		transport->cluster.process_count = 1;
	return &transport->cluster;
}

/* Waits until everything is sent; process 0, until all others are done. */
static void transport_close(struct cluster *cluster)
{
	struct transport *transport = of(cluster);
	struct message message;

	if (cluster->process)
		send_message(cluster, &(struct message){.kind = MESSAGE_STOP});
	pthread_mutex_lock(&transport->lock);
	transport->is_closed = true;
	pthread_mutex_unlock(&transport->lock);
	if (transport->is_started)
		pthread_join(transport->thread, NULL);
	while (pop(&transport->inbox, &message))
		free(message.data);
	free_all(transport->inbox.list, transport->outbox.list, transport->transfers);
	pthread_cond_destroy(&transport->changed);
	pthread_mutex_destroy(&transport->lock);
	free(transport);
}

#define MEMORY_KEPT_BYTES  (256 << 20)
#define MEMORY_BLOCK_BYTES (32 << 20) /* glibc's limit */

static const struct command *const commands[] = {&command_merge};

static const char usage[] = "Usage: mpirun -n N xtrace-mpi merge [OPTION]... [DIR|FILE]...\n"
			    "Merge logs in several processes, like xtrace merge.\n\n"
			    "xtrace-mpi merge --help lists the options.\n";

static bool is_merge(int argc, char **argv)
{
	return argc > 1 && !strcmp(argv[1], command_merge.name);
}

int main(int argc, char **argv)
{
	struct cluster *cluster;
	int status;

	/* Each log needs as much memory as the one before. Do not give it back meanwhile. */
	mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, MEMORY_BLOCK_BYTES);
	message_set_name("xtrace-mpi merge");
	commands_register(commands, 1);
	output_ignore_terminal();
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(usage, stdout) < 0 ? STATUS_FAILED : 0;
	cluster = transport_open(argc - 1, argv + 1);
	if (!is_merge(argc, argv)) {
		if (!cluster->process)
			fputs(usage, stderr);
		status = STATUS_FAILED;
	} else {
		status = merge_in_cluster(cluster);
	}
	transport_close(cluster);
	return status;
}
