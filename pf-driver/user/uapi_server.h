/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The uapi (pf-driver/uapi/vgpu_pf.h) on a SOCK_SEQPACKET unix socket: one request is one message,
 * fds travel with it. Several clients; each may have a few requests under way, replies come in the
 * order in which they finish. Root and the user who runs the process may do everything, others only
 * look. Reading never changes anything. One client at a time holds the policy lease; while it does,
 * nobody else sets the run table.
 *
 * Nothing here blocks: a client that does not read its replies is dropped, a stream fd is polled.
 * The event loop polls the descriptors that vgpu_user_server_poll_fds() lists.
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

/* a request that the core has not finished yet; its payload is the core's until then */
struct uapi_pending {
	uint64_t token; /* 0: free */
	uint64_t cookie;
	uint32_t op;
	uint32_t client_bytes; /* as long as the client's struct was */
	void *payload;
};

/**
 * struct uapi_client - one connection
 * @fd: the socket, owned; -1: the slot is free
 * @event_fd: eventfd that is bumped when the ring has entries; ours, the client has a duplicate
 * @may_write: peer is root or the owner of the process, by SO_PEERCRED at accept()
 * @holds_lease: at most one client does; goes with the connection
 * @is_lost: a reply could not be sent; nothing more is read, and the event loop ends it
 * @pending: requests that the core still works on
 */
struct uapi_client {
	int fd;	      /* -1: free */
	int event_fd; /* -1: has not asked for the ring */
	bool may_write;
	bool holds_lease;
	bool is_lost;
	struct uapi_pending pending[UAPI_CLIENT_REQUESTS];
};

/**
 * struct uapi_server - the server; large, so it lives in static memory
 * @pf: the core; not owned
 * @hooks: where the core's home calls back; set by init, must outlive the server's use
 * @listen_fd: listening socket
 * @watch_fd: readable when the socket's file may have been removed
 * @path: of the socket; the caller's
 * @socket_number: of the socket's file
 * @ring_fd: sealed memfd of the event ring, handed to clients
 * @ring: the same memory, writable here; @ring_bytes of it; the core is its only writer
 * @owner: effective user of the process, who may do what root may
 * @next_token: last token given out; never reused, so a late answer meets no other request
 * @stream_fd: what SAVE, RESTORE or DUMP reads or writes; the client's, set non-blocking
 * @is_stream_blocked: the last transfer would have blocked, so poll @stream_events on it
 * @stream_token: request that the stream belongs to
 * @clients: slots; a slot's index means nothing to a client
 * @message: the one that is being taken apart; valid only while it is handled
 */
struct uapi_server {
	struct vgpu_pf *pf;
	struct os_user_hooks *hooks; /* of the home's os */
	int listen_fd;		     /* -1: none (tests hand clients in) */
	int watch_fd;		     /* -1: likewise */
	const char *path;
	uint64_t socket_number;
	int ring_fd;
	void *ring;
	uint32_t ring_bytes;
	uid_t owner;
	uint64_t next_token;
	int stream_fd; /* of the one stream under way; -1: none */
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
