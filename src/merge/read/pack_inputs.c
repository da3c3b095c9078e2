/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/read/pack_inputs.h"

#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"

void pack_argv(struct pack *pack, int *argc, char ***argv)
{
	int count = *argc;

	PACK(pack, count);
	pack_check(pack, count >= 0 && (size_t)count <= pack->bytes - pack->at);
	if (pack->is_reading) {
		*argc = 0;
		*argv = pack->error ? NULL : xt_calloc((size_t)count + 1, sizeof(**argv));
	}
	for (int i = 0; i < count && !pack->error; i++) {
		pack_text(pack, &(*argv)[i]);
		*argc = i + 1;
	}
}

void free_argv(int argc, char **argv)
{
	for (int i = 0; i < argc && argv; i++)
		free(argv[i]);
	free(argv);
}

/* Ends the texts of a log, however they came. */
static void end_texts(struct input *log)
{
	const struct {
		char *text;
		size_t bytes;
	} texts[] = {
		{log->alias, sizeof(log->alias)},
		{log->host, sizeof(log->host)},
		{log->program, sizeof(log->program)},
		{log->command, sizeof(log->command)},
		{log->identity, sizeof(log->identity)},
		{log->pid_namespace, sizeof(log->pid_namespace)},
		{log->boot, sizeof(log->boot)},
		{log->run, sizeof(log->run)},
		{log->batch_job, sizeof(log->batch_job)},
		{log->distinction, sizeof(log->distinction)},
	};

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
		texts[t].text[texts[t].bytes - 1] = '\0';
}

void pack_inputs(struct pack *pack, struct inputs *inputs)
{
	size_t count = inputs->all_count;

	PACK(pack, inputs->count);
	pack_bool(pack, &inputs->has_several_hosts);
	PACK(pack, inputs->origin_ns);
	PACK_ARRAY(pack, inputs->logs, count, inputs->capacity, SIZE_MAX);
	for (size_t i = 0; i < count && pack->is_reading; i++)
		inputs->logs[i].path = NULL;
	if (pack->is_reading)
		inputs->all_count = count;
	for (size_t i = 0; i < count && !pack->error; i++) {
		struct input *log = &inputs->logs[i];

		pack_text(pack, &log->path);
		pack_check(pack, log->first < count);
		if (pack->is_reading)
			end_texts(log);
	}
	pack_check(pack, inputs->count <= count);
	if (pack->error && pack->is_reading && inputs->count > inputs->all_count)
		inputs->count = inputs->all_count;
}
