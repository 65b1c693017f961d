/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Makes the address of a unix socket from its path. The kernel allows at most 107 bytes; all
 * programs use this file, so that each refuses a longer path with the same text and none cuts it.
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

/**
 * vgpu_socket_address() - the address of a path
 * @path: in the file system, not empty
 * @address: filled in
 *
 * Return: 0, or -ENAMETOOLONG.
 */
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

/**
 * vgpu_socket_path_words() - why vgpu_socket_address() refuses a path
 * @path: as there
 * @words: filled in: its length and the longest one allowed
 * @room: size of @words
 */
static inline void vgpu_socket_path_words(const char *path, char *words, size_t room)
{
	snprintf(words, room, "%s: the path of a socket has %zu bytes, and 1 to %zu are possible",
		 path, strlen(path), (size_t)VGPU_SOCKET_PATH_MAX);
}

#endif
