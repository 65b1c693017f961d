/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes the address of a unix socket from its path. Refuses an empty path, and a path of more than
 * 107 bytes, the kernel's limit; never cuts a path. vgpu_socket_path_error() makes the text with
 * which programs report a refused path.
 */
#ifndef VGPU_PROCESS_SOCKET_PATH_H
#define VGPU_PROCESS_SOCKET_PATH_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* longest path in bytes, without its NUL */
#define VGPU_SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* Fill in the address of a path. Return: 0; -ENAMETOOLONG if the path is too long or empty. */
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

/* Write to text[room] why vgpu_socket_address() refuses a path, with its length and the limits. */
static inline void vgpu_socket_path_error(const char *path, char *text, size_t room)
{
	snprintf(text, room, "%s: the path of a socket has %zu bytes; 1 to %zu are possible", path,
		 strlen(path), (size_t)VGPU_SOCKET_PATH_MAX);
}

#endif
