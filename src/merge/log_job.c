/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/log_job.h"

#include "merge/events.h"
#include "merge/read/model_load.h"
#include "merge/sums/sums.h"

bool log_jobs_possible(const struct run *run, const struct sink *sinks, size_t sink_count)
{
	return !run->selection && !sinks_want_events(sinks, sink_count);
}

void log_job_init(struct log_job *job, struct run *run, struct sink *sinks, size_t sink_count,
		  size_t index)
{
	job->reading = (struct reading){
		.run = run,
		.sinks = sinks,
		.sink_count = sink_count,
		.process.log = &run->inputs->logs[index],
	};
}

void log_job_read(struct log_job *job, size_t helper_count)
{
	struct reading *reading = &job->reading;
	struct xt_reader *reader;

	reading->error = model_open(reading->process.log, NULL, &reading->model, &reader);
	job->is_opened = reading->error || reader;
	if (!reader)
		return;
	reading->process.model = reading->model;
	reading_events(reading, reader, helper_count, NULL);
	xt_reader_close(reader);
}

struct reading *log_job_join(struct log_job *job)
{
	struct reading *reading = &job->reading;

	log_counts_add(&reading->run->sums->events, &reading->sums.counts);
	return reading;
}

void log_job_free(struct log_job *job)
{
	reading_free(&job->reading);
	model_free(job->reading.model);
	job->reading = (struct reading){0};
}
