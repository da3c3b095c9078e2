/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides the time of each device among steps and parts of steps.
 */
#include "merge/steps/steps.h"

#include <inttypes.h>
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
	s->reading.has_ended = false;
	s->reading.is_cut = sink->settings->wanted.until_ns;
	if (!s->reading.devices)
		s->reading.devices = xt_calloc(STEPS_DEVICES_MAX, sizeof(*s->reading.devices));
	list_append(s->processes, (struct step_process){
					  .label = process->label,
					  .log = process->log,
					  .origin_ns = process->origin_ns,
					  .source = found->source,
					  .name = found->name ? xt_strdup(found->name) : NULL,
					  .found_count = found->count,
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
	list_append(*notes, (struct step_note){.place = place, .part = part, .ns = ns});
}

/* Keeps the step that ends if it is among the slowest of the device. */
static void keep_slow(struct step_device *device)
{
	struct slow_step slow = {.step = device->step};
	size_t at = STEPS_SLOW;

	while (at && device->slow[at - 1].step.wall_ns < slow.step.wall_ns)
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

static void add_sums(struct step_sums *sums, const struct step_sums *more)
{
	sums->count += more->count;
	saturating_add(&sums->wall_ns, more->wall_ns);
	for (int part = 0; part < STEP_PARTS; part++)
		saturating_add(&sums->parts_ns[part], more->parts_ns[part]);
}

static void end_step(struct step_device *device)
{
	struct step *step = &device->step;
	struct step_sums *sums = step->is_warmup ? &device->sums.warmup : &device->sums.steady;
	struct step_sums own = {.count = 1};

	if (!device->is_in_step)
		return;
	device->is_in_step = false;
	for (int part = 0; part < STEP_PARTS; part++)
		step->wall_ns += step->parts_ns[part];
	own.wall_ns = step->wall_ns;
	memcpy(own.parts_ns, step->parts_ns, sizeof(own.parts_ns));
	add_sums(sums, &own);
	device->sums.busy_count += step_busy_ns(step->parts_ns) != 0;
	if (sums->count <= STEPS_MAX)
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
	if (iteration >= s->reading.iterations->count ||
	    s->reading.iterations->list[iteration] < s->reading.from_ns)
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
	*by_id(device->sums_ns, sum) += ns;
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

	for (size_t p = 0; p < next->gap.parts->count; p++) {
		const struct idle_part *part = &next->gap.parts->list[p];
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
	if (!next->gap.exists) {
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
	return iteration < list->count	  ? list->list[iteration]
	       : iteration == list->count ? list->end_ns
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

	if (!s->reading.iterations->count || stretch->device >= STEPS_DEVICES_MAX)
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

static void steps_idle_moved(struct sink *sink, const struct idle_move *move)
{
	struct steps *s = sink->state;
	size_t from = (size_t)move->from * STEP_PARTS + STEP_IDLE + move->class;
	size_t to = (size_t)move->to * STEP_PARTS + STEP_IDLE + move->class;

	for (uint32_t d = 0; d < STEPS_DEVICES_MAX; d++) {
		struct step_device *device = &s->reading.devices[d];
		uint64_t moved_ns;

		if (from >= device->sums_ns.capacity || !device->sums_ns.list[from])
			continue;
		moved_ns = (uint64_t)((unsigned __int128)device->sums_ns.list[from] * move->ns /
				      move->of_ns);
		*by_id(device->sums_ns, to) += moved_ns;
		device->sums_ns.list[from] -= moved_ns;
	}
}

/* Adds the steps of a device to the run, unless it ran work in less than half of them. */
static void keep_device(struct steps *s, struct step_device *device)
{
	struct step_device_sums *sums = &device->sums;
	bool is_kept =
		sums->busy_count && sums->busy_count * 2 >= sums->warmup.count + sums->steady.count;

	for (size_t i = 0; i < device->ended.count && is_kept; i++)
		list_append(s->all, device->ended.list[i]);
	if (is_kept) {
		sums->process = device->step.process;
		sums->device = device->step.device;
		list_append(s->devices, *sums);
	}
	for (size_t i = 0; i < device->sums_ns.capacity && is_kept; i++)
		if (device->sums_ns.list[i])
			add_note(&s->sums, (uint32_t)(i / STEP_PARTS), i % STEP_PARTS,
				 device->sums_ns.list[i]);
	for (size_t i = 0; i < STEPS_SLOW; i++)
		if (is_kept && device->slow[i].step.wall_ns)
			list_append(s->slow, device->slow[i]);
		else
			free(device->slow[i].notes.list);
}

/* Ends the steps that last at the end of the log. A step that the user cut is left out. */
static void end_log(struct steps *s)
{
	if (s->reading.has_ended)
		return;
	s->reading.has_ended = true;
	for (uint32_t d = 0; s->reading.devices && d < STEPS_DEVICES_MAX; d++) {
		struct step_device *device = &s->reading.devices[d];

		settle_busy(device, UINT64_MAX);
		if (!s->reading.is_cut)
			end_step(device);
		keep_device(s, device);
		free_all(device->notes.list, device->ended.list, device->sums_ns.list);
		*device = (struct step_device){0};
	}
}

static void pack_notes(struct pack *pack, struct step_notes *notes)
{
	PACK_LIST(pack, *notes, UINT32_MAX);
	for (size_t n = 0; n < notes->count; n++)
		pack_check(pack, notes->list[n].part < STEP_PARTS);
}

/* Whether the parts of a step, or of several, add up. */
static bool adds_up(const uint64_t parts_ns[STEP_PARTS], uint64_t wall_ns)
{
	uint64_t sum_ns = 0;

	for (int part = 0; part < STEP_PARTS; part++)
		saturating_add(&sum_ns, parts_ns[part]);
	return sum_ns == wall_ns;
}

static void check_step(struct pack *pack, struct step *step, uint32_t process)
{
	pack_check_bool(pack, &step->is_warmup);
	pack_check(pack, adds_up(step->parts_ns, step->wall_ns));
	step->process = process;
}

static void pack_slow(struct pack *pack, struct slow_step *slow, uint32_t process)
{
	PACK(pack, slow->step);
	check_step(pack, &slow->step, process);
	pack_notes(pack, &slow->notes);
}

/* The counts of a device are at least those of its rows, which decide whether it has steps. */
static void read_devices(struct pack *pack, struct steps *s, const struct steps *log,
			 uint32_t process)
{
	for (size_t d = 0; d < log->devices.count; d++) {
		struct step_device_sums *sums = &log->devices.list[d];
		uint64_t rows[2] = {0}; /* steady, warm-up */

		for (size_t i = 0; i < log->all.count; i++)
			if (log->all.list[i].device == sums->device)
				rows[log->all.list[i].is_warmup]++;
		pack_check(pack, rows[false] == smaller(sums->steady.count, STEPS_MAX) &&
					 rows[true] == smaller(sums->warmup.count, STEPS_MAX) &&
					 adds_up(sums->steady.parts_ns, sums->steady.wall_ns) &&
					 adds_up(sums->warmup.parts_ns, sums->warmup.wall_ns));
		sums->process = process;
		list_append(s->devices, *sums);
	}
}

static void read_steps(struct pack *pack, struct steps *s, uint32_t process)
{
	struct steps log = {0};

	PACK_LIST(pack, log.devices, STEPS_DEVICES_MAX);
	PACK_LIST(pack, log.all, 2 * STEPS_MAX * STEPS_DEVICES_MAX);
	for (size_t i = 0; i < log.all.count; i++) {
		check_step(pack, &log.all.list[i], process);
		list_append(s->all, log.all.list[i]);
	}
	read_devices(pack, s, &log, process);
	pack_notes(pack, &log.sums);
	for (size_t n = 0; n < log.sums.count; n++)
		list_append(s->sums, log.sums.list[n]);
	free_all(log.devices.list, log.all.list, log.sums.list);
}

/* A state that is written has one log. */
static void pack_steps(struct sink *sink, const struct process *process, struct pack *pack)
{
	struct steps *s = sink->state;
	uint32_t index = (uint32_t)(s->processes.count - 1);
	size_t slow_count;

	(void)process;
	end_log(s);
	slow_count = s->slow.count;
	PACK(pack, slow_count);
	pack_check(pack, slow_count <= STEPS_SLOW * STEPS_DEVICES_MAX);
	if (!pack->is_reading) {
		PACK_LIST(pack, s->devices, STEPS_DEVICES_MAX);
		PACK_LIST(pack, s->all, 2 * STEPS_MAX * STEPS_DEVICES_MAX);
		pack_notes(pack, &s->sums);
		for (size_t i = 0; i < slow_count; i++)
			pack_slow(pack, &s->slow.list[i], index);
		return;
	}
	read_steps(pack, s, index);
	for (size_t i = 0; i < slow_count && !pack->error; i++) {
		struct slow_step *slow = list_new(s->slow);

		*slow = (struct slow_step){0};
		pack_slow(pack, slow, index);
	}
}

/* Whether a device of the log that is read has steps after the warm-up. */
static bool has_steps(const struct steps *s, uint32_t device)
{
	for (size_t d = s->devices.count; d-- > 0;) {
		const struct step_device_sums *sums = &s->devices.list[d];

		if (sums->process != s->processes.count - 1)
			break;
		if (sums->device == device)
			return sums->steady.count;
	}
	return false;
}

static void steps_total(struct sink *sink, const struct process *process, const struct total *total,
			uint32_t node)
{
	struct steps *s = sink->state;
	struct step_weights *weights;

	end_log(s);
	xt_grow(s->reading.nodes, s->reading.node_capacity, (size_t)process->total + 1);
	s->reading.nodes[process->total] = node + 1;
	if (!(total->owner.marks & OWNER_STEADY) ||
	    !has_steps(s, model_device(process->model, total->owner.stream)))
		return;
	weights = by_id(s->weights, node);
	saturating_add(&weights->gpu_ns, total->weights[WEIGHT_GPU_TIME]);
	saturating_add(&weights->count, total->weights[WEIGHT_COUNT]);
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

/* Counts the GPUs of the log that have steps, unless a log before has steps on them, too. */
static void count_gpus(struct steps *s, const struct model *model)
{
	for (size_t d = 0; d < s->devices.count; d++) {
		const struct step_device_sums *sums = &s->devices.list[d];
		const char *uuid = model_gpu(model, sums->device, "uuid");
		bool is_new = true;

		if (sums->process != s->processes.count - 1 || !sums->steady.count)
			continue;
		if (*uuid)
			xt_intern(&s->uuids, uuid, strlen(uuid), &is_new);
		s->gpu_count += is_new;
	}
}

static void steps_process_end(struct sink *sink, const struct process *process)
{
	struct steps *s = sink->state;
	uint32_t index = (uint32_t)(s->processes.count - 1);

	end_log(s);
	count_gpus(s, process->model);
	name_notes(s, &s->sums, s->reading.sums_from);
	for (size_t i = 0; i < s->slow.count; i++)
		if (s->slow.list[i].step.process == index)
			name_notes(s, &s->slow.list[i].notes, 0);
	if (s->reading.node_capacity)
		memset(s->reading.nodes, 0, s->reading.node_capacity * sizeof(*s->reading.nodes));
}

static int compare_walls(const void *a, const void *b)
{
	const struct step *const *x = a, *const *y = b;

	return (*x)->wall_ns != (*y)->wall_ns ? ORDER((*x)->wall_ns, (*y)->wall_ns) : ORDER(*y, *x);
}

/* Returns the steps after the warm-up in the order of their times. The caller frees them. */
static const struct step **sorted_steps(const struct steps *s, const struct step *like,
					size_t *count)
{
	size_t from = 0, until = s->all.count;
	const struct step **order;

	if (like) {
		from = FIRST_NOT(i, 0, until, s->all.list[i].process < like->process);
		until = FIRST_NOT(i, from, until, s->all.list[i].process == like->process);
	}
	order = xt_calloc(until - from + 1, sizeof(*order));
	*count = 0;
	for (size_t i = from; i < until; i++) {
		const struct step *step = &s->all.list[i];

		if (!step->is_warmup && (!like || step->device == like->device))
			order[(*count)++] = step;
	}
	qsort(order, *count, sizeof(*order), compare_walls);
	return order;
}

const struct step *steps_median(const struct steps *s, const struct step *like)
{
	size_t count;
	const struct step **order = sorted_steps(s, like, &count), *median;

	median = count ? order[(count - 1) / 2] : s->median;
	free(order);
	return median;
}

/* Finds the steps in the middle and at the end of the order by time. */
static void find_typical(struct steps *s)
{
	size_t count;
	const struct step **order = sorted_steps(s, NULL, &count);

	if (count) {
		s->median = order[(count - 1) / 2];
		s->slowest = order[count - 1];
	}
	free(order);
	/* A step without a row may be slower. */
	for (size_t i = 0; i < s->slow.count && s->slowest; i++)
		if (s->slow.list[i].step.wall_ns > s->slowest->wall_ns)
			s->slowest = &s->slow.list[i].step;
}

/* Whether the part is idle time of a known cause. */
static bool is_explained(uint32_t part)
{
	return part >= STEP_IDLE && part != STEP_UNEXPLAINED;
}

/* A step after the warm-up is kept, so --warmup may get fewer than were wanted. */
static void note_short_warmup(const struct step_process *process, const struct run *run)
{
	const struct iterations_request *request = &run->settings->iterations;

	if (request->has_warmup && process->warmup_count < request->warmup_count)
		report_note(run->report,
			    "%s: the warm-up is only %" PRIu64 " of %" PRIu64
			    " steps: --warmup keeps the last one",
			    process->label, process->warmup_count, process->found_count);
}

static void steps_end(struct sink *sink, const struct run *run)
{
	struct steps *s = sink->state;
	const char *wanted = run->settings->iterations.iteration;
	bool is_missing = wanted && s->processes.count;

	for (size_t d = 0; d < s->devices.count; d++) {
		add_sums(&s->warmup, &s->devices.list[d].warmup);
		add_sums(&s->steady, &s->devices.list[d].steady);
	}
	find_typical(s);
	for (size_t n = 0; n < s->sums.count; n++) {
		const struct step_note *note = &s->sums.list[n];

		if (is_explained(note->part))
			saturating_add(&by_id(s->weights, note->place)->idle_ns, note->ns);
	}
	for (size_t i = 0; i < s->processes.count; i++) {
		is_missing &= s->processes.list[i].source == ITERATIONS_MISSING;
		if (s->processes.list[i].found_count)
			note_short_warmup(&s->processes.list[i], run);
	}
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
	free_all(s->all.list, s->slow.list, s->processes.list, s->devices.list, s->sums.list,
		 s->weights.list);
	interner_free(&s->uuids);
	free_all(s->reading.devices, s->reading.nodes);
}

const struct exporter analysis_steps = {.uses = USES_ITERATIONS | USES_ORIGINS,
					.state_bytes = sizeof(struct steps),
					.process = steps_process,
					.on.stretch = steps_stretch,
					.on.idle_moved = steps_idle_moved,
					.total = steps_total,
					.pack = pack_steps,
					.process_end = steps_process_end,
					.end = steps_end,
					.free = steps_free_state};

const struct steps *steps_of(const struct run *run)
{
	const struct steps *s = run_analysis(run, &analysis_steps);

	return s && s->median && s->steady.count ? s : NULL;
}

bool steps_are_alike(const struct run *run)
{
	const struct steps *s = run_analysis(run, &analysis_steps);

	for (size_t i = 1; s && i < s->processes.count; i++)
		if (s->processes.list[i].found_count != s->processes.list[0].found_count ||
		    s->processes.list[i].warmup_count != s->processes.list[0].warmup_count)
			return false;
	return s;
}

size_t steps_of_log(const struct run *run, struct step_sums *sums)
{
	const struct steps *s = run_analysis(run, &analysis_steps);
	size_t device_count = 0;

	for (size_t d = 0; s && d < s->devices.count; d++) {
		const struct step_device_sums *device = &s->devices.list[d];

		if (device->process != s->processes.count - 1 || !device->steady.count)
			continue;
		add_sums(sums, &device->steady);
		device_count++;
	}
	return device_count;
}

uint64_t *steps_idle_of_log(const struct run *run, size_t total_count)
{
	const struct steps *s = run_analysis(run, &analysis_steps);
	uint64_t *idle_ns = xt_calloc(total_count + 1, sizeof(*idle_ns));

	for (size_t n = s ? s->reading.sums_from : 0; s && n < s->sums.count; n++) {
		const struct step_note *note = &s->sums.list[n];

		if (is_explained(note->part) && note->place < total_count)
			saturating_add(&idle_ns[note->place], note->ns);
	}
	return idle_ns;
}

uint64_t step_busy_ns(const uint64_t parts_ns[STEP_PARTS])
{
	uint64_t busy_ns = 0;

	for (int part = 0; part < STEP_WORK_PARTS; part++)
		saturating_add(&busy_ns, parts_ns[part]);
	return busy_ns;
}

uint64_t step_idle_ns(const uint64_t parts_ns[STEP_PARTS])
{
	uint64_t idle_ns = 0;

	for (int part = STEP_IDLE; part < STEP_UNEXPLAINED; part++)
		saturating_add(&idle_ns, parts_ns[part]);
	return idle_ns;
}
