/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Seals the paths that a process needs after its start. A seccomp filter sees the address of a
 * path, not its text. So these paths lie in one area of memory that becomes read-only. The filter
 * allows only their addresses, and no call that changes the area.
 *
 * A caller that passes a path to the kernel must pass the sealed copy, from vgpu_sealed() or
 * vgpu_sealed_address(). If the path is not sealed, as in unit tests, these functions return their
 * argument. softgpu and vgpu-pf use this file.
 */
#ifndef VGPU_CONFINE_SEALED_H
#define VGPU_CONFINE_SEALED_H

#include <stdint.h>
#include <sys/cdefs.h>
#include <sys/un.h>

__BEGIN_DECLS

/* what the process does with a sealed path; bits */
enum vgpu_path_use {
	VGPU_PATH_SERVE = 1,   /* the process's socket: bind, check for another server, remove */
	VGPU_PATH_CONNECT = 2, /* the socket of another process */
	VGPU_PATH_RECORD = 4,  /* a small file: write, remove */
	VGPU_PATH_WATCH = 8,   /* the directory of a socket: inotify */
};

/*
 * Seal a path, before vgpu_confine_files(). uses: bits of enum vgpu_path_use. vgpu_seal_socket()
 * seals the path of a socket for SERVE, and the path's directory for WATCH. Return: 0; or a
 * negative errno, and then the path or its directory is not sealed.
 */
int vgpu_seal_path(const char *path, uint32_t uses);
int vgpu_seal_socket(const char *path);

/* sealed.c describes these functions */
const char *vgpu_sealed(const char *path);
const struct sockaddr_un *vgpu_sealed_address(const struct sockaddr_un *address);
int vgpu_sealed_watch(int watch_fd, const char *path);

__END_DECLS

#endif
