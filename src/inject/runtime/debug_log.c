/* SPDX-License-Identifier: Apache-2.0 */
/* Each line is one write(), so that lines of two threads do not mix. */
#include "inject/runtime/debug_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inject/runtime/clock.h"
#include "inject/runtime/log_message.h"
#include "inject/runtime/signal_guard.h"
#include "log/base/guarded_fd.h"
#include "log/base/spellcheck.h"

#define LINE_BYTES_MAX 1024

static const char *const domain_names[DEBUG_DOMAINS] = {
	[DEBUG_PROCESS] = "process", [DEBUG_WRITER] = "writer", [DEBUG_CUPTI] = "cupti",
	[DEBUG_STACK] = "stack",     [DEBUG_PYTHON] = "python", [DEBUG_NVTX] = "nvtx",
	[DEBUG_MEMORY] = "memory",
};

static uint32_t enabled_domains;
static uint32_t active_domains; /* enabled_domains once the file is open */
static struct xt_guarded_fd file = {.fd = -1};
static uint64_t start_ns;

static uint32_t domain_bit(const char *name, size_t length)
{
	struct suggestion suggestion = {.name = name, .length = length};

	if (length == strlen("all") && !memcmp(name, "all", length))
		return (UINT32_C(1) << DEBUG_DOMAINS) - 1;
	for (uint32_t d = 0; d < DEBUG_DOMAINS; d++) {
		if (length == strlen(domain_names[d]) && !memcmp(name, domain_names[d], length))
			return UINT32_C(1) << d;
		suggest_consider(&suggestion, domain_names[d]);
	}
	if (suggestion.best)
		log_message("cannot use '%.*s' in XTRACE_DEBUG: unknown domain; did you mean '%s'?",
			    (int)length, name, suggestion.best);
	else
		log_message("cannot use '%.*s' in XTRACE_DEBUG: unknown domain; choose from "
			    "process, writer, cupti, stack, python, nvtx, memory, all",
			    (int)length, name);
	return 0;
}

void debug_log_enable(const char *list)
{
	enabled_domains = 0;
	while (list && *list) {
		size_t length = strcspn(list, ",");

		if (length)
			enabled_domains |= domain_bit(list, length);
		list += length + (list[length] == ',');
	}
}

int debug_log_open(const char *log_path)
{
	char path[PATH_MAX + 32];
	int fd, rc;

	if (!enabled_domains)
		return 0;
	snprintf(path, sizeof(path), "%s.debug", log_path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : xt_guarded_fd_take(&file, fd);
	if (rc) {
		log_message("cannot create '%s': %s", path, strerror(-rc));
		return rc;
	}
	start_ns = monotonic_ns();
	active_domains = enabled_domains;
	return 0;
}

bool debug_log_is_on(enum debug_domain domain)
{
	return active_domains >> domain & 1;
}

void debug_log(enum debug_domain domain, const char *format, ...)
{
	int saved_errno = errno, length;
	char line[LINE_BYTES_MAX];
	struct signal_guard guard;
	uint64_t age_us;
	ssize_t written;
	va_list args;

	if (!debug_log_is_on(domain) || !xt_guarded_fd_is_ours(&file))
		return;
	age_us = (monotonic_ns() - start_ns) / 1000;
	length = snprintf(line, sizeof(line), "%llu.%06llu %-8s",
			  (unsigned long long)age_us / 1000000,
			  (unsigned long long)age_us % 1000000, domain_names[domain]);
	va_start(args, format);
	vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
	va_end(args);
	length = (int)strlen(line);
	line[length] = '\n';
	signal_hold(&guard, SIGXFSZ);
	written = write(file.fd, line, (size_t)length + 1);
	signal_release(&guard, written < 0 && errno == EFBIG);
	errno = saved_errno;
}

void debug_log_abandon(void)
{
	active_domains = 0;
	xt_guarded_fd_close(&file);
}
