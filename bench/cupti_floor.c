/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of CUPTI alone. This injected library requests the same from CUPTI as xtrace
 * does, and discards it. The difference to xtrace is the cost of xtrace.
 *
 * It uses the same libcupti, buffer sizes, attributes, flushes and callback ids, but takes no
 * stacks and writes no log. XTRACE_BENCH_FLOOR selects a level:
 *
 *	kernel    kernel activity only
 *	callback  plus an empty callback at the calls of XTRACE_API=work
 *	work      plus the records of copies, memsets and memory
 *	api-all   like callback, at the calls of XTRACE_API=all
 *
 * XTRACE_BENCH_FLOOR_API=PREFIX (cuEvent, cuGraph, cuStream, …) limits api-all to launches and
 * functions with that prefix, to show which ones are expensive. XTRACE_BENCH_FLOOR_BUFFER_KIB
 * changes the buffer size.
 *
 * At exit, the number of records is written to the file that XTRACE_BENCH_FLOOR_COUNT names. A run
 * without records is not a valid measurement.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "inject/cupti/activity.h"
#include "inject/cupti/cupti.h"
#include "inject/runtime/clock.h"

#define BUFFERS		 256
#define POOL_BYTES	 (64u << 20) /* limit of the pool, if buffers are large */
#define EXIT_PATIENCE_NS UINT64_C(2000000000)
#define PERIOD_NS	 (50 * 1000000)

/* The driver's entry point; returns 1 for success. */
__attribute__((visibility("default"))) int InitializeInjection(void);

static const struct floor {
	const char *name;
	bool has_callbacks;
	enum api_level level; /* the API level */
	bool has_work;
} floors[] = {{"kernel", false, API_LEVEL_LAUNCH, false},
	      {"callback", true, API_LEVEL_WORK, false},
	      {"work", true, API_LEVEL_WORK, true},
	      {"api-all", true, API_LEVEL_ALL, false}};
#define FLOORS (sizeof(floors) / sizeof(*floors))

enum buffer_state { BUFFER_FREE, BUFFER_AT_CUPTI, BUFFER_COMPLETED };

static struct {
	uint8_t *data;
	size_t valid_bytes;
	atomic_uint state; /* enum buffer_state */
} buffers[BUFFERS];

static _Alignas(64) uint8_t discard_data[64 << 10];
static size_t buffer_bytes = ACTIVITY_DATA_BYTES;
static int buffer_count = BUFFERS;
static atomic_bool stopping, done;
static atomic_uint_fast64_t record_count, discarded_count;

static void nothing(void *userdata, uint32_t domain, uint32_t cbid, const void *cbdata)
{
	(void)userdata, (void)domain, (void)cbid, (void)cbdata;
}

static void requested(uint8_t **buffer_out, size_t *bytes_out, size_t *max_records_out)
{
	*max_records_out = 0;
	for (int i = 0; i < buffer_count; i++) {
		unsigned expected = BUFFER_FREE;

		if (!atomic_compare_exchange_strong(&buffers[i].state, &expected, BUFFER_AT_CUPTI))
			continue;
		*buffer_out = buffers[i].data;
		*bytes_out = buffer_bytes;
		return;
	}
	atomic_fetch_add(&discarded_count, 1);
	*buffer_out = discard_data;
	*bytes_out = sizeof(discard_data);
}

static void completed(void *context, uint32_t stream_id, uint8_t *buffer, size_t bytes,
		      size_t valid_bytes)
{
	(void)context, (void)stream_id, (void)bytes;
	for (int i = 0; i < buffer_count; i++) {
		if (buffers[i].data != buffer)
			continue;
		buffers[i].valid_bytes = valid_bytes;
		atomic_store(&buffers[i].state, BUFFER_COMPLETED);
	}
}

/* Counts the records and makes the buffers available again. */
static void drain(void)
{
	for (int i = 0; i < buffer_count; i++) {
		struct cupti_activity *record = NULL;

		if (atomic_load(&buffers[i].state) != BUFFER_COMPLETED)
			continue;
		while (cupti.cuptiActivityGetNextRecord(buffers[i].data, buffers[i].valid_bytes,
							&record) == XT_CUPTI_SUCCESS)
			atomic_fetch_add(&record_count, 1);
		memset(buffers[i].data, 0, buffers[i].valid_bytes);
		atomic_store(&buffers[i].state, BUFFER_FREE);
	}
}

static void *flush_and_drain(void *unused)
{
	const struct timespec nap = {0, 2000000};
	uint64_t last_ns = monotonic_ns();

	while (!atomic_load(&stopping)) {
		nanosleep(&nap, NULL);
		if (monotonic_ns() - last_ns >= PERIOD_NS) {
			cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
			last_ns = monotonic_ns();
		}
		drain();
	}
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_COMPLETED);
	cupti.cuptiActivityFlushAll(XT_CUPTI_FLUSH_FORCED);
	drain();
	atomic_store(&done, true);
	return unused;
}

static void at_exit(void)
{
	const char *path = getenv("XTRACE_BENCH_FLOOR_COUNT");
	const struct timespec nap = {0, 500000};
	uint64_t begin_ns = monotonic_ns();
	FILE *file;

	/* A flush may hang. */
	atomic_store(&stopping, true);
	while (!atomic_load(&done) && monotonic_ns() - begin_ns < EXIT_PATIENCE_NS)
		nanosleep(&nap, NULL);
	file = path ? fopen(path, "w") : NULL;
	if (!file)
		return;
	fprintf(file, "%llu %llu\n", (unsigned long long)atomic_load(&record_count),
		(unsigned long long)atomic_load(&discarded_count));
	fclose(file);
}

static int make_buffers(void)
{
	const char *asked = getenv("XTRACE_BENCH_FLOOR_BUFFER_KIB");
	uint8_t *memory;

	if (asked)
		buffer_bytes = strtoul(asked, NULL, 10) << 10;
	if (BUFFERS * buffer_bytes > POOL_BYTES)
		buffer_count = (int)(POOL_BYTES / buffer_bytes);
	memory = mmap(NULL, (size_t)buffer_count * buffer_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	for (int i = 0; i < buffer_count; i++)
		buffers[i].data = memory + (size_t)i * buffer_bytes;
	return 0;
}

/* Returns whether XTRACE_API=work excludes the call and the prefix does not select it. */
static bool is_left_out(const struct recorded_api *api)
{
	const char *asked = getenv("XTRACE_BENCH_FLOOR_API");

	if (!asked || api->class == XT_API_LAUNCH || api->class == XT_API_GRAPH_LAUNCH)
		return false;
	return strncmp(api->name, asked, strlen(asked)) != 0;
}

static int enable_callbacks(enum api_level level)
{
	void *subscriber;

	if (cupti.cuptiSubscribe(&subscriber, nothing, NULL) || api_table_fill(level))
		return -1;
	for (uint32_t i = 0; i < recorded_apis.count; i++)
		if (!is_left_out(&recorded_apis.apis[i]))
			cupti.cuptiEnableCallback(1, subscriber, recorded_apis.apis[i].id >> 16,
						  recorded_apis.apis[i].id & 0xffff);
	return 0;
}

static int start(const struct floor *floor, char *why, size_t why_bytes)
{
	static const uint32_t work_kinds[] = {XT_CUPTI_ACTIVITY_MEMCPY, XT_CUPTI_ACTIVITY_MEMCPY2,
					      XT_CUPTI_ACTIVITY_MEMSET, XT_CUPTI_ACTIVITY_MEMORY2};
	const char *asked = getenv("XTRACE_CUPTI");
	uint8_t yes = 1;
	size_t yes_bytes = sizeof(yes);
	pthread_t thread;

	if (cupti_open(asked ? asked : "", why, why_bytes))
		return -1;
	snprintf(why, why_bytes, "CUPTI refuses");
	if (cupti.cuptiActivitySetAttribute)
		cupti.cuptiActivitySetAttribute(XT_CUPTI_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
						&yes_bytes, &yes);
	if (make_buffers() || cupti.cuptiActivityRegisterTimestampCallback(monotonic_ns) ||
	    cupti.cuptiActivityRegisterCallbacks(requested, completed) ||
	    cupti.cuptiActivityEnable(XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL))
		return -1;
	for (size_t i = 0; i < sizeof(work_kinds) / sizeof(*work_kinds); i++)
		if (floor->has_work)
			cupti.cuptiActivityEnable(work_kinds[i]);
	if (floor->has_callbacks && enable_callbacks(floor->level))
		return -1;
	if (pthread_create(&thread, NULL, flush_and_drain, NULL))
		return -1;
	pthread_detach(thread);
	atexit(at_exit);
	return 0;
}

int InitializeInjection(void)
{
	static atomic_flag entered = ATOMIC_FLAG_INIT;
	const char *asked = getenv("XTRACE_BENCH_FLOOR");
	char why[2048] = "XTRACE_BENCH_FLOOR is none of kernel, callback, work, api-all";
	int rc = -1;

	if (atomic_flag_test_and_set(&entered))
		return 1;
	for (size_t f = 0; asked && f < FLOORS; f++)
		if (!strcmp(asked, floors[f].name))
			rc = start(&floors[f], why, sizeof(why));
	if (rc)
		fprintf(stderr, "cupti_floor: %s\n", why);
	return 1;
}
