/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rank_log.h"
#include "run.h"

#define FRAME_BYTES 128

static const char *const layouts[LAYOUT_COUNT] = {
	[LAYOUT_DDP] = "ddp",
	[LAYOUT_FSDP] = "fsdp",
	[LAYOUT_TENSOR] = "tensor",
};

/* Writes a list of numbers, with null for those that never happen. */
static void put_times(FILE *file, const char *key, const struct arrival *arrivals, uint32_t count,
		      size_t offset)
{
	fprintf(file, "\"%s\": [", key);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns;

		memcpy(&ns, (const char *)&arrivals[i] + offset, sizeof(ns));
		if (ns == NEVER)
			fprintf(file, "%snull", i ? ", " : "");
		else
			fprintf(file, "%s%" PRIu64, i ? ", " : "", ns);
	}
	fputs("]", file);
}

static uint32_t member(const struct communicator *c, uint32_t index)
{
	return c->first + index * c->stride;
}

static void put_members(FILE *file, const char *key, const struct communicator *c,
			const struct arrival *arrivals, bool has_launched)
{
	bool is_first = true;

	fprintf(file, "\"%s\": [", key);
	for (uint32_t i = 0; i < c->count; i++) {
		if (arrivals && arrivals[i].has_launched != has_launched)
			continue;
		fprintf(file, "%s%u", is_first ? "" : ", ", member(c, i));
		is_first = false;
	}
	fputs("]", file);
}

int truth_open(struct truth *truth, const struct job *job, const char *path, bool has_collectives)
{
	*truth = (struct truth){.job = job, .has_collectives = has_collectives};
	truth->file = fopen(path, "w");
	truth->mismatches_file = open_memstream(&truth->mismatches, &truth->mismatches_bytes);
	truth->unfinished_file = open_memstream(&truth->unfinished, &truth->unfinished_bytes);
	if (!truth->file || !truth->mismatches_file || !truth->unfinished_file)
		return -errno;
	fprintf(truth->file, "{\n\"scenario\": \"%s\", \"seed\": %" PRIu64 ",\n", job->scenario,
		job->seed);
	fprintf(truth->file, "\"layout\": \"%s\", \"stacks\": \"%s\", \"steps\": %u, ",
		layouts[job->layout], job->has_python ? "python" : "native", job->step_count);
	fprintf(truth->file, "\"payloads\": %s, \"graphs\": %s,\n",
		job->has_payloads ? "true" : "false", job->has_graphs ? "true" : "false");
	fputs("\"collectives\": [", truth->file);
	return 0;
}

/* Writes which operation and size the guilty rank passed, and which the others. */
static void put_mismatch(struct truth *truth, const struct communicator *c, uint32_t op,
			 const struct arrival *arrivals)
{
	const struct job *job = truth->job;
	FILE *file = truth->mismatches_file;
	bool is_operation = job->fault == FAULT_OPERATION;

	fprintf(file, "%s\n {\"communicator\": \"%" PRIu64 "\", \"index\": %u, \"what\": \"%s\", ",
		ftell(file) ? "," : "", c->id, c->next_index, is_operation ? "operation" : "bytes");
	for (uint32_t i = 0; i < c->count; i++)
		if (arrivals[i].is_fault)
			fprintf(file, "\"rank\": %u, \"values\": [", member(c, i));
	for (int is_fault = 0; is_fault < 2; is_fault++)
		if (is_operation)
			fprintf(file, "%s\"%s\"", is_fault ? ", " : "",
				collective_name(launched_collective(job, op, is_fault)));
		else
			fprintf(file, "%s%" PRIu64, is_fault ? ", " : "",
				launched_bytes(job, op, is_fault));
	fputs("]}", file);
}

static void put_unfinished(struct truth *truth, const struct communicator *c, uint32_t op,
			   const struct arrival *arrivals)
{
	FILE *file = truth->unfinished_file;

	fprintf(file,
		"%s\n {\"communicator\": \"%" PRIu64 "\", \"index\": %u, \"operation\": \"%s\", ",
		ftell(file) ? "," : "", c->id, c->next_index,
		collective_name(truth->job->ops[op].collective));
	put_members(file, "present", c, arrivals, true);
	fputs(", ", file);
	put_members(file, "absent", c, arrivals, false);
	fputs("}", file);
}

void truth_add(struct truth *truth, const struct communicator *c, uint32_t step, uint32_t op,
	       const struct arrival *arrivals)
{
	const struct op *o = &truth->job->ops[op];
	bool is_finished = true, is_launched = false, is_fault = false;

	for (uint32_t i = 0; i < c->count; i++) {
		is_finished &= arrivals[i].end_ns != NEVER;
		is_launched |= arrivals[i].has_launched;
		is_fault |= arrivals[i].is_fault;
	}
	if (is_launched && is_fault)
		put_mismatch(truth, c, op, arrivals);
	if (is_launched && !is_finished)
		put_unfinished(truth, c, op, arrivals);
	if (!is_launched || !truth->has_collectives)
		return;
	fprintf(truth->file, "%s\n {\"communicator\": \"%" PRIu64 "\", \"index\": %u, ",
		truth->count++ ? "," : "", c->id, c->next_index);
	fprintf(truth->file, "\"operation\": \"%s\", \"bytes\": %" PRIu64 ", \"step\": %d,\n  ",
		collective_name(o->collective), o->bytes, (int)step);
	put_times(truth->file, "enter_ns", arrivals, c->count, offsetof(struct arrival, enter_ns));
	fputs(",\n  ", truth->file);
	put_times(truth->file, "start_ns", arrivals, c->count, offsetof(struct arrival, start_ns));
	fputs(",\n  ", truth->file);
	put_times(truth->file, "end_ns", arrivals, c->count, offsetof(struct arrival, end_ns));
	fputs("}", truth->file);
}

static void put_where(struct truth *truth)
{
	const struct job *job = truth->job;
	bool is_kernel = job->fault == FAULT_KERNEL || job->moves_kernel;
	bool is_loader = job->fault == FAULT_LOADER || job->fault == FAULT_MOVING;
	char frame[FRAME_BYTES];
	const char *comma = "";

	fputs("\"where\": [", truth->file);
	if (is_kernel || is_loader) {
		place_frame(job, is_kernel ? job->ops[job->fault_op].place : PLACE_LOAD, frame,
			    sizeof(frame));
		fprintf(truth->file, "\"%s\"", frame);
	}
	for (uint32_t p = 0; p < job->pause_count; p++) {
		place_frame(job, job->ops[job->pauses[p].op].place, frame, sizeof(frame));
		fprintf(truth->file, "%s\"%s\"", comma, frame);
		comma = ", ";
	}
	fputs("]", truth->file);
}

static void put_verdict(struct truth *truth)
{
	static const char *const kinds[] = {
		[FAULT_NONE] = "none",	[FAULT_LOADER] = "rank", [FAULT_KERNEL] = "rank",
		[FAULT_PAUSE] = "rank", [FAULT_LINK] = "link",	 [FAULT_MOVING] = "moving",
		[FAULT_CPU] = "rank",
	};
	const struct job *job = truth->job;
	bool has_kind = job->fault < sizeof(kinds) / sizeof(kinds[0]);
	bool is_one_link = job->fault == FAULT_LINK && job->slow_link != UINT32_MAX;

	fprintf(truth->file, "\"verdict\": {\"kind\": \"%s\", ",
		has_kind ? kinds[job->fault] : "none");
	if (has_kind && job->guilty != NO_RANK)
		fprintf(truth->file, "\"rank\": %u, ", job->guilty);
	else
		fputs("\"rank\": null, ", truth->file);
	if (is_one_link)
		fprintf(truth->file, "\"communicator\": \"%" PRIu64 "\", ",
			job->communicators[job->slow_link].id);
	else
		fputs("\"communicator\": null, ", truth->file);
	put_where(truth);
	fprintf(truth->file, "},\n\"fault\": {\"rank\": %d, \"step\": %u, \"steps\": %u, ",
		(int)job->guilty, job->fault_step, job->fault_steps);
	fprintf(truth->file, "\"extra_ns\": %" PRIu64 ", \"factor\": %.3f},\n", job->extra_ns,
		job->slow_factor);
}

static void put_hosts(struct truth *truth)
{
	const struct job *job = truth->job;

	fputs("\"hosts\": [", truth->file);
	for (uint32_t h = 0; h < job->host_count; h++)
		fprintf(truth->file,
			"%s\n {\"host\": \"node%u\", \"offset_ns\": %" PRId64
			", \"drift_ppm\": %.9f, \"boot_ns\": %" PRIu64 "}",
			h ? "," : "", h + job->first_host, job->hosts[h].offset_ns,
			job->hosts[h].drift_ppm, job->hosts[h].boot_ns);
	fputs("],\n\"communicators\": [", truth->file);
	for (uint32_t c = 0; c < job->communicator_count; c++) {
		fprintf(truth->file, "%s\n {\"id\": \"%" PRIu64 "\", ", c ? "," : "",
			job->communicators[c].id);
		put_members(truth->file, "ranks", &job->communicators[c], NULL, true);
		fputs("}", truth->file);
	}
	fputs("],\n", truth->file);
}

static void put_ranks(struct truth *truth, const struct rank_log *logs)
{
	const struct job *job = truth->job;

	fputs("\"ranks\": [", truth->file);
	for (uint32_t r = 0; r < job->rank_count; r++) {
		const struct rank_log *log = &logs[r];
		const char *name = log->is_open ? strrchr(log->path, '/') + 1 : "";

		fprintf(truth->file, "%s\n {\"rank\": %u, \"host\": \"node%u\", ", r ? "," : "", r,
			job_host_of(job, r) + job->first_host);
		fprintf(truth->file, "\"log\": \"%s\", \"from_ns\": %" PRIu64 ", ", name,
			log->start_ns);
		if (log->until_ns == UINT64_MAX)
			fputs("\"until_ns\": null, ", truth->file);
		else
			fprintf(truth->file, "\"until_ns\": %" PRIu64 ", ", log->until_ns);
		fprintf(truth->file,
			"\"calls\": %" PRIu64 ", \"kernels\": %" PRIu64 ", \"copies\": %" PRIu64
			"}",
			log->log.row_counts[XT_KIND_CALL], log->log.row_counts[XT_KIND_KERNEL],
			log->log.row_counts[XT_KIND_COPY]);
	}
	fputs("],\n", truth->file);
}

int truth_close(struct truth *truth, const struct rank_log *logs, uint64_t end_ns)
{
	int error;

	fclose(truth->mismatches_file);
	fclose(truth->unfinished_file);
	fputs("],\n", truth->file);
	put_hosts(truth);
	put_ranks(truth, logs);
	put_verdict(truth);
	fprintf(truth->file, "\"mismatches\": [%s],\n\"unfinished\": [%s],\n", truth->mismatches,
		truth->unfinished);
	fprintf(truth->file, "\"end_ns\": %" PRIu64 ", \"end_without_fault_ns\": %" PRIu64 "\n}\n",
		end_ns, truth->end_without_fault_ns);
	free(truth->mismatches);
	free(truth->unfinished);
	error = ferror(truth->file) ? -EIO : 0;
	return fclose(truth->file) ? -errno : error;
}
