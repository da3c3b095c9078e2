/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written by the thread that starts the tracer, before the writer thread exists.
 */
#include "inject/runtime/process_identity.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/settings.h"

#define RANK_DIGITS_MAX 9  /* others are no ranks, so they are ignored */
#define JOB_BYTES_MAX	63 /* longer names of jobs are ignored */
#define DIGITS		"0123456789"
#define JOB_LETTERS	DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-."

static uint64_t identity[2];

static const struct {
	const char *name, *letters;
	size_t bytes_max;
} rank_specs[PROCESS_RANKS] = {
	{"RANK", DIGITS, RANK_DIGITS_MAX},
	{"LOCAL_RANK", DIGITS, RANK_DIGITS_MAX},
	{"WORLD_SIZE", DIGITS, RANK_DIGITS_MAX},
	{"OMPI_COMM_WORLD_RANK", DIGITS, RANK_DIGITS_MAX},
	{"PMI_RANK", DIGITS, RANK_DIGITS_MAX},
	{"SLURM_PROCID", DIGITS, RANK_DIGITS_MAX},
	{"TORCHELASTIC_RUN_ID", JOB_LETTERS, JOB_BYTES_MAX},
	{"SLURM_JOB_ID", JOB_LETTERS, JOB_BYTES_MAX},
};
static char rank_values[PROCESS_RANKS][JOB_BYTES_MAX + 1];

void process_identity_draw(void)
{
	int saved_errno = errno;

	/* Without random numbers, the moment and the pid still differ in most cases. */
	if (getrandom(identity, sizeof(identity), 0) != sizeof(identity)) {
		identity[0] = monotonic_ns() << 20 ^ (uint64_t)getpid();
		identity[1] = xt_clock_ns(CLOCK_REALTIME) ^ (uint64_t)(uintptr_t)&saved_errno << 16;
	}
	errno = saved_errno;
}

void process_identity_text(char out[PROCESS_IDENTITY_BYTES])
{
	snprintf(out, PROCESS_IDENTITY_BYTES, "%016llx%016llx", (unsigned long long)identity[0],
		 (unsigned long long)identity[1]);
}

void process_ranks_read(void)
{
	for (int i = 0; i < PROCESS_RANKS; i++) {
		const char *value = setting(rank_specs[i].name);
		size_t length = value ? strnlen(value, rank_specs[i].bytes_max + 1) : 0;

		rank_values[i][0] = '\0';
		if (length <= rank_specs[i].bytes_max && length &&
		    strspn(value, rank_specs[i].letters) == length)
			memcpy(rank_values[i], value, length + 1);
	}
}

const char *process_rank(int i, const char **name)
{
	*name = rank_specs[i].name;
	return rank_values[i];
}
