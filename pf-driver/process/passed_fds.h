/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Receives the descriptors that come with a message of a unix socket (SCM_RIGHTS), for vgpu-pf,
 * softgpu and vgpud. The kernel installs the descriptors before the program can check the message.
 * So the receiver must walk all descriptors, and keep or close each.
 */
#ifndef VGPU_PROCESS_PASSED_FDS_H
#define VGPU_PROCESS_PASSED_FDS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Take the descriptors that recvmsg() has installed for `message`; the caller owns them. fds has
 * place for `room` descriptors. Return: the number of descriptors; or -EMSGSIZE if they were too
 * many for fds or for the control buffer, and then all are closed.
 */
static inline int vgpu_take_passed_fds(struct msghdr *message, int *fds, size_t room)
{
	bool is_cut = (message->msg_flags & MSG_CTRUNC) != 0;
	size_t count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part;
	     part = CMSG_NXTHDR(message, part)) {
		size_t bytes = part->cmsg_len - CMSG_LEN(0);

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd = -1;

			memcpy(&fd, CMSG_DATA(part) + at, sizeof(fd));
			if (count < room) {
				fds[count++] = fd;
				continue;
			}
			is_cut = true;
			close(fd);
		}
	}
	if (!is_cut)
		return (int)count;
	while (count > 0)
		close(fds[--count]);
	return -EMSGSIZE;
}

#endif
