/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/claims.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/base/sampler_socket.h"

#define PEER (UINT64_C(1) << 32) /* in epoll_data: the descriptor is a connection */

void claims_open(struct claims *claims, const char *data_dir)
{
	*claims = (struct claims){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .data_dir = data_dir};
}

void claims_close(struct claims *claims)
{
	if (claims->epoll_fd >= 0)
		close(claims->epoll_fd);
	claims->epoll_fd = -1;
}

static int watch(struct claims *claims, int fd, uint64_t kind)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = kind | (uint32_t)fd};

	return epoll_ctl(claims->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int claims_take(struct claims *claims, pid_t pid)
{
	int fd = sampler_socket_claim(pid, claims->data_dir), error;

	if (fd < 0)
		return fd;
	error = watch(claims, fd, 0);
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Other users may connect, but this sampler is none of their business. */
static void accept_peers(struct claims *claims, int listener)
{
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) ||
		    peer.uid != geteuid() || watch(claims, fd, PEER))
			close(fd);
}

bool claims_answer(struct claims *claims)
{
	struct epoll_event events[16];
	int count = epoll_wait(claims->epoll_fd, events, 16, 0);
	bool is_end = false;

	for (int i = 0; i < count; i++) {
		int fd = (int)(uint32_t)events[i].data.u64;
		char request = 0;

		if (!(events[i].data.u64 & PEER)) {
			accept_peers(claims, fd);
			continue;
		}
		if (recv(fd, &request, 1, 0) == 1 && request == SAMPLER_SOCKET_END) {
			/* Stays open: its end tells the program that the logs are complete. */
			epoll_ctl(claims->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			is_end = true;
		} else {
			close(fd);
		}
	}
	return is_end;
}
