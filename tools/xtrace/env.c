/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace env: prints the environment variables with which a program records itself, for containers,
 * batch scripts and services.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture_options.h"
#include "commands.h"
#include "data_dir.h"
#include "json_file.h"
#include "shell_quote.h"

enum format { FORMAT_SH, FORMAT_DOCKER, FORMAT_JSON };

struct request {
	struct capture_options options; /* first: its option rows use this as context */
	enum format format;
	struct install_paths paths;
};

static const struct option_row option_rows[] = {
	{"format", .value = "sh|docker|json",
	 .help = "Print lines for a shell (default: sh), for docker run --env-file (docker), or a "
		 "JSON object",
	 .apply = option_word, .offset = offsetof(struct request, format)},
	{0},
};

static void list_options(struct option_list *list)
{
	option_list_add(list, capture_option_rows);
	option_list_add(list, option_rows);
}

static int print_sh(const struct capture_environment *environment, const char *data_dir)
{
	char *folder = shell_quote(data_dir);
	int error = folder ? 0 : -ENOMEM;

	/* The comment below would end there. */
	if (strchr(data_dir, '\n')) {
		free(folder);
		return -EINVAL;
	}
	for (size_t i = 0; i < environment->count && !error; i++) {
		char *value = shell_quote(environment->entries[i].value);

		if (value)
			printf("export %s=%s\n", environment->entries[i].name, value);
		else
			error = -ENOMEM;
		free(value);
	}
	if (!error)
		printf("# After the run, on the same machine: xtrace merge --embed-symbols %s\n",
		       folder);
	free(folder);
	return error;
}

/* docker takes the rest of the line as it is, so a value cannot contain a newline. */
static int print_docker(const struct capture_environment *environment, const char *data_dir)
{
	char *folder;

	for (size_t i = 0; i < environment->count; i++)
		if (strchr(environment->entries[i].value, '\n'))
			return -EINVAL;
	for (size_t i = 0; i < environment->count; i++)
		printf("%s=%s\n", environment->entries[i].name, environment->entries[i].value);
	folder = shell_quote(data_dir);
	if (folder)
		printf("# After the run, in the container: xtrace merge --embed-symbols %s\n",
		       folder);
	free(folder);
	return folder ? 0 : -ENOMEM;
}

static int print_json(const struct capture_environment *environment, const char *data_dir)
{
	cJSON *root = cJSON_CreateObject();
	char *text;

	(void)data_dir;
	for (size_t i = 0; i < environment->count; i++)
		cJSON_AddStringToObject(root, environment->entries[i].name,
					environment->entries[i].value);
	text = json_file_text(root);
	cJSON_Delete(root);
	if (text)
		fputs(text, stdout);
	free(text);
	return text ? 0 : -ENOMEM;
}

static int (*const printers[])(const struct capture_environment *, const char *) = {
	[FORMAT_SH] = print_sh,
	[FORMAT_DOCKER] = print_docker,
	[FORMAT_JSON] = print_json,
};

/* The program may run in another directory. The caller frees it. */
static char *absolute(const char *path)
{
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *result;

	if (!here || asprintf(&result, "%s%s%s", here, *path == '/' ? "" : "/", path) < 0)
		result = NULL;
	free(here);
	return result;
}

static int run_env(const struct command *command, int argc, char **argv)
{
	struct request request = {.options.output = DEFAULT_DATA_DIR};
	struct capture_environment environment = {0};
	char *data_dir;
	int status, count, error = -ENOMEM;

	status = command_parse(command, NULL, &request, argc, argv, 0, &count);
	if (status != COMMAND_GO_ON)
		return status;
	status = capture_check(&request.options);
	if (!status)
		status = capture_find_parts(&request.options, &request.paths);
	if (status)
		return status;
	data_dir = absolute(request.options.output);
	if (data_dir)
		error = capture_environment_make(&environment, &request.options, &request.paths,
						 data_dir);
	if (!error)
		error = printers[request.format](&environment, data_dir);
	if (error)
		print_error("cannot print the variables: %s",
			    error == -EINVAL ? "this form has no place for a newline"
					     : strerror(-error));
	capture_environment_free(&environment);
	free(data_dir);
	return error ? STATUS_FAILED : STATUS_OK;
}

static const char details[] =
	"  eval \"$(xtrace env -o trace)\"; ./server; xtrace merge --embed-symbols trace\n\n"
	"Paths are those of this machine. For a container, run 'xtrace env' inside it, or mount "
	"the\n"
	"installation at the same place.\n";

const struct command command_env = {
	.name = "env",
	.arguments = "[OPTION]...",
	.summary = "Print environment variables that make a program record itself",
	.details = details,
	.list_options = list_options,
	.run = run_env,
};
