/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives across processes. The folder of XTRACE_SIMGPU_RANKS holds one file for each
 * communicator, which all its ranks map. Instance i of a communicator is its i-th launch in each
 * rank. A rank publishes the start of its kernel there and computes the end from the others'.
 *
 * A process locks one byte of the file for each rank that it is. The kernel drops the lock when the
 * process ends, in whatever way, so that the others do not wait for it.
 *
 * All calls are made under the lock of deferred.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simgpu/ranks.h"
#include "simgpu_collective.h"

#define RANKS_MAX	  1024
#define INSTANCES_MAX	  (UINT64_C(1) << 18)
#define CHANGES_BYTES	  4096
#define TRANSFER_FLOOR_NS 5000
#define END_SPREAD_NS	  1000 /* the ranks end up to this much after each other */

/* Whom a rank waits for. */
enum need { NEED_ALL, NEED_ROOT, NEED_ALL_IF_ROOT };

struct sim_operation {
	const char *name;
	enum need need;
	uint32_t parts; /* the message has a part for each of n ranks: 1, or n if 0 */
	uint32_t trips; /* of each byte over a rank's link, times n / (n - 1); 0: once in all */
};

/* By the kernel's name. The first one that fits counts; the last one fits all. */
static const struct sim_operation operations[] = {
	{"AllReduce", NEED_ALL, 1, 2},	    {"AllGather", NEED_ALL, 0, 1},
	{"ReduceScatter", NEED_ALL, 0, 1},  {"Broadcast", NEED_ROOT, 1, 0},
	{"Reduce", NEED_ALL_IF_ROOT, 1, 0}, {"", NEED_ALL, 1, 0},
};

struct arrival {
	_Atomic uint64_t start_ns; /* 0: not yet; published last */
	uint32_t transfer_ns;	   /* by this rank's link alone */
	uint32_t operation;
};

struct communicator_file {
	_Atomic bool joined[RANKS_MAX];
	struct arrival arrivals[]; /* [instance][rank] */
};

struct sim_communicator {
	uint64_t id;
	uint32_t rank;
	uint32_t rank_count;
	uint64_t launch_count;
	int file;
	struct communicator_file *shared;
	struct sim_communicator *next;
};

static struct sim_communicator *communicators;
static _Atomic uint32_t *changes; /* counts arrivals in all processes; a futex */

bool sim_ranks_is_on(void)
{
	return sim_config()->ranks_folder != NULL;
}

static const char *kernel_operation(const char *kernel)
{
	static const char *const beginnings[] = {"ncclDevKernel_", "ncclKernel_"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(kernel, beginnings[i], strlen(beginnings[i])))
			return kernel + strlen(beginnings[i]);
	return NULL;
}

bool sim_is_collective(CUfunction function)
{
	return sim_ranks_is_on() && kernel_operation(function->name);
}

static const struct sim_operation *operation_of(const char *kernel)
{
	const char *name = kernel_operation(kernel);
	const struct sim_operation *operation = operations;

	while (strncmp(name, operation->name, strlen(operation->name)))
		operation++;
	return operation;
}

/* Maps a file of the folder, which grows to that size. Returns NULL and reports an error. */
static void *map_file(const char *name, size_t bytes, int *file_out)
{
	char path[PATH_MAX];
	void *memory = MAP_FAILED;
	int file;

	snprintf(path, sizeof(path), "%s/%s", sim_config()->ranks_folder, name);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file >= 0 && !ftruncate(file, (off_t)bytes))
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory != MAP_FAILED) {
		*file_out = file;
		return memory;
	}
	fprintf(stderr, "xtrace simulated GPU: XTRACE_SIMGPU_RANKS: cannot map %s: %m\n", path);
	if (file >= 0)
		close(file);
	return NULL;
}

static bool join(struct sim_communicator *communicator)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = communicator->rank, .l_len = 1};

	if (fcntl(communicator->file, F_SETLK, &lock) ||
	    atomic_exchange(&communicator->shared->joined[communicator->rank], true)) {
		fprintf(stderr,
			"xtrace simulated GPU: rank %" PRIu32 " of communicator %" PRIx64
			" exists already; XTRACE_SIMGPU_RANKS must name a new folder for each "
			"job\n",
			communicator->rank, communicator->id);
		return false;
	}
	return true;
}

static struct sim_communicator *communicator_open(const struct simgpu_collective *argument)
{
	struct sim_communicator *communicator = calloc(1, sizeof(*communicator));
	size_t bytes = sizeof(struct communicator_file) +
		       INSTANCES_MAX * argument->rank_count * sizeof(struct arrival);
	char name[40];
	int unused;

	if (!communicator)
		return NULL;
	communicator->id = argument->communicator;
	communicator->rank = argument->rank;
	communicator->rank_count = argument->rank_count;
	snprintf(name, sizeof(name), "communicator-%" PRIx64, communicator->id);
	if (!changes)
		changes = map_file("changes", CHANGES_BYTES, &unused);
	communicator->shared = changes ? map_file(name, bytes, &communicator->file) : NULL;
	if (!communicator->shared || !join(communicator)) {
		free(communicator);
		return NULL;
	}
	communicator->next = communicators;
	communicators = communicator;
	return communicator;
}

static struct sim_communicator *communicator_find(const struct simgpu_collective *argument)
{
	for (struct sim_communicator *one = communicators; one; one = one->next)
		if (one->id == argument->communicator && one->rank == argument->rank)
			return one->rank_count == argument->rank_count ? one : NULL;
	return communicator_open(argument);
}

/* Without arguments: the communicator 0 of all ranks. */
static struct simgpu_collective world_argument(void)
{
	const char *rank = getenv("RANK"), *world_size = getenv("WORLD_SIZE");

	return (struct simgpu_collective){
		.rank = rank ? (uint32_t)strtoul(rank, NULL, 10) : 0,
		.rank_count = world_size ? (uint32_t)strtoul(world_size, NULL, 10) : 1,
	};
}

static uint64_t transfer_ns(const struct sim_operation *operation,
			    const struct simgpu_collective *argument)
{
	uint32_t n = argument->rank_count;
	uint64_t bytes = argument->bytes * (operation->parts ? operation->parts : n);

	if (operation->trips)
		bytes = bytes * operation->trips * (n - 1) / n;
	return TRANSFER_FLOOR_NS + bytes * 1000 / sim_config()->link_bytes_per_us;
}

CUresult sim_collective_begin(const char *kernel, void **params, struct sim_collective *out)
{
	struct simgpu_collective argument =
		params ? *(const struct simgpu_collective *)params[0] : world_argument();
	struct sim_communicator *communicator;

	if (!argument.rank_count || argument.rank_count > RANKS_MAX ||
	    argument.rank >= argument.rank_count || argument.root >= argument.rank_count)
		return CUDA_ERROR_INVALID_VALUE;
	communicator = communicator_find(&argument);
	if (!communicator)
		return CUDA_ERROR_INVALID_VALUE;
	if (communicator->launch_count == INSTANCES_MAX)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	*out = (struct sim_collective){
		.communicator = communicator,
		.operation = operation_of(kernel),
		.communicator_id = communicator->id,
		.index = communicator->launch_count++,
		.rank = communicator->rank,
		.rank_count = communicator->rank_count,
		.root = argument.root,
		.bytes = argument.bytes,
	};
	out->transfer_ns = transfer_ns(out->operation, &argument);
	return CUDA_SUCCESS;
}

static struct arrival *arrival_of(const struct sim_collective *collective, uint32_t rank)
{
	return &collective->communicator->shared
			->arrivals[collective->index * collective->rank_count + rank];
}

static uint32_t operation_number(const struct sim_collective *collective)
{
	return (uint32_t)(collective->operation - operations);
}

void sim_collective_arrive(struct sim_collective *collective, uint64_t start_ns)
{
	struct arrival *own = arrival_of(collective, collective->rank);

	collective->start_ns = start_ns;
	collective->give_up_ns = sim_now_ns() + sim_config()->ranks_timeout_ns;
	own->operation = operation_number(collective);
	own->transfer_ns = (uint32_t)collective->transfer_ns;
	atomic_store_explicit(&own->start_ns, start_ns, memory_order_release);
	atomic_fetch_add(changes, 1);
	syscall(SYS_futex, changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool is_needed(const struct sim_collective *collective, uint32_t rank)
{
	switch (collective->operation->need) {
	case NEED_ROOT:
		return rank == collective->root || rank == collective->rank;
	case NEED_ALL_IF_ROOT:
		return collective->rank == collective->root || rank == collective->rank;
	case NEED_ALL:
		break;
	}
	return true;
}

/* Ranks of another operation never meet. */
static bool has_arrived(const struct sim_collective *collective, uint32_t rank)
{
	const struct arrival *arrival = arrival_of(collective, rank);

	return atomic_load_explicit(&arrival->start_ns, memory_order_acquire) &&
	       arrival->operation == operation_number(collective);
}

static bool is_dead(const struct sim_collective *collective, uint32_t rank)
{
	const struct sim_communicator *communicator = collective->communicator;
	struct flock lock = {.l_type = F_WRLCK, .l_start = rank, .l_len = 1};

	return rank != collective->rank && atomic_load(&communicator->shared->joined[rank]) &&
	       !fcntl(communicator->file, F_GETLK, &lock) && lock.l_type == F_UNLCK;
}

static uint64_t end_ns(struct sim_collective *collective)
{
	uint64_t longest_ns = 0;
	const uint64_t key[] = {collective->communicator_id, collective->index, collective->rank};

	collective->awaited_rank = collective->rank;
	collective->awaited_ns = collective->start_ns;
	for (uint32_t rank = 0; rank < collective->rank_count; rank++) {
		const struct arrival *arrival = arrival_of(collective, rank);
		uint64_t start_ns = atomic_load(&arrival->start_ns);

		if (!is_needed(collective, rank))
			continue;
		if (arrival->transfer_ns > longest_ns)
			longest_ns = arrival->transfer_ns;
		if (start_ns > collective->awaited_ns) {
			collective->awaited_ns = start_ns;
			collective->awaited_rank = rank;
		}
	}
	return collective->awaited_ns + longest_ns +
	       sim_hash(key, sizeof(key), sim_config()->seed) % END_SPREAD_NS;
}

enum sim_outcome sim_collective_outcome(struct sim_collective *collective, uint64_t *end_out_ns)
{
	bool is_complete = true;

	for (uint32_t rank = 0; rank < collective->rank_count; rank++) {
		if (!is_needed(collective, rank) || has_arrived(collective, rank))
			continue;
		/* It may have arrived and ended meanwhile. */
		if (is_dead(collective, rank) && !has_arrived(collective, rank))
			return SIM_OUTCOME_NEVER;
		is_complete = false;
	}
	if (is_complete) {
		*end_out_ns = end_ns(collective);
		return SIM_OUTCOME_END;
	}
	return sim_now_ns() > collective->give_up_ns ? SIM_OUTCOME_NEVER : SIM_OUTCOME_WAITING;
}

char *sim_collective_absent(const struct sim_collective *collective)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);
	const char *separator = "";

	if (!stream)
		return NULL;
	for (uint32_t rank = 0; rank < collective->rank_count; rank++) {
		if (!is_needed(collective, rank) || has_arrived(collective, rank))
			continue;
		fprintf(stream, "%s%" PRIu32, separator, rank);
		separator = ",";
	}
	if (!*separator)
		fputc('-', stream);
	fclose(stream);
	return text;
}

uint32_t sim_ranks_changes(void)
{
	return changes ? atomic_load(changes) : 0;
}

void sim_ranks_wait(uint32_t seen, uint64_t timeout_ns)
{
	const struct timespec timeout = {.tv_nsec = (long)timeout_ns};

	syscall(SYS_futex, changes, FUTEX_WAIT, seen, &timeout, NULL, 0);
}
