/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Serves the uapi (pf-driver/uapi/vgpu_pf.h) on a SOCK_SEQPACKET unix socket: one request is one
 * message, with its fds. Each of several clients may have a few open requests; replies are sent in
 * the order in which requests finish. Root and the user of the process may do everything, others
 * may only read, and reads change nothing. At most one client holds the policy lease; until it
 * ends, no other client may set the run table.
 *
 * Nothing here blocks: a client that does not read its replies is dropped, a stream fd is polled.
 * The event loop polls the descriptors listed by vgpu_user_server_poll_fds().
 */
#ifndef VGPU_USER_UAPI_SERVER_H
#define VGPU_USER_UAPI_SERVER_H

#include <poll.h>
#include <sys/types.h>

#include "pf-driver/core/pf.h"
#include "pf-driver/user/os_user.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A client beyond the first 32 is closed at once; a fifth request of one client gets -EBUSY. One
 * message holds head and struct of any request. UAPI_POLL_FDS: listener, stream and all clients.
 */
#define UAPI_CLIENTS	     32u
#define UAPI_CLIENT_REQUESTS 4u
#define UAPI_MESSAGE_BYTES   0x8000u
#define UAPI_POLL_FDS	     (2u + UAPI_CLIENTS)

/* a request that the core has not finished; until then the core uses its payload */
struct uapi_pending {
	uint64_t token; /* 0: free */
	uint64_t cookie;
	uint32_t op;
	uint32_t client_bytes; /* length of the client's struct */
	void *payload;
};

/**
 * struct uapi_client - one connection
 * @fd: the socket, owned; -1: the slot is free
 * @event_fd: eventfd signalled when the ring has entries, owned; the client has a duplicate
 * @may_write: peer is root or the owner of the process, by SO_PEERCRED at accept()
 * @is_lost: a reply could not be sent; nothing more is read, and the event loop drops the client
 * @pending: requests that the core still works on
 */
struct uapi_client {
	int fd;	      /* -1: free */
	int event_fd; /* -1: has not asked for the ring */
	bool may_write;
	bool is_lost;
	struct uapi_pending pending[UAPI_CLIENT_REQUESTS];
};

/**
 * struct uapi_server - the server; large, so it lives in static memory
 * @pf: the core; not owned
 * @hooks: callbacks of the core's home; set by init, must outlive the server
 * @listen_fd: listening socket
 * @watch_fd: readable when the socket's file may have been removed
 * @path: of the socket; the caller's
 * @socket_number: of the socket's file
 * @ring_fd: sealed memfd of the event ring, passed to clients
 * @ring: the same memory, @ring_bytes long, writable here; only the core writes it
 * @owner: effective user of the process, with the same rights as root
 * @next_token: last token given out; tokens are never reused, so a late answer finds no request
 * @stream_fd: client's fd that SAVE, RESTORE or DUMP reads or writes; set non-blocking
 * @is_stream_blocked: the last transfer would have blocked, so poll @stream_events on it
 * @stream_token: request of the stream
 * @clients: slots; clients do not see the index
 * @message: the message being parsed; valid only while it is handled
 */
struct uapi_server {
	struct vgpu_pf *pf;
	struct os_user_hooks *hooks; /* of the home's os */
	int listen_fd;		     /* -1: none (tests add clients directly) */
	int watch_fd;		     /* -1: likewise */
	const char *path;
	uint64_t socket_number;
	int ring_fd;
	void *ring;
	uint32_t ring_bytes;
	uid_t owner;
	uint64_t next_token;
	int stream_fd; /* of the only stream; -1: none */
	bool is_stream_blocked;
	short stream_events;
	uint64_t stream_token;
	struct uapi_client clients[UAPI_CLIENTS];
	uint8_t message[UAPI_MESSAGE_BYTES];
};

int vgpu_user_server_init(struct uapi_server *server, struct vgpu_pf *pf,
			  struct os_user_hooks *hooks);
int vgpu_user_server_make_ring(struct uapi_server *server);
int vgpu_user_server_listen(struct uapi_server *server, const char *path);
int vgpu_user_server_listen_again(struct uapi_server *server);
void vgpu_user_server_fini(struct uapi_server *server);
int vgpu_user_server_add_client(struct uapi_server *server, int fd, uid_t user);
uint32_t vgpu_user_server_poll_fds(const struct uapi_server *server,
				   struct pollfd fds[UAPI_POLL_FDS]);
void vgpu_user_server_handle(struct uapi_server *server, const struct pollfd *fds, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
