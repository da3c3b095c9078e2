/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookups in a model.
 */
#include "merge/read/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/compare.h"
#include "log/base/grow.h"
#include "log/base/script_name.h"

#define MODULES_SEARCHED_MAX 1024u

/*
 * Returns the last module that starts at or before address, or 0. If several have the same start,
 * returns the last one loaded by time_ns.
 */
static size_t module_before(const struct model *model, uint64_t address, uint64_t time_ns)
{
	const struct module *modules = model->modules.rows;
	size_t low = FIRST_NOT(i, 1, model->modules.count,
			       modules[i].start < address || (modules[i].start == address &&
							      modules[i].load_ns <= time_ns));

	return low - 1;
}

/*
 * Returns the module that was mapped at address at that time. A library that is often reloaded at
 * one address has many rows, so later loads are skipped and the search is bounded.
 */
static uint32_t module_at(const struct model *model, uint64_t address, uint64_t time_ns)
{
	size_t m = module_before(model, address, UINT64_MAX);

	for (unsigned n = 0; n < MODULES_SEARCHED_MAX && m && model->module_reach[m] > address;
	     n++) {
		const struct module *module = &model->modules.rows[m];

		if (module->load_ns <= time_ns && module->end > address &&
		    time_ns < module->unload_ns)
			return (uint32_t)m;
		if (module->load_ns > time_ns && module[-1].start == module->start)
			m = module_before(model, module->start, time_ns);
		else
			m--;
	}
	return 0;
}

uint32_t model_range_at(const struct model *model, const struct range_call *call, uint32_t autograd)
{
	/* It caches the last search. */
	struct ranges *ranges = (struct ranges *)&model->ranges;
	uint32_t range = ranges_at(ranges, call->thread, call->time_ns);
	uint32_t caller = autograd_state(&model->autograd, autograd)->caller;

	range = xla_tuning_range(&model->tuning, ranges, call, range);
	return range || !caller ? range : ranges_at(ranges, caller, call->time_ns);
}

uint32_t model_module_of(const struct model *model, const struct stack *stack, size_t place,
			 uint64_t address)
{
	uint32_t id = model->frame_modules[place], module;

	if (!stack->has_modules)
		return module_at(model, address, stack->seen_ns);
	module = id < model->module_place_capacity ? model->module_places[id] : 0;
	return address >= model->modules.rows[module].start &&
			       address < model->modules.rows[module].end
		       ? module
		       : 0;
}

const char *model_title(const struct model *model, const struct range_names *titles,
			uint32_t context, uint64_t number)
{
	uint32_t text = range_names_find(titles, context, number);

	return names_text(&model->names,
			  model->strings.rows[text < model->strings.count ? text : 0], NULL);
}

void model_free(struct model *model)
{
	if (!model)
		return;
	names_free(&model->names);
	free_all(model->strings.rows, model->stacks.rows, model->threads.rows, model->streams.rows,
		 model->shapes.rows, model->copy_shapes.rows);
	nodes_free(&model->nodes);
	autograd_free(&model->autograd);
	pauses_free(&model->pauses);
	pauses_free(&model->stops);
	cpu_samples_free(&model->cpu_samples);
	free(model->renumbered_ns.rows);
	xla_tuning_free(&model->tuning);
	ranges_free(&model->ranges);
	collective_calls_free(&model->collective_calls);
	range_names_free(&model->category_names);
	range_names_free(&model->thread_names);
	range_names_free(&model->device_names);
	range_names_free(&model->context_names);
	range_names_free(&model->stream_names);
	free_all(model->modules.rows, model->apis.rows, model->meta.rows, model->account.rows,
		 model->symbols.rows, model->sources.rows, model->compiled.rows, model->frames,
		 model->frame_modules, model->module_places, model->python,
		 model->python_frames.rows, model->module_reach, model);
}

const char *model_meta(const struct model *model, const char *key)
{
	for (size_t i = 0; i < model->meta.count; i++)
		if (!strcmp(names_text(&model->names, model->meta.rows[i].key, NULL), key))
			return names_text(&model->names, model->meta.rows[i].text, NULL);
	return "";
}

bool model_is_flight_recording(const struct model *model)
{
	return model_meta(model, "log.flight_recorder")[0] != '\0';
}

uint64_t model_process_start_ns(const struct model *model, const struct xt_log_header *header)
{
	/* To hundredths of a second; older logs have whole ones. */
	double started_s = strtod(model_meta(model, "process.started"), NULL);
	double before_ns = (double)header->start_realtime_ns - started_s * 1e9;

	if (started_s <= 0 || before_ns < 0 || before_ns >= (double)header->start_monotonic_ns)
		return header->start_monotonic_ns;
	return header->start_monotonic_ns - (uint64_t)before_ns;
}

static const struct pair *find_account(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->account.count; i++)
		if (!strcmp(names_text(&model->names, model->account.rows[i].key, NULL), name))
			return &model->account.rows[i];
	return NULL;
}

uint64_t model_account(const struct model *model, const char *name)
{
	const struct pair *pair = find_account(model, name);

	return pair ? pair->value : 0;
}

bool model_has_account(const struct model *model, const char *name)
{
	return find_account(model, name) != NULL;
}

const char *model_process_name(const struct model *model)
{
	const char *path = model_meta(model, "process.exe");
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void model_process_title(const struct model *model, char out[PROCESS_TITLE_BYTES])
{
	xt_script_title(out, PROCESS_TITLE_BYTES, model_meta(model, "process.exe"),
			model_meta(model, "process.cmdline"));
}

#define CPU_HZ_DEFAULT 99.0
#define CPU_HZ_MIN     0.01
#define CPU_HZ_MAX     1e6

uint64_t cpu_period_ns(const struct model *model)
{
	double hz = strtod(model_meta(model, "cpu.hz"), NULL);

	return (uint64_t)(1e9 / (hz >= CPU_HZ_MIN && hz <= CPU_HZ_MAX ? hz : CPU_HZ_DEFAULT));
}
