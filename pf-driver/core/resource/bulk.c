// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Runs bulk operations of the device: scrub, verify, save and load of a VF's state, and DMA. The
 * device executes one operation at a time; further operations wait in a queue. A timer with a
 * growing delay polls for the end of the operation, so no function of this file blocks.
 *
 * The core abandons an operation that takes too long, or that a reset of the device interrupts. The
 * device may still execute this operation. So the core keeps the memory of the operation and starts
 * no other operation, until the device reports the end or can no longer reach the host's memory.
 */
#include "pf-driver/core/resource/parts.h"
#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/regs.h"

#define BULK_POLL_FIRST_NS (50 * VGPU_NS_PER_US)
#define BULK_POLL_LAST_NS  (5 * VGPU_NS_PER_MS)
#define BULK_TIMEOUT_MS	   10000u

static struct vgpu_bulk_op *front(struct vgpu_pf *pf)
{
	return &pf->bulk.queue[pf->bulk.head];
}

static int write_pair(struct vgpu_pf *pf, uint32_t reg_lo, uint64_t value)
{
	int error = vgpu_pf_device_write(pf, reg_lo, (uint32_t)value);

	return error ? error : vgpu_pf_device_write(pf, reg_lo + 1, (uint32_t)(value >> 32));
}

static int write_operation(struct vgpu_pf *pf, const struct vgpu_bulk_op *op)
{
	int error = write_pair(pf, REG_VGPU_OP_SRC_LO, op->src);

	if (!error)
		error = write_pair(pf, REG_VGPU_OP_DST_LO, op->dst);
	if (!error)
		error = write_pair(pf, REG_VGPU_OP_SIZE_LO, op->bytes);
	if (!error)
		error = vgpu_pf_device_write(pf, REG_VGPU_OP_COMMAND,
					     HW_PREP(VGPU_OP_COMMAND, OPCODE, op->opcode) |
						     HW_PREP(VGPU_OP_COMMAND, VF, op->vf));
	return error;
}

static void free_retained(struct vgpu_pf *pf)
{
	if (pf->bulk.retained.cpu)
		pf->os->ops->dma_free(pf->os, &pf->bulk.retained);
	pf->bulk.retained.cpu = NULL;
}

/*
 * Reads the status of the device's latest operation, which the previous core may have started. If
 * this operation has ended, frees the memory that the core kept for an abandoned operation. Returns
 * VGPU_OP_DONE, _BUSY or _REFUSED, or all ones if the device does not answer.
 */
static uint32_t read_status(struct vgpu_pf *pf)
{
	uint32_t status = vgpu_pf_device_read(pf, REG_VGPU_OP_STATUS);

	if (status != VGPU_OP_BUSY && status != UINT32_MAX) {
		pf->bulk.is_under_way = false;
		free_retained(pf);
	}
	return status;
}

static bool is_device_free(struct vgpu_pf *pf)
{
	uint32_t status = read_status(pf);

	return status != VGPU_OP_BUSY && status != UINT32_MAX;
}

static void retain_memory(struct vgpu_pf *pf, struct vgpu_os_dma *memory)
{
	pf->bulk.retained = *memory;
	memory->cpu = NULL;
}

/* ends the first operation of the queue, then calls done(), which may submit another operation */
static void finish(struct vgpu_pf *pf, int error)
{
	struct vgpu_bulk_op op = *front(pf);

	if (pf->bulk.is_started && pf->bulk.is_under_way && op.memory)
		retain_memory(pf, op.memory);
	pf->bulk.head = (pf->bulk.head + 1) % VGPU_BULK_QUEUE;
	pf->bulk.used--;
	pf->bulk.is_started = false;
	op.done(pf, op.owner, error);
}

static void start(struct vgpu_pf *pf)
{
	int error;

	pf->bulk.is_started = true;
	/* true even if the write fails, because the device may have received the command */
	pf->bulk.is_under_way = true;
	pf->bulk.started_ns = vgpu_pf_timer_now(pf);
	pf->bulk.poll_delay_ns = BULK_POLL_FIRST_NS;
	error = write_operation(pf, front(pf));
	if (error)
		finish(pf, error);
}

/* returns 0 if the operation is done, -EIO if refused, -ETIMEDOUT if late, else -EINPROGRESS */
static int poll(struct vgpu_pf *pf)
{
	uint32_t status = read_status(pf);
	uint64_t elapsed = vgpu_pf_timer_now(pf) - pf->bulk.started_ns;

	if (status == VGPU_OP_DONE)
		return 0;
	if (status != VGPU_OP_BUSY && status != UINT32_MAX)
		return -EIO;
	/*
	 * Keep polling: the device is busy, did not answer this time (all ones), or is gone. The
	 * platform reports a device that is gone.
	 */
	return elapsed > vgpu_pf_timer_scaled_ns(pf, BULK_TIMEOUT_MS) ? -ETIMEDOUT : -EINPROGRESS;
}

static void poll_later(struct vgpu_pf *pf)
{
	vgpu_pf_timer_set(pf, VGPU_PF_TIMER_BULK, pf->bulk.poll_delay_ns);
	pf->bulk.poll_delay_ns = vgpu_min_u64(pf->bulk.poll_delay_ns * 2, BULK_POLL_LAST_NS);
}

/*
 * Check the operation in progress. If it has ended, call its done() and start the next operation.
 */
void vgpu_pf_bulk_poll(struct vgpu_pf *pf)
{
	/* one round starts an operation, the next ends it; limited: done() may add operations */
	for (uint32_t round = 0; round < 2 * VGPU_BULK_QUEUE && pf->bulk.used; round++) {
		int error;

		if (!pf->bulk.is_started && !is_device_free(pf))
			break;
		if (!pf->bulk.is_started) {
			start(pf);
			continue;
		}
		error = poll(pf);
		if (error == -EINPROGRESS) {
			poll_later(pf);
			return;
		}
		finish(pf, error);
	}
	if (pf->bulk.used || (pf->bulk.is_under_way && !is_device_free(pf)))
		poll_later(pf);
}

/*
 * Queue a copy of an operation. When the operation has ended, bulk.c calls op->done() once; until
 * then, op->memory must stay valid. Return: 0; -EBUSY if the queue is full; or -ENODEV if no device
 * is attached. Errors have a message.
 */
int vgpu_pf_bulk_submit(struct vgpu_pf *pf, const struct vgpu_bulk_op *op)
{
	if (!pf->device.is_attached)
		return vgpu_pf_text_fail(pf, -ENODEV, "no device is attached");
	if (pf->bulk.used == VGPU_BULK_QUEUE)
		return vgpu_pf_text_fail(pf, -EBUSY,
					 "the device is busy with %u copies and scrubs; "
					 "try again",
					 VGPU_BULK_QUEUE);
	pf->bulk.queue[(pf->bulk.head + pf->bulk.used) % VGPU_BULK_QUEUE] = *op;
	pf->bulk.used++;
	if (pf->bulk.used == 1) {
		pf->bulk.poll_delay_ns = BULK_POLL_FIRST_NS;
		vgpu_pf_timer_set(pf, VGPU_PF_TIMER_BULK, 0);
	}
	return 0;
}

/* End all operations with an error, because the device will be reset or was detached. */
void vgpu_pf_bulk_abort(struct vgpu_pf *pf, int error)
{
	vgpu_pf_timer_clear(pf, VGPU_PF_TIMER_BULK);
	while (pf->bulk.used)
		finish(pf, error);
	if (pf->device.is_attached) {
		if (pf->bulk.is_under_way)
			poll_later(pf);
		return;
	}
	pf->bulk.is_under_way = false;
	free_retained(pf);
}
