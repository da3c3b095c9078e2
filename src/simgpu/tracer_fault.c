/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misbehaviour on demand, for tests of what a tracer does when CUPTI fails it.
 *
 * XTRACE_SIMGPU_FAULT is a list, separated by commas, of names from the table below, each with
 * `:value` where one is wanted. It is read when the library is opened. At exit, how often each
 * fault that is on was asked for is added to the file that XTRACE_SIMGPU_FAULT_REPORT names: a test
 * that has the first call fail, then the second and so on learns when it has come to the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/tracer.h"

static struct {
	const char *name;
	uint64_t value; /* default, then as given */
	bool is_on;
	const char *text; /* as given after the colon */
	_Atomic uint64_t asked_count;
} faults[FAULTS] = {
	/* every n-th record, default every one */
	[FAULT_ZERO_TIMES] = {"zero_times", 1, false, NULL, 0},
	[FAULT_REVERSED_TIMES] = {"reversed_times", 1, false, NULL, 0},
	[FAULT_DROP_RECORDS] = {"drop_records", 1, false, NULL, 0},
	/* every n-th buffer is never given back */
	[FAULT_LOST_BUFFERS] = {"lost_buffers", 1, false, NULL, 0},
	/* every n-th buffer is said to hold more than there is room in it, or given back twice */
	[FAULT_LONG_BUFFERS] = {"long_buffers", 1, false, NULL, 0},
	[FAULT_TWICE_BUFFERS] = {"twice_buffers", 1, false, NULL, 0},
	/* buffers are given back so many ms after they could be */
	[FAULT_LATE_BUFFERS] = {"late_buffers", 500, false, NULL, 0},
	/* flushing never returns */
	[FAULT_HANG_FLUSH] = {"hang_flush", 0, false, NULL, 0},
	/* the first time that a kind of records is turned off takes so many ms, in which it is on */
	[FAULT_SLOW_DISABLE] = {"slow_disable", 1500, false, NULL, 0},
	/* cuptiGetVersion() says so */
	[FAULT_VERSION] = {"version", 10, false, NULL, 0},
	/* another tool has subscribed */
	[FAULT_SUBSCRIBER_TAKEN] = {"subscriber_taken", 0, false, NULL, 0},
	/* the function of that name fails always; with another `:N` behind it, its N-th call does */
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

/* The call that is meant, or every one if the value is 0. */
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
