// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "pf-driver/user/vfio_user_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "pf-driver/confine/sealed.h"
#include "pf-driver/process/socket_path.h"

/*
 * Layouts and numbers below are from QEMU's docs/interop/vfio-user.rst; the payloads of DMA_MAP and
 * DEVICE_SET_IRQS follow struct vfio_iommu_type1_dma_map and vfio_irq_set of linux/vfio.h.
 */
enum message_command {
	COMMAND_VERSION = 1,
	COMMAND_DMA_MAP = 2,
	COMMAND_DEVICE_SET_IRQS = 8,
	COMMAND_REGION_READ = 9,
	COMMAND_REGION_WRITE = 10,
};

enum message_flags {
	FLAG_TYPE_MASK = 0xf,
	FLAG_REPLY = 0x1,
	FLAG_NO_REPLY = 0x10,
	FLAG_ERROR = 0x20,
};

struct message_header {
	uint16_t id;
	uint16_t command;
	uint32_t size;
	uint32_t flags;
	uint32_t error;
};

struct region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};

struct dma_map {
	uint32_t argsz, flags;
	uint64_t offset, address, size;
};

struct irq_set {
	uint32_t argsz, flags, index, start, count;
};

/* flags of struct dma_map and struct irq_set */
#define DMA_READ_WRITE	   0x3u
#define IRQ_DATA_EVENTFD   (1u << 2)
#define IRQ_ACTION_TRIGGER (1u << 5)

/* limits of this client; `capabilities` offers MAX_FDS and MAX_TRANSFER to the device */
#define MAX_FDS		  8u
#define MAX_TRANSFER	  0x100000u
#define MIN_TRANSFER	  4096u
#define MAX_VERSION_BYTES 4096u /* bytes of the reply to COMMAND_VERSION after its header */

#define PROTOCOL_MAJOR 0
#define PROTOCOL_MINOR 0
static const char capabilities[] =
	"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576,\"pgsizes\":4096}}";

/* one request: send_request() makes the header; body and data follow it */
struct request {
	uint16_t command;
	uint32_t flags;
	const void *body;
	size_t body_bytes;
	const void *data;
	size_t data_bytes;
	const int *fds;
	uint32_t fd_count;
	void *reply; /* receives the bytes after the reply's header */
	size_t reply_bytes;
	void *payload; /* receives the bytes that follow; a longer reply is a breach */
	size_t payload_bytes;
	size_t reply_got; /* bytes received in reply and payload */
};

void vgpu_user_client_init(struct vfio_user_client *client)
{
	client->fd = -1;
	client->next_id = 1;
	client->max_transfer = MIN_TRANSFER;
	client->timeout_ms = VFIO_USER_REPLY_TIMEOUT_MS;
}

/*
 * Return: true from a connect until the client closes the connection or a breach occurs. Only the
 * next request, or poll(), notices that the peer has died.
 */
bool vgpu_user_client_is_connected(const struct vfio_user_client *client)
{
	return client->fd >= 0;
}

/* End the connection, if any; the device drops the interrupts and DMA maps of this client. */
void vgpu_user_client_close(struct vfio_user_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

/* after a breach the start of the next message is unknown: only a new connection helps */
static int disconnect(struct vfio_user_client *client)
{
	vgpu_user_client_close(client);
	return -ENODEV;
}

static void attach_fds(struct msghdr *message, void *control, const struct request *request)
{
	struct cmsghdr *header;

	if (request->fd_count == 0)
		return;
	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(request->fd_count * sizeof(int));
	memset(control, 0, message->msg_controllen);
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(request->fd_count * sizeof(int));
	memcpy(CMSG_DATA(header), request->fds, request->fd_count * sizeof(int));
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The time limits of the socket hold for each system call. So callers also check the age of the
 * request after each part of a message: otherwise a device could delay a request forever, byte by
 * byte.
 */
static bool is_overdue(const struct vfio_user_client *client)
{
	return monotonic_ns() - client->started_ns > client->timeout_ms * 1000000ull;
}

/* removes the moved bytes, and empty pieces after them, from the front of the vector */
static void consume(struct msghdr *message, size_t moved)
{
	while (message->msg_iovlen && moved >= message->msg_iov->iov_len) {
		moved -= message->msg_iov->iov_len;
		message->msg_iov++;
		message->msg_iovlen--;
	}
	if (message->msg_iovlen) {
		message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + moved;
		message->msg_iov->iov_len -= moved;
	}
}

/*
 * The socket may accept only a part of a message. Descriptors go only with the first part;
 * otherwise the device would get them twice. A socket that stays full fails by SO_SNDTIMEO, which
 * is a breach.
 */
static int send_request(struct vfio_user_client *client, const struct request *request)
{
	struct message_header header = {
		.id = client->next_id, .command = request->command, .flags = request->flags};
	struct iovec parts[3] = {{&header, sizeof(header)},
				 {(void *)(uintptr_t)request->body, request->body_bytes},
				 {(void *)(uintptr_t)request->data, request->data_bytes}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))];

	header.size = (uint32_t)(sizeof(header) + request->body_bytes + request->data_bytes);
	attach_fds(&message, control, request);
	while (message.msg_iovlen) {
		ssize_t sent = sendmsg(client->fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -ENODEV;
		consume(&message, (size_t)sent);
		message.msg_control = NULL;
		message.msg_controllen = 0;
		if (message.msg_iovlen && is_overdue(client))
			return -ENODEV;
	}
	return 0;
}

static int receive_all(struct vfio_user_client *client, struct iovec *parts, size_t count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	consume(&message, 0);
	while (message.msg_iovlen) {
		ssize_t got = recvmsg(client->fd, &message, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -ENODEV;
		consume(&message, (size_t)got);
		if (message.msg_iovlen && is_overdue(client))
			return -ENODEV;
	}
	return 0;
}

/* an error in the reply is the result of the request; the connection stays open */
static int receive_reply(struct vfio_user_client *client, struct request *request)
{
	struct message_header header;
	struct iovec parts[2] = {{&header, sizeof(header)}};
	size_t rest;

	/* a request from the device is a breach, too: the device maps DMA memory, and needs none */
	if (receive_all(client, parts, 1) || header.size < sizeof(header) ||
	    (header.flags & FLAG_TYPE_MASK) != FLAG_REPLY)
		return -ENODEV;
	rest = header.size - sizeof(header);
	if (header.id != client->next_id || header.command != request->command ||
	    rest > request->reply_bytes + request->payload_bytes)
		return -ENODEV;
	parts[0].iov_base = request->reply;
	parts[0].iov_len = rest < request->reply_bytes ? rest : request->reply_bytes;
	parts[1].iov_base = request->payload;
	parts[1].iov_len = rest - parts[0].iov_len;
	if (receive_all(client, parts, 2))
		return -ENODEV;
	request->reply_got = rest;
	if (!(header.flags & FLAG_ERROR))
		return 0;
	/* not -ENODEV, for which transact() would close the connection */
	if (header.error == 0 || header.error >= 4096 || header.error == ENODEV)
		return -EIO;
	return -(int)header.error;
}

static int transact(struct vfio_user_client *client, struct request *request)
{
	int error;

	if (client->fd < 0)
		return -ENODEV;
	client->started_ns = monotonic_ns();
	error = send_request(client, request);
	if (!error && !(request->flags & FLAG_NO_REPLY))
		error = receive_reply(client, request);
	client->next_id++;
	return error == -ENODEV ? disconnect(client) : error;
}

/*
 * Searches the text for the only capability that this client needs, because a JSON parser would add
 * attack surface. For any input the result lies between MIN_TRANSFER and MAX_TRANSFER.
 */
static uint32_t parse_max_transfer(const char *json)
{
	static const char key[] = "\"max_data_xfer_size\":";
	const char *found = strstr(json, key);
	unsigned long value = found ? strtoul(found + sizeof(key) - 1, NULL, 10) : MAX_TRANSFER;

	if (value < MIN_TRANSFER)
		return MIN_TRANSFER;
	return value < MAX_TRANSFER ? (uint32_t)value : MAX_TRANSFER;
}

static int negotiate(struct vfio_user_client *client)
{
	uint16_t version[2] = {PROTOCOL_MAJOR, PROTOCOL_MINOR};
	char reply[MAX_VERSION_BYTES + 1];
	struct request request = {.command = COMMAND_VERSION,
				  .body = version,
				  .body_bytes = sizeof(version),
				  .data = capabilities,
				  .data_bytes = sizeof(capabilities),
				  .reply = reply,
				  .reply_bytes = MAX_VERSION_BYTES};
	int error = transact(client, &request);

	if (error)
		return error;
	if (request.reply_got < sizeof(version))
		return disconnect(client);
	memcpy(version, reply, sizeof(version));
	reply[request.reply_got] = 0;
	if (version[0] != PROTOCOL_MAJOR)
		return disconnect(client);
	client->max_transfer = parse_max_transfer(reply + sizeof(version));
	return 0;
}

/*
 * Connect and agree on a version. The confined process may pass only a sealed address to the kernel
 * (confine/sealed.h). Return: 0; -EBUSY if the device has another client; or another errno.
 */
int vgpu_user_client_connect(struct vfio_user_client *client, const char *path)
{
	struct sockaddr_un address;
	struct timeval limit = {.tv_sec = client->timeout_ms / 1000,
				.tv_usec = client->timeout_ms % 1000 * 1000};
	int error;

	if (vgpu_socket_address(path, &address))
		return -ENAMETOOLONG;
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		return -errno;
	setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(client->fd, (const struct sockaddr *)vgpu_sealed_address(&address),
		    sizeof(address))) {
		error = -errno;
		vgpu_user_client_close(client);
		return error;
	}
	error = negotiate(client);
	if (error)
		vgpu_user_client_close(client);
	return error;
}

/* the reply repeats the struct region_access, and the data follows */
static int read_part(struct vfio_user_client *client, struct region_access access, void *data)
{
	struct region_access echo;
	struct request request = {.command = COMMAND_REGION_READ,
				  .body = &access,
				  .body_bytes = sizeof(access),
				  .reply = &echo,
				  .reply_bytes = sizeof(echo),
				  .payload = data,
				  .payload_bytes = access.count};
	int error = transact(client, &request);

	return !error && request.reply_got != sizeof(echo) + access.count ? disconnect(client)
									  : error;
}

/* Read from a region, in parts of at most max_transfer bytes. Return: 0 or negative errno. */
int vgpu_user_client_read(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			  void *data, uint32_t bytes)
{
	char *at = data;
	int error = 0;

	while (bytes && !error) {
		uint32_t part = bytes < client->max_transfer ? bytes : client->max_transfer;
		struct region_access access = {offset, region, part};

		error = read_part(client, access, at);
		at += part;
		offset += part;
		bytes -= part;
	}
	return error;
}

/* Write to a region, in parts of at most max_transfer bytes. Return: 0 or negative errno. */
int vgpu_user_client_write(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			   const void *data, uint32_t bytes)
{
	const char *at = data;
	int error = 0;

	while (bytes && !error) {
		uint32_t part = bytes < client->max_transfer ? bytes : client->max_transfer;
		struct region_access access = {offset, region, part};
		struct region_access echo;
		struct request request = {.command = COMMAND_REGION_WRITE,
					  .body = &access,
					  .body_bytes = sizeof(access),
					  .data = at,
					  .data_bytes = part,
					  .reply = &echo,
					  .reply_bytes = sizeof(echo)};

		error = transact(client, &request);
		at += part;
		offset += part;
		bytes -= part;
	}
	return error;
}

/*
 * Write 1 to 8 bytes to a region without a reply. Return: 0, or -ENODEV if there is no connection
 * or the connection breaks.
 */
int vgpu_user_client_post(struct vfio_user_client *client, uint32_t region, uint64_t offset,
			  const void *data, uint32_t bytes)
{
	struct region_access access = {offset, region, bytes};
	struct request request = {.command = COMMAND_REGION_WRITE,
				  .flags = FLAG_NO_REPLY,
				  .body = &access,
				  .body_bytes = sizeof(access),
				  .data = data,
				  .data_bytes = bytes};

	return transact(client, &request);
}

/*
 * Let the device signal interrupts by at most 8 eventfds, one per vector, from vector 0. Return: 0
 * or a negative errno.
 */
int vgpu_user_client_set_irqs(struct vfio_user_client *client, uint32_t index, const int *fds,
			      uint32_t count)
{
	struct irq_set set = {.argsz = sizeof(set),
			      .flags = IRQ_DATA_EVENTFD | IRQ_ACTION_TRIGGER,
			      .index = index,
			      .start = 0,
			      .count = count};
	char reply[64];
	struct request request = {.command = COMMAND_DEVICE_SET_IRQS,
				  .body = &set,
				  .body_bytes = sizeof(set),
				  .fds = fds,
				  .fd_count = count,
				  .reply = reply,
				  .reply_bytes = sizeof(reply)};

	if (count > MAX_FDS)
		return -EINVAL;
	return transact(client, &request);
}

/* Let the device access page-aligned memory of this process. Return: 0 or a negative errno. */
int vgpu_user_client_map_dma(struct vfio_user_client *client, const struct vfio_user_dma *dma)
{
	struct dma_map map = {.argsz = sizeof(map),
			      .flags = DMA_READ_WRITE,
			      .offset = dma->offset,
			      .address = dma->bus,
			      .size = dma->bytes};
	char reply[64];
	struct request request = {.command = COMMAND_DMA_MAP,
				  .body = &map,
				  .body_bytes = sizeof(map),
				  .fds = &dma->fd,
				  .fd_count = 1,
				  .reply = reply,
				  .reply_bytes = sizeof(reply)};

	return transact(client, &request);
}
