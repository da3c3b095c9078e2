/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work whose place on the timeline is not known when it is enqueued: collectives, and everything
 * ordered after them. It waits in one queue, in the order of the calls. A pass over the queue
 * places what has become known. Calls that enqueue run one; a thread, started with the first
 * collective, runs one whenever another process has arrived at a collective.
 *
 * If a collective can never end, all that is deferred is unfinished, and later calls fail.
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

#include "simgpu/sim.h"
#include "simgpu_collective.h"

/*
 * Collectives across processes. The folder of XTRACE_SIMGPU_RANKS holds one file for each
 * communicator, which all its ranks map. Instance i of a communicator is its i-th launch in each
 * rank. A rank publishes the start of its kernel there and computes the end from the others'. A
 * process locks one byte of the file for each rank that it is. The kernel drops the lock when the
 * process ends, in whatever way, so that the others do not wait for it. All calls are made under
 * the lock of the queue.
 */
#define RANKS_MAX	  1024
#define INSTANCES_MAX	  (UINT64_C(1) << 18)
#define CHANGES_BYTES	  4096
#define TRANSFER_FLOOR_NS 5000
#define END_SPREAD_NS	  1000 /* the ranks end up to this much after each other */

enum sim_outcome { SIM_OUTCOME_WAITING, SIM_OUTCOME_END, SIM_OUTCOME_NEVER };

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

/* Collectives across processes */
static bool sim_ranks_is_on(void)
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

/* Reads the kernel's arguments, and numbers this launch. */
static CUresult sim_collective_begin(const char *kernel, void **params, struct sim_collective *out)
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

/* Publishes the start. */
static void sim_collective_arrive(struct sim_collective *collective, uint64_t start_ns)
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

/* With SIM_OUTCOME_END, sets the end and awaited_*. */
static enum sim_outcome sim_collective_outcome(struct sim_collective *collective,
					       uint64_t *end_out_ns)
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

/* The ranks that have not arrived, such as "1,3", or "-". The caller frees it. NULL: no memory. */
static char *sim_collective_absent(const struct sim_collective *collective)
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

#define CHECK_PERIOD_NS 10000000 /* how often to look for dead ranks and the time limit */

enum kind { KIND_KERNEL, KIND_TRANSFER, KIND_HOST, KIND_COLLECTIVE, KIND_EVENT, KIND_WAIT };

/* One record of an event. */
struct sim_mark {
	uint32_t references;
	bool is_known;
	uint64_t done_ns;
};

struct item {
	enum kind kind;
	CUstream stream;
	uint64_t earliest_ns;
	uint64_t duration_ns;
	bool is_set; /* a transfer: a memset */
	union {
		struct sim_kernel_run kernel;
		struct sim_memory_run transfer;
		struct {
			CUhostFn function;
			void *user_data;
		} host;
	};
	struct sim_collective collective;
	struct sim_mark *mark;
	struct item *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct item *items; /* oldest first; under lock, as all below that is not atomic */
static struct item **items_end = &items;
static uint64_t pass_count;
static bool is_started; /* the thread */
static _Atomic uint64_t item_count;
static _Atomic CUresult failure;

static bool is_blocking(CUstream stream)
{
	return !stream->is_legacy && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

CUresult sim_deferred_failure(void)
{
	return atomic_load_explicit(&failure, memory_order_acquire);
}

bool sim_is_deferred(CUstream stream)
{
	CUcontext context = stream->context;

	if (!atomic_load_explicit(&item_count, memory_order_acquire))
		return false;
	return atomic_load(&stream->deferred_count) ||
	       (stream->is_legacy && atomic_load(&context->blocking_deferred_count)) ||
	       (is_blocking(stream) && atomic_load(&context->legacy.deferred_count));
}

static void count(CUstream stream, int change)
{
	atomic_fetch_add(&stream->deferred_count, change);
	atomic_fetch_add(&stream->context->deferred_count, change);
	if (is_blocking(stream))
		atomic_fetch_add(&stream->context->blocking_deferred_count, change);
	atomic_fetch_add(&item_count, (uint64_t)change);
}

static void mark_release(struct sim_mark *mark)
{
	if (mark && --mark->references == 0)
		free(mark);
}

/* Has this pass left earlier work on the stream, or on one that it implicitly waits for? */
static bool is_blocked(CUstream stream)
{
	CUcontext context = stream->context;

	return stream->blocked_pass == pass_count ||
	       (stream->is_legacy && context->blocking_blocked_pass == pass_count) ||
	       (is_blocking(stream) && context->legacy.blocked_pass == pass_count);
}

static void block(CUstream stream)
{
	stream->blocked_pass = pass_count;
	if (is_blocking(stream))
		stream->context->blocking_blocked_pass = pass_count;
}

static uint64_t start_of(const struct item *item)
{
	uint64_t done_ns = sim_stream_done_ns(item->stream);

	return done_ns > item->earliest_ns ? done_ns : item->earliest_ns;
}

static enum sim_outcome place_collective(struct item *item)
{
	struct sim_collective *collective = &item->collective;
	enum sim_outcome outcome;
	uint64_t end_ns;

	if (!collective->start_ns)
		sim_collective_arrive(collective, start_of(item));
	outcome = sim_collective_outcome(collective, &end_ns);
	if (outcome != SIM_OUTCOME_END)
		return outcome;
	item->kernel.span = sim_stream_place_at(item->stream, collective->start_ns,
						end_ns - collective->start_ns);
	if (sim_truth_is_on())
		sim_truth_collective(&item->kernel, collective, NULL);
	sim_kernel_deliver(&item->kernel);
	return outcome;
}

static enum sim_outcome place(struct item *item)
{
	struct sim_span span;

	switch (item->kind) {
	case KIND_COLLECTIVE:
		return place_collective(item);
	case KIND_KERNEL:
		item->kernel.span =
			sim_stream_place_at(item->stream, item->earliest_ns, item->duration_ns);
		sim_kernel_deliver(&item->kernel);
		break;
	case KIND_TRANSFER:
		item->transfer.span =
			sim_stream_place_at(item->stream, item->earliest_ns, item->duration_ns);
		sim_transfer_deliver(&item->transfer, item->is_set);
		break;
	case KIND_HOST:
		span = sim_stream_place_at(item->stream, item->earliest_ns, 0);
		sim_host_queue(item->stream, item->host.function, item->host.user_data,
			       span.start_ns);
		break;
	case KIND_EVENT:
		item->mark->done_ns = start_of(item);
		item->mark->is_known = true;
		break;
	case KIND_WAIT:
		if (!item->mark->is_known)
			return SIM_OUTCOME_WAITING;
		sim_stream_raise(item->stream, item->mark->done_ns);
		break;
	}
	return SIM_OUTCOME_END;
}

static void release(struct item *item)
{
	count(item->stream, -1);
	mark_release(item->mark);
	free(item);
}

/* Work that never ends has the end 0, and no start unless it is a collective that has begun. */
static void report_unfinished(struct item *item)
{
	char *absent;

	switch (item->kind) {
	case KIND_COLLECTIVE:
		item->kernel.span.start_ns = item->collective.start_ns;
		absent = sim_collective_absent(&item->collective);
		sim_truth_collective(&item->kernel, &item->collective, absent ? absent : "?");
		sim_truth_kernel(&item->kernel);
		break;
	case KIND_KERNEL:
		sim_truth_kernel(&item->kernel);
		break;
	case KIND_TRANSFER:
		sim_truth_transfer(&item->transfer, item->is_set);
		break;
	case KIND_HOST:
	case KIND_EVENT:
	case KIND_WAIT:
		break;
	}
}

static void discard_all(void)
{
	while (items) {
		struct item *item = items;

		items = item->next;
		if (sim_truth_is_on())
			report_unfinished(item);
		if (item->kind == KIND_HOST)
			sim_host_forget(item->stream);
		if (item->kind == KIND_EVENT)
			item->mark->is_known = true;
		release(item);
	}
	items_end = &items;
}

static void fail(const struct item *item)
{
	char *absent = sim_collective_absent(&item->collective);

	fprintf(stderr, "xtrace simulated GPU: %s never ends: no arrival of rank %s\n",
		item->kernel.name, absent ? absent : "?");
	free(absent);
	atomic_store(&failure, CUDA_ERROR_LAUNCH_TIMEOUT);
	discard_all();
}

/* Places what is known. Under lock. */
static void run_pass(void)
{
	struct item **position = &items;
	bool has_progress = false;

	pass_count++;
	while (*position) {
		struct item *item = *position;
		enum sim_outcome outcome =
			is_blocked(item->stream) ? SIM_OUTCOME_WAITING : place(item);

		if (outcome == SIM_OUTCOME_NEVER) {
			fail(item);
			pthread_cond_broadcast(&changed);
			return;
		}
		if (outcome == SIM_OUTCOME_WAITING) {
			block(item->stream);
			position = &item->next;
			continue;
		}
		*position = item->next;
		release(item);
		has_progress = true;
	}
	items_end = position;
	if (has_progress)
		pthread_cond_broadcast(&changed);
}

static void *watch(void *unused)
{
	static const struct timespec period = {.tv_nsec = CHECK_PERIOD_NS};

	for (;;) {
		uint32_t seen;

		pthread_mutex_lock(&lock);
		while (!items)
			pthread_cond_wait(&changed, &lock);
		seen = atomic_load(changes);
		run_pass();
		pthread_mutex_unlock(&lock);
		syscall(SYS_futex, changes, FUTEX_WAIT, seen, &period, NULL, 0);
	}
	return unused;
}

static struct item *item_make(enum kind kind, CUstream stream, uint64_t earliest_ns)
{
	struct item *item = sim_alloc(sizeof(*item), "deferred work");

	item->kind = kind;
	item->stream = stream;
	item->earliest_ns = earliest_ns;
	return item;
}

/* Under lock. */
static void deferred_append(struct item *item)
{
	*items_end = item;
	items_end = &item->next;
	count(item->stream, 1);
	run_pass();
	if (items && !is_started)
		is_started = !sim_start_thread(watch);
	if (items)
		pthread_cond_broadcast(&changed);
}

/* Waits while too much is deferred on the stream. */
static void lock_with_place(CUstream stream)
{
	pthread_mutex_lock(&lock);
	while (atomic_load(&stream->deferred_count) >= SIM_QUEUE_DEPTH)
		pthread_cond_wait(&changed, &lock);
}

static void defer(struct item *item)
{
	lock_with_place(item->stream);
	deferred_append(item);
	pthread_mutex_unlock(&lock);
}

void sim_defer_kernel(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns,
		      const struct sim_kernel_run *run)
{
	struct item *item = item_make(KIND_KERNEL, stream, earliest_ns);

	item->duration_ns = duration_ns;
	item->kernel = *run;
	defer(item);
}

void sim_defer_transfer(CUstream stream, uint64_t earliest_ns, uint64_t duration_ns,
			const struct sim_memory_run *run, bool is_set)
{
	struct item *item = item_make(KIND_TRANSFER, stream, earliest_ns);

	item->duration_ns = duration_ns;
	item->transfer = *run;
	item->is_set = is_set;
	defer(item);
}

void sim_defer_host(CUstream stream, uint64_t earliest_ns, CUhostFn function, void *user_data)
{
	struct item *item = item_make(KIND_HOST, stream, earliest_ns);

	item->host.function = function;
	item->host.user_data = user_data;
	sim_host_expect(stream);
	defer(item);
}

CUresult sim_defer_collective(CUstream stream, uint64_t earliest_ns,
			      const struct sim_kernel_run *run, void **params)
{
	struct item *item = item_make(KIND_COLLECTIVE, stream, earliest_ns);
	CUresult result;

	item->kernel = *run;
	lock_with_place(stream);
	result = sim_collective_begin(run->name, params, &item->collective);
	if (result)
		free(item);
	else
		deferred_append(item);
	pthread_mutex_unlock(&lock);
	return result;
}

void sim_defer_event(CUstream stream, CUevent event)
{
	struct item *item = item_make(KIND_EVENT, stream, sim_now_ns());
	struct sim_mark *mark = sim_alloc(sizeof(*mark), "an event");

	mark->references = 2; /* the item and the event */
	item->mark = mark;
	lock_with_place(stream);
	mark_release(event->mark);
	event->mark = mark;
	deferred_append(item);
	pthread_mutex_unlock(&lock);
}

/* Moves a known time to the event. Under lock. */
static bool is_mark_pending(CUevent event)
{
	struct sim_mark *mark = event->mark;

	if (!mark)
		return false;
	if (!mark->is_known)
		return true;
	atomic_store(&event->done_ns, mark->done_ns);
	event->mark = NULL;
	mark_release(mark);
	return false;
}

bool sim_event_is_deferred(CUevent event)
{
	bool is_pending;

	if (!sim_ranks_is_on())
		return false;
	pthread_mutex_lock(&lock);
	is_pending = is_mark_pending(event);
	pthread_mutex_unlock(&lock);
	return is_pending;
}

void sim_event_forget(CUevent event)
{
	if (!sim_ranks_is_on())
		return;
	pthread_mutex_lock(&lock);
	mark_release(event->mark);
	event->mark = NULL;
	pthread_mutex_unlock(&lock);
}

bool sim_defer_wait(CUstream stream, CUevent event)
{
	struct item *item;
	bool is_pending;

	if (!sim_ranks_is_on())
		return false;
	lock_with_place(stream);
	is_pending = is_mark_pending(event);
	if (!is_pending && !sim_is_deferred(stream)) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	item = item_make(KIND_WAIT, stream, 0);
	if (is_pending) {
		item->mark = event->mark;
		item->mark->references++;
	} else {
		item->mark = sim_alloc(sizeof(*item->mark), "an event");
		*item->mark = (struct sim_mark){1, true, atomic_load(&event->done_ns)};
	}
	deferred_append(item);
	pthread_mutex_unlock(&lock);
	return true;
}

void sim_deferred_wait(CUstream stream)
{
	if (!sim_is_deferred(stream))
		return;
	pthread_mutex_lock(&lock);
	while (sim_is_deferred(stream))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void sim_deferred_wait_context(CUcontext context)
{
	if (!atomic_load(&context->deferred_count))
		return;
	pthread_mutex_lock(&lock);
	while (atomic_load(&context->deferred_count))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void sim_deferred_wait_event(CUevent event)
{
	if (!sim_ranks_is_on())
		return;
	pthread_mutex_lock(&lock);
	while (is_mark_pending(event))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void sim_stream_drain(CUstream stream)
{
	sim_deferred_wait(stream);
	sim_host_drain(stream->is_legacy ? NULL : stream, stream->context);
	sim_wait_until(sim_stream_done_ns(stream));
}

void sim_context_drain(CUcontext context)
{
	sim_deferred_wait_context(context);
	sim_host_drain(NULL, context);
	sim_wait_until(atomic_load_explicit(&context->tail_ns, memory_order_relaxed));
}

/*
 * Reports what is deferred to the ground truth, which is written after this. In a forked child, a
 * thread that does not exist may hold the lock.
 */
__attribute__((destructor)) static void abandon(void)
{
	if (!sim_is_ready())
		return;
	pthread_mutex_lock(&lock);
	discard_all();
	pthread_mutex_unlock(&lock);
}
