/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Serves the uapi (pf-driver/uapi/vgpu_pf.h) on a SOCK_SEQPACKET unix socket. One request is one
 * message, with at most one fd. There may be several clients, each with up to UAPI_CLIENT_REQUESTS
 * open requests; the server replies in the order in which requests finish. Root and the user of the
 * process may call all operations. Other users may only call the operations that are open to
 * readers (is_open_to_readers in core/pf.h). At most one client holds the policy lease; until the
 * lease ends, no other client may set the run table.
 *
 * The server never waits for a client: it drops a client that does not read its replies, and makes
 * a stream's fd non-blocking. The event loop polls the descriptors from
 * vgpu_user_server_poll_fds(). uapi_server.c and uapi_listen.c describe the functions.
 */
#ifndef VGPU_USER_UAPI_SERVER_H
#define VGPU_USER_UAPI_SERVER_H

#include <poll.h>
#include <sys/cdefs.h>
#include <sys/types.h>

#include "pf-driver/core/pf.h"

__BEGIN_DECLS

/* maximum number of clients; the server closes further connections at once */
#define UAPI_CLIENTS 32u
/* maximum number of open requests of one client; a further request gets -EBUSY */
#define UAPI_CLIENT_REQUESTS 4u
/* room for the head and the struct of any request */
#define UAPI_MESSAGE_BYTES 0x8000u
/* listener, stream and all clients */
#define UAPI_POLL_FDS (2u + UAPI_CLIENTS)

/* a request that the core has not finished; the core still uses its payload */
struct uapi_pending {
	uint64_t token;	 /* 0: this struct is not in use */
	uint64_t cookie; /* from the client; the reply repeats it */
	uint32_t op;
	uint32_t client_bytes; /* length of the client's struct */
	void *payload;	       /* the operation's struct, on the heap */
};

/* one connection, which owns its descriptors */
struct uapi_client {
	int fd;	      /* the socket; -1: this struct is not in use */
	int event_fd; /* eventfd for new ring entries; -1: the client has not requested the ring */
	bool may_write; /* true if the peer (SO_PEERCRED) is root or the owner of the process */
	bool is_lost;	/* true if a reply could not be sent: the event loop drops the client */
	struct uapi_pending pending[UAPI_CLIENT_REQUESTS];
};

/* state of the server; large, so callers keep the struct in static memory */
struct uapi_server {
	struct vgpu_pf *pf;    /* not owned */
	int listen_fd;	       /* -1: none (tests add clients directly) */
	int watch_fd;	       /* readable if the socket's file may have been removed; -1: none */
	const char *path;      /* path of the socket; the caller owns it */
	uint64_t socket_inode; /* inode number of the socket's file */
	int ring_fd;	       /* sealed memfd of the event ring, passed to clients */
	void *ring;	       /* the memory of ring_fd; only the core writes it */
	uint32_t ring_bytes;
	uid_t owner; /* effective user of the process, who may call all operations, as root may */
	/* newest token; no token is used twice, so a late answer cannot match a later request */
	uint64_t last_token;
	int stream_fd;		/* client's fd of SAVE, RESTORE or DUMP, non-blocking; -1: none */
	bool is_stream_blocked; /* true if the loop must poll stream_fd for stream_events */
	short stream_events;	/* POLLIN or POLLOUT */
	uint64_t stream_token;	/* token of the stream's request; 0: none */
	struct uapi_client clients[UAPI_CLIENTS];
	uint8_t message[UAPI_MESSAGE_BYTES]; /* the message being parsed */
};

int vgpu_user_server_init(struct uapi_server *server, struct vgpu_pf *pf);
int vgpu_user_server_make_ring(struct uapi_server *server);
int vgpu_user_server_listen(struct uapi_server *server, const char *path);
int vgpu_user_server_listen_again(struct uapi_server *server);
void vgpu_user_server_fini(struct uapi_server *server);
int vgpu_user_server_add_client(struct uapi_server *server, int fd, uid_t user);
uint32_t vgpu_user_server_poll_fds(const struct uapi_server *server,
				   struct pollfd fds[UAPI_POLL_FDS]);
void vgpu_user_server_request_done(struct uapi_server *server, uint64_t token, int error,
				   const char *message);
void vgpu_user_server_events(struct uapi_server *server);
int64_t vgpu_user_server_stream_write(struct uapi_server *server, const void *data, uint32_t bytes);
int64_t vgpu_user_server_stream_read(struct uapi_server *server, void *data, uint32_t bytes);
void vgpu_user_server_handle(struct uapi_server *server, const struct pollfd *fds, uint32_t count);

__END_DECLS

#endif
