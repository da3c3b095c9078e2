/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the time of each device among steps and parts of steps.
 */
#include "merge/steps/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables.h"
#include "log/base/compare.h"
#include "merge/base/pack.h"
#include "merge/sums/aggregate.h"
#include "merge/sums/run.h"
#include "merge/sums/timeline.h"

#define IDLE_PART(name, column, text) [STEP_IDLE + IDLE_##name] = "idle: " text,
const char *const step_part_names[STEP_PARTS] = {[STEP_COMPUTE] = "compute",
						 [STEP_COLLECTIVE] = "collectives alone",
						 [STEP_COPY] = "copies and memsets alone",
						 IDLE_KNOWN_CAUSES(IDLE_PART)[STEP_UNEXPLAINED] =
							 "not explained"};
#undef IDLE_PART

static struct step_process *last_process(struct steps *s)
{
	return &s->processes.list[s->processes.count - 1];
}

static void steps_process(struct sink *sink, const struct process *process)
{
	static const struct iterations none;
	struct steps *s = sink->state;
	const struct iterations *found = process->iterations;

	/* A part of the call paths has no budget: other work ran in its gaps. */
	s->reading.iterations = wanted_has_patterns(&sink->settings->wanted) ? &none : found;
	/* The window begins at 0 of the first log, which another log may precede. */
	s->reading.from_ns = sink->settings->wanted.from_ns
				     ? sink->settings->wanted.from_ns + (uint64_t)process->origin_ns
				     : 0;
	s->reading.sums_from = s->sums.count;
	s->reading.is_cut = sink->settings->wanted.until_ns;
	if (!s->reading.devices)
		s->reading.devices = xt_calloc(STEPS_DEVICES_MAX, sizeof(*s->reading.devices));
	list_append(s->processes, (struct step_process){
					  .label = process->label,
					  .log = process->log,
					  .origin_ns = process->origin_ns,
					  .source = found->source,
					  .name = found->name ? xt_strdup(found->name) : NULL,
					  .found_count = found->found_count,
					  .warmup_count = found->warmup_count,
				  });
}

COMPARE_BY(compare_notes, struct step_note, UP(place) UP(part))

/* Sorts the notes, and adds up those of the same place and part. */
static void join_notes(struct step_notes *notes)
{
	struct step_note *list = notes->list;
	size_t kept = 0;

	SORT(list, notes->count, compare_notes);
	for (size_t n = 1; n < notes->count; n++) {
		if (compare_notes(&list[kept], &list[n]))
			list[++kept] = list[n];
		else
			list[kept].ns += list[n].ns;
	}
	notes->count = notes->count ? kept + 1 : 0;
}

static void add_note(struct step_notes *notes, uint32_t place, uint32_t part, uint64_t ns)
{
	xt_append(notes->list, notes->count, notes->capacity,
		  (struct step_note){.place = place, .part = part, .ns = ns});
}

/* Keeps the step that ends if it is among the slowest of the device. */
static void keep_slow(struct step_device *device)
{
	const struct step *step = &device->step;
	struct slow_step slow = {.process = step->process,
				 .device = step->device,
				 .number = step->number,
				 .wall_ns = step->wall_ns};
	size_t at = STEPS_SLOW;

	while (at && device->slow[at - 1].wall_ns < step->wall_ns)
		at--;
	if (at == STEPS_SLOW)
		return;
	free(device->slow[STEPS_SLOW - 1].notes.list);
	memmove(&device->slow[at + 1], &device->slow[at],
		(STEPS_SLOW - 1 - at) * sizeof(device->slow[0]));
	slow.notes = device->notes;
	device->notes = (struct step_notes){0};
	join_notes(&slow.notes);
	device->slow[at] = slow;
}

static void end_step(struct step_device *device)
{
	struct step *step = &device->step;

	if (!device->is_in_step)
		return;
	device->is_in_step = false;
	for (int part = 0; part < STEP_PARTS; part++)
		step->wall_ns += step->parts_ns[part];
	list_append(device->ended, *step);
	if (!step->is_warmup)
		keep_slow(device);
	device->notes.count = 0;
}

/* The device begins the next iteration, or leaves the last one. */
static void begin_step(struct steps *s, struct step_device *device, uint32_t number,
		       uint64_t start_ns)
{
	size_t iteration = device->next++;

	end_step(device);
	if (iteration >= s->reading.iterations->found_count || iteration >= STEPS_MAX ||
	    s->reading.iterations->starts_ns[iteration] < s->reading.from_ns)
		return;
	device->is_in_step = true;
	device->step = (struct step){
		.process = (uint32_t)(s->processes.count - 1),
		.device = number,
		.number = (uint32_t)iteration,
		.is_warmup = iteration < s->reading.iterations->warmup_count,
		.start_ns = start_ns,
	};
}

/* Adds time to a part of the step. place: of the work that it belongs to. */
static void spend(struct step_device *device, uint32_t place, enum step_part part, uint64_t ns)
{
	size_t sum = (size_t)place * STEP_PARTS + part;

	if (!device->is_in_step || !ns)
		return;
	device->step.parts_ns[part] += ns;
	if (device->step.is_warmup)
		return;
	xt_grow(device->sums_ns, device->sum_capacity, sum + 1);
	device->sums_ns[sum] += ns;
	if (device->notes.count < STEP_NOTES_MAX)
		add_note(&device->notes, place, part, ns);
}

/* Adds the time up to until_ns in which work ran that started before. */
static void settle_busy(struct step_device *device, uint64_t until_ns)
{
	for (int part = 0; part < STEP_WORK_PARTS; part++) {
		uint64_t end_ns = smaller(device->until_ns[part], until_ns);

		if (end_ns <= device->settled_ns)
			continue;
		spend(device, device->places[part], part, end_ns - device->settled_ns);
		device->settled_ns = end_ns;
	}
}

/* Adds the parts of a gap, whose order within a class is unknown, between two sums by class. */
static void spend_idle(struct step_device *device, const struct stretch *next,
		       const uint64_t from_ns[IDLE_CLASSES], const uint64_t upto_ns[IDLE_CLASSES])
{
	uint64_t sums_ns[IDLE_CLASSES] = {0};

	for (size_t p = 0; p < next->gap->parts->count; p++) {
		const struct idle_part *part = &next->gap->parts->list[p];
		uint64_t begin_ns = sums_ns[part->class], end_ns = begin_ns + part->ns;

		sums_ns[part->class] = end_ns;
		begin_ns = larger(begin_ns, from_ns[part->class]);
		end_ns = smaller(end_ns, upto_ns[part->class]);
		if (end_ns > begin_ns)
			spend(device, part->place, STEP_IDLE + part->class, end_ns - begin_ns);
	}
}

/*
 * Adds the time up to until_ns, at most the start of the next work: busy time, then idle time.
 * idle_ns: the causes of the idle time that was added, which grow.
 */
static void settle(struct step_device *device, const struct stretch *next, uint64_t until_ns,
		   uint64_t idle_ns[IDLE_CLASSES])
{
	uint64_t upto_ns[IDLE_CLASSES] = {0};

	settle_busy(device, until_ns);
	if (until_ns <= device->settled_ns)
		return;
	if (!next->has_gap) {
		spend(device, next->place, STEP_UNEXPLAINED, until_ns - device->settled_ns);
		device->settled_ns = until_ns;
		return;
	}
	stretch_idle_upto(next, until_ns, upto_ns);
	spend_idle(device, next, idle_ns, upto_ns);
	memcpy(idle_ns, upto_ns, sizeof(upto_ns));
	device->settled_ns = until_ns;
}

/* When the iteration begins, or the last one ends. After that, there is no boundary. */
static uint64_t boundary_ns(const struct iterations *list, size_t iteration)
{
	return iteration < list->found_count	? list->starts_ns[iteration]
	       : iteration == list->found_count ? list->end_ns
						: UINT64_MAX;
}

static void begin_device(struct steps *s, struct step_device *device, uint64_t start_ns,
			 uint64_t launched_ns)
{
	device->has_run = true;
	device->settled_ns = start_ns;
	/* The device had no part in iterations that ended before. */
	while (boundary_ns(s->reading.iterations, device->next + 1) <= launched_ns)
		device->next++;
}

static enum step_part part_of_work(const struct stretch *stretch)
{
	return stretch->is_collective ? STEP_COLLECTIVE
	       : stretch->is_kernel   ? STEP_COMPUTE
				      : STEP_COPY;
}

static void steps_stretch(struct sink *sink, const struct process *process,
			  const struct stretch *stretch)
{
	struct steps *s = sink->state;
	uint64_t start_ns = stretch->start_ns, idle_ns[IDLE_CLASSES] = {0}, begin_ns;
	uint64_t launched_ns = stretch->work->has_call ? stretch->work->enter_ns : start_ns;
	enum step_part part = part_of_work(stretch);
	struct step_device *device;

	if (!s->reading.iterations->found_count || stretch->device >= STEPS_DEVICES_MAX)
		return;
	device = &s->reading.devices[stretch->device];
	if (!device->has_run)
		begin_device(s, device, start_ns, launched_ns);
	while ((begin_ns = boundary_ns(s->reading.iterations, device->next)) <= launched_ns) {
		settle_busy(device, start_ns);
		begin_ns = smaller(larger(begin_ns, device->settled_ns), start_ns);
		/* Work of the step before may still run. */
		if (device->settled_ns >= start_ns)
			begin_ns = start_ns;
		settle(device, stretch, begin_ns, idle_ns);
		begin_step(s, device, model_device(process->model, stretch->work->stream),
			   begin_ns);
	}
	settle(device, stretch, start_ns, idle_ns);
	if (stretch->end_ns > device->until_ns[part]) {
		device->until_ns[part] = stretch->end_ns;
		device->places[part] = stretch->place;
	}
}

/* Adds the steps of a device to the run, unless it ran work in less than half of them. */
static void keep_device(struct steps *s, struct step_device *device)
{
	bool has_steady = false;
	size_t busy_count = 0;

	for (size_t i = 0; i < device->ended.count; i++)
		busy_count += step_busy_ns(&device->ended.list[i]) != 0;
	for (size_t i = 0; i < device->ended.count && busy_count * 2 >= device->ended.count; i++) {
		has_steady |= !device->ended.list[i].is_warmup;
		list_append(s->all, device->ended.list[i]);
	}
	last_process(s)->device_count += has_steady;
	for (size_t i = 0; i < device->sum_capacity && has_steady; i++)
		if (device->sums_ns[i])
			add_note(&s->sums, (uint32_t)(i / STEP_PARTS), i % STEP_PARTS,
				 device->sums_ns[i]);
	for (size_t i = 0; i < STEPS_SLOW; i++)
		if (has_steady && device->slow[i].wall_ns)
			list_append(s->slow, device->slow[i]);
		else
			free(device->slow[i].notes.list);
}

/* Ends the steps that last at the end of the log. A step that the user cut is left out. */
static void end_log(struct steps *s)
{
	for (uint32_t d = 0; s->reading.devices && d < STEPS_DEVICES_MAX; d++) {
		struct step_device *device = &s->reading.devices[d];

		settle_busy(device, UINT64_MAX);
		if (!s->reading.is_cut)
			end_step(device);
		keep_device(s, device);
		free_all(device->notes.list, device->ended.list, device->sums_ns);
		*device = (struct step_device){0};
	}
}

static void pack_notes(struct pack *pack, struct step_notes *notes)
{
	PACK_LIST(pack, *notes, UINT32_MAX);
	for (size_t n = 0; n < notes->count; n++)
		pack_check(pack, notes->list[n].part < STEP_PARTS);
}

static void pack_slow(struct pack *pack, struct slow_step *slow)
{
	PACK(pack, slow->device);
	PACK(pack, slow->number);
	PACK(pack, slow->wall_ns);
	pack_notes(pack, &slow->notes);
}

/* A state that is written has one log. */
static void pack_steps(struct sink *sink, const struct process *process, struct pack *pack)
{
	struct steps *s = sink->state, log = {0};
	uint32_t index = (uint32_t)(s->processes.count - 1);
	size_t slow_count;

	(void)process;
	end_log(s);
	slow_count = s->slow.count;
	PACK(pack, last_process(s)->device_count);
	PACK(pack, slow_count);
	pack_check(pack, slow_count <= STEPS_SLOW * STEPS_DEVICES_MAX);
	if (!pack->is_reading) {
		PACK_LIST(pack, s->all, STEPS_MAX * STEPS_DEVICES_MAX);
		pack_notes(pack, &s->sums);
		for (size_t i = 0; i < slow_count; i++)
			pack_slow(pack, &s->slow.list[i]);
		return;
	}
	PACK_LIST(pack, log.all, STEPS_MAX * STEPS_DEVICES_MAX);
	for (size_t i = 0; i < log.all.count; i++) {
		pack_check_bool(pack, &log.all.list[i].is_warmup);
		log.all.list[i].process = index;
		list_append(s->all, log.all.list[i]);
	}
	s->reading.sums_from = s->sums.count;
	pack_notes(pack, &log.sums);
	for (size_t n = 0; n < log.sums.count; n++)
		list_append(s->sums, log.sums.list[n]);
	for (size_t i = 0; i < slow_count && !pack->error; i++) {
		struct slow_step *slow = list_new(s->slow);

		*slow = (struct slow_step){.process = index};
		pack_slow(pack, slow);
	}
	free_all(log.all.list, log.sums.list);
}

static void steps_total(struct sink *sink, const struct process *process, const struct total *total,
			uint32_t node)
{
	struct steps *s = sink->state;
	struct step_weights *weights;

	xt_grow(s->reading.nodes, s->reading.node_capacity, (size_t)process->total + 1);
	s->reading.nodes[process->total] = node + 1;
	if (!(total->owner.marks & OWNER_STEADY))
		return;
	xt_grow(s->weights, s->weight_capacity, (size_t)node + 1);
	weights = &s->weights[node];
	saturating_add(&weights->gpu_ns, total->weights[WEIGHT_GPU_TIME]);
	saturating_add(&weights->count, total->weights[WEIGHT_COUNT]);
	saturating_add(&weights->idle_ns, total->weights[WEIGHT_GPU_IDLE]);
}

/* Replaces the places in the aggregate by nodes of run->paths. */
static void name_notes(const struct steps *s, struct step_notes *notes, size_t from)
{
	for (size_t n = from; n < notes->count; n++) {
		uint32_t place = notes->list[n].place;
		bool is_known = place < s->reading.node_capacity && s->reading.nodes[place];

		notes->list[n].place = is_known ? s->reading.nodes[place] - 1 : PATH_ROOT;
	}
	join_notes(notes);
}

static void steps_process_end(struct sink *sink, const struct process *process)
{
	struct steps *s = sink->state;
	uint32_t index = (uint32_t)(s->processes.count - 1);

	(void)process;
	end_log(s);
	name_notes(s, &s->sums, s->reading.sums_from);
	for (size_t i = 0; i < s->slow.count; i++)
		if (s->slow.list[i].process == index)
			name_notes(s, &s->slow.list[i].notes, 0);
	if (s->reading.node_capacity)
		memset(s->reading.nodes, 0, s->reading.node_capacity * sizeof(*s->reading.nodes));
}

static int compare_walls(const void *a, const void *b)
{
	const struct step *const *x = a, *const *y = b;

	return (*x)->wall_ns != (*y)->wall_ns ? ORDER((*x)->wall_ns, (*y)->wall_ns) : ORDER(*y, *x);
}

static void steps_end(struct sink *sink, const struct run *run)
{
	struct steps *s = sink->state;
	const struct step **order = xt_calloc(s->all.count + 1, sizeof(*order));
	const char *wanted = run->settings->iterations.iteration;
	bool is_missing = wanted && s->processes.count;

	for (size_t i = 0; i < s->all.count; i++) {
		if (s->all.list[i].is_warmup)
			continue;
		order[s->steady_count++] = &s->all.list[i];
		s->steady_ns += s->all.list[i].wall_ns;
	}
	qsort(order, s->steady_count, sizeof(*order), compare_walls);
	if (s->steady_count) {
		s->median = order[(s->steady_count - 1) / 2];
		s->slowest = order[s->steady_count - 1];
	}
	free(order);
	for (size_t i = 0; i < s->processes.count; i++)
		is_missing &= s->processes.list[i].source == ITERATIONS_MISSING;
	if (is_missing)
		report_warn(run->report,
			    "there is no NVTX range \"%s\" that was opened %d times or more: "
			    "the report has no steps",
			    wanted, ITERATIONS_MIN);
}

static void steps_free_state(struct sink *sink)
{
	struct steps *s = sink->state;

	end_log(s);
	for (size_t i = 0; i < s->slow.count; i++)
		free(s->slow.list[i].notes.list);
	for (size_t i = 0; i < s->processes.count; i++)
		free(s->processes.list[i].name);
	free_all(s->all.list, s->slow.list, s->processes.list, s->sums.list, s->weights);
	free_all(s->reading.devices, s->reading.nodes);
}

const struct exporter analysis_steps = {.uses = USES_ITERATIONS,
					.state_bytes = sizeof(struct steps),
					.process = steps_process,
					.on.stretch = steps_stretch,
					.total = steps_total,
					.pack = pack_steps,
					.process_end = steps_process_end,
					.end = steps_end,
					.free = steps_free_state};

const struct steps *steps_of(const struct run *run)
{
	const struct steps *s = run_analysis(run, &analysis_steps);

	return s && s->steady_count ? s : NULL;
}

uint64_t step_busy_ns(const struct step *step)
{
	uint64_t busy_ns = 0;

	for (int part = 0; part < STEP_WORK_PARTS; part++)
		busy_ns += step->parts_ns[part];
	return busy_ns;
}
