/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XTRACE_SERVE_H
#define XTRACE_SERVE_H

#define SERVE_PORT_DEFAULT 6780

/*
 * Serves the page on the loopback interface until SIGINT, SIGTERM or SIGHUP. Prints its address,
 * and the ssh command that forwards the port. The address holds a random key, because other users
 * of the host reach the port, too. port 0: SERVE_PORT_DEFAULT, or any other if that is taken.
 * Ignores SIGPIPE from then on. Returns 0 or -1 after an error was printed.
 */
int serve_page(const char *page, unsigned port);

#endif
