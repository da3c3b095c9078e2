/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace ci init: copies the files of a GPU time check into a repository. It fills in the templates
 * of tools/ci, and changes nothing if a file of the check exists. Functions that return int return
 * 0, or -errno after an error message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "commands.h"
#include "program.h"

#define BASELINE ".xtrace/baseline.json"
/* Lets git combine the baselines of two branches: each set of runs is a line. */
#define ATTRIBUTE BASELINE " merge=union"

/* Files of tools/ci, and where they go. The workflow of a CI system is the last one. */
struct ci_file {
	const char *name, *path;
};
static const struct ci_file files[][4] = {
	{{"rules", ".xtrace/rules"},
	 {"gate.sh", ".xtrace/ci/gate.sh"},
	 {"github/action.yml", ".xtrace/ci/github/action.yml"},
	 {"github/workflow.yml.in", ".github/workflows/gpu-time.yml"}},
	{{"rules", ".xtrace/rules"},
	 {"gate.sh", ".xtrace/ci/gate.sh"},
	 {"gitlab/xtrace-gate.yml", ".xtrace/ci/gitlab/xtrace-gate.yml"},
	 {"gitlab/workflow.yml.in", ".gitlab-ci.yml"}},
};

/* The command line, and what follows from it. */
struct ci_setup {
	bool is_simulated, force;
	const char *xtrace; /* for the job */
	bool is_github;	    /* otherwise GitLab */
	char *line;	    /* the command for a shell; owned */
	char *folder;	    /* the installed tools/ci; owned */
};

static int refuse_runs(void *context, const struct option_row *row, const char *value)
{
	(void)context;
	(void)row;
	(void)value;
	print_error("--runs was removed: xtrace ci init measures nothing; write the number of runs "
		    "of the job into the workflow");
	return -ENOENT;
}

#define TARGET(member) .offset = offsetof(struct ci_setup, member)

static const struct option_row option_rows[] = {
	{"simulate", 's', .apply = option_flag, TARGET(is_simulated),
	 .help = "Let the job use the simulated GPU, for a first try without a GPU"},
	{"xtrace", .value = "FILE", .apply = option_text, TARGET(xtrace),
	 .help = "Let the job use FILE, a tarball, its URL, or a folder (default: install a "
		 "released version with pip)"},
	{"force", 'f', .apply = option_flag, TARGET(force),
	 .help = "Replace rules and scripts that exist. A workflow is never replaced"},
	{"runs", 'n', .value = "RUNS", .apply = refuse_runs, .is_hidden = true, .help = "Removed"},
	{0},
};

/*
 * Options can be before and after each word. Sets *program_out to the program and its arguments.
 * Returns COMMAND_GO_ON, or the status to end with.
 */
static int parse(struct ci_setup *setup, const struct command *command, int argc, char **argv,
		 char ***program_out)
{
	static const char *const words[] = {"verb", "CI system", "program"};
	struct option_list list;
	int status, count;

	for (int word = 0; word < 3; word++) {
		status = command_parse(command, &list, setup, argc, argv, ANY_OPERANDS, &count);
		if (status != COMMAND_GO_ON)
			return status;
		if (!count) {
			print_error("no %s given: usage: xtrace %s %s (see xtrace ci --help)",
				    words[word], command->name, command->arguments);
			return STATUS_FAILED;
		}
		argv++;
		argc = count;
		setup->is_github |= word == 1 && !strcmp(argv[0], "github");
		if (word == 0 ? strcmp(argv[0], "init") != 0
			      : word == 1 && !setup->is_github && strcmp(argv[0], "gitlab") != 0) {
			print_error("unknown %s '%s' (see xtrace ci --help)", words[word], argv[0]);
			return STATUS_FAILED;
		}
		message_set_name("xtrace ci init");
	}
	*program_out = argv;
	return COMMAND_GO_ON;
}

/* Makes a line for a shell. A script that is not executable gets its interpreter. */
static int make_line(struct ci_setup *setup, char **command, const struct install_paths *paths)
{
	char **longer = child_with_python(command, paths);
	int error = longer ? 0 : child_find(command[0]);
	size_t length;
	FILE *out;

	if (error) {
		child_cannot_run(command[0], error);
		return error;
	}
	out = xt_open_memstream(&setup->line, &length);
	if (longer)
		fputs("python3 ", out);
	for (char **word = command; *word; word++) {
		char *quoted = shell_quote_argument(*word);

		fprintf(out, "%s%s", word == command ? "" : " ", quoted ? quoted : "");
		free(quoted);
	}
	xt_close_memstream(out);
	free(longer);
	return 0;
}

/* Finds the installed files. The second folder is that of the Debian package. */
static int find_folder(struct ci_setup *setup, const struct install_paths *paths)
{
	static const char *const packages[] = {"xtrace", "xtrace-gpu"};

	for (int i = 0; i < 2; i++) {
		free(setup->folder);
		setup->folder = xt_asprintf("%s/share/%s/ci", paths->top, packages[i]);
		if (!access(setup->folder, R_OK))
			return 0;
	}
	print_error("cannot find '%s': install xtrace again", setup->folder);
	return -ENOENT;
}

static int check_repository(const struct ci_setup *setup)
{
	const struct ci_file *list = files[!setup->is_github];

#ifdef XTRACE_UNRELEASED
	if (!setup->xtrace) {
		print_error("cannot let the job install xtrace with pip: version " XTRACE_VERSION
			    " is not released; name a tarball, its URL, or a folder on the runner "
			    "with --xtrace");
		return -ENOENT;
	}
#endif
	if (access(".git", F_OK)) {
		print_error(
			"cannot set up CI here: this is not the top folder of a git repository; "
			"change to it, or run git init");
		return -ENOENT;
	}
	for (size_t i = 0; i < 3 && !setup->force; i++)
		if (!access(list[i].path, F_OK)) {
			print_error("cannot write '%s': it exists; --force replaces it",
				    list[i].path);
			return -EEXIST;
		}
	return 0;
}

/* Writes a YAML scalar in double quotes. GitHub evaluates ${{ }} even there. */
static void put_yaml(FILE *out, const char *text, bool is_github)
{
	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (is_github && !strncmp((const char *)p, "${{", 3)) {
			fputs("${{ '${{' }}", out);
			p += 2;
		} else if (*p == '"' || *p == '\\') {
			fprintf(out, "\\%c", *p);
		} else if (*p < ' ' || *p == 0x7f) {
			fprintf(out, "\\x%02x", *p);
		} else {
			fputc(*p, out);
		}
	}
	fputc('"', out);
}

/* Writes a line of a template. Replaces words between two @, the first two of them by scalars. */
static void put_line(FILE *out, const char *line, const struct ci_setup *setup)
{
	const char *const words[][2] = {
		{"@COMMAND@", setup->line},
		{"@XTRACE@", setup->xtrace ? setup->xtrace : "xtrace-gpu==" XTRACE_VERSION},
		{"@BENCH_OPTIONS@", setup->is_simulated ? "--simulate" : ""},
		{"@GITHUB_RUNNER@", setup->is_simulated ? "ubuntu-latest" : "[self-hosted, gpu]"},
		{"@GITLAB_RUNNER@", setup->is_simulated ? "image: python:3.12" : "tags: [gpu]"},
	};

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		const char *at = strstr(line, words[w][0]);

		if (!at)
			continue;
		fwrite(line, 1, (size_t)(at - line), out);
		if (w < 2)
			put_yaml(out, words[w][1], setup->is_github);
		else
			fputs(words[w][1], out);
		line = at + strlen(words[w][0]);
	}
	fputs(line, out);
}

/* Creates a file and its folders. Returns NULL, with errno, after an error. */
static FILE *create(const char *path)
{
	char *copy = xt_strdup(path);

	for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(copy, 0777);
		*slash = '/';
	}
	free(copy);
	return fopen(path, "we");
}

/* Fills in a template: writes to out, or if that is NULL, creates the file. */
static int put_file(const struct ci_setup *setup, const struct ci_file *file, FILE *out)
{
	char *from = xt_asprintf("%s/%s", setup->folder, file->name), *line = NULL;
	FILE *in = fopen(from, "re"), *own = out || !in ? NULL : create(file->path);
	size_t bytes = 0;
	int error = in && (out || own) ? 0 : -errno;

	while (!error && getline(&line, &bytes, in) > 0)
		put_line(out ? out : own, line, setup);
	if (own && !access(from, X_OK))
		fchmod(fileno(own), 0755);
	if (own && fclose(own))
		error = -errno;
	if (error)
		print_error("cannot copy '%s' to '%s': %s", from, file->path, strerror(-error));
	else if (own)
		printf("  %s\n", file->path);
	if (in)
		fclose(in);
	free_all(line, from);
	return error;
}

/* Adds a line, unless it is there. */
static int add_attribute(void)
{
	FILE *file = fopen(".gitattributes", "a+e");
	char *line = NULL;
	size_t bytes = 0;
	bool is_there = false, is_ended = true;
	ssize_t length;
	int error;

	while (file && (length = getline(&line, &bytes, file)) > 0) {
		is_there |= !strncmp(line, ATTRIBUTE, strlen(ATTRIBUTE));
		is_ended = line[length - 1] == '\n';
	}
	free(line);
	if (file && !is_there)
		fprintf(file, "%s" ATTRIBUTE "\n", is_ended ? "" : "\n");
	error = !file || fclose(file) ? -errno : 0;
	if (error)
		print_error("cannot write '.gitattributes': %s", strerror(-error));
	else
		printf("  .gitattributes\n");
	return error;
}

static void print_next(const struct ci_setup *setup)
{
	char *line = shell_quote_argument(setup->line), *name = shell_own_name();
	const char *simulated = setup->is_simulated ? " --simulate" : "";

	printf("\nRecord the baseline on a machine with the GPU of the runner:\n\n"
	       "  %s bench -n 5%s -- %s\n"
	       "  %s baseline save " BASELINE " xtrace.bench\n"
	       "\nRead the limits in .xtrace/rules. Then commit, together with your program:\n\n"
	       "  git add .gitattributes .xtrace %s\n"
	       "  git commit -m 'Check GPU time in CI'\n"
	       "  git push\n"
	       "\nTo try the check here (it writes to xtrace-gate/):\n\n"
	       "  XTRACE_GATE_COMMAND=%s %s.xtrace/ci/gate.sh\n",
	       name, simulated, setup->line, name, setup->is_github ? ".github" : ".gitlab-ci.yml",
	       line, setup->is_simulated ? "XTRACE_GATE_BENCH_OPTIONS=--simulate " : "");
	free_all(line, name);
}

static int set_up(const struct ci_setup *setup)
{
	const struct ci_file *list = files[!setup->is_github];
	bool has_workflow = !access(list[3].path, F_OK);
	int error;

	printf("Written:\n");
	error = add_attribute();
	for (size_t i = 0; i < 3 && !error; i++)
		error = put_file(setup, &list[i], NULL);
	if (has_workflow && !error)
		printf("\n%s exists and was not changed. It should contain:\n\n", list[3].path);
	error = error ? error : put_file(setup, &list[3], has_workflow ? stdout : NULL);
	if (!error)
		print_next(setup);
	return error;
}

static int ci_command_run(const struct command *command, int argc, char **argv)
{
	struct ci_setup setup = {0};
	struct install_paths paths;
	char **program;
	int status = parse(&setup, command, argc, argv, &program), error;

	if (status != COMMAND_GO_ON)
		return status;
	error = install_paths_find(&paths);
	if (error)
		print_error("cannot find the parts of xtrace: %s", strerror(-error));
	error = error ? error : find_folder(&setup, &paths);
	error = error ? error : check_repository(&setup);
	error = error ? error : make_line(&setup, program, &paths);
	error = error ? error : set_up(&setup);
	free_all(setup.line, setup.folder);
	return error ? STATUS_FAILED : STATUS_OK;
}

static const char details[] =
	"Run it in the top folder of a git repository. It writes .xtrace/rules with limits to\n"
	"adapt, the scripts of the job in .xtrace/ci, a line of .gitattributes for baselines, and\n"
	"the workflow: .github/workflows/gpu-time.yml or .gitlab-ci.yml. If the workflow exists,\n"
	"it prints the lines to add. Then it prints the commands that record the baseline.\n\n"
	"CMD runs in this folder, as it will in the job. Use paths relative to it.\n\n"
	"Exit status: 0, or 2 after an error.\n";

const struct command command_ci = {
	.name = "ci",
	.arguments = "init github|gitlab [OPTION]... [--] CMD [ARGUMENT]...",
	.summary = "Set up a check of GPU time in GitHub or GitLab",
	.details = details,
	.operand = "init",
	.stops_at_operand = true,
	.options = option_rows,
	.run = ci_command_run,
};
