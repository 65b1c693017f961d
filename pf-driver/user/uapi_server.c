// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include "pf-driver/user/uapi_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pf-driver/process/passed_fds.h"

/*
 * From message to reply: read_client() receives one message, check_message() checks its head,
 * check_request() checks operation, struct, rights and fd. The server itself answers
 * GET_EVENT_RING; all other operations go to the core. run_request() answers at once unless the
 * core returns -EINPROGRESS; in that case vgpu_user_server_request_done() answers. A client may
 * vanish at any point. The core then continues the actions that the client's requests started,
 * and the server drops the results.
 */
#define MAX_REPLY_FDS	2u
#define MAX_REQUEST_FDS 1u

/* one parsed message from a client */
struct incoming {
	struct vgpu_pf_request head;
	const uint8_t *body;
	uint32_t body_bytes;
	int fd; /* -1: none */
};

/* a reply to a client; the server keeps the descriptors, because sending duplicates them */
struct outgoing {
	struct vgpu_pf_reply head;
	const void *body;
	int fds[MAX_REPLY_FDS];
	uint32_t fd_count;
};

/* ---- replies ---- */

static void send_reply(struct uapi_client *client, const struct outgoing *reply)
{
	struct iovec parts[2] = {{(void *)(uintptr_t)&reply->head, sizeof(reply->head)},
				 {(void *)(uintptr_t)reply->body, reply->head.size}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = reply->head.size ? 2 : 1};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_REPLY_FDS * sizeof(int))] = {0};
	struct cmsghdr *header;

	if (reply->fd_count) {
		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(reply->fd_count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(reply->fd_count * sizeof(int));
		memcpy(CMSG_DATA(header), reply->fds, reply->fd_count * sizeof(int));
	}
	/*
	 * Do not wait for a client whose socket is full. Do not drop the client here, but in the
	 * event loop: dropping calls the core, and the core may have called this function.
	 */
	if (sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		client->is_lost = true;
		shutdown(client->fd, SHUT_RDWR);
	}
}

static void reply_without_struct(struct uapi_client *client, const struct incoming *in, int error,
				 const char *text)
{
	struct outgoing reply = {.head = {.magic = VGPU_PF_UAPI_MAGIC,
					  .error = error,
					  .op = in->head.op,
					  .cookie = in->head.cookie}};

	snprintf(reply.head.message, sizeof(reply.head.message), "%s", text);
	send_reply(client, &reply);
}

/* sends only the part of the struct that the client knows */
static void reply_with_struct(struct uapi_client *client, const struct uapi_pending *pending,
			      int error, const char *text)
{
	uint32_t full = vgpu_pf_request_traits(pending->op)->bytes;
	struct outgoing reply = {.head = {.magic = VGPU_PF_UAPI_MAGIC,
					  .error = error,
					  .op = pending->op,
					  .cookie = pending->cookie},
				 .body = pending->payload};

	reply.head.size = pending->client_bytes < full ? pending->client_bytes : full;
	snprintf(reply.head.message, sizeof(reply.head.message), "%s", error ? text : "");
	send_reply(client, &reply);
}

static void free_pending(struct uapi_pending *pending)
{
	free(pending->payload);
	memset(pending, 0, sizeof(*pending));
}

static void close_stream(struct uapi_server *server)
{
	if (server->stream_fd >= 0)
		close(server->stream_fd);
	server->stream_fd = -1;
	server->is_stream_blocked = false;
	server->stream_token = 0;
}

/* the number by which the core knows a client; not 0, which is the platform itself */
static uint64_t client_number(const struct uapi_server *server, const struct uapi_client *client)
{
	return (uint64_t)(client - server->clients) + 1;
}

/* sets client->fd to -1 before it calls the core, so that no callback finds this client */
static void drop_client(struct uapi_server *server, struct uapi_client *client)
{
	if (client->fd < 0)
		return;
	close(client->fd);
	client->fd = -1;
	if (client->event_fd >= 0)
		close(client->event_fd);
	client->event_fd = -1;
	vgpu_pf_request_client_gone(server->pf, client_number(server, client));
	for (uint32_t i = 0; i < UAPI_CLIENT_REQUESTS; i++) {
		struct uapi_pending *pending = &client->pending[i];
		uint64_t token = pending->token;

		if (token == 0)
			continue;
		free_pending(pending);
		vgpu_pf_request_cancel(server->pf, token);
	}
}

/* ---- callbacks of the core ---- */

/* Send the reply to a request that the core has finished, unless its client is gone. */
void vgpu_user_server_request_done(struct uapi_server *server, uint64_t token, int error,
				   const char *message)
{
	if (token == server->stream_token)
		close_stream(server);
	for (uint32_t c = 0; c < UAPI_CLIENTS; c++)
		for (uint32_t i = 0; i < UAPI_CLIENT_REQUESTS; i++) {
			struct uapi_client *client = &server->clients[c];
			struct uapi_pending done = client->pending[i];

			if (client->fd < 0 || done.token != token)
				continue;
			memset(&client->pending[i], 0, sizeof(client->pending[i]));
			reply_with_struct(client, &done, error, message);
			free(done.payload);
			return;
		}
}

/* Signal new entries of the ring to the clients that have requested the ring. */
void vgpu_user_server_events(struct uapi_server *server)
{
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++)
		if (server->clients[i].event_fd >= 0)
			eventfd_write(server->clients[i].event_fd, 1);
}

/*
 * Result of the services stream_write and stream_read (core/base/os.h): the bytes moved; 0 at the
 * end of the input; -EAGAIN if the server will call vgpu_pf_stream_ready(); or another negative
 * errno.
 */
static int64_t stream_result(struct uapi_server *server, ssize_t moved, short events)
{
	if (moved >= 0)
		return moved;
	if (errno != EAGAIN && errno != EINTR)
		return -errno;
	server->is_stream_blocked = true;
	server->stream_events = events;
	return -EAGAIN;
}

/* Write data of the core to the stream's file: the service stream_write of core/base/os.h. */
int64_t vgpu_user_server_stream_write(struct uapi_server *server, const void *data, uint32_t bytes)
{
	return stream_result(server, write(server->stream_fd, data, bytes), POLLOUT);
}

/* Read data from the stream's file: the service stream_read of core/base/os.h. */
int64_t vgpu_user_server_stream_read(struct uapi_server *server, void *data, uint32_t bytes)
{
	return stream_result(server, read(server->stream_fd, data, bytes), POLLIN);
}

/* ---- operations of the platform ---- */

/* a client has only one eventfd: a second request gets another descriptor of the same eventfd */
static void get_event_ring(struct uapi_server *server, struct uapi_client *client,
			   const struct incoming *in)
{
	struct vgpu_pf_event_ring_info info = {.size = sizeof(info),
					       .entries = VGPU_PF_RING_ENTRIES,
					       .bytes = server->ring_bytes,
					       .events_offset = VGPU_PF_RING_EVENTS_OFFSET};
	struct outgoing reply = {.head = {.magic = VGPU_PF_UAPI_MAGIC,
					  .op = in->head.op,
					  .cookie = in->head.cookie,
					  .size = sizeof(info)},
				 .body = &info,
				 .fd_count = 2};

	if (client->event_fd < 0)
		client->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (client->event_fd < 0) {
		reply_without_struct(client, in, -errno, "no eventfd left");
		return;
	}
	if (in->body_bytes < reply.head.size)
		reply.head.size = in->body_bytes;
	reply.fds[0] = server->ring_fd;
	reply.fds[1] = client->event_fd;
	send_reply(client, &reply);
}

/* ---- operations of the core ---- */

static struct uapi_pending *find_free(struct uapi_client *client)
{
	for (uint32_t i = 0; i < UAPI_CLIENT_REQUESTS; i++)
		if (client->pending[i].token == 0)
			return &client->pending[i];
	return NULL;
}

/* true if the struct is longer than the core knows, and the additional bytes are not all zero */
static bool has_unknown_part(const struct incoming *in, uint32_t known)
{
	for (uint32_t i = known; i < in->body_bytes; i++)
		if (in->body[i])
			return true;
	return false;
}

/* returns NULL if the server accepts the request; else the text of the error, and sets *error */
static const char *check_request(const struct uapi_client *client, const struct incoming *in,
				 int *error)
{
	const struct vgpu_pf_op_traits *traits = vgpu_pf_request_traits(in->head.op);

	*error = -EOPNOTSUPP;
	if (!traits)
		return "there is no such operation";
	*error = -E2BIG;
	if (has_unknown_part(in, traits->bytes))
		return "the struct is longer than this version knows, and the rest is not zero";
	*error = -EPERM;
	if (!traits->is_open_to_readers && !client->may_write)
		return "only root and the user who runs vgpu-pf may do that";
	*error = -EINVAL;
	if (traits->has_stream && in->fd < 0)
		return "the operation needs an fd to write to or read from";
	*error = 0;
	return NULL;
}

/*
 * Makes the fd non-blocking, because a blocked pipe would delay the next world switch. The client's
 * own fd becomes non-blocking, too: both descriptors are the same open file.
 */
static void open_stream(struct uapi_server *server, struct incoming *in, uint64_t token)
{
	int flags = fcntl(in->fd, F_GETFL);

	if (flags >= 0)
		fcntl(in->fd, F_SETFL, flags | O_NONBLOCK);
	server->stream_fd = in->fd;
	server->stream_token = token;
	in->fd = -1;
}

/*
 * The payload has the length that the core knows: the shorter struct of an older client is padded
 * with zeroes. The payload is on the heap, because the core uses it until the request is finished.
 */
static void run_request(struct uapi_server *server, struct uapi_client *client, struct incoming *in,
			struct uapi_pending *pending)
{
	const struct vgpu_pf_op_traits *traits = vgpu_pf_request_traits(in->head.op);
	uint32_t known = traits->bytes;
	uint64_t token = ++server->last_token;
	struct uapi_pending finished;
	int error;

	pending->payload = calloc(1, known);
	if (!pending->payload) {
		reply_without_struct(client, in, -ENOMEM, "no memory");
		return;
	}
	memcpy(pending->payload, in->body, in->body_bytes < known ? in->body_bytes : known);
	pending->token = token;
	pending->op = in->head.op;
	pending->cookie = in->head.cookie;
	pending->client_bytes = in->body_bytes;
	/* while another stream is in progress, the core refuses this request */
	if (traits->has_stream && server->stream_fd < 0)
		open_stream(server, in, token);
	error = vgpu_pf_request_run_for(server->pf, client_number(server, client), in->head.op,
					pending->payload, token);
	if (error == -EINPROGRESS)
		return;
	if (server->stream_token == token)
		close_stream(server);
	finished = *pending;
	memset(pending, 0, sizeof(*pending));
	reply_with_struct(client, &finished, error, vgpu_pf_view_message(server->pf));
	free(finished.payload);
}

static void handle_request(struct uapi_server *server, struct uapi_client *client,
			   struct incoming *in)
{
	struct uapi_pending *pending = find_free(client);
	int error;
	const char *wrong = check_request(client, in, &error);

	if (wrong)
		reply_without_struct(client, in, error, wrong);
	else if (in->head.op == VGPU_PF_OP_GET_EVENT_RING)
		get_event_ring(server, client, in);
	else if (!pending)
		reply_without_struct(client, in, -EBUSY,
				     "too many requests of this client at once");
	else
		run_request(server, client, in, pending);
}

/* ---- messages ---- */

/* copies the head before checking it: a refusal repeats the client's op and cookie */
static const char *check_message(const struct uapi_server *server, struct incoming *in,
				 size_t bytes, int flags)
{
	if (bytes < sizeof(in->head))
		return "the message is shorter than its head";
	memcpy(&in->head, server->message, sizeof(in->head));
	if (flags & MSG_TRUNC)
		return "the message is too long";
	if (in->head.magic != VGPU_PF_UAPI_MAGIC)
		return "the magic is wrong";
	if (in->head.version != VGPU_PF_UAPI_VERSION)
		return "this version of the uapi is not supported";
	if (in->head.size != bytes - sizeof(in->head))
		return "size does not match the message";
	in->body = server->message + sizeof(in->head);
	in->body_bytes = in->head.size;
	return NULL;
}

static void read_client(struct uapi_server *server, struct uapi_client *client)
{
	struct iovec part = {server->message, sizeof(server->message)};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_REQUEST_FDS * sizeof(int))];
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct incoming in = {.fd = -1};
	ssize_t bytes = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const char *wrong;
	int taken;

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		drop_client(server, client);
		return;
	}
	taken = vgpu_take_passed_fds(&message, &in.fd, MAX_REQUEST_FDS);
	if (taken < 0)
		in.fd = -1;
	wrong = check_message(server, &in, (size_t)bytes, message.msg_flags);
	if (!wrong && taken < 0)
		wrong = "a request has at most one fd";
	if (wrong)
		reply_without_struct(client, &in, -EBADMSG, wrong);
	else
		handle_request(server, client, &in);
	if (in.fd >= 0)
		close(in.fd);
}

static void accept_client(struct uapi_server *server)
{
	int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(peer);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) ||
	    vgpu_user_server_add_client(server, fd, peer.uid))
		close(fd);
}

/*
 * Serve a connected SOCK_SEQPACKET socket, whose peer runs as `user`. Return: 0, and then the
 * server owns fd; or -EMFILE if there are UAPI_CLIENTS clients.
 */
int vgpu_user_server_add_client(struct uapi_server *server, int fd, uid_t user)
{
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++) {
		struct uapi_client *client = &server->clients[i];

		if (client->fd >= 0)
			continue;
		memset(client, 0, sizeof(*client));
		client->fd = fd;
		client->event_fd = -1;
		client->may_write = user == 0 || user == server->owner;
		return 0;
	}
	return -EMFILE;
}

/* List the descriptors for the event loop. Return: their number. */
uint32_t vgpu_user_server_poll_fds(const struct uapi_server *server,
				   struct pollfd fds[UAPI_POLL_FDS])
{
	uint32_t count = 0;

	if (server->listen_fd >= 0)
		fds[count++] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
	if (server->is_stream_blocked)
		fds[count++] =
			(struct pollfd){.fd = server->stream_fd, .events = server->stream_events};
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++)
		if (server->clients[i].fd >= 0)
			fds[count++] =
				(struct pollfd){.fd = server->clients[i].fd, .events = POLLIN};
	return count;
}

static void handle_client(struct uapi_server *server, struct uapi_client *client)
{
	if (client->is_lost)
		drop_client(server, client);
	else
		read_client(server, client);
}

static void handle_fd(struct uapi_server *server, int fd)
{
	if (fd == server->listen_fd) {
		accept_client(server);
		return;
	}
	if (server->is_stream_blocked && fd == server->stream_fd) {
		server->is_stream_blocked = false;
		vgpu_pf_stream_ready(server->pf);
		return;
	}
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++)
		if (server->clients[i].fd == fd)
			handle_client(server, &server->clients[i]);
}

/* Serve the descriptors of vgpu_user_server_poll_fds() that poll() reported. */
void vgpu_user_server_handle(struct uapi_server *server, const struct pollfd *fds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (fds[i].revents)
			handle_fd(server, fds[i].fd);
}

/* ---- start and end ---- */

/*
 * Make a server that does not listen yet. The caller must pass server->ring to vgpu_pf_init().
 * Return: 0 or a negative errno.
 */
int vgpu_user_server_init(struct uapi_server *server, struct vgpu_pf *pf)
{
	memset(server, 0, sizeof(*server));
	server->pf = pf;
	server->listen_fd = -1;
	server->watch_fd = -1;
	server->stream_fd = -1;
	server->owner = geteuid();
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++) {
		server->clients[i].fd = -1;
		server->clients[i].event_fd = -1;
	}
	return vgpu_user_server_make_ring(server);
}

/* Drop all clients, and release descriptors and memory. */
void vgpu_user_server_fini(struct uapi_server *server)
{
	for (uint32_t i = 0; i < UAPI_CLIENTS; i++)
		drop_client(server, &server->clients[i]);
	close_stream(server);
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->watch_fd >= 0)
		close(server->watch_fd);
	munmap(server->ring, server->ring_bytes);
	close(server->ring_fd);
}
