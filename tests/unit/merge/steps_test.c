/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed steps of other processes: inconsistent sums are damage.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "merge/base/pack.h"
#include "merge/steps/steps.h"

struct packed {
	struct step_device_sums device;
	struct step step;
};

/* One step of 5 ns after the warm-up, on device 2. */
static struct packed one_step(void)
{
	struct packed packed = {
		.device = {.device = 2, .busy_count = 1, .steady = {.count = 1, .wall_ns = 5}},
		.step = {.device = 2, .wall_ns = 5}};

	packed.device.steady.parts_ns[STEP_COMPUTE] = packed.step.parts_ns[STEP_COMPUTE] = 5;
	return packed;
}

/* Returns the error of reading a log with these steps, or 0. */
static int error_of(const struct packed *packed)
{
	static const struct iterations none;
	static const struct settings settings;
	struct steps state = {0}, log = {0};
	struct sink sink = {.exporter = &analysis_steps, .settings = &settings, .state = &state};
	struct process process = {.iterations = &none};
	struct pack pack;
	size_t slow_count = 0, bytes;
	uint8_t *data;

	list_append(log.devices, packed->device);
	list_append(log.all, packed->step);
	pack_begin(&pack);
	PACK(&pack, slow_count);
	PACK_LIST(&pack, log.devices, STEPS_DEVICES_MAX);
	PACK_LIST(&pack, log.all, STEPS_MAX);
	PACK_LIST(&pack, log.sums, STEPS_MAX);
	data = pack_end(&pack, &bytes);
	free_all(log.devices.list, log.all.list);
	pack_open(&pack, data, bytes);
	analysis_steps.process(&sink, &process);
	analysis_steps.pack(&sink, &process, &pack);
	analysis_steps.free(&sink);
	free(data);
	return pack.error;
}

static void accepts_packed_steps(void **state)
{
	struct packed packed = one_step();

	(void)state;
	assert_int_equal(error_of(&packed), 0);
}

static void rejects_packed_steps_that_do_not_add_up(void **state)
{
	struct packed step = one_step(), device = one_step();

	(void)state;
	step.step.wall_ns++;
	assert_int_equal(error_of(&step), -EBADMSG);
	device.device.steady.parts_ns[STEP_COPY]++;
	assert_int_equal(error_of(&device), -EBADMSG);
}

static void rejects_packed_devices_without_their_steps(void **state)
{
	struct packed none = one_step(), other = one_step(), warmup = one_step();

	(void)state;
	none.device.steady = (struct step_sums){0};
	assert_int_equal(error_of(&none), -EBADMSG);
	other.device.device++;
	assert_int_equal(error_of(&other), -EBADMSG);
	warmup.step.is_warmup = true;
	assert_int_equal(error_of(&warmup), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_packed_steps),
		cmocka_unit_test(rejects_packed_steps_that_do_not_add_up),
		cmocka_unit_test(rejects_packed_devices_without_their_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
