/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xtrace top: shows what the GPUs are busy with, and refreshes the terminal.
 */
#include "commands.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "log/base/monotonic.h"
#include "top_figures.h"
#include "top_text.h"

#define INTERVAL_NS  UINT64_C(1000000000)
#define READ_MS	     100
#define CATCH_UP_NS  UINT64_C(5000000000) /* with the logs of processes that have run for long */
#define PENDING_NS   UINT64_C(250000000)
#define PENDING_MAX  6 /* the tracer adds its clock each second */
#define FILTER_BYTES 64
#define KEY_ESCAPE   27
#define SHOW_SCREEN  "\033[?1049h\033[?25l" /* the alternate screen, without a cursor */
#define HIDE_SCREEN  "\033[?25h\033[?1049l"

struct top_request {
	bool is_once, is_json;
	uint64_t interval_ns;
	const char *filter;
};

static const struct option_row option_rows[] = {
	{"once", .help = "Print once, as plain text, and exit", .apply = option_flag,
	 .offset = offsetof(struct top_request, is_once)},
	{"json", .help = "Print once, as JSON, and exit", .apply = option_flag,
	 .offset = offsetof(struct top_request, is_json)},
	{"interval", .value = "TIME", .expected = "a time such as 2s or 500ms",
	 .help = "Refresh each TIME (default: 1s)", .apply = option_time,
	 .offset = offsetof(struct top_request, interval_ns)},
	{"filter", .value = "TEXT", .help = "Show only paths and kernels that contain TEXT",
	 .apply = option_text, .offset = offsetof(struct top_request, filter)},
	{0},
};

static volatile sig_atomic_t is_ended, is_resized;

static void on_signal(int number)
{
	if (number == SIGWINCH)
		is_resized = 1;
	else
		is_ended = 1;
}

struct screen {
	struct termios before;
	struct top_view view;
	char filter[FILTER_BYTES];
	bool is_open;
};

static void open_screen(struct screen *screen)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	const struct sigaction action = {.sa_handler = on_signal};
	struct termios raw;

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &action, NULL);
	if (tcgetattr(STDIN_FILENO, &screen->before))
		return;
	raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	/* Stopped, it would leave the terminal as it is now. */
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	screen->is_open = true;
	fputs(SHOW_SCREEN, stdout);
}

static void close_screen(struct screen *screen)
{
	fputs(HIDE_SCREEN, stdout);
	fflush(stdout);
	if (screen->is_open)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

static void draw(struct screen *screen, const struct top_figures *top)
{
	struct winsize size = {0};

	is_resized = 0;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	screen->view.columns = size.ws_col ? size.ws_col : 80;
	screen->view.lines = size.ws_row ? size.ws_row : 24;
	screen->view.filter = screen->filter;
	top_text(stdout, top, &screen->view);
	fflush(stdout);
}

/* While a filter is typed. Enter keeps it, and Escape removes it. */
static void type(struct screen *screen, char key)
{
	size_t length = strlen(screen->filter);

	if (key == '\n' || key == '\r' || key == KEY_ESCAPE)
		screen->view.is_typing = false;
	if (key == KEY_ESCAPE)
		*screen->filter = '\0';
	else if ((key == '\b' || key == 0x7f) && length)
		screen->filter[length - 1] = '\0';
	else if ((unsigned char)key >= ' ' && key != 0x7f && length + 1 < FILTER_BYTES)
		screen->filter[length] = key, screen->filter[length + 1] = '\0';
}

/* Returns false to quit. */
static bool press(struct screen *screen, char key)
{
	if (screen->view.is_typing) {
		type(screen, key);
		return true;
	}
	if (key == 'p')
		screen->view.is_paused = !screen->view.is_paused;
	screen->view.is_typing = key == '/';
	if (key == '/' || key == KEY_ESCAPE)
		*screen->filter = '\0';
	return key != 'q';
}

/* Waits for keys. Returns false to quit. */
static bool read_keys(struct screen *screen, const struct top_figures *top, int timeout_ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char keys[64];
	ssize_t length;

	if (poll(&input, 1, timeout_ms) <= 0)
		return true;
	length = read(STDIN_FILENO, keys, sizeof(keys));
	/* A terminal that was closed is readable, and has no keys. */
	if (length <= 0)
		return false;
	/* Arrows and the like begin with Escape. */
	if (length > 1 && keys[0] == KEY_ESCAPE)
		return true;
	for (ssize_t i = 0; i < length; i++)
		if (!press(screen, keys[i]))
			return false;
	draw(screen, top);
	return true;
}

static int refresh(struct screen *screen, struct top_figures *top, uint64_t interval_ns)
{
	uint64_t next_ns = monotonic_ns();
	int error = 0;

	while (!error && !is_ended) {
		bool has_more = top_figures_read(top);

		if (monotonic_ns() >= next_ns + (has_more ? CATCH_UP_NS : 0) &&
		    !screen->view.is_paused) {
			error = top_figures_compute(top);
			draw(screen, top);
			next_ns = monotonic_ns() + interval_ns;
		} else if (is_resized) {
			draw(screen, top);
		}
		if (!read_keys(screen, top, has_more ? 0 : READ_MS))
			break;
	}
	return error;
}

/* A log may grow faster than it can be read. */
static void catch_up(struct top_figures *top)
{
	uint64_t start_ns = monotonic_ns();

	while (monotonic_ns() - start_ns < CATCH_UP_NS && top_figures_read(top))
		;
}

static void read_for(struct top_figures *top, uint64_t time_ns)
{
	const struct timespec pause = {0, READ_MS * 1000000l};
	uint64_t start_ns = monotonic_ns();

	while (monotonic_ns() - start_ns < time_ns)
		if (!top_figures_read(top))
			nanosleep(&pause, NULL);
	catch_up(top);
}

/* The first figures are about the time between two readings. */
static int print_once(struct top_figures *top, const struct top_request *request)
{
	const char *filter = request->filter ? request->filter : "";
	const struct top_view view = {.filter = filter};
	char *json = NULL;
	int error;

	catch_up(top);
	error = top_figures_compute(top);
	top->started_ns[(top->slot + 1) % LIVE_HOT_SLOTS] = monotonic_ns();
	if (error)
		return error;
	read_for(top, request->interval_ns);
	for (int i = 0; i < PENDING_MAX && top_figures_are_pending(top); i++)
		read_for(top, PENDING_NS);
	error = top_figures_compute(top);
	if (error)
		return error;
	if (request->is_json) {
		json = top_json(top, filter);
		if (!json)
			return -ENOMEM;
		fputs(json, stdout);
		free(json);
	} else if (top->row_count) {
		top_text(stdout, top, &view);
	} else {
		print_note("no running process carries xtrace");
	}
	return 0;
}

static int show(struct top_figures *top, const struct top_request *request)
{
	struct screen screen = {.view = {.is_screen = true}};
	int error = top_figures_init(top);

	if (!error && (request->is_once || request->is_json)) {
		error = print_once(top, request);
	} else if (!error) {
		snprintf(screen.filter, sizeof(screen.filter), "%s",
			 request->filter ? request->filter : "");
		open_screen(&screen);
		error = refresh(&screen, top, request->interval_ns);
		close_screen(&screen);
	}
	top_figures_free(top);
	if (error)
		print_error("cannot show processes: %s", strerror(-error));
	return error ? STATUS_FAILED : STATUS_OK;
}

/* Returns 0, or -1 after an error message. */
static int choose_process(struct top_figures *top, char **operand)
{
	struct process_list list = {0};
	int error;

	if (!access(*operand, F_OK)) {
		top->processes.directories = operand;
		top->processes.directory_count = 1;
		return 0;
	}
	top->processes.pid = (pid_t)strtol(*operand, NULL, 10);
	error = strspn(*operand, "0123456789") == strlen(*operand)
			? processes_find_pid(&list, top->processes.pid)
			: -ENOENT;
	processes_free(&list);
	if (error == -ENOENT)
		print_error("cannot watch '%s': it is no trace directory, and no process that "
			    "carries xtrace",
			    *operand);
	else if (error)
		print_error("cannot watch process %s: %s", *operand, strerror(-error));
	return error ? -1 : 0;
}

static int run_top(const struct command *command, int argc, char **argv)
{
	struct top_request request = {.interval_ns = INTERVAL_NS};
	struct top_figures top = {0};
	int status, count;

	status = command_parse(command, NULL, &request, argc, argv, 1, &count);
	if (status != COMMAND_GO_ON)
		return status;
	if (!request.is_once && !request.is_json &&
	    (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		print_error("this is no terminal; use --once or --json");
		return STATUS_FAILED;
	}
	if (count && choose_process(&top, &argv[1]))
		return STATUS_FAILED;
	return show(&top, &request);
}

static const char details[] =
	"PID names one process, DIR the trace directory of a recording; without them, all "
	"processes that\n"
	"you can inspect are shown.\n\n"
	"  BUSY %      part of the time in which the GPU worked for the process\n"
	"  MEMORY      GPU memory that was allocated while recording and not freed\n"
	"  LOST        events that are missing in the log\n"
	"  COST%       CPU time of xtrace, of one core\n"
	"  GPU idle %  part of the time in which the GPU did not work for the process, by cause\n"
	"  GPU %       part of the GPU time of all shown processes\n\n"
	"Keys: q quits, p pauses the display, / filters paths and kernels (Enter keeps the filter, "
	"Escape\n"
	"removes it).\n";

const struct command command_top = {
	.name = "top",
	.arguments = "[OPTION]... [PID|DIR]",
	.summary = "Show live what the GPUs are busy with",
	.details = details,
	.options = option_rows,
	.run = run_top,
};
