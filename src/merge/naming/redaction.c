/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements --redact.
 */
#include "merge/naming/redaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "log/base/compare.h"
#include "log/base/script_name.h"
#include "merge/naming/file_names.h"

#define REDACTED     "/redacted"
#define INDUCTOR     "/torchinductor_"
#define NO_ARGUMENTS "[arguments redacted]"

/* Numbers texts from 1 in order of use. */
static uint32_t number_of(struct names *names, const char *text, size_t length)
{
	if (!names->count)
		names_init(names);
	/* The empty text has the number NAME_EMPTY, whose place a folder "" needs, too. */
	return length ? names_intern(names, text, length) : names_intern(names, "/", 1);
}

/* The id of a process or thread. The main thread keeps that of its process. */
static uint32_t number_of_id(struct redaction *redaction, uint32_t id)
{
	char text[16];

	return number_of(&redaction->ids, text, (size_t)snprintf(text, sizeof(text), "%u", id));
}

/* An id of 0 stays: it is unknown. */
static void redact_id(struct redaction *redaction, uint32_t *id)
{
	if (*id)
		*id = number_of_id(redaction, *id);
}

/* Several rows of a log share a path. */
static bool is_redacted(const char *path)
{
	size_t length = strlen(REDACTED);

	return !strncmp(path, REDACTED, length) && (path[length] == '/' || path[length] == '-');
}

/* torch.compile's folder names the user: "/torchinductor_alice/ab/cab.py". */
static bool is_inductor(const char *path)
{
	return !strncmp(path, INDUCTOR, strlen(INDUCTOR));
}

static const char *redact_inductor(struct redaction *redaction, const char *path)
{
	const char *rest = strchr(path + 1, '/');
	size_t bytes = strlen(path) + sizeof(INDUCTOR) + strlen(REDACTED);

	xt_grow(&redaction->path, &redaction->path_capacity, bytes, 1);
	snprintf(redaction->path, bytes, INDUCTOR "%s%s", REDACTED + 1, rest ? rest : "");
	return redaction->path;
}

/* The last separator. Python may have read a file of Windows. NULL: there is none. */
static const char *last_separator(const char *path)
{
	const char *slash = strrchr(path, '/'), *backslash = strrchr(path, '\\');

	return backslash && (!slash || backslash > slash) ? backslash : slash;
}

const char *redact_path(struct redaction *redaction, const char *path)
{
	const char *file = path ? last_separator(path) : NULL, *kept;
	uint32_t number;
	size_t bytes;

	if (!redaction || !file || is_redacted(path))
		return path;
	kept = file_public_part(path);
	if (kept)
		return is_inductor(kept) ? redact_inductor(redaction, kept) : kept;
	number = number_of(&redaction->folders, path, (size_t)(file - path));
	file++;
	bytes = strlen(file) + sizeof(REDACTED "-4294967295/");
	xt_grow(&redaction->path, &redaction->path_capacity, bytes, 1);
	if (number == 1)
		snprintf(redaction->path, bytes, REDACTED "/%s", file);
	else
		snprintf(redaction->path, bytes, REDACTED "-%u/%s", number, file);
	return redaction->path;
}

/* Replaces text by "host-1" and so on. Empty text stays. */
static void redact_text(struct names *names, const char *prefix, char *out, size_t out_bytes)
{
	uint32_t number = number_of(names, out, strlen(out));

	if (out[0])
		snprintf(out, out_bytes, "%s%u", prefix, number);
}

/* "python3 train.py [arguments redacted]": titles are read from the first words. */
static void redact_command(char *out, size_t out_bytes, const char *program, const char *command)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	char script[INPUT_TITLE_BYTES];
	const char *backslash;
	bool has_script =
		xt_script_find(script, sizeof(script), program, command) == XT_SCRIPT_FILE &&
		script[0];
	/* A command may end with its script. */
	size_t length = strlen(command), script_length = has_script ? strlen(script) : 0;
	bool is_whole = has_script ? length >= script_length &&
					     !strcmp(command + length - script_length, script)
				   : !strchr(command, ' ');

	backslash = has_script ? strrchr(script, '\\') : NULL;
	snprintf(out, out_bytes, "%s%s%s%s", name, has_script ? " " : "",
		 backslash    ? backslash + 1
		 : has_script ? script
			      : "",
		 is_whole ? "" : " " NO_ARGUMENTS);
}

static void redact_input(struct redaction *redaction, struct input *log)
{
	char command[INPUT_COMMAND_BYTES];
	const char *program = redact_path(redaction, log->program);

	redact_command(command, sizeof(command), log->program, log->command);
	memcpy(log->command, command, sizeof(command));
	if (program != log->program)
		snprintf(log->program, sizeof(log->program), "%s", program);
	log->identity[0] = log->boot[0] = '\0';
	redact_id(redaction, &log->header.pid);
	redact_text(&redaction->jobs, "", log->pid_namespace, sizeof(log->pid_namespace));
	redact_text(&redaction->jobs, "job-", log->run, sizeof(log->run));
	redact_text(&redaction->jobs, "job-", log->batch_job, sizeof(log->batch_job));
	redact_text(&redaction->hosts, "host-", log->host, sizeof(log->host));
}

void redaction_begin(struct redaction *redaction, struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->all_count; i++)
		redact_input(redaction, &inputs->logs[i]);
	inputs_distinguish(inputs);
}

void redaction_free(struct redaction *redaction)
{
	names_free(&redaction->folders);
	names_free(&redaction->hosts);
	names_free(&redaction->gpus);
	names_free(&redaction->jobs);
	names_free(&redaction->ids);
	free(redaction->path);
}

/* Replaces a path in the model's names. */
static void replace_path(struct redaction *redaction, struct model *model, uint32_t *name)
{
	/* A copy, because names_intern() moves the texts. */
	char *path = xt_strdup(names_text(&model->names, *name, NULL));
	const char *shown = redact_path(redaction, path);

	*name = names_intern(&model->names, shown, strlen(shown));
	free(path);
}

/* A function of a perf map may name its file: "py::step:/srv/alice/train.py". */
static void replace_name(struct redaction *redaction, struct model *model, uint32_t *name)
{
	const char *text = names_text(&model->names, *name, NULL), *path = strstr(text, ":/");
	char *shown;

	if (!path && !strncmp(text, "py::", 4))
		path = strchr(text + 4, ':');
	if (!path)
		return;
	path++;
	shown = xt_asprintf("%.*s%s", (int)(path - text), text, redact_path(redaction, path));
	*name = names_intern(&model->names, shown, strlen(shown));
	free(shown);
}

void redact_names(struct redaction *redaction, struct model *model, struct addresses *addresses)
{
	for (size_t a = 0; a < addresses->count; a++)
		replace_name(redaction, model, &addresses->list[a].name);
}

/* Replaces the value of a fact about the process, the host or the GPU. */
static void replace_fact(struct redaction *redaction, struct model *model, struct pair *fact)
{
	const char *key = names_text(&model->names, fact->key, NULL);
	const char *text = names_text(&model->names, fact->text, NULL);
	char shown[INPUT_COMMAND_BYTES];
	uint32_t number;

	if (!strcmp(key, "process.cmdline")) {
		redact_command(shown, sizeof(shown), model_meta(model, "process.exe"), text);
	} else if (!strcmp(key, "host.name")) {
		snprintf(shown, sizeof(shown), "%s", text);
		redact_text(&redaction->hosts, "host-", shown, sizeof(shown));
	} else if (!strcmp(key, "env.TORCHELASTIC_RUN_ID") || !strcmp(key, "env.SLURM_JOB_ID")) {
		snprintf(shown, sizeof(shown), "%s", text);
		redact_text(&redaction->jobs, "job-", shown, sizeof(shown));
	} else if (!strcmp(key, "process.id") || !strcmp(key, "process.parent")) {
		snprintf(shown, sizeof(shown), "%s", text);
		redact_text(&redaction->ids, "", shown, sizeof(shown));
	} else if (!strcmp(key, "host.boot") || !strcmp(key, "process.identity") ||
		   !strcmp(key, "process.pid_namespace")) {
		shown[0] = '\0';
	} else if (ends_with(key, ".uuid")) {
		number = number_of(&redaction->gpus, text, strlen(text));
		snprintf(shown, sizeof(shown), "GPU-redacted-%u", number);
	} else {
		if (text[0] == '/')
			replace_path(redaction, model, &fact->text);
		return;
	}
	fact->text = names_intern(&model->names, shown, strlen(shown));
}

COMPARE_BY(compare_threads, struct cpu_thread, UP(tid))

/* Numbers all processes and threads, also those that samples wait for. */
static void redact_ids(struct redaction *redaction, struct model *model)
{
	struct cpu_samples *samples = &model->cpu_samples;

	redact_id(redaction, &model->pid);
	for (size_t t = 0; t < model->threads.count; t++)
		redact_id(redaction, &model->threads.rows[t].tid);
	for (size_t t = 0; t < samples->thread_count; t++)
		redact_id(redaction, &samples->threads[t].tid);
	if (samples->thread_count)
		qsort(samples->threads, samples->thread_count, sizeof(*samples->threads),
		      compare_threads);
	for (size_t s = 0; s < samples->count; s++) {
		redact_id(redaction, &samples->rows[s].tid);
		redact_id(redaction, &samples->rows[s].wait_pid);
		redact_id(redaction, &samples->rows[s].wait_tid);
	}
}

void redact_model(struct redaction *redaction, struct model *model, struct addresses *addresses)
{
	for (size_t m = 1; m < model->modules.count; m++)
		replace_path(redaction, model, &model->modules.rows[m].path);
	for (size_t p = 0; p < addresses->place_count; p++)
		replace_path(redaction, model, &addresses->places[p].file);
	for (size_t f = 0; f < model->python_frames.count; f++) {
		uint32_t string = model->python_frames.rows[f].file;

		if (string < model->strings.count)
			replace_path(redaction, model, &model->strings.rows[string]);
	}
	for (size_t r = 1; r < model->compiled.count; r++)
		replace_path(redaction, model, &model->compiled.rows[r].place.file);
	for (size_t i = 0; i < model->meta.count; i++)
		replace_fact(redaction, model, &model->meta.rows[i]);
	redact_ids(redaction, model);
}
