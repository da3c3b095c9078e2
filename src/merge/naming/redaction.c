/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements --redact.
 */
#include "merge/naming/redaction.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/base/grow.h"
#include "log/base/script_name.h"
#include "merge/naming/file_names.h"

#define REDACTED     "/redacted"
#define INDUCTOR     "/torchinductor_"
#define NO_ARGUMENTS "[arguments redacted]"

/* Numbers texts from 1 in order of use. Returns 0 if out of memory. */
static uint32_t number_of(struct names *names, const char *text, size_t length)
{
	uint32_t name;

	if (!names->count && names_init(names) < 0)
		return 0;
	/* The empty text has the number NAME_EMPTY, whose place a folder "" needs, too. */
	name = length ? names_intern(names, text, length) : names_intern(names, "/", 1);
	return name == NAME_FAILED ? 0 : name;
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

	if (grow(&redaction->path, &redaction->path_capacity, bytes, 1) < 0)
		return "";
	snprintf(redaction->path, bytes, INDUCTOR "%s%s", REDACTED + 1, rest ? rest : "");
	return redaction->path;
}

const char *redact_path(struct redaction *redaction, const char *path)
{
	const char *file = path ? strrchr(path, '/') : NULL, *kept;
	uint32_t number;
	size_t bytes;

	if (!redaction || !file || is_redacted(path))
		return path;
	kept = file_public_part(path);
	if (kept)
		return is_inductor(kept) ? redact_inductor(redaction, kept) : kept;
	number = number_of(&redaction->folders, path, (size_t)(file - path));
	bytes = strlen(file) + sizeof(REDACTED "-4294967295");
	if (!number || grow(&redaction->path, &redaction->path_capacity, bytes, 1) < 0)
		return "";
	if (number == 1)
		snprintf(redaction->path, bytes, REDACTED "%s", file);
	else
		snprintf(redaction->path, bytes, REDACTED "-%u%s", number, file);
	return redaction->path;
}

/* Replaces text by "host-1" and so on. */
static int redact_host(struct redaction *redaction, char *out, size_t out_bytes)
{
	uint32_t number = number_of(&redaction->hosts, out, strlen(out));

	if (out[0])
		snprintf(out, out_bytes, "host-%u", number);
	return number ? 0 : -ENOMEM;
}

/* "python3 train.py [arguments redacted]": titles are read from the first words. */
static void redact_command(char *out, size_t out_bytes, const char *program, const char *command)
{
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
	char script[INPUT_TITLE_BYTES];
	bool has_script =
		xt_script_find(script, sizeof(script), program, command) == XT_SCRIPT_FILE &&
		script[0];
	/* A command may end with its script. */
	size_t length = strlen(command), script_length = has_script ? strlen(script) : 0;
	bool is_whole = has_script ? length >= script_length &&
					     !strcmp(command + length - script_length, script)
				   : !strchr(command, ' ');

	snprintf(out, out_bytes, "%s%s%s%s", name, has_script ? " " : "", has_script ? script : "",
		 is_whole ? "" : " " NO_ARGUMENTS);
}

static int redact_input(struct redaction *redaction, struct input *log)
{
	char command[INPUT_COMMAND_BYTES];
	const char *program = redact_path(redaction, log->program);

	redact_command(command, sizeof(command), log->program, log->command);
	memcpy(log->command, command, sizeof(command));
	if (program != log->program)
		snprintf(log->program, sizeof(log->program), "%s", program);
	log->identity[0] = log->pid_namespace[0] = log->boot[0] = '\0';
	return redact_host(redaction, log->host, sizeof(log->host));
}

int redaction_begin(struct redaction *redaction, struct inputs *inputs)
{
	int error = 0;

	for (size_t i = 0; i < inputs->all_count && !error; i++)
		error = redact_input(redaction, &inputs->logs[i]);
	return error;
}

void redaction_free(struct redaction *redaction)
{
	names_free(&redaction->folders);
	names_free(&redaction->hosts);
	names_free(&redaction->gpus);
	free(redaction->path);
}

/* Replaces a path in the model's names. */
static int replace_path(struct redaction *redaction, struct model *model, uint32_t *name)
{
	/* A copy, because names_intern() moves the texts. */
	char *path = strdup(names_text(&model->names, *name, NULL));
	const char *shown = path ? redact_path(redaction, path) : "";

	*name = path ? names_intern(&model->names, shown, strlen(shown)) : NAME_FAILED;
	free(path);
	return *name == NAME_FAILED ? -ENOMEM : 0;
}

/* A function of a perf map may name its file: "py::step:/srv/alice/train.py". */
static int replace_name(struct redaction *redaction, struct model *model, uint32_t *name)
{
	const char *text = names_text(&model->names, *name, NULL), *path = strstr(text, ":/");
	char *shown;
	int length;

	if (!path)
		return 0;
	path++;
	length = asprintf(&shown, "%.*s%s", (int)(path - text), text, redact_path(redaction, path));
	if (length < 0)
		return -ENOMEM;
	*name = names_intern(&model->names, shown, (size_t)length);
	free(shown);
	return *name == NAME_FAILED ? -ENOMEM : 0;
}

int redact_names(struct redaction *redaction, struct model *model, struct addresses *addresses)
{
	int error = 0;

	for (size_t a = 0; a < addresses->count && !error; a++)
		error = replace_name(redaction, model, &addresses->list[a].name);
	return error;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), wanted = strlen(ending);

	return length >= wanted && !strcmp(text + length - wanted, ending);
}

/* Replaces the value of a fact about the process, the host or the GPU. */
static int replace_fact(struct redaction *redaction, struct model *model, struct pair *fact)
{
	const char *key = names_text(&model->names, fact->key, NULL);
	const char *text = names_text(&model->names, fact->text, NULL);
	char shown[INPUT_COMMAND_BYTES];
	uint32_t number;

	if (!strcmp(key, "process.cmdline")) {
		redact_command(shown, sizeof(shown), model_meta(model, "process.exe"), text);
	} else if (!strcmp(key, "host.name")) {
		snprintf(shown, sizeof(shown), "%s", text);
		if (redact_host(redaction, shown, sizeof(shown)) < 0)
			return -ENOMEM;
	} else if (!strcmp(key, "host.boot") || !strcmp(key, "process.identity") ||
		   !strcmp(key, "process.pid_namespace")) {
		shown[0] = '\0';
	} else if (ends_with(key, ".uuid")) {
		number = number_of(&redaction->gpus, text, strlen(text));
		snprintf(shown, sizeof(shown), "GPU-redacted-%u", number);
		if (!number)
			return -ENOMEM;
	} else {
		return text[0] == '/' ? replace_path(redaction, model, &fact->text) : 0;
	}
	fact->text = names_intern(&model->names, shown, strlen(shown));
	return fact->text == NAME_FAILED ? -ENOMEM : 0;
}

int redact_model(struct redaction *redaction, struct model *model, struct addresses *addresses)
{
	int error = 0;

	for (size_t m = 1; m < model->modules.count && !error; m++)
		error = replace_path(redaction, model, &model->modules.rows[m].path);
	for (size_t p = 0; p < addresses->place_count && !error; p++)
		error = replace_path(redaction, model, &addresses->places[p].file);
	for (size_t f = 0; f < model->python_frames.count && !error; f++) {
		uint32_t string = model->python_frames.rows[f].file;

		if (string < model->strings.count)
			error = replace_path(redaction, model, &model->strings.rows[string]);
	}
	for (size_t i = 0; i < model->meta.count && !error; i++)
		error = replace_fact(redaction, model, &model->meta.rows[i]);
	return error;
}
