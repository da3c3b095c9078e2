/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start-up leaves CUPTI unchanged if one of its functions fails. The test acts as CUPTI; each
 * function fails in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/cupti/cupti_subscriber.h"
#include "inject/runtime/clock.h"
#include "inject/cupti/cupti.h"

#define REFUSED		13
#define KINDS		256
#define CBID_FREE_ASYNC 600
#define FOUND_ZERO	7 /* original value of the attribute */

enum step { NOTHING, CLOCK, BUFFERS, KERNELS, OTHER_KINDS, CALLBACKS, FREES };

static enum step refused;
static uint8_t zeroed;
static unsigned enables;
static bool is_enabled[KINDS];
static xt_cupti_timestamp clock_in_use;

static uint32_t result_of(enum step step)
{
	return step == refused ? REFUSED : XT_CUPTI_SUCCESS;
}

static bool is_our_clock(xt_cupti_timestamp timestamp)
{
	uint64_t before_ns = monotonic_ns();
	uint64_t time_ns = timestamp ? timestamp() : 0;

	return time_ns >= before_ns && time_ns <= monotonic_ns();
}

static uint32_t set_clock(xt_cupti_timestamp timestamp)
{
	if (is_our_clock(timestamp) && refused == CLOCK)
		return REFUSED;
	clock_in_use = timestamp;
	return XT_CUPTI_SUCCESS;
}

static uint32_t register_callbacks(xt_cupti_buffer_requested requested,
				   xt_cupti_buffer_completed completed)
{
	assert_true(requested && completed);
	return result_of(BUFFERS);
}

static uint32_t enable(uint32_t kind)
{
	uint32_t result =
		result_of(kind == XT_CUPTI_ACTIVITY_CONCURRENT_KERNEL ? KERNELS : OTHER_KINDS);

	enables++;
	is_enabled[kind] = result == XT_CUPTI_SUCCESS;
	return result;
}

static uint32_t disable(uint32_t kind)
{
	is_enabled[kind] = false;
	return XT_CUPTI_SUCCESS;
}

static uint32_t enable_callback(uint32_t on, void *subscriber, uint32_t domain, uint32_t cbid)
{
	(void)on, (void)subscriber, (void)domain;
	return cbid == CBID_FREE_ASYNC && refused == FREES ? REFUSED : result_of(CALLBACKS);
}

static uint32_t callback_name(uint32_t domain, uint32_t cbid, const char **name)
{
	if (domain != XT_CUPTI_CB_DOMAIN_DRIVER_API ||
	    (cbid != XT_CUPTI_CBID_cuLaunchKernel && cbid != CBID_FREE_ASYNC))
		return REFUSED;
	*name = cbid == CBID_FREE_ASYNC ? "cuMemFreeAsync" : "cuLaunchKernel";
	return XT_CUPTI_SUCCESS;
}

static uint32_t get_attribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)attribute, (void)bytes;
	memcpy(value, &zeroed, 1);
	return XT_CUPTI_SUCCESS;
}

static uint32_t set_attribute(uint32_t attribute, size_t *bytes, void *value)
{
	(void)attribute, (void)bytes;
	memcpy(&zeroed, value, 1);
	return XT_CUPTI_SUCCESS;
}

static uint32_t unsubscribe(void *subscriber)
{
	(void)subscriber;
	return XT_CUPTI_SUCCESS;
}

static unsigned enabled_count(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < KINDS; i++)
		count += is_enabled[i];
	return count;
}

static int start(enum step step)
{
	char why[256] = "";
	int rc;

	refused = step;
	zeroed = FOUND_ZERO;
	enables = 0;
	clock_in_use = NULL;
	memset(is_enabled, 0, sizeof(is_enabled));
	cupti_subscriber_unsubscribe(); /* forgets the callbacks of the last start */
	rc = cupti_subscriber_start(API_LEVEL_WORK, true, why, sizeof(why));
	assert_int_equal(!rc, !why[0]);
	return rc;
}

static void enables_everything(void **unused)
{
	(void)unused;
	assert_int_equal(start(NOTHING), 0);
	assert_int_equal(enabled_count(), 4);
	assert_true(is_our_clock(clock_in_use));
	assert_int_equal(zeroed, 1);
	/* Kernels are recorded even if copies cannot be. */
	assert_int_equal(start(OTHER_KINDS), 0);
	assert_int_equal(enabled_count(), 1);
}

static uint32_t device_of(void *context, uint32_t *device)
{
	*device = (uint32_t)(uintptr_t)context;
	return XT_CUPTI_SUCCESS;
}

/* MEMCPY2 beside MEMCPY makes launches of graphs with copies fail. */
static void records_peer_copies_only_where_safe(void **unused)
{
	(void)unused;
	cupti.cuptiGetDeviceId = device_of;
	assert_int_equal(start(NOTHING), 0);
	unsafe_kinds_note_context((void *)3);
	unsafe_kinds_note_context((void *)3);
	assert_false(is_enabled[XT_CUPTI_ACTIVITY_MEMCPY2]);
	unsafe_kinds_note_context((void *)4);
	assert_true(is_enabled[XT_CUPTI_ACTIVITY_MEMCPY2]);
	cupti_subscriber_stop();
	assert_int_equal(enabled_count(), 0);
	assert_int_equal(start(NOTHING), 0);
	assert_true(is_enabled[XT_CUPTI_ACTIVITY_MEMCPY2]);
	unsafe_kinds_note_graph_copy();
	assert_false(is_enabled[XT_CUPTI_ACTIVITY_MEMCPY2]);
	unsafe_kinds_note_context((void *)5);
	assert_int_equal(enabled_count(), 4);
	assert_int_equal(atomic_load(&cupti_unsafe_kinds), 1);
}

#define CUPTI_11	18
#define CUPTI_13	130001
#define INVALID_ADDRESS 1
#define OWN_POOL	((void *)5)
#define FOREIGN_POOL	((void *)6)

static void *pool;

static int pointer_attribute(void *value, int attribute, uint64_t address)
{
	assert_int_equal(attribute, 17);
	*(void **)value = pool;
	return address == INVALID_ADDRESS;
}

static int pool_attribute(void *asked, int attribute, void *value)
{
	(void)attribute, (void)value;
	return asked != OWN_POOL;
}

/* Whether memory is recorded after the free of an address. */
static bool is_recorded_after(uint64_t address, void *its_pool)
{
	pool = its_pool;
	unsafe_kinds_note_free(address);
	return is_enabled[XT_CUPTI_ACTIVITY_MEMORY2];
}

/* The same after a start in another process, because recording does not begin again. */
static bool is_recorded_elsewhere(enum step step, uint32_t version, uint64_t address,
				  void *its_pool)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		cupti.version = version;
		start(step);
		_exit(is_recorded_after(address, its_pool));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* CUPTI crashes in cuMemFreeAsync() of memory that is from no pool of this process. */
static void records_memory_only_where_safe(void **unused)
{
	(void)unused;
	cupti.cuPointerGetAttribute = pointer_attribute;
	cupti.cuMemPoolGetAttribute = pool_attribute;
	assert_int_equal(start(NOTHING), 0);
	assert_true(is_recorded_after(2, OWN_POOL));
	assert_true(is_recorded_after(0, NULL));
	cupti_subscriber_stop();
	assert_true(is_recorded_elsewhere(NOTHING, CUPTI_13, 2, OWN_POOL));
	assert_false(is_recorded_elsewhere(NOTHING, CUPTI_13, INVALID_ADDRESS, OWN_POOL));
	assert_false(is_recorded_elsewhere(NOTHING, CUPTI_13, 2, FOREIGN_POOL));
	assert_false(is_recorded_elsewhere(NOTHING, CUPTI_11, 2, OWN_POOL));
	assert_false(is_recorded_elsewhere(FREES, CUPTI_13, 2, OWN_POOL));
	assert_int_equal(start(NOTHING), 0);
	assert_true(is_recorded_after(2, OWN_POOL));
	assert_false(is_recorded_after(2, NULL));
	cupti_subscriber_stop();
	assert_int_equal(start(NOTHING), 0);
	assert_false(is_enabled[XT_CUPTI_ACTIVITY_MEMORY2]);
	assert_int_equal(atomic_load(&cupti_unsafe_memory), 1);
}

static void restores_cupti_after_failure(void **unused)
{
	static const struct {
		enum step step;
		unsigned enables;
	} needed[] = {{CLOCK, 0}, {BUFFERS, 0}, {KERNELS, 1}, {CALLBACKS, 0}};

	(void)unused;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
		assert_int_not_equal(start(needed[i].step), 0);
		assert_int_equal(enabled_count(), 0);
		assert_int_equal(zeroed, FOUND_ZERO);
		assert_false(is_our_clock(clock_in_use));
		/* After a failure, nothing more is enabled. */
		assert_int_equal(enables, needed[i].enables);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(enables_everything),
		cmocka_unit_test(records_peer_copies_only_where_safe),
		cmocka_unit_test(restores_cupti_after_failure),
		cmocka_unit_test(records_memory_only_where_safe),
	};

	cupti.version = CUPTI_13;
	cupti.cuptiActivityRegisterTimestampCallback = set_clock;
	cupti.cuptiActivityRegisterCallbacks = register_callbacks;
	cupti.cuptiActivityEnable = enable;
	cupti.cuptiActivityDisable = disable;
	cupti.cuptiEnableCallback = enable_callback;
	cupti.cuptiUnsubscribe = unsubscribe;
	cupti.cuptiActivityGetAttribute = get_attribute;
	cupti.cuptiActivitySetAttribute = set_attribute;
	cupti.cuptiGetCallbackName = callback_name;
	if (api_table_fill(API_LEVEL_WORK))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
