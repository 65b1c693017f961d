// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Makes the event ring and the listening socket of the uapi server. The confined process may pass
 * only sealed copies of paths to the kernel: vgpu_sealed() and others (confine/sealed.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/process/socket_path.h"
#include "pf-driver/process/socket_watch.h"
#include "pf-driver/user/uapi_server.h"

/*
 * Make the memory of the event ring. Only this process can write it: a seal forbids further
 * writable maps. Return: 0 or a negative errno.
 */
int vgpu_user_server_make_ring(struct uapi_server *server)
{
	server->ring_bytes = VGPU_PF_RING_EVENTS_OFFSET +
			     VGPU_PF_RING_ENTRIES * (uint32_t)sizeof(struct vgpu_pf_event);
	server->ring_fd = memfd_create("vgpu-pf-events", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (server->ring_fd < 0 || ftruncate(server->ring_fd, server->ring_bytes))
		return -errno;
	server->ring = mmap(NULL, server->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    server->ring_fd, 0);
	if (server->ring == MAP_FAILED)
		return -errno;
	if (fcntl(server->ring_fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL))
		return -errno;
	return 0;
}

/* true if a process serves the socket; a killed process leaves a file that refuses connections */
static bool is_answering(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool is_connected =
		fd >= 0 && connect(fd, (const struct sockaddr *)vgpu_sealed_address(address),
				   sizeof(*address)) == 0;

	if (fd >= 0)
		close(fd);
	return is_connected;
}

/* closes the socket, because poll() would report a socket without listen(); returns -errno */
static int bind_failed(struct uapi_server *server)
{
	int error = errno;

	if (server->listen_fd >= 0)
		close(server->listen_fd);
	server->listen_fd = -1;
	return -error;
}

static int bind_socket(struct uapi_server *server)
{
	const char *path = vgpu_sealed(server->path);
	struct sockaddr_un address;
	struct stat file;

	if (vgpu_socket_address(path, &address))
		return -ENAMETOOLONG;
	if (lstat(path, &file) == 0) {
		if (!S_ISSOCK(file.st_mode))
			return -EEXIST;
		if (is_answering(&address))
			return -EADDRINUSE;
		unlink(path);
	}
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listen_fd < 0)
		return bind_failed(server);
	/* before bind(), so that no other user can connect before the file has this mode */
	if (fchmod(server->listen_fd, S_IRUSR | S_IWUSR) ||
	    bind(server->listen_fd, (const struct sockaddr *)vgpu_sealed_address(&address),
		 sizeof(address)) ||
	    listen(server->listen_fd, (int)UAPI_CLIENTS))
		return bind_failed(server);
	server->socket_inode = vgpu_socket_inode(path);
	return 0;
}

/*
 * Bind the socket, in place of a stale one, and watch its file. The server keeps the pointer
 * `path`. Return: 0, -EADDRINUSE if a process serves a socket at `path`, -EEXIST if the file at
 * `path` is not a socket, or another negative errno.
 */
int vgpu_user_server_listen(struct uapi_server *server, const char *path)
{
	int error;

	server->path = path;
	error = bind_socket(server);
	if (error)
		return error;
	server->watch_fd = vgpu_socket_watch_open();
	if (server->watch_fd < 0)
		return server->watch_fd;
	return vgpu_sealed_watch(server->watch_fd, path);
}

/*
 * Bind the socket again if its file was removed or replaced. Return: 0 if the file is unchanged, 1
 * if the socket was bound again, else a negative errno, as vgpu_user_server_listen() returns it.
 */
int vgpu_user_server_listen_again(struct uapi_server *server)
{
	int error;

	vgpu_socket_watch_clear(server->watch_fd);
	if (server->listen_fd >= 0 &&
	    vgpu_socket_inode(vgpu_sealed(server->path)) == server->socket_inode)
		return 0;
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	server->listen_fd = -1;
	error = bind_socket(server);
	if (!error)
		error = vgpu_sealed_watch(server->watch_fd, server->path);
	return error ? error : 1;
}
