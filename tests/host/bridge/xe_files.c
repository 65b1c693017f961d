// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vgpu_test_xe.ko, a PF driver named "xe" for any SR-IOV device, without engines. It has the files
 * of Linux' xe below sriov_admin, with their names, modes, limits and errnos, and loses their
 * values when xe does (drivers/gpu/drm/xe/xe_sriov_pf_sysfs.c,
 * drivers/gpu/drm/xe/xe_gt_sriov_pf_config.c). xe_pmu.c adds a perf PMU. Test-only;
 * tests/host/test_xe.py binds it by driver_override:
 *
 *   echo xe >DEVICE/driver_override; echo BDF >/sys/bus/pci/drivers_probe
 *
 * `level` is the kernel that it resembles: 617 has no files, 619 has no VRAM, 701 gives no quanta
 * by itself, 702 gives 16 ms. The kernel's log has a line for each write that was accepted:
 *
 *   xe 0000:02:00.0: wrote vf1 vram_quota 4294967296
 */
#include "xe_pmu.h"

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

enum { LEVEL_FILES = 619, LEVEL_VRAM = 701, LEVEL_QUANTA = 702 };
enum { MAX_QUANTUM_MS = 100000, MAX_TIMEOUT_US = 100000000 };
enum { DEFAULT_QUANTUM_MS = 16, DEFAULT_TIMEOUT_US = 16000 };
enum { STEP_MS = 20 };

static unsigned int level = LEVEL_QUANTA;
module_param(level, uint, 0644);
MODULE_PARM_DESC(level,
                 "the kernel that a PF resembles which is bound from now on: 617, 619, 701, 702");

static unsigned int vram_mb = 16384;
module_param(vram_mb, uint, 0644);
MODULE_PARM_DESC(vram_mb, "VRAM of the GPU in MiB");

static unsigned int tiles = 1;
module_param(tiles, uint, 0644);
MODULE_PARM_DESC(tiles, "a quota is a multiple of 2 MiB for each tile");

/* What happens to stores; they are counted from the write of the parameter on. */
static struct {
    unsigned int stores, from, count, value;
    char act[8];
} inject;
static DEFINE_MUTEX(lock); /* of inject, and of the values of all GPUs */

enum priority { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH };
static const char* const priorities[] = {"low", "normal", "high"};

struct gpu;
struct function {
    struct kobject kobj;
    struct gpu* gpu;
    unsigned int number; /* 0 is the PF */
    u32 quantum_ms, timeout_us;
    enum priority priority;
    u64 vram;
    bool is_linked;
};

struct gpu {
    struct kobject kobj; /* sriov_admin */
    struct pci_dev* pf;
    unsigned int level, total;
    u64 vram;
    struct function* functions[]; /* PF and VFs */
};

static struct function* function_of(struct kobject* kobj) {
    return container_of(kobj, struct function, kobj);
}

/* parameter "inject": "fail FIRST COUNT ERRNO", "delay FIRST COUNT MS", "kill FIRST 1 0", "off 0 0
 * 0" */
static int set_inject(const char* text, const struct kernel_param* parameter) {
    char act[sizeof(inject.act)];
    unsigned int from, count, value;

    if (sscanf(text, "%7s %u %u %u", act, &from, &count, &value) != 4) return -EINVAL;
    mutex_lock(&lock);
    strscpy(inject.act, act, sizeof(inject.act));
    inject.from = from;
    inject.count = count;
    inject.value = value;
    inject.stores = 0;
    mutex_unlock(&lock);
    return 0;
}
static const struct kernel_param_ops inject_operations = {.set = set_inject};
module_param_cb(inject, &inject_operations, NULL, 0200);
MODULE_PARM_DESC(
    inject,
    "fail|delay|kill|off FIRST COUNT VALUE: stores from the FIRST on fail with errno VALUE, "
    "take VALUE ms, or kill their writer when they are done");

/* true if `act` applies to the store under way */
static bool is_hit(const char* act) {
    return !strcmp(inject.act, act) && inject.stores >= inject.from &&
           inject.stores - inject.from < inject.count;
}

/* called before a store, with `lock` held; drops it during a delay, which another act ends */
static int begin_store(void) {
    unsigned int waited;

    inject.stores++;
    for (waited = 0; is_hit("delay") && waited < inject.value; waited += STEP_MS) {
        mutex_unlock(&lock);
        msleep(STEP_MS);
        mutex_lock(&lock);
    }
    return is_hit("fail") ? -(int)inject.value : 0;
}

static void end_store(void) {
    if (is_hit("kill")) send_sig(SIGKILL, current, 0);
}

static void note(const struct gpu* gpu, const char* name, const char* item, u64 value) {
    pci_info(gpu->pf, "wrote %s %s %llu\n", name, item, value);
}

static u64 quota_unit(void) {
    return SZ_2M * (u64)max(tiles, 1u);
}

static int set_quantum(struct function* function, u64 value) {
    function->quantum_ms = (u32)min_t(u64, value, MAX_QUANTUM_MS);
    note(function->gpu, function->kobj.name, "exec_quantum_ms", function->quantum_ms);
    return 0;
}

static int set_timeout(struct function* function, u64 value) {
    function->timeout_us = (u32)min_t(u64, value, MAX_TIMEOUT_US);
    note(function->gpu, function->kobj.name, "preempt_timeout_us", function->timeout_us);
    return 0;
}

static int set_priority(struct function* function, u64 value) {
    function->priority = (enum priority)value;
    note(function->gpu, function->kobj.name, "sched_priority", value);
    return 0;
}

static u64 vram_of_others(const struct function* function) {
    const struct gpu* gpu = function->gpu;
    unsigned int i;
    u64 sum = 0;

    for (i = 1; i <= gpu->total; i++)
        if (gpu->functions[i] != function) sum += gpu->functions[i]->vram;
    return sum;
}

static int set_vram(struct function* function, u64 value) {
    u64 bytes = DIV_ROUND_UP_ULL(value, quota_unit()) * quota_unit();

    if (bytes > function->gpu->vram - vram_of_others(function)) return -ENOSPC;
    function->vram = bytes;
    note(function->gpu, function->kobj.name, "vram_quota", bytes);
    return 0;
}

typedef int (*setter)(struct function* function, u64 value);

static ssize_t store(struct function* function, setter set, u64 value, size_t size) {
    int error;

    mutex_lock(&lock);
    error = begin_store();
    if (!error) error = set(function, value);
    end_store();
    mutex_unlock(&lock);
    return error ? error : (ssize_t)size;
}

/* Sets a value of every function from `first` on; ends at the first error. */
static ssize_t store_all(struct gpu* gpu, setter set, u64 value, unsigned int first, size_t size) {
    unsigned int i;
    int error;

    mutex_lock(&lock);
    error = begin_store();
    for (i = first; i <= gpu->total && !error; i++) error = set(gpu->functions[i], value);
    end_store();
    mutex_unlock(&lock);
    return error ? error : (ssize_t)size;
}

static struct gpu* gpu_of(struct kobject* kobj) {
    return container_of(kobj, struct gpu, kobj);
}

/* NAME_show and NAME_store of a function, bulk_NAME_store of all of them from `first` on */
#define NUMBER_FILE(name, type, parse, field, set, first)                                      \
    static ssize_t name##_show(struct kobject* kobj, struct kobj_attribute* attribute,         \
                               char* page) {                                                   \
        return sysfs_emit(page, "%llu\n", (u64)function_of(kobj)->field);                      \
    }                                                                                          \
    static ssize_t name##_store(struct kobject* kobj, struct kobj_attribute* attribute,        \
                                const char* page, size_t size) {                               \
        type value;                                                                            \
        int error = parse(page, 0, &value);                                                    \
                                                                                               \
        return error ? error : store(function_of(kobj), set, value, size);                     \
    }                                                                                          \
    static ssize_t bulk_##name##_store(struct kobject* kobj, struct kobj_attribute* attribute, \
                                       const char* page, size_t size) {                        \
        type value;                                                                            \
        int error = parse(page, 0, &value);                                                    \
                                                                                               \
        return error ? error : store_all(gpu_of(kobj), set, value, first, size);               \
    }                                                                                          \
    static struct kobj_attribute name##_file = __ATTR(name, 0644, name##_show, name##_store);  \
    static struct kobj_attribute bulk_##name##_file = __ATTR(name, 0200, NULL, bulk_##name##_store)

NUMBER_FILE(exec_quantum_ms, u32, kstrtou32, quantum_ms, set_quantum, 0);
NUMBER_FILE(preempt_timeout_us, u32, kstrtou32, timeout_us, set_timeout, 0);
NUMBER_FILE(vram_quota, u64, kstrtou64, vram, set_vram, 1);

static ssize_t sched_priority_show(struct kobject* kobj, struct kobj_attribute* attribute,
                                   char* page) {
    const struct function* function = function_of(kobj);
    /* a VF cannot be high */
    int i, used = 0, choices = function->number ? PRIORITY_HIGH : PRIORITY_HIGH + 1;

    for (i = 0; i < choices; i++)
        used += sysfs_emit_at(page, used, i == (int)function->priority ? "%s[%s]" : "%s%s",
                              i ? " " : "", priorities[i]);
    return used + sysfs_emit_at(page, used, "\n");
}

static ssize_t sched_priority_store(struct kobject* kobj, struct kobj_attribute* attribute,
                                    const char* page, size_t size) {
    int value = sysfs_match_string(priorities, page);

    return value < 0 ? value : store(function_of(kobj), set_priority, (u64)value, size);
}

static ssize_t bulk_sched_priority_store(struct kobject* kobj, struct kobj_attribute* attribute,
                                         const char* page, size_t size) {
    int value = __sysfs_match_string(priorities, PRIORITY_HIGH, page);

    return value < 0 ? value : store_all(gpu_of(kobj), set_priority, (u64)value, 0, size);
}

static struct kobj_attribute sched_priority_file =
    __ATTR(sched_priority, 0644, sched_priority_show, sched_priority_store);
static struct kobj_attribute bulk_sched_priority_file =
    __ATTR(sched_priority, 0200, NULL, bulk_sched_priority_store);

static int stop(struct function* function, u64 value) {
    if (!function->is_linked) return -ENODEV;
    note(function->gpu, function->kobj.name, "stop", value);
    return 0;
}

static ssize_t stop_store(struct kobject* kobj, struct kobj_attribute* attribute, const char* page,
                          size_t size) {
    bool is_wanted;
    int error = kstrtobool(page, &is_wanted);

    if (error) return error;
    return is_wanted ? store(function_of(kobj), stop, 1, size) : (ssize_t)size;
}
static struct kobj_attribute stop_file = __ATTR(stop, 0200, NULL, stop_store);

static struct attribute* profile_files[] = {&exec_quantum_ms_file.attr,
                                            &preempt_timeout_us_file.attr,
                                            &sched_priority_file.attr, &vram_quota_file.attr, NULL};
static struct attribute* bulk_files[] = {
    &bulk_exec_quantum_ms_file.attr, &bulk_preempt_timeout_us_file.attr,
    &bulk_sched_priority_file.attr, &bulk_vram_quota_file.attr, NULL};
static struct attribute* vf_files[] = {&stop_file.attr, NULL};

static bool has_vram(const struct gpu* gpu) {
    return gpu->level >= LEVEL_VRAM && gpu->vram != 0;
}

static umode_t profile_mode(struct kobject* kobj, struct attribute* attribute, int index) {
    const struct function* function = function_of(kobj);

    if (attribute == &vram_quota_file.attr)
        return has_vram(function->gpu) && function->number ? 0644 : 0;
    if (attribute == &sched_priority_file.attr && function->number) return 0444;
    return attribute->mode;
}

static umode_t bulk_mode(struct kobject* kobj, struct attribute* attribute, int index) {
    return attribute == &bulk_vram_quota_file.attr && !has_vram(gpu_of(kobj)) ? 0 : attribute->mode;
}

static umode_t vf_mode(struct kobject* kobj, struct attribute* attribute, int index) {
    return function_of(kobj)->number ? attribute->mode : 0;
}

static const struct attribute_group profile_group = {
    .name = "profile", .attrs = profile_files, .is_visible = profile_mode};
static const struct attribute_group bulk_group = {
    .name = ".bulk_profile", .attrs = bulk_files, .is_visible = bulk_mode};
static const struct attribute_group vf_group = {.attrs = vf_files, .is_visible = vf_mode};
static const struct attribute_group* function_groups[] = {&profile_group, &vf_group, NULL};
static const struct attribute_group* gpu_groups[] = {&bulk_group, NULL};

static void free_function(struct kobject* kobj) {
    kfree(function_of(kobj));
}

static void free_gpu(struct kobject* kobj) {
    kfree(gpu_of(kobj));
}

static const struct kobj_type function_type = {
    .release = free_function, .sysfs_ops = &kobj_sysfs_ops, .default_groups = function_groups};
static const struct kobj_type gpu_type = {
    .release = free_gpu, .sysfs_ops = &kobj_sysfs_ops, .default_groups = gpu_groups};

/* true if the function has neither quantum nor timeout */
static bool is_default(const struct function* function) {
    return !function->quantum_ms && !function->timeout_us;
}

static void reset_function(struct function* function) {
    function->quantum_ms = function->timeout_us = 0;
    function->priority = PRIORITY_LOW;
    function->vram = 0;
}

/* resets all values of the PF and of VFs 1 to `count`, as disabling does; other VFs keep theirs */
static void take_back(struct gpu* gpu, unsigned int count) {
    unsigned int i;

    for (i = 0; i <= count; i++) reset_function(gpu->functions[i]);
}

/* if no VF has VRAM, each gets the largest power of two in 1 of `count` + 1 parts of whole GiB */
static void share_vram(struct gpu* gpu, unsigned int count) {
    u64 usable, share;
    unsigned int i;

    for (i = 1; i <= count; i++)
        if (gpu->functions[i]->vram) return;
    usable = gpu->vram < SZ_128M ? 0 : ALIGN_DOWN(gpu->vram - SZ_128M, (u64)SZ_1G);
    share = div_u64(usable, count + 1);
    for (i = 1; i <= count && share; i++) gpu->functions[i]->vram = rounddown_pow_of_two(share);
}

static void share_time(struct gpu* gpu, unsigned int count) {
    unsigned int i;

    for (i = 0; i <= count; i++)
        if (!is_default(gpu->functions[i])) return;
    for (i = 0; i <= count; i++) {
        gpu->functions[i]->quantum_ms = DEFAULT_QUANTUM_MS;
        gpu->functions[i]->timeout_us = DEFAULT_TIMEOUT_US;
    }
}

static int prepare(struct gpu* gpu, unsigned int count) {
    unsigned int i;

    if (gpu->level < LEVEL_FILES) return 0;
    for (i = 1; i <= count && gpu->level < LEVEL_VRAM; i++)
        if (!is_default(gpu->functions[i])) return -EUCLEAN;
    if (has_vram(gpu)) share_vram(gpu, count);
    if (gpu->level >= LEVEL_QUANTA) share_time(gpu, count);
    return 0;
}

/* igb's VFs are on the bus of their PF */
static struct pci_dev* vf_of(struct pci_dev* pf, unsigned int vf) {
    return pci_get_domain_bus_and_slot(pci_domain_nr(pf->bus), pf->bus->number,
                                       (unsigned int)pci_iov_virtfn_devfn(pf, (int)vf - 1));
}

static void link_vfs(struct gpu* gpu, unsigned int count) {
    unsigned int i;

    for (i = 1; i <= count; i++) {
        struct function* function = gpu->functions[i];
        struct pci_dev* vf = vf_of(gpu->pf, i);

        if (!vf) continue;
        if (gpu->level >= LEVEL_FILES)
            function->is_linked = !sysfs_create_link(&function->kobj, &vf->dev.kobj, "device");
        pci_dev_put(vf);
    }
}

static void unlink_vfs(struct gpu* gpu) {
    unsigned int i;

    for (i = 1; i <= gpu->total; i++) {
        if (gpu->functions[i]->is_linked) sysfs_remove_link(&gpu->functions[i]->kobj, "device");
        gpu->functions[i]->is_linked = false;
    }
}

/* called without `lock`, because an open VF delays this until it is closed */
static void disable(struct gpu* gpu) {
    unsigned int count = (unsigned int)pci_num_vf(gpu->pf);

    unlink_vfs(gpu);
    pci_disable_sriov(gpu->pf);
    mutex_lock(&lock);
    take_back(gpu, count);
    note(gpu, "pf", "numvfs", 0);
    mutex_unlock(&lock);
}

static int enable(struct gpu* gpu, unsigned int count) {
    int error;

    mutex_lock(&lock);
    error = prepare(gpu, count);
    mutex_unlock(&lock);
    if (!error) error = pci_enable_sriov(gpu->pf, (int)count);
    if (error) {
        mutex_lock(&lock);
        take_back(gpu, count);
        mutex_unlock(&lock);
        return error;
    }
    link_vfs(gpu, count);
    note(gpu, "pf", "numvfs", count);
    return (int)count;
}

static int configure(struct pci_dev* pf, int count) {
    struct gpu* gpu = pci_get_drvdata(pf);
    int done;

    mutex_lock(&lock);
    done = begin_store();
    mutex_unlock(&lock);
    if (done) return done;
    if (count > 0)
        done = enable(gpu, (unsigned int)count);
    else
        disable(gpu);
    mutex_lock(&lock);
    end_store();
    mutex_unlock(&lock);
    return done;
}

/* a kernel without the files has no directories either */
static int show(struct gpu* gpu, struct function* function) {
    int error;

    if (gpu->level < LEVEL_FILES) return 0;
    error = function->number ? kobject_add(&function->kobj, &gpu->kobj, "vf%u", function->number)
                             : kobject_add(&function->kobj, &gpu->kobj, "pf");
    if (error || function->number) return error;
    return sysfs_create_link(&function->kobj, &gpu->pf->dev.kobj, "device");
}

static int add_function(struct gpu* gpu, unsigned int number) {
    struct function* function = kzalloc(sizeof(*function), GFP_KERNEL);

    if (!function) return -ENOMEM;
    function->gpu = gpu;
    function->number = number;
    kobject_init(&function->kobj, &function_type);
    gpu->functions[number] = function;
    return show(gpu, function);
}

static void remove_kobject(struct kobject* kobj) {
    if (kobj->state_in_sysfs) kobject_del(kobj);
    kobject_put(kobj);
}

static void remove_gpu(struct gpu* gpu) {
    unsigned int i;

    for (i = 0; i <= gpu->total; i++)
        if (gpu->functions[i]) remove_kobject(&gpu->functions[i]->kobj);
    remove_kobject(&gpu->kobj);
}

static int add_gpu(struct gpu* gpu) {
    int error = 0;
    unsigned int i;

    if (gpu->level >= LEVEL_FILES)
        error = kobject_add(&gpu->kobj, &gpu->pf->dev.kobj, "sriov_admin");
    for (i = 0; i <= gpu->total && !error; i++) error = add_function(gpu, i);
    return error;
}

static u32 quantum_of(const void* gpu, unsigned int function) {
    return READ_ONCE(((const struct gpu*)gpu)->functions[function]->quantum_ms);
}

static int probe(struct pci_dev* pf, const struct pci_device_id* id) {
    int total = pci_sriov_get_totalvfs(pf), error;
    struct gpu* gpu;

    if (pf->is_virtfn || total <= 0) return -ENODEV;
    error = pcim_enable_device(pf);
    if (error) return error;
    gpu = kzalloc(struct_size(gpu, functions, (size_t)total + 1), GFP_KERNEL);
    if (!gpu) return -ENOMEM;
    gpu->pf = pf;
    gpu->total = (unsigned int)total;
    gpu->level = level;
    gpu->vram = (u64)vram_mb * SZ_1M;
    kobject_init(&gpu->kobj, &gpu_type);
    pci_set_drvdata(pf, gpu);
    pci_set_master(pf);
    error = add_gpu(gpu);
    if (!error) error = xe_pmu_add(pf, quantum_of, gpu, gpu->total);
    if (error) remove_gpu(gpu);
    return error;
}

static void remove(struct pci_dev* pf) {
    struct gpu* gpu = pci_get_drvdata(pf);

    xe_pmu_remove();
    if (pci_num_vf(pf)) disable(gpu);
    remove_gpu(gpu);
}

static const struct pci_device_id ids[] = {{}};

static struct pci_driver xe_driver = {
    .name = "xe", .id_table = ids, .probe = probe, .remove = remove, .sriov_configure = configure};

static int __init xe_init(void) {
    return pci_register_driver(&xe_driver);
}
module_init(xe_init);

static void __exit xe_exit(void) {
    pci_unregister_driver(&xe_driver);
    xe_pmu_exit();
}
module_exit(xe_exit);

MODULE_DESCRIPTION("The sriov_admin files of xe for any SR-IOV device (test only)");
MODULE_LICENSE("Dual MIT/GPL");
