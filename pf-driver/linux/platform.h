/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * struct vgpu_platform is the state of one GPU in vgpu_pf.ko, which is the PF core as a kernel
 * module. The struct exists until its last user, such as an open file, drops its reference
 * (nodes.c), even if the driver was unbound from the device before (is_gone).
 *
 * Locks, outermost first. The comment of a member names the lock that guards the member; "admin" is
 * platform->admin, "lock" is platform->lock.
 *   device lock of the PF   The driver core holds it in probe, remove and sriov_configure.
 *   platform->admin         mutex for operations of several steps, such as writes to sysfs and
 *                           sriov_numvfs
 *   device lock of a VF     The driver core holds it while a driver of this host binds or unbinds.
 *   platform->lock          rt_mutex around the PF core. vgpu_platform_lock() takes it.
 *                           vgpu_platform_unlock() acts on the results of the call to the core,
 *                           then releases the lock. The lock may be held across MMIO, never across
 *                           accesses to user memory, files or the driver core.
 *   functions.lock          spinlock for vfs[].function
 *   error_lock (chardev.c)  spinlock for the last error of an open file
 *
 * The service thread (SCHED_FIFO) calls the core for interrupts and the timer; ioctls, sysfs and
 * work items call the core, too. The lock is an rt_mutex, so that its holder runs at the priority
 * of the service thread while the thread waits for the lock. An MMIO access may take tens of
 * microseconds, so interrupt handlers and the hrtimer only wake the thread.
 *
 * The comment of each function is at its definition.
 */
#ifndef VGPU_LINUX_PLATFORM_H
#define VGPU_LINUX_PLATFORM_H

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rtmutex.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "pf-driver/core/pf.h"
#include "pf-driver/hw/gpuiov.h"

#define VGPU_DRIVER_NAME    "vgpu_pf"
#define VGPU_MAX_GPUS	    16u
#define VGPU_NODES_PER_GPU  (VGPU_PF_MAX_VFS + 1) /* the PF's node and one for each VF */
#define VGPU_OWNER_BYTES    (TASK_COMM_LEN + 24)  /* room for "pid N NAME" */
#define VGPU_WEIGHT_DEFAULT 100u    /* weights are factors in hundredths, so this is 1.00 */
#define VGPU_MAX_GAP_MAX_MS 10000u  /* upper limit of max_gap_ms */
#define VGPU_ALL_VFS	    U32_MAX /* in place of a VF number: all VFs (.bulk_profile) */

/* bits of platform->service.wakeups: the reasons why the service thread was woken */
enum vgpu_wakeup {
	VGPU_WAKEUP_INTERRUPT = 0,
	VGPU_WAKEUP_TIMER,
};

/* the driver that gets a VF's function when the VF has resources */
enum vgpu_assignment_mode {
	VGPU_ASSIGNMENT_MODE_NONE = 0, /* no driver, unless an administrator binds one */
	VGPU_ASSIGNMENT_MODE_VFIO,     /* vfio-pci */
	VGPU_ASSIGNMENT_MODE_HOST,     /* any driver of this host */
	VGPU_ASSIGNMENT_MODES,	       /* number of modes */
};

enum vgpu_priority {
	VGPU_PRIORITY_LOW = 0, /* the VF gets its slices only while it has work */
	VGPU_PRIORITY_NORMAL,  /* the VF gets its slices even without work; all VFs or none */
	VGPU_PRIORITY_HIGH,    /* when the VF gets work, it may preempt the active VF */
	VGPU_PRIORITIES,       /* number of priorities */
};

/* scheduling policy of a VF, as written to sysfs; admin */
struct vgpu_policy {
	u32 exec_quantum_ms;	     /* 0: default (6 ms) */
	u32 preempt_timeout_us;	     /* time in which the VF must leave the engine; 0: 100 ms */
	enum vgpu_priority priority; /* LOW or HIGH; with is_strict, LOW means NORMAL */
	u32 weight;		     /* hundredths: the share is proportional to quantum * weight */
	u32 min_pct;		     /* smallest share of the engine while all VFs have work */
	u32 max_pct;		     /* largest share of the engine; 100: no cap */
	u32 cap_ppm;		     /* the cap that plan.c has set in the VF's contract; 0: none */
};

/* the policies of all VFs, which are the input of plan.c; admin */
struct vgpu_policies {
	struct vgpu_policy vfs[VGPU_PF_MAX_VFS + 1]; /* by number */
	bool is_strict; /* true if all VFs get their slices even without work (NORMAL) */
};

struct vgpu_platform;

/* a VF, or the PF as number 0, with its node in /dev */
struct vgpu_platform_vf {
	struct vgpu_platform *platform;
	u32 number; /* 0: the PF's own node */
	struct device dev;
	struct cdev cdev;
	struct vgpu_sysfs_dir *dir;		   /* directory vfN in sysfs; NULL: none */
	enum vgpu_assignment_mode assignment_mode; /* admin */
	u32 auto_generation; /* admin; generation of the resources from sriov_numvfs; 0: none */
	bool has_link;	     /* admin; true if the sysfs link "device" exists */
	bool is_assigned;    /* admin; true if a driver was assigned since the VF got resources */
	struct work_struct probe; /* probes the driver that gets the function */
	struct pci_dev *function; /* functions.lock; NULL: not enabled */
	bool is_driver_changing;  /* VF's device lock; true while a driver binds or unbinds */
	struct {
		enum vgpu_pf_vf_state state;
		bool is_open;
	} notified; /* admin; state of the VF at the last vgpu_sysfs_notify() */
	/* all members below: platform->lock */
	bool confirms_scrub; /* true if this platform sends SCRUB_DURABLE after the VF's scrub */
	struct {
		enum vgpu_pf_vf_state state; /* READY also stands for RUNNING */
		bool attached;
	} seen;		 /* state of the VF after the last call to the core */
	bool has_client; /* true if a client of softgpu's vfio-user socket has attached the VF */
	bool is_open;	 /* true if a process has the node open */
	bool is_closed;	 /* true during a release: the node cannot be opened */
	char owner[VGPU_OWNER_BYTES]; /* "pid N NAME" of the process with the open node, or "" */
};

/*
 * Bounce buffer between the core, which never waits, and the file of a stream, whose reads and
 * writes may wait; platform->lock.
 */
struct vgpu_stream {
	struct kref ref;
	u64 token;     /* token of the stream's request */
	u8 *data;      /* VGPU_STREAM_BYTES */
	u32 first;     /* offset of the oldest byte in data */
	u32 used;      /* bytes in data that the core (input) or the file (output) has not taken */
	u32 requested; /* input: bytes that the core requests from the file; 0: none */
	int error;     /* not 0: the request was withdrawn, and the core gets this error */
	bool is_ended; /* input: true if the file has no more data */
	bool is_blocked; /* true if the core waits for vgpu_pf_stream_ready() */
	wait_queue_head_t wait;
};

#define VGPU_STREAM_BYTES 0x40000u

/* a request to the core, on the stack of its caller until the request is done; platform->lock */
struct vgpu_request {
	struct list_head entry;
	u64 token;
	const void *client;	    /* the open file; NULL: the platform itself */
	struct vgpu_stream *stream; /* NULL: the operation has no stream */
	bool is_done;
	int error;			     /* valid if is_done: 0 or a negative errno */
	char message[VGPU_PF_MESSAGE_BYTES]; /* text of the error */
	struct completion done;
};

/* the device's BARs, interrupts and configuration space; used under lock until is_gone is set */
struct vgpu_platform_bars {
	void __iomem *registers; /* BAR5 */
	u64 registers_bytes;
	void __iomem *vram; /* BAR0 */
	u64 vram_bytes;
	struct pci_saved_state *pci_state; /* configuration space at probe */
};

/* service_thread.c: the thread that serves the device, and the timer and work items around it */
struct vgpu_platform_service {
	struct task_struct *thread;
	struct hrtimer timer;
	unsigned long wakeups;	/* bits of enum vgpu_wakeup */
	bool is_failure_logged; /* lock; true if the last attempt to attach failed */
	/* pci.c: work that must not run under lock */
	struct work_struct deferred;
	/* runs the deferred work again while a VF is in use: no event reports the end of the use */
	struct delayed_work recheck;
};

/* client.c; lock */
struct vgpu_platform_clients {
	struct list_head requests;
	u64 last_token;		    /* token of the newest request; tokens are never reused */
	struct vgpu_stream *stream; /* the stream in progress; NULL: none */
};

/* the event ring, which clients map */
struct vgpu_platform_ring {
	void *data;
	u32 bytes;
	u64 event_seq; /* sequence number of the next event; read with READ_ONCE() */
	wait_queue_head_t wait;
};

/* sriov.c, pci.c: the VFs' PCI functions */
struct vgpu_platform_functions {
	spinlock_t lock;
	struct notifier_block notifier; /* notifier of the PCI bus */
	bool is_pinned;			/* admin; true while a VF in use keeps the module loaded */
};

/* sysfs.c, debugfs.c */
struct vgpu_platform_sysfs {
	struct vgpu_sysfs_dir *admin_dir;
	struct vgpu_sysfs_dir *bulk_dir;
	struct vgpu_sysfs_dir *pf_dir;
	struct dentry *debugfs;
	bool is_gone; /* admin; true once the removal has begun: no poller is notified any more */
};

/* plan.c; admin */
struct vgpu_platform_plan {
	u64 generation; /* generation of the last table that plan.c set; 0: plan.c does not plan */
	u32 vfs;	/* bit n for VF n: VFs with resources when the table was planned */
	bool is_due;	/* true if a new plan must wait for the end of a lease */
};

struct vgpu_platform {
	struct vgpu_os os; /* the core's handle of this platform */
	struct rt_mutex lock;
	struct mutex admin;
	struct vgpu_pf *pf; /* lock */
	struct pci_dev *pdev;
	int index;	       /* N in /dev/vgpu-pfN */
	struct device *device; /* &vfs[0].dev; its last reference frees the platform (nodes.c) */
	u32 total_vfs;	       /* set by probe(); constant afterwards */
	bool is_gone;	       /* lock to write; set by remove(): no more access to the device */
	bool is_device_lost;   /* lock; true if the device does not answer, or attach has failed */
	/*
	 * lock; true while the device sleeps, or the PCI core resets or recovers it; also after
	 * shutdown()
	 */
	bool is_device_suspended;
	wait_queue_head_t state_wait; /* woken when a VF changes its state or the device is lost */
	struct vgpu_platform_bars bars;
	struct vgpu_platform_service service;
	struct vgpu_platform_clients clients;
	struct vgpu_platform_ring ring;
	struct vgpu_platform_functions functions;
	struct vgpu_platform_sysfs sysfs;
	struct vgpu_policies policies;
	struct vgpu_platform_plan plan;
	struct vgpu_platform_vf vfs[VGPU_PF_MAX_VFS + 1]; /* by number */
};

/* os_linux.c */
extern const struct vgpu_os_ops vgpu_linux_os_ops;
bool vgpu_linux_is_device_there(struct vgpu_platform *platform);

/* irq.c */
int vgpu_linux_irq_init(struct vgpu_platform *platform);
void vgpu_linux_irq_fini(struct vgpu_platform *platform);

/* service_thread.c */
void vgpu_platform_lock(struct vgpu_platform *platform);
void vgpu_platform_unlock(struct vgpu_platform *platform);
struct vgpu_pf_vf_view vgpu_platform_view(struct vgpu_platform *platform, u32 vf);
void vgpu_platform_wake(struct vgpu_platform *platform, enum vgpu_wakeup why);
void vgpu_platform_arm_timer(struct vgpu_platform *platform, u64 deadline_ns);
int vgpu_platform_start(struct vgpu_platform *platform);
void vgpu_platform_stop(struct vgpu_platform *platform);
void vgpu_platform_suspend(struct vgpu_platform *platform);
int vgpu_platform_unsuspend(struct vgpu_platform *platform);

/* client.c: requests and streams */
int vgpu_platform_request(struct vgpu_platform *platform, u32 op, void *payload);
void vgpu_client_run(struct vgpu_platform *platform, struct vgpu_request *request, u32 op,
		     void *payload);
int vgpu_client_finish(struct vgpu_platform *platform, struct vgpu_request *request, u32 op,
		       struct file *file);
struct file *vgpu_client_get_file(u32 op, int fd);
void vgpu_client_cancel(struct vgpu_platform *platform, const void *client, int error);
void vgpu_client_done(struct vgpu_platform *platform, u64 token, int error, const char *message);
int vgpu_client_open_stream(struct vgpu_request *request);
void vgpu_client_close_stream(struct vgpu_request *request);
s64 vgpu_client_stream_write(struct vgpu_platform *platform, const void *data, u32 bytes);
s64 vgpu_client_stream_read(struct vgpu_platform *platform, void *data, u32 bytes);

/* chardev.c */
extern const struct file_operations vgpu_chardev_operations;

/* nodes.c */
int vgpu_nodes_init(void);
void vgpu_nodes_exit(void);
struct vgpu_platform *vgpu_nodes_make_platform(struct pci_dev *pdev);
int vgpu_nodes_add(struct vgpu_platform *platform);
void vgpu_nodes_remove(struct vgpu_platform *platform);

/* sysfs.c */
int vgpu_sysfs_add(struct vgpu_platform *platform);
void vgpu_sysfs_remove(struct vgpu_platform *platform);
void vgpu_sysfs_notify(struct vgpu_platform *platform);
struct kobject *vgpu_sysfs_kobject(struct vgpu_sysfs_dir *dir);

/* debugfs.c */
void vgpu_debugfs_init(void);
void vgpu_debugfs_exit(void);
void vgpu_debugfs_add(struct vgpu_platform *platform);
void vgpu_debugfs_remove(struct vgpu_platform *platform);

/* policy.c; functions that change something require platform->admin */
void vgpu_policy_init(struct vgpu_platform *platform);
int vgpu_policy_write(struct vgpu_platform *platform, u32 vf, enum vgpu_pf_policy policy,
		      u64 value);
int vgpu_policy_provision_fair(struct vgpu_platform *platform, u32 count);
void vgpu_policy_release_auto(struct vgpu_platform *platform);
void vgpu_policy_release_remaining(struct vgpu_platform *platform);
u64 vgpu_policy_quota(struct vgpu_platform *platform, u32 vf);
u32 vgpu_policy_preempt_timeout(struct vgpu_platform *platform, u32 vf);
u32 vgpu_policy_weight(struct vgpu_platform *platform, u32 vf);
u32 vgpu_policy_quantum_ms(struct vgpu_platform *platform, u32 vf);
bool vgpu_policy_is_in_use(struct vgpu_platform *platform, u32 vf);
int vgpu_policy_close(struct vgpu_platform *platform, u32 vf);
void vgpu_policy_reopen(struct vgpu_platform *platform, u32 vf);

/* plan.c; requires platform->admin */
int vgpu_plan_table(struct vgpu_platform *platform);
int vgpu_plan_set_max_gap(struct vgpu_platform *platform, u64 max_gap_ms);
void vgpu_plan_update(struct vgpu_platform *platform);

/* sriov.c */
void vgpu_sriov_prepare(struct vgpu_platform *platform);
int vgpu_sriov_init(struct vgpu_platform *platform);
void vgpu_sriov_fini(struct vgpu_platform *platform);
int vgpu_sriov_configure(struct pci_dev *pdev, int count);
int vgpu_sriov_set_assignment_mode(struct vgpu_platform *platform, u32 vf,
				   enum vgpu_assignment_mode assignment_mode);
void vgpu_sriov_assign_driver(struct vgpu_platform *platform);
void vgpu_sriov_wait_for_probe(struct vgpu_platform *platform, u32 vf);
void vgpu_sriov_disable(struct vgpu_platform *platform);
bool vgpu_sriov_is_busy(struct vgpu_platform *platform, u32 vf);
bool vgpu_sriov_is_attached_by_driver(struct vgpu_platform *platform, u32 vf);

/* pci.c */
u32 vgpu_pci_time_scale(void);
u32 vgpu_pci_max_gap_ms(void);
void vgpu_pci_restore(struct vgpu_platform *platform);

#endif
