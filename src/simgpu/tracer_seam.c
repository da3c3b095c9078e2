/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver half, and implements queries for ids, names and versions, faults, the clock, and
 * the switches.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simgpu/tracer.h"

/*
 * Faults, for tests of a tracer whose CUPTI fails. XTRACE_SIMGPU_FAULT is a list of names from
 * TRACER_FAULTS, separated by commas, some with `:value`. It is read when the library is opened. At
 * exit, the number of times that each active fault was consulted is appended to the file that
 * XTRACE_SIMGPU_FAULT_REPORT names. A test that fails the first call, then the second, and so on,
 * uses this number as its end.
 */
static struct {
	const char *name;
	uint64_t value; /* default, then the given value */
	bool is_on;
	const char *text; /* the text after the colon */
	_Atomic uint64_t asked_count;
} faults[FAULTS] = {
#define FAULT(id, name, value) [FAULT_##id] = {name, value, false, NULL, 0},
	TRACER_FAULTS(FAULT)
#undef FAULT
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

static bool tracer_fault_fails(const char *function)
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

static struct sim_seam *_Atomic seam;

void tracer_seam_connect(const struct sim_tracer *tracer)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct sim_seam *found = library ? dlsym(library, SIM_SEAM_SYMBOL) : NULL;

	if (!found || found->version != SIM_SEAM_VERSION)
		return;
	atomic_store(&found->switches->deadlocks,
		     tracer_fault_is_on(FAULT_VERSION) &&
			     tracer_fault_value(FAULT_VERSION) < XT_CUPTI_OF_CUDA13_0_1);
	atomic_store(&found->switches->fails_to_grow,
		     found->switches->deadlocks &&
			     tracer_fault_value(FAULT_VERSION) >= XT_CUPTI_OF_CUDA12_9);
	atomic_store(&found->switches->is_cupti13,
		     tracer_fault_is_on(FAULT_VERSION) &&
			     tracer_fault_value(FAULT_VERSION) >= XT_CUPTI_OF_CUDA13);
	atomic_store_explicit(&found->switches->tracer, tracer, memory_order_release);
	atomic_store(&seam, found);
}

struct sim_seam *tracer_seam(void)
{
	return atomic_load_explicit(&seam, memory_order_acquire);
}

int tracer_enter(const char *function, bool is_valid)
{
	struct sim_seam *found = tracer_seam();

	if (!found || !found->usable())
		return XT_CUPTI_ERROR_NOT_INITIALIZED;
	if (tracer_fault_fails(function))
		return XT_CUPTI_ERROR_UNKNOWN;
	return is_valid ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiGetVersion(uint32_t *version_out)
{
	if (!version_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	*version_out = tracer_fault_is_on(FAULT_VERSION)
			       ? (uint32_t)tracer_fault_value(FAULT_VERSION)
			       : SIM_CUPTI_VERSION;
	return tracer_fault_fails(__func__) ? XT_CUPTI_ERROR_UNKNOWN : XT_CUPTI_SUCCESS;
}

static const struct {
	uint32_t code;
	const char *name;
} results[] = {
#define RESULT(name, value) {value, #name},
	XT_CUPTI_RESULTS(RESULT)
#undef RESULT
};

SIM_EXPORT int cuptiGetResultString(uint32_t result, const char **text_out)
{
	if (!text_out)
		return XT_CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].code == result) {
			*text_out = results[i].name;
			return XT_CUPTI_SUCCESS;
		}
	}
	*text_out = "<unknown>";
	return XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiGetErrorMessage(uint32_t result, const char **text_out)
{
	return cuptiGetResultString(result, text_out);
}

/* All launches of CUPTI, because the driver half does not have all of them. */
static const struct {
	uint32_t domain, cbid;
	const char *name;
} launches[] = {
/* clang-format off */
#define NAME(name, cbid, class) {XT_CUPTI_CB_DOMAIN_RUNTIME_API, cbid, #name},
	XT_CUPTI_RUNTIME_LAUNCHES(NAME)
#undef NAME
#define NAME(name, cbid, class) {XT_CUPTI_CB_DOMAIN_DRIVER_API, cbid, #name},
	XT_CUPTI_DRIVER_LAUNCHES(NAME)
#undef NAME
	/* clang-format on */
};

static const char *callback_name(uint32_t domain, uint32_t cbid)
{
	const struct sim_api *api =
		domain == XT_CUPTI_CB_DOMAIN_DRIVER_API ? tracer_seam()->api_by_cbid(cbid) : NULL;

	if (api)
		return api->name;
	for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++)
		if (launches[i].domain == domain && launches[i].cbid == cbid)
			return launches[i].name;
	return NULL;
}

SIM_EXPORT int cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name_out)
{
	int result = tracer_enter(__func__, name_out);

	if (result)
		return result;
	*name_out = callback_name(domain, cbid);
	return *name_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_PARAMETER;
}

SIM_EXPORT int cuptiGetContextId(void *context, uint32_t *id_out)
{
	int result = tracer_enter(__func__, id_out);
	uint32_t device_id;

	if (result)
		return result;
	return tracer_seam()->context_ids(context, id_out, &device_id)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetDeviceId(void *context, uint32_t *id_out)
{
	int result = tracer_enter(__func__, id_out);
	uint32_t context_id;

	if (result)
		return result;
	return tracer_seam()->context_ids(context, &context_id, id_out)
		       ? XT_CUPTI_SUCCESS
		       : XT_CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread_stream,
				  uint32_t *id_out)
{
	int result = tracer_enter(__func__, id_out);

	if (result)
		return result;
	*id_out = tracer_seam()->stream_id(context, stream, per_thread_stream != 0);
	return *id_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_STREAM;
}

SIM_EXPORT int cuptiGetStreamId(void *context, void *stream, uint32_t *id_out)
{
	return cuptiGetStreamIdEx(context, stream, 0, id_out);
}

#define GET_ID(function, type, member)                                                             \
	SIM_EXPORT int function(void *handle, type *id_out)                                        \
	{                                                                                          \
		int result = tracer_enter(__func__, id_out);                                       \
                                                                                                   \
		if (result)                                                                        \
			return result;                                                             \
		*id_out = tracer_seam()->member(handle);                                           \
		return *id_out ? XT_CUPTI_SUCCESS : XT_CUPTI_ERROR_INVALID_PARAMETER;              \
	}
GET_ID(cuptiGetGraphNodeId, uint64_t, graph_node_id)
GET_ID(cuptiGetGraphId, uint32_t, graph_id)
GET_ID(cuptiGetGraphExecId, uint32_t, graph_exec_id)
#undef GET_ID

SIM_EXPORT int cuptiGetLastError(void)
{
	return XT_CUPTI_SUCCESS;
}

/*
 * The clock of records. The driver half uses CLOCK_MONOTONIC. CUPTI uses nanoseconds since 1970
 * until the client registers a clock. Both clocks run at the same rate, so conversion adds a
 * constant. It is 0 if the client's clock is CLOCK_MONOTONIC.
 */
#define PROBES 16

static _Atomic int64_t offset_ns;
static _Atomic(xt_cupti_timestamp) client_clock;

static uint64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t tracer_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

static uint64_t realtime_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

/* The offset from the narrowest of several probes, because interruptions widen the others. */
static int64_t measure_offset(xt_cupti_timestamp clock)
{
	uint64_t narrowest_ns = UINT64_MAX;
	int64_t found_ns = 0;

	for (int i = 0; i < PROBES; i++) {
		uint64_t before_ns = tracer_monotonic_ns();
		uint64_t their_ns = clock();
		uint64_t after_ns = tracer_monotonic_ns();

		if (before_ns <= their_ns && their_ns <= after_ns)
			return 0;
		if (after_ns - before_ns < narrowest_ns) {
			narrowest_ns = after_ns - before_ns;
			found_ns = (int64_t)(their_ns - before_ns - narrowest_ns / 2);
		}
	}
	return found_ns;
}

__attribute__((constructor)) static void start(void)
{
	atomic_store(&offset_ns, measure_offset(realtime_ns));
}

uint64_t tracer_clock_convert(uint64_t monotonic_ns)
{
	return monotonic_ns + (uint64_t)atomic_load_explicit(&offset_ns, memory_order_relaxed);
}

static uint64_t tracer_clock_now_ns(void)
{
	xt_cupti_timestamp clock = atomic_load(&client_clock);

	return clock ? clock() : tracer_clock_convert(tracer_monotonic_ns());
}

SIM_EXPORT int cuptiActivityRegisterTimestampCallback(xt_cupti_timestamp clock)
{
	int result = tracer_enter(__func__, clock);

	if (result)
		return result;
	atomic_store(&offset_ns, measure_offset(clock));
	atomic_store(&client_clock, clock);
	return XT_CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiGetTimestamp(uint64_t *timestamp_out)
{
	int result = tracer_enter(__func__, timestamp_out);

	if (result)
		return result;
	*timestamp_out = tracer_clock_now_ns();
	return XT_CUPTI_SUCCESS;
}

/*
 * The callbacks and API records that the client wants. The driver half's switches follow from them.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool driver_wanted[SIM_DRIVER_CBIDS];
static _Atomic bool runtime_wanted[SIM_DRIVER_CBIDS]; /* stored, but never delivered */
static _Atomic bool resource_wanted[SIM_RESOURCE_CBIDS];
static _Atomic bool other_wanted[SIM_RESOURCE_CBIDS];
static _Atomic bool api_records_wanted;

static const struct {
	uint32_t domain;
	_Atomic bool *wanted;
	uint32_t count;
} domains[] = {
	{XT_CUPTI_CB_DOMAIN_DRIVER_API, driver_wanted, SIM_DRIVER_CBIDS},
	{XT_CUPTI_CB_DOMAIN_RUNTIME_API, runtime_wanted, SIM_DRIVER_CBIDS},
	{XT_CUPTI_CB_DOMAIN_RESOURCE, resource_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_SYNCHRONIZE, other_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_NVTX, other_wanted, SIM_RESOURCE_CBIDS},
	{XT_CUPTI_CB_DOMAIN_STATE, other_wanted, SIM_RESOURCE_CBIDS},
};
#define DOMAINS (sizeof(domains) / sizeof(domains[0]))

bool tracer_wants_callback(uint32_t domain, uint32_t cbid)
{
	for (size_t i = 0; i < DOMAINS; i++)
		if (domains[i].domain == domain)
			return cbid < domains[i].count && atomic_load(&domains[i].wanted[cbid]);
	return false;
}

bool tracer_wants_api_records(void)
{
	return atomic_load(&api_records_wanted);
}

static void update_switches(void)
{
	struct sim_seam *seam = tracer_seam();
	bool wants_records;

	if (!seam)
		return;
	pthread_mutex_lock(&lock);
	wants_records = tracer_wants_api_records();
	for (uint32_t cbid = 0; cbid < SIM_DRIVER_CBIDS; cbid++)
		atomic_store_explicit(&seam->switches->driver_enabled[cbid],
				      wants_records || atomic_load(&driver_wanted[cbid]),
				      memory_order_release);
	for (uint32_t cbid = 0; cbid < SIM_RESOURCE_CBIDS; cbid++)
		atomic_store_explicit(&seam->switches->resource_enabled[cbid],
				      atomic_load(&resource_wanted[cbid]), memory_order_release);
	pthread_mutex_unlock(&lock);
}

static void note_use(void)
{
	struct sim_seam *seam = tracer_seam();

	if (seam)
		atomic_store(&seam->switches->was_used, true);
}

bool tracer_switch_callbacks(uint32_t domain, uint32_t first_cbid, uint32_t last_cbid, bool enable)
{
	for (size_t i = 0; i < DOMAINS; i++) {
		if (domains[i].domain != domain || first_cbid >= domains[i].count)
			continue;
		for (uint32_t cbid = first_cbid; cbid <= last_cbid && cbid < domains[i].count;
		     cbid++)
			atomic_store(&domains[i].wanted[cbid], enable);
		update_switches();
		if (enable)
			note_use();
		return true;
	}
	return false;
}

void tracer_switch_api_records(bool enable)
{
	atomic_store(&api_records_wanted, enable);
	update_switches();
}

void tracer_switches_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; i < DOMAINS; i++)
		for (uint32_t cbid = 0; cbid < domains[i].count; cbid++)
			atomic_store(&domains[i].wanted[cbid], false);
	tracer_switch_api_records(false);
}
