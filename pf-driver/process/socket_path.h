/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes the address of a unix socket from its path. Refuses a path of more than 107 bytes, the
 * kernel's limit, and never cuts a path. Programs that use this file report such a path with the
 * same text.
 */
#ifndef VGPU_PROCESS_SOCKET_PATH_H
#define VGPU_PROCESS_SOCKET_PATH_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define VGPU_SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* Fill in the address of a path. Return: 0, or -ENAMETOOLONG, also for an empty path. */
static inline int vgpu_socket_address(const char *path, struct sockaddr_un *address)
{
	size_t bytes = strlen(path);

	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (bytes == 0 || bytes > VGPU_SOCKET_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(address->sun_path, path, bytes);
	return 0;
}

/* Write why vgpu_socket_address() refuses a path: its length, and the lengths allowed. */
static inline void vgpu_socket_path_words(const char *path, char *words, size_t room)
{
	snprintf(words, room, "%s: the path of a socket has %zu bytes; 1 to %zu are possible", path,
		 strlen(path), (size_t)VGPU_SOCKET_PATH_MAX);
}

#endif
