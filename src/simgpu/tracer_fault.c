/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault injection, for tests of a tracer whose CUPTI fails.
 *
 * XTRACE_SIMGPU_FAULT is a list of names from the table below, separated by commas, some with
 * `:value`. It is read when the library is opened. At exit, the number of times that each active
 * fault was consulted is appended to the file that XTRACE_SIMGPU_FAULT_REPORT names. A test that
 * fails the first call, then the second, and so on, uses this number as its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/tracer.h"

static struct {
	const char *name;
	uint64_t value; /* default, then the given value */
	bool is_on;
	const char *text; /* the text after the colon */
	_Atomic uint64_t asked_count;
} faults[FAULTS] = {
	/* every n-th record, by default every one */
	[FAULT_ZERO_TIMES] = {"zero_times", 1, false, NULL, 0},
	[FAULT_REVERSED_TIMES] = {"reversed_times", 1, false, NULL, 0},
	[FAULT_DROP_RECORDS] = {"drop_records", 1, false, NULL, 0},
	/* every n-th buffer is never returned */
	[FAULT_LOST_BUFFERS] = {"lost_buffers", 1, false, NULL, 0},
	/* every n-th buffer claims more data than fits in it, or is returned twice */
	[FAULT_LONG_BUFFERS] = {"long_buffers", 1, false, NULL, 0},
	[FAULT_TWICE_BUFFERS] = {"twice_buffers", 1, false, NULL, 0},
	/* buffers are returned this many ms late */
	[FAULT_LATE_BUFFERS] = {"late_buffers", 500, false, NULL, 0},
	/* flushing never returns */
	[FAULT_HANG_FLUSH] = {"hang_flush", 0, false, NULL, 0},
	/* the first disabling of a kind takes this many ms, during which it stays enabled */
	[FAULT_SLOW_DISABLE] = {"slow_disable", 1500, false, NULL, 0},
	/* the version that cuptiGetVersion() reports */
	[FAULT_VERSION] = {"version", 10, false, NULL, 0},
	/* another tool has subscribed */
	[FAULT_SUBSCRIBER_TAKEN] = {"subscriber_taken", 0, false, NULL, 0},
	/* the driver allows profiling for administrators only */
	[FAULT_NOT_PERMITTED] = {"not_permitted", 0, false, NULL, 0},
	/* every call of the named function fails; with a second `:N`, only its N-th call */
	[FAULT_FAIL] = {"fail", 0, false, NULL, 0},
	/* the n-th call of any function fails, once */
	[FAULT_NTH_FAIL] = {"nth_fail", 1, false, NULL, 0},
};

static void turn_on(const char *name, char *value)
{
	for (int i = 0; i < FAULTS; i++) {
		if (strcmp(faults[i].name, name))
			continue;
		faults[i].is_on = true;
		faults[i].text = value;
		if (i == FAULT_FAIL)
			value = value ? strchr(value, ':') : NULL;
		if (i == FAULT_FAIL && value)
			*value++ = '\0';
		if (value)
			faults[i].value = strtoull(value, NULL, 10);
		if (!faults[i].value && i != FAULT_FAIL)
			faults[i].value = 1;
		return;
	}
	fprintf(stderr, "xtrace simulated GPU: XTRACE_SIMGPU_FAULT: no fault is named %s\n", name);
}

__attribute__((constructor(101))) static void read_environment(void)
{
	const char *text = getenv("XTRACE_SIMGPU_FAULT");
	static char copy[512]; /* the names in `text` point into it */
	char *rest = copy;
	char *item;

	if (!text)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, ","))) {
		char *value = strchr(item, ':');

		if (value)
			*value++ = '\0';
		if (*item)
			turn_on(item, value);
	}
}

bool tracer_fault_is_on(enum tracer_fault fault)
{
	return faults[fault].is_on;
}

uint64_t tracer_fault_value(enum tracer_fault fault)
{
	return faults[fault].value;
}

bool tracer_fault_strikes(enum tracer_fault fault)
{
	if (!faults[fault].is_on)
		return false;
	return (atomic_fetch_add(&faults[fault].asked_count, 1) + 1) % faults[fault].value == 0;
}

/* True for the N-th call, or for every call if the value is 0. */
static bool is_its_turn(enum tracer_fault fault)
{
	uint64_t count = atomic_fetch_add(&faults[fault].asked_count, 1) + 1;

	return !faults[fault].value || count == faults[fault].value;
}

bool tracer_fault_fails(const char *function)
{
	if (faults[FAULT_FAIL].is_on && faults[FAULT_FAIL].text &&
	    !strcmp(faults[FAULT_FAIL].text, function) && is_its_turn(FAULT_FAIL))
		return true;
	return faults[FAULT_NTH_FAIL].is_on && is_its_turn(FAULT_NTH_FAIL);
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("XTRACE_SIMGPU_FAULT_REPORT");
	FILE *file = path ? fopen(path, "ae") : NULL;

	if (!file)
		return;
	for (int i = 0; i < FAULTS; i++)
		if (faults[i].is_on)
			fprintf(file, "%s %llu\n", faults[i].name,
				(unsigned long long)atomic_load(&faults[i].asked_count));
	fclose(file);
}
