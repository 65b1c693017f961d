// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include "pf-driver/confine/sealed.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "pf-driver/confine/parts.h"

#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)

static struct vgpu_sealed_slot *slots; /* the area; NULL: nothing is sealed */
static uint32_t slot_uses[VGPU_SEALED_SLOTS];
static uint32_t slot_count;

static int make_area(void)
{
	void *at = (void *)(uintptr_t)VGPU_SEALED_BASE;
	void *area = mmap(at, VGPU_SEALED_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (area == MAP_FAILED)
		return -errno;
	if (area != at) { /* a kernel that does not know MAP_FIXED_NOREPLACE */
		munmap(area, VGPU_SEALED_BYTES);
		return -EEXIST;
	}
	slots = area;
	return 0;
}

static const char *text_of(const struct vgpu_sealed_slot *slot)
{
	return slot->bytes + PATH_OFFSET;
}

static struct vgpu_sealed_slot *find(const char *path)
{
	for (uint32_t i = 0; i < slot_count; i++)
		if (!strcmp(text_of(&slots[i]), path))
			return &slots[i];
	return NULL;
}

/* Seal a path, and add `uses` to the uses that the path has already. */
int vgpu_seal_path(const char *path, uint32_t uses)
{
	struct vgpu_sealed_slot *slot = find(path);
	int error;

	if (!slot) {
		if (strlen(path) >= sizeof(slot->bytes) - PATH_OFFSET)
			return -ENAMETOOLONG;
		error = slots ? 0 : make_area();
		if (error)
			return error;
		if (slot_count == VGPU_SEALED_SLOTS)
			return -ENOSPC;
		slot = &slots[slot_count++];
		slot->address.sun_family = AF_UNIX;
		strcpy(slot->bytes + PATH_OFFSET, path);
	}
	slot_uses[slot - slots] |= uses;
	return 0;
}

static int directory_of(const char *path, char *directory, size_t room)
{
	const char *name = strrchr(path, '/');
	int bytes = name ? snprintf(directory, room, "%.*s", (int)(name - path) + 1, path)
			 : snprintf(directory, room, ".");

	return (size_t)bytes < room ? 0 : -ENAMETOOLONG;
}

/* Seal the path of a socket that the process serves, and its directory. */
int vgpu_seal_socket(const char *path)
{
	char directory[sizeof(struct vgpu_sealed_slot)];
	int error = directory_of(path, directory, sizeof(directory));

	if (!error)
		error = vgpu_seal_path(path, VGPU_PATH_SERVE);
	return error ? error : vgpu_seal_path(directory, VGPU_PATH_WATCH);
}

/* Get the sealed copy of a path, or the path itself if it is not sealed. */
const char *vgpu_sealed(const char *path)
{
	const struct vgpu_sealed_slot *slot = find(path);

	return slot ? text_of(slot) : path;
}

/* Get the sealed copy of an address, or the address itself if its path is not sealed. */
const struct sockaddr_un *vgpu_sealed_address(const struct sockaddr_un *address)
{
	const struct vgpu_sealed_slot *slot = find(address->sun_path);

	return slot ? &slot->address : address;
}

/* Watch a socket's directory for removed and moved files. Return: 0 or a negative errno. */
int vgpu_sealed_watch(int watch_fd, const char *path)
{
	char directory[4096];
	int error = directory_of(path, directory, sizeof(directory));

	if (error)
		return error;
	return inotify_add_watch(watch_fd, vgpu_sealed(directory),
				 IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) < 0
		       ? -errno
		       : 0;
}

uint32_t vgpu_sealed_count(void)
{
	return slot_count;
}

const struct vgpu_sealed_slot *vgpu_sealed_slot(uint32_t index)
{
	return &slots[index];
}

uint32_t vgpu_sealed_uses(uint32_t index)
{
	return slot_uses[index];
}

/* Make the area read-only for the life of the process. */
int vgpu_sealed_freeze(void)
{
	if (!slots)
		return 0;
	return mprotect(slots, VGPU_SEALED_BYTES, PROT_READ) ? -errno : 0;
}
