/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/sums/processes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/json.h"
#include "log/base/compare.h"
#include "merge/base/pack.h"
#include "merge/tables/table.h"
#include "merge/sums/run.h"

static void add_process(struct sink *sink, const struct process *process)
{
	struct processes *s = sink->state;
	char title[PROCESS_TITLE_BYTES];

	if (process->is_continued)
		return;
	model_process_title(process->model, title);
	list_append(*s, (struct process_sums){
				.label = process->label,
				.name = xt_strdup(model_process_name(process->model)),
				.title = xt_strdup(title),
				.command = xt_strdup(model_meta(process->model, "process.cmdline")),
				.log = process->log,
				.origin_ns = process->origin_ns,
			});
}

/* Returns the sums of a device of the current process. */
static struct device_sums *sums_of_device(struct processes *s, const struct model *model,
					  uint32_t device)
{
	struct process_sums *process = &s->list[s->count - 1];
	struct device_sums *sums;

	for (size_t d = 0; d < process->devices.count; d++)
		if (process->devices.list[d].device == device)
			return &process->devices.list[d];
	sums = list_new(process->devices);
	*sums = (struct device_sums){
		.device = device,
		.name = xt_strdup(model_gpu(model, device, "name")),
		.uuid = xt_strdup(model_gpu(model, device, "uuid")),
		.start_ns = UINT64_MAX,
	};
	return sums;
}

static struct device_sums *sums_of(struct processes *s, const struct model *model, uint32_t stream)
{
	return sums_of_device(s, model, model_device(model, stream));
}

static void add_work(struct sink *sink, const struct process *process, const struct work *work,
		     const struct launch *launch)
{
	struct device_sums *sums = sums_of(sink->state, process->model, work->stream);
	uint64_t end_ns = work->start_ns + work->duration_ns;

	(void)launch;
	if (end_ns < work->start_ns)
		end_ns = UINT64_MAX;
	sums->counts[work->kind]++;
	sums->gpu_ns += work->duration_ns;
	sums->start_ns = smaller(work->start_ns, sums->start_ns);
	sums->end_ns = larger(end_ns, sums->end_ns);
}

static void add_stretch(struct sink *sink, const struct process *process,
			const struct stretch *stretch)
{
	struct device_sums *sums = sums_of(sink->state, process->model, stretch->work->stream);

	collectives_add(&sums->collectives, &sums->sweep, stretch);
}

static void pack_device(struct pack *pack, struct device_sums *sums)
{
	PACK(pack, sums->counts);
	PACK(pack, sums->gpu_ns);
	PACK(pack, sums->collectives);
	PACK(pack, sums->start_ns);
	PACK(pack, sums->end_ns);
}

static void pack_log(struct sink *sink, const struct process *process, struct pack *pack)
{
	struct processes *s = sink->state;
	const struct process_sums *sums = &s->list[s->count - 1];
	uint64_t count = sums->devices.count;

	PACK(pack, count);
	for (uint64_t d = 0; d < count && !pack->error; d++) {
		uint32_t device = pack->is_reading ? 0 : sums->devices.list[d].device;

		PACK(pack, device);
		if (!pack->error)
			pack_device(pack, sums_of_device(s, process->model, device));
	}
}

static void add_total(struct sink *sink, const struct process *process, const struct total *total,
		      uint32_t node)
{
	uint64_t exclusive_ns = total->weights[WEIGHT_GPU_EXCLUSIVE];
	uint64_t idle_ns = total->weights[WEIGHT_GPU_IDLE];
	struct device_sums *sums;

	(void)node;
	if (!exclusive_ns && !idle_ns)
		return;
	sums = sums_of(sink->state, process->model, total->owner.stream);
	sums->exclusive_ns += exclusive_ns;
	if (total->owner.leaf == LEAF_IDLE)
		sums->idle_ns[IDLE_WHAT_CLASS(total->owner.what)] += idle_ns;
}

static void processes_free_state(struct sink *sink)
{
	struct processes *s = sink->state;

	for (size_t i = 0; i < s->count; i++) {
		struct process_sums *process = &s->list[i];

		for (size_t d = 0; d < process->devices.count; d++)
			free_all(process->devices.list[d].name, process->devices.list[d].uuid);
		free_all(process->devices.list, process->name, process->title, process->command);
	}
	free(s->list);
}

const struct exporter analysis_processes = {.uses = USES_ORIGINS | USES_CPU_LOGS,
					    .state_bytes = sizeof(struct processes),
					    .process = add_process,
					    .on.work = add_work,
					    .on.stretch = add_stretch,
					    .total = add_total,
					    .pack = pack_log,
					    .free = processes_free_state};

static const struct column_def process_columns[] = {
	COLUMN("label", TEXT, FROM(process_sums, label), "unique name"),
	COLUMN("name", TEXT, FROM(process_sums, name), "name of the executable"),
	COLUMN("title", TEXT, FROM(process_sums, title), "script that it ran, or else the name"),
	COLUMN("command", TEXT, FROM(process_sums, command), "command line"),
	JOB_COLUMNS,
	COLUMN("host", TEXT, OTHER, "host"),
	COLUMN("pid", CODE, OTHER, "process id"),
	COLUMN("identity", TEXT, OTHER, "the same in all logs of a process"),
	COLUMN("pid_namespace", TEXT, OTHER, "tells processes of containers apart; may be empty"),
	COLUMN("boot", TEXT, OTHER, "tells hosts apart; may be empty"),
	COLUMN("log", TEXT, OTHER, "path of the log"),
	COLUMN("start_realtime_ns", MOMENT, OTHER, "start of the log, since 1970"),
};

static void open_processes(struct table_rows *rows)
{
	const struct processes *s = run_analysis(rows->run, &analysis_processes);

	table_records(rows, s->list, s->count);
}

static void put_process(struct table_rows *rows, struct cells *cells)
{
	const struct process_sums *process = rows->record;
	const struct input *log = process->log;

	cells_put_job(cells, log);
	cells_put(cells, cell_text(log->host));
	cells_put(cells, cell_number(log->header.pid));
	cells_put(cells, cell_text(log->identity));
	cells_put(cells, cell_text(log->pid_namespace));
	cells_put(cells, cell_text(log->boot));
	cells_put(cells, cell_text(input_shown(log)));
	cells_put(cells, cell_number(log->header.start_realtime_ns));
}

const struct table_def table_processes = {
	.name = "processes",
	.json.form = FORM_LIST,
	.title = "Processes",
	.what = "Logs, and processes with CPU samples only.",
	HAS_COLUMNS(process_columns),
	.inner = &table_devices,
	.view = "process",
	.open = open_processes,
	.row = put_process,
};

struct device_record {
	const struct process_sums *process;
	struct device_sums sums;
	uint64_t idle_ns;
};

static const struct column_def device_columns[] = {
	COLUMN("process", TEXT, OTHER, "label of the process", FLAT),
	COLUMN("device", CODE, OTHER, "its number in the process", OPTIONAL),
	COLUMN("name", TEXT, FROM(device_record, sums.name), "model"),
	COLUMN("uuid", TEXT, FROM(device_record, sums.uuid), "tells devices of one name apart",
	       OPTIONAL),
	COLUMN("kernel_count", COUNT, FROM(device_record, sums.counts[WORK_KERNEL]), "kernels"),
	COLUMN("copy_count", COUNT, FROM(device_record, sums.counts[WORK_COPY]), "copies"),
	COLUMN("set_count", COUNT, FROM(device_record, sums.counts[WORK_MEMSET]), "memsets"),
	COLUMN("gpu_time_ns", NS, FROM(device_record, sums.gpu_ns), "time of all of them"),
	COLUMN("gpu_busy_ns", NS, FROM(device_record, sums.exclusive_ns),
	       "time in which anything ran, collectives included"),
	COLUMN("gpu_idle_ns", NS, FROM(device_record, idle_ns),
	       "idle time between its first and its last work"),
	COLUMN("collective_count", COUNT, FROM(device_record, sums.collectives.count),
	       "of the kernels: collectives"),
	COLUMN("collective_time_ns", NS, FROM(device_record, sums.collectives.gpu_ns),
	       "their time"),
	COLUMN("collective_alone_ns", NS, FROM(device_record, sums.collectives.alone_ns),
	       "of this: nothing else ran"),
	COLUMN("first_start_ns", MOMENT, OTHER, "start of the first work"),
	COLUMN("last_end_ns", MOMENT, OTHER, "end of the last work"),
};

static void open_devices(struct table_rows *rows)
{
	const struct processes *s = run_analysis(rows->run, &analysis_processes);
	struct device_record *list = NULL;
	size_t count = 0, capacity = 0;

	for (size_t p = 0; p < s->count; p++)
		for (size_t d = 0; d < s->list[p].devices.count; d++) {
			const struct process_sums *process = &s->list[p];

			if (rows->outer && rows->outer != process)
				continue;
			xt_grow(list, capacity, count + 1);
			list[count] = (struct device_record){process, process->devices.list[d], 0};
			for (int class = 0; class < IDLE_CLASSES; class ++)
				list[count].idle_ns += process->devices.list[d].idle_ns[class];
			count++;
		}
	rows->memory = list;
	table_records(rows, list, count);
}

static void put_device(struct table_rows *rows, struct cells *cells)
{
	const struct device_record *device = rows->record;
	const struct device_sums *sums = &device->sums;
	uint64_t origin_ns = (uint64_t)device->process->origin_ns;

	cells_put(cells, cell_text(device->process->label));
	cells_put(cells, cell_known(sums->device != ROOT_UNKNOWN, sums->device));
	cells_put(cells, cell_moment((int64_t)(sums->start_ns - origin_ns)));
	cells_put(cells, cell_moment((int64_t)(sums->end_ns - origin_ns)));
}

static void put_device_idle(struct json *json, const struct table_rows *rows)
{
	const struct device_record *device = rows->record;

	json_begin_object(json, "gpu_idle_by_class_ns");
	for (int class = 0; class < IDLE_CLASSES; class ++)
		json_u64(json, idle_labels[class], device->sums.idle_ns[class]);
	json_end_object(json);
}

const struct table_def table_devices = {
	.name = "devices",
	.json.name = "processes.devices",
	.json.form = FORM_LIST,
	.title = "Devices",
	.what = "Devices with work, by process.",
	HAS_COLUMNS(device_columns),
	.view = "device",
	.open = open_devices,
	.row = put_device,
	.json.more = put_device_idle,
};
