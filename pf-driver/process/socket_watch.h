/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Notices that the file of a listening socket was removed, for example by a cleanup of /run. Such a
 * socket still serves its connections, but no new client can connect. Programs that listen watch
 * the directories of their sockets, and bind a socket again if its file was removed. One inotify
 * descriptor watches all directories.
 */
#ifndef VGPU_PROCESS_SOCKET_WATCH_H
#define VGPU_PROCESS_SOCKET_WATCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open a watch. Return: an fd, readable when a socket may have been removed, or negative errno. */
static inline int vgpu_socket_watch_open(void)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Watch the directory of a socket. Must be called again after the socket was bound again, because
 * the directory may be a new one. Return: 0, or a negative errno.
 */
static inline int vgpu_socket_watch_add(int watch_fd, const char *path)
{
	const char *name = strrchr(path, '/');
	char directory[4096];

	if (!name)
		snprintf(directory, sizeof(directory), ".");
	else if ((size_t)snprintf(directory, sizeof(directory), "%.*s", (int)(name - path) + 1,
				  path) >= sizeof(directory))
		return -ENAMETOOLONG;
	return inotify_add_watch(watch_fd, directory, IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) < 0
		       ? -errno
		       : 0;
}

/* Read and drop all events, so that the fd is not readable until the next event. */
static inline void vgpu_socket_watch_clear(int watch_fd)
{
	char events[4096];

	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}

/* Get the inode number of a socket's file, to notice a replaced file; 0: there is no socket. */
static inline uint64_t vgpu_socket_inode(const char *path)
{
	struct stat file;

	return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode) ? (uint64_t)file.st_ino : 0;
}

#endif
