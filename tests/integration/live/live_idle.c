/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_idle LOG [steps]: prints busy and idle time by cause, added up over all GPUs, as the live
 * view counts them. With `steps`, the log is read as if the process were running: after each chunk,
 * all events that have ended are in the log. Checks then that no sum ever decreases, and that busy
 * and idle time never exceed the elapsed time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/totals.h"

#define CHUNKS_MAX 100000

static uint64_t before_ns[LIVE_GPUS][IDLE_CLASSES];

static void fail(const char *what, unsigned gpu)
{
	printf("GPU %u: %s\n", gpu, what);
	exit(1);
}

static void check_gpu(const struct live_gpu *gpu, unsigned number, uint64_t now_ns)
{
	uint64_t sum_ns = 0;

	for (int c = 0; c < IDLE_CLASSES; c++) {
		if (gpu->idle.ns[c] < before_ns[number][c])
			fail("an idle time has decreased", number);
		before_ns[number][c] = gpu->idle.ns[c];
		sum_ns += gpu->idle.ns[c];
	}
	if (gpu->idle.begin_ns && sum_ns + gpu->busy.covered_ns > now_ns - gpu->idle.begin_ns)
		fail("busy and idle time exceed the elapsed time", number);
}

/* The end of the first event of a chunk; UINT64_MAX: it has none. */
static uint64_t first_end_ns(const struct xt_chunk *chunk)
{
	static const unsigned columns[XT_KIND_COUNT][2] = {
		[XT_KIND_CALL] = {XT_CALL_ENTER_NS, XT_CALL_DURATION_NS},
		[XT_KIND_KERNEL] = {XT_KERNEL_START_NS, XT_KERNEL_DURATION_NS},
		[XT_KIND_COPY] = {XT_COPY_START_NS, XT_COPY_DURATION_NS},
		[XT_KIND_SET] = {XT_SET_START_NS, XT_SET_DURATION_NS},
	};
	const unsigned *column = columns[xt_chunk_kind(chunk)];
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t r = 0; column[0] && r < xt_chunk_rows(chunk); r++) {
		uint64_t end_ns =
			xt_chunk_u64(chunk, column[0])[r] + xt_chunk_u64(chunk, column[1])[r];

		if (end_ns < first_ns)
			first_ns = end_ns;
	}
	return first_ns;
}

/* For each chunk, the time before which all events are in it or in earlier chunks. */
static void find_times(const char *path, uint64_t *times_ns)
{
	const struct xt_chunk *chunk;
	struct xt_reader *reader;
	size_t count = 0;

	if (xt_reader_open(path, &reader) != XT_OPEN_OK)
		exit(1);
	while ((chunk = xt_reader_next(reader, live_totals_kinds())) && count < CHUNKS_MAX)
		times_ns[count++] = first_end_ns(chunk);
	for (uint64_t next_ns = UINT64_MAX; count--;) {
		uint64_t own_ns = times_ns[count];

		times_ns[count] = next_ns;
		next_ns = own_ns < next_ns ? own_ns : next_ns;
	}
	xt_reader_close(reader);
}

static void step(struct live_totals *totals, uint64_t until_ns)
{
	uint64_t now_ns;

	if (until_ns == UINT64_MAX)
		return;
	totals->clock_ns = until_ns + LIVE_DELIVERY_NS;
	live_totals_advance(totals);
	now_ns = totals->gaps.newest_ns > until_ns ? totals->gaps.newest_ns : until_ns;
	for (unsigned g = 0; g < LIVE_GPUS; g++)
		if (totals->gpus[g])
			check_gpu(totals->gpus[g], g, now_ns);
}

static void print(const struct live_totals *totals)
{
	uint64_t busy_ns = 0, idle_ns[IDLE_CLASSES] = {0};

	for (unsigned g = 0; g < LIVE_GPUS; g++) {
		if (!totals->gpus[g])
			continue;
		busy_ns += totals->gpus[g]->busy.covered_ns;
		for (int c = 0; c < IDLE_CLASSES; c++)
			idle_ns[c] += totals->gpus[g]->idle.ns[c];
	}
	printf("busy %" PRIu64 "\n", busy_ns);
	for (int c = 0; c < IDLE_CLASSES; c++)
		printf("%s %" PRIu64 "\n", idle_labels[c], idle_ns[c]);
}

int main(int argc, char **argv)
{
	bool steps = argc > 2 && !strcmp(argv[2], "steps");
	static uint64_t times_ns[CHUNKS_MAX];
	size_t count = 0;
	struct live_totals totals = {0};
	const struct xt_chunk *chunk;
	struct xt_reader *reader;

	if (argc < 2 || xt_reader_open(argv[1], &reader) != XT_OPEN_OK)
		return 1;
	if (steps)
		find_times(argv[1], times_ns);
	while ((chunk = xt_reader_next(reader, live_totals_kinds()))) {
		if (live_totals_add(&totals, chunk))
			return 1;
		if (steps)
			step(&totals, times_ns[count++]);
	}
	live_totals_finish(&totals);
	print(&totals);
	live_totals_free(&totals);
	xt_reader_close(reader);
	return 0;
}
