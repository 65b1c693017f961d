// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Runs requests of open files and of the platform itself in the core, and moves the data of their
 * streams.
 *
 * A caller waits for its request outside the lock. A caller that stops waiting withdraws the
 * request: from then on the core does not touch the payload. The data of a stream goes through a
 * bounce buffer. The core fills or empties the buffer under the lock and never waits. The caller's
 * thread moves the data to or from the file without the lock, and may wait for the file without a
 * limit.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "pf-driver/linux/platform.h"

/* longest write to a file that has poll(): a writable pipe takes this much without a wait */
#define POLLED_BYTES 4096u
/* longest time until a thread that waits for a file notices that the request has ended */
#define POLL_MS 50u
/* pause after -EAGAIN, because poll() may report a file as ready that still transfers nothing */
#define AGAIN_JIFFIES 1

/* ---- requests ---- */

static struct vgpu_request *find_request(struct vgpu_platform *platform, u64 token)
{
	struct vgpu_request *request;

	list_for_each_entry(request, &platform->clients.requests, entry) {
		if (request->token == token)
			return request;
	}
	return NULL;
}

static void finish_request(struct vgpu_request *request, int error, const char *message)
{
	list_del_init(&request->entry);
	request->error = error;
	strscpy(request->message, error ? message : "", sizeof(request->message));
	smp_store_release(&request->is_done, true);
	if (request->stream)
		wake_up_all(&request->stream->wait);
	/* comes last, because the request is on the stack of the waiter, which may return now */
	complete(&request->done);
}

static void free_stream(struct kref *ref)
{
	struct vgpu_stream *stream = container_of(ref, struct vgpu_stream, ref);

	kvfree(stream->data);
	kfree(stream);
}

/* Pass the result of a finished request to its waiter, if any. The platform is locked. */
void vgpu_client_done(struct vgpu_platform *platform, u64 token, int error, const char *message)
{
	struct vgpu_request *request = find_request(platform, token);

	if (platform->clients.stream && platform->clients.stream->token == token) {
		kref_put(&platform->clients.stream->ref, free_stream);
		platform->clients.stream = NULL;
	}
	if (request)
		finish_request(request, error, message);
}

/* breaks the stream of a withdrawn request: the core gets the error and ends the stream */
static void break_stream(struct vgpu_platform *platform, struct vgpu_stream *stream, int error)
{
	stream->error = error;
	if (platform->clients.stream != stream || !stream->is_blocked)
		return;
	stream->is_blocked = false;
	vgpu_pf_stream_ready(platform->pf);
}

static void withdraw(struct vgpu_platform *platform, struct vgpu_request *request, int error,
		     const char *message)
{
	/* in this order: the caller must not return while the core knows the payload */
	list_del_init(&request->entry);
	vgpu_pf_request_cancel(platform->pf, request->token);
	if (request->stream)
		break_stream(platform, request->stream, error);
	finish_request(request, error, message);
}

static struct vgpu_request *find_client_request(struct vgpu_platform *platform, const void *client)
{
	struct vgpu_request *request;

	list_for_each_entry(request, &platform->clients.requests, entry) {
		if (!client || request->client == client)
			return request;
	}
	return NULL;
}

/*
 * Withdraw the requests of a client, or all requests if client is NULL. The requests fail with
 * `error`. The platform is locked.
 */
void vgpu_client_cancel(struct vgpu_platform *platform, const void *client, int error)
{
	struct vgpu_request *request;

	/* search from the start each time: withdrawing a request may finish others */
	while ((request = find_client_request(platform, client)))
		withdraw(platform, request, error,
			 error == -ENODEV ? "the driver was unbound from the device" : "cancelled");
}

/*
 * Hand a request, with its client and stream set, to the core. The payload must stay valid until
 * the request is done. The platform is locked. vgpu_client_finish() waits for the end.
 */
void vgpu_client_run(struct vgpu_platform *platform, struct vgpu_request *request, u32 op,
		     void *payload)
{
	int error;

	init_completion(&request->done);
	INIT_LIST_HEAD(&request->entry);
	if (platform->is_gone) {
		finish_request(request, -ENODEV, "the driver was unbound from the device");
		return;
	}
	request->token = ++platform->clients.last_token;
	list_add_tail(&request->entry, &platform->clients.requests);
	/* if another stream is in progress, keep it: the core refuses this request */
	if (request->stream && !platform->clients.stream) {
		request->stream->token = request->token;
		kref_get(&request->stream->ref);
		platform->clients.stream = request->stream;
	}
	error = vgpu_pf_request_run_for(platform->pf, (uintptr_t)request->client, op, payload,
					request->token);
	if (error == -EINPROGRESS)
		return;
	/* a lost device reads as all ones, from which the core may derive a misleading error */
	if (error && platform->is_device_lost && vgpu_pf_request_traits(op)->needs_device)
		vgpu_client_done(platform, request->token, -ENODEV, "the device is lost");
	else
		vgpu_client_done(platform, request->token, error,
				 vgpu_pf_view_message(platform->pf));
}

/*
 * Ends a wait for a request; `error` is the result of the wait. If the wait failed, withdraws the
 * request, unless the core has finished it. Returns the error of the request.
 */
static int end_wait(struct vgpu_platform *platform, struct vgpu_request *request, int error)
{
	if (!error)
		return request->error;
	vgpu_platform_lock(platform);
	if (!request->is_done)
		withdraw(platform, request, -EINTR, "interrupted by a signal");
	vgpu_platform_unlock(platform);
	return request->error;
}

/*
 * Do an operation without a stream on behalf of the platform. The platform is not locked. Return: 0
 * or a negative errno; every errno except -EINTR has been logged.
 */
int vgpu_platform_request(struct vgpu_platform *platform, u32 op, void *payload)
{
	struct vgpu_request request = {};
	int error;

	vgpu_platform_lock(platform);
	vgpu_client_run(platform, &request, op, payload);
	vgpu_platform_unlock(platform);
	/*
	 * Even a killed caller waits for PROVISION, so that the caller knows which resources it
	 * must release. The core's time-outs limit the wait, and the loss of the device ends the
	 * wait.
	 */
	if (op == VGPU_PF_OP_PROVISION)
		wait_for_completion(&request.done);
	else
		end_wait(platform, &request, wait_for_completion_killable(&request.done));
	error = request.error;
	if (error && error != -EINTR)
		dev_warn(&platform->pdev->dev, "%s\n", request.message);
	return error;
}

/* ---- streams: the side of the core ---- */

/*
 * Take data from the core for the file. The platform is locked. Return: bytes taken; -EAGAIN if the
 * buffer is full; -EIO without a stream; or the error with which the request was withdrawn.
 */
s64 vgpu_client_stream_write(struct vgpu_platform *platform, const void *data, u32 bytes)
{
	struct vgpu_stream *stream = platform->clients.stream;
	u32 room;

	if (!stream)
		return -EIO;
	if (stream->error)
		return stream->error;
	/* the buffer is not a ring: it is filled from its start again once it is empty */
	if (stream->used == 0)
		stream->first = 0;
	room = min(bytes, VGPU_STREAM_BYTES - stream->first - stream->used);
	if (room == 0) {
		stream->is_blocked = true;
		return -EAGAIN;
	}
	memcpy(stream->data + stream->first + stream->used, data, room);
	smp_store_release(&stream->used, stream->used + room);
	wake_up_all(&stream->wait);
	return room;
}

/*
 * Give the core data of the file. The platform is locked. Return: bytes given; 0 at the end of the
 * file; -EAGAIN if the buffer is empty; -EIO without a stream; or the error with which the request
 * was withdrawn.
 */
s64 vgpu_client_stream_read(struct vgpu_platform *platform, void *data, u32 bytes)
{
	struct vgpu_stream *stream = platform->clients.stream;
	u32 count;

	if (!stream)
		return -EIO;
	if (stream->used == 0) {
		if (stream->error)
			return stream->error;
		if (stream->is_ended)
			return 0;
		stream->is_blocked = true;
		WRITE_ONCE(stream->requested, bytes);
		wake_up_all(&stream->wait);
		return -EAGAIN;
	}
	count = min(bytes, stream->used);
	memcpy(data, stream->data + stream->first, count);
	stream->first += count;
	WRITE_ONCE(stream->used, stream->used - count);
	return count;
}

/* ---- streams: the side of the file ---- */

/* Allocate the bounce buffer of a stream operation. Return: 0 or -ENOMEM. */
int vgpu_client_open_stream(struct vgpu_request *request)
{
	struct vgpu_stream *stream = kzalloc(sizeof(*stream), GFP_KERNEL);

	if (!stream)
		return -ENOMEM;
	stream->data = kvmalloc(VGPU_STREAM_BYTES, GFP_KERNEL);
	if (!stream->data) {
		kfree(stream);
		return -ENOMEM;
	}
	kref_init(&stream->ref);
	init_waitqueue_head(&stream->wait);
	request->stream = stream;
	return 0;
}

/* Drop the caller's reference to its stream, if any; the core's reference may remain. */
void vgpu_client_close_stream(struct vgpu_request *request)
{
	if (request->stream)
		kref_put(&request->stream->ref, free_stream);
	request->stream = NULL;
}

/*
 * true if no more data will move, because the request has ended. After a successful SAVE or DUMP
 * (EPOLLOUT), the buffer may still have data for the file, so the transfer is not over.
 */
static bool is_transfer_over(const struct vgpu_request *request, __poll_t events)
{
	if (!smp_load_acquire(&request->is_done))
		return false;
	return request->error || !(events & EPOLLOUT);
}

/*
 * Waits until the file can be written or read, has an error, or was hung up. Returns 0 (at once for
 * a file without poll()), -EAGAIN if the transfer is over, or -EINTR after a signal.
 */
static int wait_for_file(const struct vgpu_request *request, struct file *file, __poll_t events)
{
	struct poll_wqueues polls;
	int error = 0;

	if (!file->f_op->poll)
		return 0;
	poll_initwait(&polls);
	while (!(vfs_poll(file, &polls.pt) & (events | EPOLLERR | EPOLLHUP))) {
		polls.pt._qproc = NULL; /* do not register for the file again */
		if (is_transfer_over(request, events))
			error = -EAGAIN;
		else if (signal_pending(current))
			error = -EINTR;
		if (error)
			break;
		set_current_state(TASK_INTERRUPTIBLE);
		if (!polls.triggered)
			schedule_timeout(msecs_to_jiffies(POLL_MS));
		__set_current_state(TASK_RUNNING);
		smp_store_mb(polls.triggered, 0);
	}
	poll_freewait(&polls);
	return error;
}

static u32 transfer_bytes(const struct file *file, u32 bytes)
{
	return file->f_op->poll ? min(bytes, POLLED_BYTES) : bytes;
}

static void wake_core(struct vgpu_platform *platform, struct vgpu_stream *stream)
{
	if (platform->clients.stream != stream || !stream->is_blocked || platform->is_gone)
		return;
	stream->is_blocked = false;
	vgpu_pf_stream_ready(platform->pf);
}

/* replaces -ERESTARTSYS: a stream in progress cannot be restarted after a signal */
static ssize_t without_restart(ssize_t moved)
{
	return moved == -ERESTARTSYS ? -EINTR : moved;
}

/* writes data of the core to the file, and advances the file's position, as write(2) does */
static ssize_t write_file(struct vgpu_request *request, struct file *file, u32 first, u32 used)
{
	loff_t position = file->f_pos;
	ssize_t moved = wait_for_file(request, file, EPOLLOUT);

	if (moved)
		return moved;
	moved = kernel_write(file, request->stream->data + first, transfer_bytes(file, used),
			     &position);
	file->f_pos = position;
	return moved == 0 ? -EIO : without_restart(moved);
}

static int pump_out(struct vgpu_platform *platform, struct vgpu_request *request, struct file *file)
{
	struct vgpu_stream *stream = request->stream;
	ssize_t moved;
	bool is_done;
	u32 used;

	for (;;) {
		if (wait_event_interruptible(stream->wait, READ_ONCE(stream->used) ||
								   READ_ONCE(request->is_done)))
			return -EINTR;
		/* in this order: after is_done the core appends no data, so `used` is complete */
		is_done = smp_load_acquire(&request->is_done);
		used = smp_load_acquire(&stream->used);
		if (is_done && (request->error || used == 0))
			return 0;
		if (signal_pending(current))
			return -EINTR;
		moved = write_file(request, file, stream->first, used);
		if (moved == -EAGAIN) {
			schedule_timeout_interruptible(AGAIN_JIFFIES);
			continue;
		}
		if (moved < 0)
			return (int)moved;
		vgpu_platform_lock(platform);
		stream->first += (u32)moved;
		WRITE_ONCE(stream->used, stream->used - (u32)moved);
		wake_core(platform, stream);
		vgpu_platform_unlock(platform);
	}
}

/* reads no more bytes than the core requests, so that data after the stream stays in the file */
static ssize_t read_file(struct vgpu_request *request, struct file *file, u32 requested)
{
	loff_t position = file->f_pos;
	ssize_t moved = wait_for_file(request, file, EPOLLIN);

	if (moved)
		return moved;
	moved = kernel_read(file, request->stream->data, min(requested, VGPU_STREAM_BYTES),
			    &position);
	file->f_pos = position;
	return without_restart(moved);
}

static int pump_in(struct vgpu_platform *platform, struct vgpu_request *request, struct file *file)
{
	struct vgpu_stream *stream = request->stream;
	ssize_t moved;

	for (;;) {
		if (wait_event_interruptible(stream->wait, READ_ONCE(stream->requested) ||
								   READ_ONCE(request->is_done)))
			return -EINTR;
		if (is_transfer_over(request, EPOLLIN))
			return 0;
		if (signal_pending(current))
			return -EINTR;
		moved = read_file(request, file, stream->requested);
		if (moved == -EAGAIN) {
			schedule_timeout_interruptible(AGAIN_JIFFIES);
			continue;
		}
		if (moved < 0)
			return (int)moved;
		vgpu_platform_lock(platform);
		stream->first = 0;
		WRITE_ONCE(stream->used, (u32)moved);
		WRITE_ONCE(stream->requested, 0);
		stream->is_ended = moved == 0;
		wake_core(platform, stream);
		vgpu_platform_unlock(platform);
	}
}

/* kernel_read() and kernel_write() require read_iter or write_iter, without the older method */
static bool is_usable(const struct file *file, bool is_input)
{
	if (is_input)
		return (file->f_mode & FMODE_READ) && file->f_op->read_iter && !file->f_op->read;
	return (file->f_mode & FMODE_WRITE) && file->f_op->write_iter && !file->f_op->write;
}

/*
 * Get the file of a stream operation, with a reference. Return: ERR_PTR(-EBADF) if fd is not open;
 * ERR_PTR(-EINVAL) if the operation cannot read or write the file.
 */
struct file *vgpu_client_get_file(u32 op, int fd)
{
	struct file *file = fd < 0 ? NULL : fget((unsigned int)fd);

	if (!file)
		return ERR_PTR(-EBADF);
	if (is_usable(file, op == VGPU_PF_OP_RESTORE))
		return file;
	fput(file);
	return ERR_PTR(-EINVAL);
}

static const char *reason_of(int error)
{
	return error == -EINTR ? "interrupted by a signal" : "the stream's file failed";
}

/* withdraws a request whose stream has failed, unless the core has finished the request */
static void abandon(struct vgpu_platform *platform, struct vgpu_request *request, int error)
{
	vgpu_platform_lock(platform);
	if (!request->is_done)
		withdraw(platform, request, error, reason_of(error));
	vgpu_platform_unlock(platform);
}

/*
 * Wait until a request of vgpu_client_run() is done, and move the data of its stream to or from
 * `file`, which is NULL if the operation has no stream. The platform is not locked. Return: 0, or
 * the error of the request or the file. After the return, the core does not use the payload. If
 * SAVE or DUMP returns 0, the file has all data.
 */
int vgpu_client_finish(struct vgpu_platform *platform, struct vgpu_request *request, u32 op,
		       struct file *file)
{
	bool is_input = op == VGPU_PF_OP_RESTORE;
	int moved = 0;
	int error;

	if (file)
		moved = is_input ? pump_in(platform, request, file)
				 : pump_out(platform, request, file);
	if (moved)
		abandon(platform, request, moved);
	error = end_wait(platform, request, wait_for_completion_interruptible(&request->done));
	if (error || !moved || is_input)
		return error;
	/* the core has finished, but the rest of its data was not written to the file */
	strscpy(request->message, reason_of(moved), sizeof(request->message));
	return moved;
}
