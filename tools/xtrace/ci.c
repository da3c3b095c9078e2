/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace ci init: sets up a check of GPU time in a CI system.
 *
 * The order matters: check everything that can be checked, measure the command, make all texts,
 * and only then write to the repository.
 */
#include "ci.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "child.h"
#include "ci_files.h"
#include "commands.h"
#include "log/base/spellcheck.h"
#include "shell_quote.h"

#define DEFAULT_RUNS 5
#define DRAFTS_MAX   8
#define ATTRIBUTES   ".gitattributes"
/* Lets git combine the baselines of two branches: each set of runs is a line. */
#define ATTRIBUTE CI_BASELINE " merge=union"

/* Files of tools/ci, and where they go. */
static const struct {
	const char *name, *path;
} scripts[] = {
	{"gate.sh", CI_SCRIPTS "/gate.sh"},
	{"github/action.yml", CI_SCRIPTS "/github/action.yml"},
	{"gitlab/xtrace-gate.yml", CI_SCRIPTS "/gitlab/xtrace-gate.yml"},
};

#define SCRIPT_COUNT   (sizeof(scripts) / sizeof(scripts[0]))
#define TARGET(member) .offset = offsetof(struct ci_setup, member)

static const struct option_row option_rows[] = {
	{"simulate", 's', .apply = option_flag, TARGET(is_simulated),
	 .help = "Use the simulated GPU, here and in the job, for a first try without a GPU"},
	{"runs", 'n', .value = "RUNS", .apply = option_number, TARGET(runs), .min = 2,
	 .max = BENCH_RUNS_MAX, .help = "Measure two sets of RUNS runs (default: 5)"},
	{"xtrace", .value = "FILE", .apply = option_text, TARGET(xtrace),
	 .help = "Let the job use FILE, a tarball, its URL, or a folder (default: install a "
		 "released version with pip)"},
	{"force", 'f', .apply = option_flag, TARGET(force),
	 .help = "Replace rules, baseline and scripts that exist. A workflow is never replaced"},
	{0},
};

static void list_options(struct option_list *list)
{
	option_list_add(list, option_rows);
}

static int wrong_word(const char *what, const char *word, const char *const *known)
{
	struct suggestion near = {.name = word, .length = strlen(word)};

	for (size_t i = 0; known[i]; i++)
		suggest_consider(&near, known[i]);
	if (near.best)
		print_error("unknown %s '%s': did you mean '%s'? (see xtrace ci --help)", what,
			    word, near.best);
	else
		print_error("unknown %s '%s' (see xtrace ci --help)", what, word);
	return STATUS_FAILED;
}

/* Options can be before and after each word. Returns COMMAND_GO_ON, or the status to end with. */
static int parse(struct ci_setup *setup, const struct command *command, int argc, char **argv)
{
	static const char *const verbs[] = {"init", NULL};
	static const char *const hosts[] = {"github", "gitlab", NULL};
	static const char *const words[] = {"verb", "CI system", "program"};
	static const char usage[] =
		"usage: xtrace ci init github|gitlab [OPTION]... [--] CMD (see xtrace ci --help)";
	struct option_list list;
	int status, count;

	for (int word = 0; word < 3; word++) {
		command_list_options(command, &list);
		status = command_parse(command, &list, setup, argc, argv, &count);
		if (status != COMMAND_GO_ON)
			return status;
		if (!count) {
			print_error("no %s given: %s", words[word], usage);
			return STATUS_FAILED;
		}
		argv++;
		argc = count;
		if (word == 0 && strcmp(argv[0], "init") != 0)
			return wrong_word("verb", argv[0], verbs);
		if (word == 0)
			message_set_name("xtrace ci init");
		if (word == 1)
			setup->host = ci_host_find(argv[0]);
		if (word == 1 && !setup->host)
			return wrong_word("CI system", argv[0], hosts);
	}
	setup->command = argv;
	return COMMAND_GO_ON;
}

/* Makes a line for a shell. A script that is not executable gets its interpreter. */
static int make_line(struct ci_setup *setup, const struct install_paths *paths)
{
	char **longer = child_with_python(setup->command, paths);
	size_t length;
	FILE *out;
	int error = 0;

	if (!longer && child_find(setup->command[0])) {
		child_cannot_run(setup->command[0], child_find(setup->command[0]));
		return -ENOENT;
	}
	out = open_memstream(&setup->line, &length);
	if (out && longer)
		fputs("python3 ", out);
	for (char **word = setup->command; out && *word; word++) {
		char *quoted = shell_quote_argument(*word);

		error = quoted ? error : -ENOMEM;
		fprintf(out, "%s%s", word == setup->command ? "" : " ", quoted ? quoted : "");
		free(quoted);
	}
	if (!out || fclose(out))
		error = -ENOMEM;
	free(longer);
	if (error)
		print_error("out of memory");
	return error;
}

/* Finds the installed scripts. The second folder is that of the Debian package. */
static int find_scripts(struct ci_setup *setup, const struct install_paths *paths)
{
	static const char *const folders[] = {"share/xtrace/ci", "share/xtrace-gpu/ci"};
	char *file = NULL;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		bool is_there;

		if (asprintf(&file, "%s/%s/%s", paths->top, folders[i], scripts[0].name) < 0)
			return -ENOMEM;
		is_there = access(file, R_OK) == 0;
		free(file);
		if (is_there)
			return asprintf(&setup->scripts, "%s/%s", paths->top, folders[i]) < 0
				       ? -ENOMEM
				       : 0;
	}
	print_error("cannot find the scripts of the check: '%s/%s' does not exist; install xtrace "
		    "again",
		    paths->top, folders[0]);
	return -ENOENT;
}

/* Returns 0, or -EEXIST after an error message if a file would be replaced. */
static int check_absent(const struct ci_setup *setup, const char *path)
{
	if (setup->force || access(path, F_OK))
		return 0;
	print_error("cannot write '%s': it exists; --force replaces it", path);
	return -EEXIST;
}

/* Checks the repository before minutes of runs. Returns 0, or -errno after an error message. */
static int check_repository(const struct ci_setup *setup)
{
	struct stat about;
	int error;

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
	if (access(".", W_OK)) {
		print_error("cannot write to this folder: %m");
		return -errno;
	}
	if (!stat(CI_FOLDER, &about) && !S_ISDIR(about.st_mode)) {
		print_error("cannot use '" CI_FOLDER "': it is not a folder; move it away");
		return -ENOTDIR;
	}
	error = check_absent(setup, CI_RULES);
	error = error ? error : check_absent(setup, CI_BASELINE);
	for (size_t i = 0; !error && i < SCRIPT_COUNT; i++)
		error = check_absent(setup, scripts[i].path);
	return error;
}

/* Warns of paths that exist only on this machine. */
static void warn_of_paths(const struct ci_setup *setup)
{
	char *here = getcwd(NULL, 0);
	size_t length = here ? strlen(here) : 0;

	for (char **word = setup->command; length > 1 && *word; word++)
		if (!strncmp(*word, here, length) && (*word)[length] == '/')
			print_note("warning: the job may not find '%s': use '%s', relative to the "
				   "repository",
				   *word, *word + length + 1);
	free(here);
}

/* Writes the rules to the scratch folder. Returns 0, or -errno after an error message. */
static int write_rules(const struct ci_setup *setup, const struct ci_learned *learned,
		       const char *path)
{
	FILE *out = fopen(path, "we");
	int error = out ? 0 : -errno;

	if (out) {
		ci_rules_write(out, setup, learned);
		if (fclose(out))
			error = -errno;
	}
	if (error)
		print_error("cannot write '%s': %s", path, strerror(-error));
	return error;
}

/* Writes rules that the measured runs pass. Returns as ci_verify(). */
static int draft_rules(const struct ci_setup *setup, struct ci_learned *learned, const char *path,
		       const char *folder)
{
	int error = -EAGAIN;

	for (int draft = 0; error == -EAGAIN && draft < DRAFTS_MAX; draft++) {
		error = write_rules(setup, learned, path);
		if (!error)
			error = ci_verify(folder, path, learned);
	}
	if (error == -EAGAIN)
		print_error("cannot find limits that the runs pass: they are too noisy");
	return error;
}

static char *workflow_text(const struct ci_setup *setup, size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);

	if (!out)
		return NULL;
	setup->host->write(out, setup);
	return fclose(out) ? NULL : text;
}

/* Adds .gitattributes with its contents and one more line, unless it has that line. */
static int add_attributes(struct ci_files *files)
{
	size_t length = 0, longer;
	char *old = NULL, *text = NULL;
	int error = ci_file_read(ATTRIBUTES, &old, &length);
	FILE *out;

	if (error && error != -ENOENT) {
		print_error("cannot read '" ATTRIBUTES "': %s", strerror(-error));
		return error;
	}
	error = 0;
	if (!old || !strstr(old, ATTRIBUTE)) {
		out = open_memstream(&text, &longer);
		if (out && length) {
			fwrite(old, 1, length, out);
			fputs(old[length - 1] == '\n' ? "" : "\n", out);
		}
		if (out)
			fputs(ATTRIBUTE "\n", out);
		error = out && !fclose(out) ? ci_files_add(files, ATTRIBUTES, text, longer)
					    : -ENOMEM;
	}
	free(old);
	return error;
}

/* Collects what to write. The baseline and the rules come from the scratch folder. */
static int collect(const struct ci_setup *setup, const char *rules, const char *baseline,
		   struct ci_files *files)
{
	int error = ci_files_add_copy(files, CI_RULES, rules);

	error = error ? error : ci_files_add_copy(files, CI_BASELINE, baseline);
	for (size_t i = 0; !error && i < SCRIPT_COUNT; i++) {
		char *from = NULL;

		if (asprintf(&from, "%s/%s", setup->scripts, scripts[i].name) < 0)
			return -ENOMEM;
		error = ci_files_add_copy(files, scripts[i].path, from);
		free(from);
	}
	error = error ? error : add_attributes(files);
	if (!error && access(setup->host->workflow, F_OK)) {
		size_t length;
		char *text = workflow_text(setup, &length);

		error = ci_files_add(files, setup->host->workflow, text, length);
	}
	return error;
}

/* Prints what an existing workflow lacks. */
static void print_workflow(const struct ci_setup *setup, const struct ci_files *files)
{
	size_t length, old_length;
	char *text, *old = NULL;
	bool is_same;

	for (size_t i = 0; i < files->count; i++)
		if (!strcmp(files->list[i].path, setup->host->workflow))
			return;
	text = workflow_text(setup, &length);
	is_same = text && !ci_file_read(setup->host->workflow, &old, &old_length) &&
		  old_length == length && !memcmp(old, text, length);
	if (text && !is_same)
		printf("\n%s exists and was not changed. It should contain:\n\n%s",
		       setup->host->workflow, text);
	free(old);
	free(text);
}

static void print_trial(const struct ci_setup *setup)
{
	char *line = shell_quote_argument(setup->line);

	if (line)
		printf("\nTo try the check here, after a commit (it writes to xtrace-gate/):\n\n"
		       "  XTRACE_GATE_COMMAND=%s %s" CI_FOLDER "/ci/gate.sh\n",
		       line, setup->is_simulated ? "XTRACE_GATE_BENCH_OPTIONS=--simulate " : "");
	free(line);
}

static void print_result(const struct ci_setup *setup, const struct ci_files *files)
{
	printf("\nWritten:\n");
	for (size_t i = 0; i < files->count; i++)
		printf("  %s\n", files->list[i].path);
	print_workflow(setup, files);
	printf("\nRead the limits in " CI_RULES ". Then commit, together with your program:\n\n"
	       "  git add " ATTRIBUTES " " CI_FOLDER " %s\n"
	       "  git commit -m 'Check GPU time in CI'\n"
	       "  git push\n",
	       setup->host->folder);
	print_trial(setup);
}

/* Makes all texts in the scratch folder, then writes the files. Returns the exit status. */
static int set_up(const struct ci_setup *setup, const char *folder)
{
	struct ci_learned learned = {0};
	struct ci_files files = {0};
	char *rules = NULL, *baseline = NULL;
	int error = ci_measure(setup, folder, &learned);

	if (error)
		return STATUS_FAILED;
	if (asprintf(&rules, "%s/rules", folder) < 0 ||
	    asprintf(&baseline, "%s/baseline.json", folder) < 0)
		return STATUS_FAILED;
	error = draft_rules(setup, &learned, rules, folder);
	error = error ? error : ci_save_baseline(folder, baseline);
	error = error ? error : collect(setup, rules, baseline, &files);
	if (error == -ENOMEM)
		print_error("out of memory");
	error = error ? error : ci_files_write(&files);
	if (!error)
		print_result(setup, &files);
	ci_files_free(&files);
	free(rules);
	free(baseline);
	return error ? STATUS_FAILED : STATUS_OK;
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	(void)about;
	(void)kind;
	(void)place;
	return remove(path);
}

/* Runs with a scratch folder, which stays after an error, because it explains the error. */
static int set_up_in_scratch(const struct ci_setup *setup)
{
	const char *top = getenv("TMPDIR");
	char *folder = NULL;
	int status;

	if (asprintf(&folder, "%s/xtrace-ci.XXXXXX", top && *top ? top : "/tmp") < 0)
		return STATUS_FAILED;
	if (!mkdtemp(folder)) {
		print_error("cannot create '%s': %m", folder);
		free(folder);
		return STATUS_FAILED;
	}
	status = set_up(setup, folder);
	if (status == STATUS_OK)
		nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	else
		print_note("nothing was written to the repository; the runs are in %s", folder);
	free(folder);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct ci_setup setup = {.runs = DEFAULT_RUNS};
	struct install_paths paths;
	int status = parse(&setup, command, argc, argv), error;

	if (status != COMMAND_GO_ON)
		return status;
	error = install_paths_find(&paths);
	if (error)
		print_error("cannot find the parts of xtrace: %s", strerror(-error));
	error = error ? error : find_scripts(&setup, &paths);
	error = error ? error : check_repository(&setup);
	error = error ? error : make_line(&setup, &paths);
	status = STATUS_FAILED;
	if (!error) {
		warn_of_paths(&setup);
		status = set_up_in_scratch(&setup);
	}
	free(setup.line);
	free(setup.scripts);
	return status;
}

static const char details[] =
	"Run it in the top folder of a git repository. It records CMD, two sets of runs, and "
	"learns\n"
	"from the difference between them how small a change can be detected. It writes:\n\n"
	"  .xtrace/rules          limits with a margin, and comments that explain them\n"
	"  .xtrace/baseline.json  the runs to compare with\n"
	"  .xtrace/ci/            the scripts that the job runs\n"
	"  .gitattributes         a line that lets git merge baselines\n"
	"  the workflow           .github/workflows/gpu-time.yml or .gitlab-ci.yml; if it exists, "
	"the\n"
	"                         lines to add are printed instead\n\n"
	"CMD runs in this folder, as it will in the job. Use paths relative to it.\n\n"
	"Exit status: 0, or 2 after an error, with nothing written.\n";

const struct command command_ci = {
	.name = "ci",
	.arguments = "init github|gitlab [OPTION]... [--] CMD [ARGUMENT]...",
	.summary = "Set up a check of GPU time in GitHub or GitLab",
	.details = details,
	.operand = "init",
	.stops_at_operand = true,
	.list_options = list_options,
	.run = run,
};
