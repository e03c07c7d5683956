/* What a process of MPI's launcher does before it becomes the guard of a rank. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/guard.h"

enum { ABOVE = 64 };

/* Moves the channel to MPICH's launcher, if there is one, out of the way of prony's. */
static void keep_launcher_channel(void)
{
	const char *number = getenv("PMI_FD");
	char moved[16];
	int fd = number ? fcntl((int)strtol(number, NULL, 10), F_DUPFD, ABOVE) : -1;

	if (fd < 0)
		return;
	snprintf(moved, sizeof(moved), "%d", fd);
	setenv("PMI_FD", moved, 1);
}

/* The rank by the variables of Open MPI, MPICH, PMIx and Slurm; -1: none is set. */
static int32_t own_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
					    "SLURM_PROCID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (getenv(names[i]))
			return (int32_t)strtol(getenv(names[i]), NULL, 10);
	return -1;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int32_t rank = own_rank();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    send(fd, &rank, sizeof(rank), MSG_NOSIGNAL) == sizeof(rank))
		return fd;
	return -1;
}

/* Receives the CPUs and the descriptors, which get the numbers from 1 on. The guard keeps the
 * output that the launcher gave it: MPICH's takes the end of both for the end of the process. */
static bool take_descriptors(int from, char *cpus, size_t bytes)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(GUARD_JOIN_FDS_MAX * sizeof(int))];
	} control;
	struct iovec text = {.iov_base = cpus, .iov_len = bytes};
	struct msghdr message = {.msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fds[GUARD_JOIN_FDS_MAX], count;

	if (got <= 0 || cpus[got - 1] != '\0' || !header || header->cmsg_type != SCM_RIGHTS)
		return false;
	count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
	for (int i = 0; i < count; i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE)) < 0)
			return false;
	if (fcntl(1, F_DUPFD_CLOEXEC, ABOVE) < 0 || fcntl(2, F_DUPFD_CLOEXEC, ABOVE) < 0)
		return false;
	for (int fd = 3; fd < ABOVE; fd++)
		close(fd);
	for (int i = 0; i < count; i++)
		if (dup2(fds[i], i + 1) < 0 || close(fds[i]) != 0)
			return false;
	return true;
}

bool guard_join(const char *path, char *cpus, size_t bytes)
{
	int from;

	keep_launcher_channel();
	from = connect_to(path);
	if (from >= 0 && take_descriptors(from, cpus, bytes))
		return true;
	dprintf(STDERR_FILENO, "prony guard: cannot join the run at %s: %s\n", path,
		strerror(errno));
	return false;
}
