/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries relative to bin/, quotes words for a POSIX shell, and runs programs.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/message.h"
#include "log/base/compare.h"
#include "log/base/monotonic.h"
#include "xtrace/log_format.h"

/* The last one is that of the Debian package. */
static const char *const library_folders[] = {
	"lib",
	"lib64",
	"lib/" XTRACE_LIBRARY_ARCHITECTURE,
	"lib/" XTRACE_LIBRARY_ARCHITECTURE "/xtrace-gpu",
};

/* Returns 0 or -ENAMETOOLONG. */
static int join(char *out, const char *folder, const char *rest)
{
	int length = snprintf(out, PATH_MAX, "%s/%s", folder, rest);

	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static void cut_last_component(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

int install_paths_find(struct install_paths *paths)
{
	char bin[PATH_MAX], *top = paths->top, folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", bin, sizeof(bin) - 1);
	int error = -ENOENT;

	if (length < 0)
		return -errno;
	bin[length] = '\0';
	strcpy(paths->program, bin);
	cut_last_component(bin);
	strcpy(top, bin);
	cut_last_component(top);
	for (size_t i = 0; i < sizeof(library_folders) / sizeof(library_folders[0]); i++) {
		if (join(folder, top, library_folders[i]) ||
		    join(paths->injected, folder, "libxtrace_inject.so") ||
		    join(paths->simulator, folder, "xtrace/simgpu"))
			return -ENAMETOOLONG;
		if (access(paths->injected, R_OK) == 0)
			return 0;
		if (errno == EACCES)
			error = -EACCES;
	}
	return error;
}

const char *user_setting(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

void version_commit(char *out, size_t out_bytes)
{
	/* The second is that of the Debian package. */
	static const char *const places[] = {"share/xtrace/built-from",
					     "share/xtrace-gpu/built-from"};
	char path[PATH_MAX + 64];
	struct install_paths paths;
	FILE *file = NULL;

	snprintf(out, out_bytes, "unknown (not installed)");
	if (install_paths_find(&paths))
		return;
	for (size_t i = 0; !file && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", paths.top, places[i]);
		file = fopen(path, "re");
	}
	if (file && fgets(out, (int)out_bytes, file))
		out[strcspn(out, "\n")] = '\0';
	if (file)
		fclose(file);
}

#define PLAIN                                                                                      \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"                           \
	"_@%+=:,./-"

/* Quotes start and text together. start needs no quotes. */
static char *quote(const char *start, const char *text)
{
	char *word, *at;

	if (text[strspn(text, PLAIN)] == '\0' && *text)
		return asprintf(&word, "%s%s", start, text) < 0 ? NULL : word;
	/* Within single quotes only the quote is special. Write it as '\\''. */
	word = malloc(4 * strlen(text) + strlen(start) + 3);
	if (!word)
		return NULL;
	at = word + sprintf(word, "'%s", start);
	for (; *text; text++)
		if (*text == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *text;
	strcpy(at, "'");
	return word;
}

char *absolute_path(const char *path)
{
	char *here = *path == '/' ? strdup("") : getcwd(NULL, 0), *result;

	if (!here || asprintf(&result, "%s%s%s", here, *path == '/' ? "" : "/", path) < 0)
		result = NULL;
	free(here);
	return result;
}

char *shell_quote(const char *name)
{
	return quote(*name == '-' ? "./" : "", name);
}

char *shell_quote_argument(const char *text)
{
	return quote("", text);
}

static bool is_this_program(const char *path)
{
	struct stat found, own;

	return !stat(path, &found) && !stat("/proc/self/exe", &own) && found.st_dev == own.st_dev &&
	       found.st_ino == own.st_ino;
}

/* Signals that are forwarded to the program. */
static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

#define PASSED_ON_COUNT (sizeof(passed_on) / sizeof(passed_on[0]))

/* The first tick comes after period / FIRST_TICKS. The interval then doubles up to the period. */
#define FIRST_TICKS 16

static int probe(const char *path)
{
	struct stat info;

	if (stat(path, &info))
		return errno == EACCES ? -EACCES : -ENOENT;
	return S_ISREG(info.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

static bool is_script(const char *program)
{
	return ends_with(program, ".py");
}

/* Stores the path to execute, which the caller frees. Returns 0 or -errno. */
static int find_path(const char *program, char **path_out)
{
	const char *folders = getenv("PATH"), *end;
	int error = -ENOENT;

	*path_out = NULL;
	if (strchr(program, '/')) {
		*path_out = strdup(program);
		return *path_out ? probe(program) : -ENOMEM;
	}
	if (!folders)
		folders = "/bin:/usr/bin";
	for (;; folders = end + 1) {
		int found;

		end = strchrnul(folders, ':');
		free(*path_out);
		/* an empty entry of $PATH is the current directory */
		if (asprintf(path_out, "%.*s/%s", end == folders ? 1 : (int)(end - folders),
			     end == folders ? "." : folders, program) < 0) {
			*path_out = NULL;
			return -ENOMEM;
		}
		found = probe(*path_out);
		if (!found)
			return 0;
		if (found == -EACCES)
			error = found;
		if (!*end)
			return error;
	}
}

char *shell_own_name(void)
{
	char *path;
	bool is_found = !find_path(program_invocation_short_name, &path) && is_this_program(path);

	free(path);
	return is_found ? strdup(program_invocation_short_name)
			: shell_quote(program_invocation_name);
}

/*
 * The ELF machine of a 64-bit program for another processor, which cannot load this build's
 * library. EM_NONE: it is none.
 */
static unsigned foreign_machine(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr elf;
	bool is_elf = fd >= 0 && pread(fd, &elf, sizeof(elf), 0) == sizeof(elf) &&
		      !memcmp(elf.e_ident, ELFMAG, SELFMAG) && elf.e_ident[EI_CLASS] == ELFCLASS64;

	if (fd >= 0)
		close(fd);
	return is_elf && elf.e_machine != XT_MACHINE_OWN ? elf.e_machine : EM_NONE;
}

int child_find(const char *program)
{
	char *path;
	int error = find_path(program, &path);

	if (!error && foreign_machine(path))
		error = -ENOEXEC;
	free(path);
	return error;
}

/* An ELF file for this machine that names no loader of libraries. */
static bool is_static_elf(int fd)
{
	ElfW(Ehdr) elf;
	ElfW(Phdr) part;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_phentsize != sizeof(part))
		return false;
	for (unsigned i = 0; i < elf.e_phnum; i++)
		if (pread(fd, &part, sizeof(part), (off_t)(elf.e_phoff + i * sizeof(part))) !=
			    sizeof(part) ||
		    part.p_type == PT_INTERP)
			return false;
	return elf.e_phnum > 0;
}

bool child_is_static(const char *program)
{
	char *path;
	int fd = find_path(program, &path) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	bool is_static = fd >= 0 && is_static_elf(fd);

	if (fd >= 0)
		close(fd);
	free(path);
	return is_static;
}

/* A file in this directory, which a shell would not find without "./". */
static bool is_file(const char *program)
{
	struct stat status;

	return !stat(program, &status) && S_ISREG(status.st_mode);
}

/* Names an ELF machine as in messages. `text` is for those without a name. */
static const char *machine_name(unsigned machine, char *text, size_t text_bytes)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {{EM_X86_64, "x86-64"},
		     {EM_AARCH64, "aarch64"},
		     {EM_PPC64, "ppc64"},
		     {EM_RISCV, "riscv"},
		     {EM_S390, "s390"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].machine == machine)
			return names[i].name;
	snprintf(text, text_bytes, "ELF machine %u", machine);
	return text;
}

/* Says which processor a program needs. NULL: it is not for another one. */
static const char *why_foreign(const char *program)
{
	static char why[128];
	char *path, own[32], needed[32];
	unsigned machine = find_path(program, &path) ? EM_NONE : foreign_machine(path);

	free(path);
	if (!machine)
		return NULL;
	snprintf(why, sizeof(why),
		 "it is built for another processor: for %s, not %s; use the xtrace for that one",
		 machine_name(machine, needed, sizeof(needed)),
		 machine_name(XT_MACHINE_OWN, own, sizeof(own)));
	return why;
}

int child_cannot_run(const char *program, int error)
{
	const char *why = strerror(-error);

	if (error == -ENOENT && !strchr(program, '/') && !is_script(program))
		why = is_file(program) ? "for a file in this directory, put ./ before its name"
				       : "command not found";
	else if (error == -ENOEXEC && why_foreign(program))
		why = why_foreign(program);
	else if (error == -EACCES && is_file(program))
		why = "the file is not executable";
	print_error("cannot run '%s': %s", program, why);
	return error == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

const char *child_python(const struct install_paths *paths)
{
	static char own[PATH_MAX + sizeof("/bin/python3")];
	const char *chosen = user_setting("XTRACE_INTERPRETER");

	if (chosen)
		return chosen;
	snprintf(own, sizeof(own), "%s/pyvenv.cfg", paths->top);
	if (access(own, F_OK))
		return "python3";
	snprintf(own, sizeof(own), "%s/bin/python3", paths->top);
	return access(own, X_OK) ? "python3" : own;
}

char **child_with_python(char **command, const struct install_paths *paths)
{
	size_t count = 0;
	char **longer;

	if (!is_script(command[0]) || !is_file(command[0]) ||
	    (!user_setting("XTRACE_INTERPRETER") && !child_find(command[0])))
		return NULL;
	while (command[count])
		count++;
	longer = calloc(count + 2, sizeof(*longer));
	if (!longer)
		return NULL;
	longer[0] = (char *)child_python(paths);
	memcpy(longer + 1, command, count * sizeof(*longer));
	return longer;
}

/* Runs in the child. Returns once the parent is ready, or has ended. */
static void wait_for_parent(const int *gate)
{
	char byte;

	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(gate[0]);
}

/* Runs in the child. Does not return: on failure it reports errno and exits. */
static void start(char *const *command, const struct environment_entry *environment,
		  const struct child_care *care, int report)
{
	int error;

	for (; environment && environment->name; environment++)
		if (environment->value && setenv(environment->name, environment->value, 1))
			goto failed;
	if (care && care->output >= 0 &&
	    (dup2(care->output, STDOUT_FILENO) < 0 || dup2(care->output, STDERR_FILENO) < 0))
		goto failed;
	execvp(command[0], command);
failed:
	error = errno;
	/* If the write fails, the parent sees a program that ended with 127. */
	if (write(report, &error, sizeof(error)) != sizeof(error))
		_exit(STATUS_NOT_FOUND);
	_exit(STATUS_NOT_FOUND);
}

/* Leave ignored signals ignored, for nohup. */
static void signals_to_watch(sigset_t *watched)
{
	sigemptyset(watched);
	sigaddset(watched, SIGCHLD);
	for (size_t i = 0; i < PASSED_ON_COUNT; i++) {
		struct sigaction action;

		sigaction(passed_on[i], NULL, &action);
		if (action.sa_handler != SIG_IGN)
			sigaddset(watched, passed_on[i]);
	}
}

/* Like sigwaitinfo(), but also returns at that time. */
static int wait_until(uint64_t end_ns, const sigset_t *watched, siginfo_t *info)
{
	uint64_t now = monotonic_ns(), left_ns = end_ns > now ? end_ns - now : 0;
	const struct timespec left = {(time_t)(left_ns / 1000000000), (long)(left_ns % 1000000000)};

	return sigtimedwait(watched, info, &left);
}

/*
 * Forwards signals until the child has ended. Only signals sent by processes are forwarded: the
 * terminal sends its signals to the whole foreground process group, including the child.
 */
static int wait_for(pid_t pid, const sigset_t *watched, const struct child_care *care)
{
	static const struct timespec no_time;
	bool ticks = care && care->tick;
	uint64_t step_ns = ticks ? care->period_ns / FIRST_TICKS : 0,
		 next_ns = monotonic_ns() + step_ns;
	siginfo_t info;
	int status = 0;

	for (;;) {
		int signal =
			ticks ? wait_until(next_ns, watched, &info) : sigwaitinfo(watched, &info);

		if (ticks && monotonic_ns() >= next_ns) {
			care->tick(care->context);
			step_ns = 2 * step_ns < care->period_ns ? 2 * step_ns : care->period_ns;
			next_ns = monotonic_ns() + step_ns;
		}
		if (signal == SIGCHLD && waitpid(pid, &status, WNOHANG) == pid)
			break;
		if (signal > 0 && signal != SIGCHLD && info.si_code <= 0)
			kill(pid, signal);
	}
	/* Discard late signals to the child. */
	while (sigtimedwait(watched, &info, &no_time) > 0)
		;
	return status;
}

int child_run(char *const *command, const struct environment_entry *environment,
	      const struct child_care *care, int *status_out)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	struct sigaction child_action;
	sigset_t watched, mask;
	int report[2], gate[2], failure = 0, error = 0;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC))
		return -errno;
	if (pipe2(gate, O_CLOEXEC)) {
		error = -errno;
		close(report[0]);
		close(report[1]);
		return error;
	}
	/* Block signals until wait_for() takes them, so that none is missed after the fork. */
	signals_to_watch(&watched);
	sigprocmask(SIG_BLOCK, &watched, &mask);
	sigaction(SIGCHLD, &standard, &child_action); /* if ignored, waitpid() has no status */
	pid = fork();
	if (pid == 0) {
		sigaction(SIGCHLD, &child_action, NULL);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		close(report[0]);
		wait_for_parent(gate);
		start(command, environment, care, report[1]);
	}
	if (pid < 0)
		error = -errno;
	close(report[1]);
	if (pid > 0 && care && care->forked)
		care->forked(care->context, pid);
	close(gate[0]);
	close(gate[1]);
	if (pid > 0) {
		if (read(report[0], &failure, sizeof(failure)) == sizeof(failure))
			error = -failure;
		*status_out = wait_for(pid, &watched, care);
	}
	close(report[0]);
	sigaction(SIGCHLD, &child_action, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return error;
}
