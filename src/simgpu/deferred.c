/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work whose place on the timeline is not known when it is enqueued: collectives, and everything
 * ordered after them. It waits in one queue, in the order of the calls. A pass over the queue
 * places what has become known. Calls that enqueue run one; a thread, started with the first
 * collective, runs one whenever another process has arrived at a collective.
 *
 * If a collective can never end, all that is deferred is unfinished, and later calls fail.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "simgpu/ranks.h"

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
		(item->is_set ? sim_truth_set : sim_truth_copy)(&item->transfer);
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
	for (;;) {
		uint32_t seen;

		pthread_mutex_lock(&lock);
		while (!items)
			pthread_cond_wait(&changed, &lock);
		seen = sim_ranks_changes();
		run_pass();
		pthread_mutex_unlock(&lock);
		sim_ranks_wait(seen, CHECK_PERIOD_NS);
	}
	return unused;
}

/* Under lock. */
static void start_watch(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	is_started = !pthread_create(&thread, &attributes, watch, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static struct item *item_make(enum kind kind, CUstream stream, uint64_t earliest_ns)
{
	struct item *item = calloc(1, sizeof(*item));

	if (!item) {
		fputs("xtrace simulated GPU: no memory for deferred work\n", stderr);
		abort();
	}
	item->kind = kind;
	item->stream = stream;
	item->earliest_ns = earliest_ns;
	return item;
}

/* Under lock. */
static void append(struct item *item)
{
	*items_end = item;
	items_end = &item->next;
	count(item->stream, 1);
	run_pass();
	if (items && !is_started)
		start_watch();
	if (items)
		pthread_cond_broadcast(&changed);
}

/* Waits while too much is deferred on the stream. */
static void lock_with_room(CUstream stream)
{
	pthread_mutex_lock(&lock);
	while (atomic_load(&stream->deferred_count) >= SIM_QUEUE_DEPTH)
		pthread_cond_wait(&changed, &lock);
}

static void defer(struct item *item)
{
	lock_with_room(item->stream);
	append(item);
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
	lock_with_room(stream);
	result = sim_collective_begin(run->name, params, &item->collective);
	if (result)
		free(item);
	else
		append(item);
	pthread_mutex_unlock(&lock);
	return result;
}

void sim_defer_event(CUstream stream, CUevent event)
{
	struct item *item = item_make(KIND_EVENT, stream, sim_now_ns());
	struct sim_mark *mark = calloc(1, sizeof(*mark));

	if (!mark) {
		fputs("xtrace simulated GPU: no memory for an event\n", stderr);
		abort();
	}
	mark->references = 2; /* the item and the event */
	item->mark = mark;
	lock_with_room(stream);
	mark_release(event->mark);
	event->mark = mark;
	append(item);
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
	lock_with_room(stream);
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
		item->mark = calloc(1, sizeof(*item->mark));
		if (!item->mark)
			abort();
		*item->mark = (struct sim_mark){1, true, atomic_load(&event->done_ns)};
	}
	append(item);
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

void sim_deferred_wait_context(CUcontext context)
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
