#include "run/rendezvous.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files.h"

/* Binds a socket to a port that the kernel chooses; -1 on failure. */
static int bind_any(int *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&address, length) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		close(fd);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return fd;
}

/* All sockets are open until the last port is found, so that no two are the same. */
static enum prony_status find_ports(struct target *target, struct error *err)
{
	int fds[1 + TARGET_RANKS_MAX], count = 0, failed = 0;

	while (count <= target->world_size && !failed) {
		fds[count] = bind_any(&target->rendezvous.ports[count]);
		failed = fds[count] < 0 ? errno : 0;
		count += fds[count] >= 0;
	}
	while (count > 0)
		close(fds[--count]);
	return failed ? error_errno(err, PRONY_INTERNAL, failed,
				    "cannot find a free port on 127.0.0.1 for the ranks")
		      : PRONY_OK;
}

enum prony_status rendezvous_make(const char *parent, struct target *target, struct error *err)
{
	char *folder = target->rendezvous.folder;
	size_t room = sizeof target->rendezvous.folder;

	if ((size_t)snprintf(folder, room, "%s/ranks-XXXXXX", parent) >= room) {
		folder[0] = '\0';
		return error_set(err, PRONY_IO,
				 "%s: the path of this folder is too long for ranks: set TMPDIR to "
				 "a shorter one",
				 parent);
	}
	if (!mkdtemp(folder)) {
		folder[0] = '\0';
		return error_errno(err, PRONY_IO, errno, "cannot make a folder in %s", parent);
	}
	return find_ports(target, err);
}

void rendezvous_remove(struct target *target)
{
	if (target->rendezvous.folder[0])
		directory_remove(target->rendezvous.folder, NULL);
	target->rendezvous.folder[0] = '\0';
}
