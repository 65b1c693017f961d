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

#define UAPI_CLIENTS	     32u
#define UAPI_CLIENT_REQUESTS 4u
#define UAPI_MESSAGE_BYTES   0x8000u
#define UAPI_RING_ENTRIES    16384u
#define UAPI_RING_HEAD_BYTES 4096u
#define UAPI_POLL_FDS	     (2u + UAPI_CLIENTS)

/* a request that the core has not finished yet; its payload is the core's until then */
struct uapi_pending {
	uint64_t token; /* 0: free */
	uint64_t cookie;
	uint32_t op;
	uint32_t client_bytes; /* as long as the client's struct was */
	void *payload;
};

struct uapi_client {
	int fd;	      /* -1: free */
	int event_fd; /* -1: has not asked for the ring */
	bool may_write;
	bool holds_lease;
	struct uapi_pending pending[UAPI_CLIENT_REQUESTS];
};

struct uapi_server {
	struct vgpu_pf *pf;
	struct os_user_hooks *hooks; /* of the home's os */
	int listen_fd;		     /* -1: none (tests hand clients in) */
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
void vgpu_user_server_fini(struct uapi_server *server);
int vgpu_user_server_add_client(struct uapi_server *server, int fd, uid_t user);
uint32_t vgpu_user_server_poll_fds(const struct uapi_server *server,
				   struct pollfd fds[UAPI_POLL_FDS]);
void vgpu_user_server_handle(struct uapi_server *server, const struct pollfd *fds, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
