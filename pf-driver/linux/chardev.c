// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Open files of the nodes (nodes.c). /dev/vgpu-pfN implements the uapi. While a process has a VF's
 * node open, sysfs names this process as the VF's owner. Each file holds a reference of the
 * platform, so an ioctl after remove() still finds the platform, and requests to the core fail with
 * -ENODEV.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "pf-driver/linux/compat.h"
#include "pf-driver/linux/platform.h"

#define CLIENT_REQUESTS 4u /* requests of one file in progress; a further request gets -EBUSY */

/* an open file */
struct vgpu_client {
	struct vgpu_platform *platform;
	struct vgpu_platform_vf *node;
	bool may_write; /* true if the file is open for writing */
	/* platform->lock guards the next two members */
	bool is_cancelled;	 /* true after CANCEL: new requests fail */
	u32 requests;		 /* number of requests in progress */
	atomic64_t notified_seq; /* read() has counted all events before this sequence number */
	spinlock_t error_lock;	 /* guards error and message, which GET_ERROR returns */
	int error;		 /* error of the last request that failed; 0: none */
	char message[VGPU_PF_MESSAGE_BYTES]; /* text of this error */
};

/* ---- errors ---- */

/* records `error` for GET_ERROR if `error` is not 0; returns `error` */
static int fail(struct vgpu_client *client, int error, const char *message)
{
	if (!error)
		return 0;
	spin_lock(&client->error_lock);
	client->error = error;
	strscpy(client->message, message, sizeof(client->message));
	spin_unlock(&client->error_lock);
	return error;
}

static int get_error(struct vgpu_client *client, struct vgpu_pf_error *out)
{
	out->size = sizeof(*out);
	spin_lock(&client->error_lock);
	out->error = client->error;
	memcpy(out->message, client->message, sizeof(out->message));
	spin_unlock(&client->error_lock);
	return 0;
}

/* ---- operations of the platform ---- */

static int cancel(struct vgpu_client *client, const struct vgpu_pf_cancel *payload)
{
	if (payload->reserved)
		return fail(client, -EINVAL, "the reserved field is not 0");
	vgpu_platform_lock(client->platform);
	client->is_cancelled = true;
	if (!client->platform->is_gone)
		vgpu_client_cancel(client->platform, client, -ECANCELED);
	vgpu_platform_unlock(client->platform);
	return 0;
}

static int get_event_ring(const struct vgpu_platform *platform,
			  struct vgpu_pf_event_ring_info *info)
{
	info->size = sizeof(*info);
	info->entries = VGPU_PF_RING_ENTRIES;
	info->bytes = platform->ring.bytes;
	info->events_offset = VGPU_PF_RING_EVENTS_OFFSET;
	return 0;
}

/* queues the deferred work (pci.c), some of which had to wait for the end of the lease */
static void handle_lease_end(struct vgpu_platform *platform)
{
	if (!platform->is_gone)
		schedule_work(&platform->service.deferred);
}

/* ---- operations of the core ---- */

/* returns why the file may not begin a request now, and sets *error; NULL and 0: it may */
static const char *find_refusal(const struct vgpu_client *client, int *error)
{
	const struct vgpu_platform *platform = client->platform;

	*error = -ENODEV;
	if (platform->is_gone)
		return "the driver was unbound from the device";
	*error = -ECANCELED;
	if (client->is_cancelled)
		return "this file was cancelled";
	*error = -EBUSY;
	if (client->requests >= CLIENT_REQUESTS)
		return "too many requests of this file at once";
	*error = 0;
	return NULL;
}

/* returns 0 if the request went to the core, even if it has failed there; else a negative errno */
static int begin_request(struct vgpu_client *client, struct vgpu_request *request, u32 op,
			 void *payload)
{
	const char *wrong;
	int error;

	vgpu_platform_lock(client->platform);
	wrong = find_refusal(client, &error);
	if (!wrong) {
		client->requests++;
		vgpu_client_run(client->platform, request, op, payload);
		if (op == VGPU_PF_OP_LEASE && !vgpu_pf_view_is_leased(client->platform->pf))
			handle_lease_end(client->platform);
	}
	vgpu_platform_unlock(client->platform);
	return wrong ? fail(client, error, wrong) : 0;
}

static void end_request(struct vgpu_client *client)
{
	vgpu_platform_lock(client->platform);
	client->requests--;
	vgpu_platform_unlock(client->platform);
}

/* file: the file of the stream; NULL: the operation has no stream */
static int run_with_file(struct vgpu_client *client, u32 op, void *payload, struct file *file)
{
	struct vgpu_request request = {.client = client};
	int error = 0;

	if (file)
		error = vgpu_client_open_stream(&request);
	if (error)
		return fail(client, error, "no memory for the stream");
	error = begin_request(client, &request, op, payload);
	if (!error) {
		error = vgpu_client_finish(client->platform, &request, op, file);
		end_request(client);
		fail(client, error, request.message);
	}
	vgpu_client_close_stream(&request);
	return error;
}

static int run_core(struct vgpu_client *client, u32 op, void *payload)
{
	struct vgpu_pf_stream *stream = payload;
	struct file *file = NULL;
	int error;

	if (vgpu_pf_request_traits(op)->has_stream) {
		file = vgpu_client_get_file(op, stream->fd);
		if (IS_ERR(file))
			return fail(client, PTR_ERR(file),
				    "the operation needs an fd to write to or read from");
	}
	error = run_with_file(client, op, payload, file);
	if (file)
		fput(file);
	return error;
}

static int run_on_pf(struct vgpu_client *client, u32 op, void *payload)
{
	switch (op) {
	case VGPU_PF_OP_GET_ERROR:
		return get_error(client, payload);
	case VGPU_PF_OP_CANCEL:
		return cancel(client, payload);
	case VGPU_PF_OP_GET_EVENT_RING:
		return get_event_ring(client->platform, payload);
	default:
		return run_core(client, op, payload);
	}
}

/* the node of a VF offers only GET_VF of this VF (vf: its number or 0), and GET_ERROR */
static int run_on_vf(struct vgpu_client *client, u32 op, void *payload)
{
	struct vgpu_pf_vf *vf = payload;

	if (op == VGPU_PF_OP_GET_ERROR)
		return get_error(client, payload);
	if (op != VGPU_PF_OP_GET_VF)
		return fail(client, -EPERM, "the node of a VF offers only GET_VF and GET_ERROR");
	if (vf->vf != 0 && vf->vf != client->node->number)
		return fail(client, -EPERM, "this is the node of another VF");
	vf->vf = client->node->number;
	return run_core(client, op, payload);
}

/* ---- ioctl ---- */

static int run_copied(struct vgpu_client *client, u32 op, void *payload, void __user *user,
		      u32 user_bytes)
{
	u32 known = vgpu_pf_request_traits(op)->bytes;
	int error = copy_struct_from_user(payload, known, user, user_bytes);

	if (error == -E2BIG)
		return fail(client, error,
			    "the struct is longer than this version knows, and the rest is not "
			    "zero");
	if (error)
		return fail(client, error, "the struct is not readable memory");
	error = client->node->number ? run_on_vf(client, op, payload)
				     : run_on_pf(client, op, payload);
	/* also after an error, because a stream reports its progress in the payload */
	if (copy_to_user(user, payload, min(known, user_bytes)))
		return fail(client, -EFAULT, "the struct is not writable memory");
	return error;
}

static long on_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct vgpu_client *client = file->private_data;
	u32 op = _IOC_NR(command);
	const struct vgpu_pf_op_traits *traits = vgpu_pf_request_traits(op);
	void *payload;
	int error;

	if (_IOC_TYPE(command) != VGPU_PF_IOC_TYPE || _IOC_DIR(command) != (_IOC_READ | _IOC_WRITE))
		return -ENOTTY;
	if (!traits)
		return fail(client, -EOPNOTSUPP, "there is no such operation");
	if (!traits->is_open_to_readers && !client->may_write)
		return fail(client, -EPERM, "only a file open for writing may do that");
	payload = kvzalloc(traits->bytes, GFP_KERNEL);
	if (!payload)
		return fail(client, -ENOMEM, "no memory for the struct");
	error = run_copied(client, op, payload, (void __user *)argument, _IOC_SIZE(command));
	kvfree(payload);
	return error;
}

/* ---- events ---- */

/* returns the number of events since the last call for this file */
static u64 take_event_count(struct vgpu_client *client)
{
	s64 seen = atomic64_read(&client->notified_seq);
	s64 now;

	/* another thread may read the same file; event_seq only grows, so now >= seen */
	do
		now = (s64)READ_ONCE(client->platform->ring.event_seq);
	while (!atomic64_try_cmpxchg(&client->notified_seq, &seen, now));
	return (u64)(now - seen);
}

static bool has_events(struct vgpu_client *client)
{
	return (s64)READ_ONCE(client->platform->ring.event_seq) !=
	       atomic64_read(&client->notified_seq);
}

static ssize_t on_read(struct file *file, char __user *buffer, size_t bytes, loff_t *position)
{
	struct vgpu_client *client = file->private_data;
	struct vgpu_platform *platform = client->platform;
	u64 count;

	if (bytes < sizeof(count) || client->node->number)
		return -EINVAL;
	while ((count = take_event_count(client)) == 0) {
		if (READ_ONCE(platform->is_gone))
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(platform->ring.wait,
					     has_events(client) || READ_ONCE(platform->is_gone)))
			return -ERESTARTSYS;
	}
	return copy_to_user(buffer, &count, sizeof(count)) ? -EFAULT : (ssize_t)sizeof(count);
}

static __poll_t on_poll(struct file *file, poll_table *table)
{
	struct vgpu_client *client = file->private_data;
	__poll_t ready = 0;

	poll_wait(file, &client->platform->ring.wait, table);
	if (!client->node->number && has_events(client))
		ready |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(client->platform->is_gone))
		ready |= EPOLLHUP | EPOLLERR;
	return ready;
}

static int on_mmap(struct file *file, struct vm_area_struct *area)
{
	struct vgpu_client *client = file->private_data;

	if (client->node->number)
		return -ENODEV;
	if (area->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	if (area->vm_pgoff)
		return -EINVAL;
	vm_flags_clear(area, VM_MAYWRITE | VM_MAYEXEC);
	return remap_vmalloc_range(area, client->platform->ring.data, 0);
}

/* ---- open and close ---- */

static int open_node(struct vgpu_platform_vf *node)
{
	if (node->platform->is_gone)
		return -ENODEV;
	if (node->number == 0)
		return 0;
	if (node->is_open || node->is_closed)
		return -EBUSY;
	node->is_open = true;
	snprintf(node->owner, sizeof(node->owner), "pid %d %s", task_tgid_nr(current),
		 current->comm);
	schedule_work(&node->platform->service.deferred);
	return 0;
}

static void close_node(struct vgpu_platform_vf *node)
{
	if (node->number == 0)
		return;
	node->is_open = false;
	node->owner[0] = 0;
	if (!node->platform->is_gone)
		schedule_work(&node->platform->service.deferred);
}

static int on_open(struct inode *inode, struct file *file)
{
	struct vgpu_platform_vf *node = container_of(inode->i_cdev, struct vgpu_platform_vf, cdev);
	struct vgpu_client *client = kzalloc(sizeof(*client), GFP_KERNEL);
	int error;

	if (!client)
		return -ENOMEM;
	vgpu_platform_lock(node->platform);
	error = open_node(node);
	vgpu_platform_unlock(node->platform);
	if (error) {
		kfree(client);
		return error;
	}
	client->platform = node->platform;
	client->node = node;
	client->may_write = file->f_mode & FMODE_WRITE;
	spin_lock_init(&client->error_lock);
	atomic64_set(&client->notified_seq, (s64)READ_ONCE(node->platform->ring.event_seq));
	get_device(node->platform->device);
	file->private_data = client;
	return stream_open(inode, file);
}

/* no ioctl is in progress, because each ioctl holds the file */
static int on_release(struct inode *inode, struct file *file)
{
	struct vgpu_client *client = file->private_data;
	struct vgpu_platform *platform = client->platform;

	vgpu_platform_lock(platform);
	if (vgpu_pf_request_client_gone(platform->pf, (uintptr_t)client))
		handle_lease_end(platform);
	close_node(client->node);
	vgpu_platform_unlock(platform);
	kfree(client);
	put_device(platform->device);
	return 0;
}

const struct file_operations vgpu_chardev_operations = {
	.owner = THIS_MODULE,
	.open = on_open,
	.release = on_release,
	.read = on_read,
	.poll = on_poll,
	.mmap = on_mmap,
	.unlocked_ioctl = on_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
