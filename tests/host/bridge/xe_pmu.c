// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A perf PMU with the name, format and events of xe's (drivers/gpu/drm/xe/xe_pmu.c), for one
 * engine, render engine 0 of GT 0. Its ticks are those of a firmware that serves the functions of
 * the parameter "busy" in turn, each for its quantum:
 *
 *   engine-active-ticks   elapsed x quantum / sum of the quanta of busy functions; 0 if not busy
 *   engine-total-ticks    elapsed x quantum / sum of the quanta of all functions
 */
#include "xe_pmu.h"

#include <linux/module.h>
#include <linux/perf_event.h>

enum { EVENT_ACTIVE = 2, EVENT_TOTAL = 3 };
enum { MAX_FUNCTIONS = 64, NS_PER_TICK = 52 };

#define EVENT_OF(config) ((config)&0xfff)
#define INSTANCE_OF(config) ((config) >> 12 & 0xff)
#define CLASS_OF(config) ((config) >> 20 & 0xff)
#define FUNCTION_OF(config) ((config) >> 44 & 0xffff)
#define GT_OF(config) ((config) >> 60)

static bool pmu;
module_param(pmu, bool, 0444);
MODULE_PARM_DESC(pmu, "the PF has a perf PMU");

static ulong busy;
module_param(busy, ulong, 0644);
MODULE_PARM_DESC(busy, "functions that always have work; bit 0 is the PF");

static struct {
    struct pmu pmu;
    char* name; /* NULL: not registered */
    raw_spinlock_t lock;
    const void* gpu; /* NULL: no GPU */
    xe_quantum quantum;
    unsigned int total;
    u64 updated_ns;
    u64 active[MAX_FUNCTIONS], all[MAX_FUNCTIONS];
} state;

/* adds the ticks since the last update; `lock` is held */
static void update_ticks(void) {
    u64 now = ktime_get_ns(), ticks = div_u64(now - state.updated_ns, NS_PER_TICK);
    u64 sum = 0, sum_busy = 0;
    unsigned int i;

    if (!state.gpu) return;
    state.updated_ns = now;
    for (i = 0; i <= state.total; i++) {
        sum += state.quantum(state.gpu, i);
        sum_busy += busy >> i & 1 ? state.quantum(state.gpu, i) : 0;
    }
    for (i = 0; i <= state.total && sum; i++) {
        u32 quantum = state.quantum(state.gpu, i);

        state.all[i] += div64_u64(ticks * quantum, sum);
        if (busy >> i & 1 && sum_busy) state.active[i] += div64_u64(ticks * quantum, sum_busy);
    }
}

static u64 ticks_of(const struct perf_event* event) {
    unsigned int function = (unsigned int)FUNCTION_OF(event->attr.config);
    unsigned long flags;
    u64 ticks;

    raw_spin_lock_irqsave(&state.lock, flags);
    update_ticks();
    ticks =
        EVENT_OF(event->attr.config) == EVENT_ACTIVE ? state.active[function] : state.all[function];
    raw_spin_unlock_irqrestore(&state.lock, flags);
    return ticks;
}

static int init_event(struct perf_event* event) {
    u64 config = event->attr.config;

    if (event->attr.type != event->pmu->type) return -ENOENT;
    if (is_sampling_event(event) || event->cpu < 0) return -EINVAL;
    if (EVENT_OF(config) != EVENT_ACTIVE && EVENT_OF(config) != EVENT_TOTAL) return -ENOENT;
    if (INSTANCE_OF(config) || CLASS_OF(config) || GT_OF(config)) return -ENOENT;
    return FUNCTION_OF(config) > state.total ? -ENOENT : 0;
}

static void read_event(struct perf_event* event) {
    u64 now = ticks_of(event);

    local64_add((s64)(now - (u64)local64_xchg(&event->hw.prev_count, (s64)now)), &event->count);
}

static void start_event(struct perf_event* event, int flags) {
    local64_set(&event->hw.prev_count, (s64)ticks_of(event));
    event->hw.state = 0;
}

static void stop_event(struct perf_event* event, int flags) {
    if (flags & PERF_EF_UPDATE) read_event(event);
    event->hw.state = PERF_HES_STOPPED;
}

static int add_event(struct perf_event* event, int flags) {
    if (flags & PERF_EF_START) start_event(event, flags);
    return 0;
}

static void remove_event(struct perf_event* event, int flags) {
    stop_event(event, PERF_EF_UPDATE);
}

PMU_FORMAT_ATTR(event, "config:0-11");
PMU_FORMAT_ATTR(engine_instance, "config:12-19");
PMU_FORMAT_ATTR(engine_class, "config:20-27");
PMU_FORMAT_ATTR(function, "config:44-59");
PMU_FORMAT_ATTR(gt, "config:60-63");
static struct attribute* format_files[] = {
    &format_attr_event.attr,        &format_attr_engine_instance.attr,
    &format_attr_engine_class.attr, &format_attr_function.attr,
    &format_attr_gt.attr,           NULL};

#define EVENT_FILE(title, text)                                                         \
    {                                                                                   \
        .attr = {.attr = {.name = title, .mode = 0444}, .show = perf_event_sysfs_show}, \
        .event_str = text                                                               \
    }
static struct perf_pmu_events_attr active_file = EVENT_FILE("engine-active-ticks", "event=0x02");
static struct perf_pmu_events_attr total_file = EVENT_FILE("engine-total-ticks", "event=0x03");
static struct attribute* event_files[] = {&active_file.attr.attr, &total_file.attr.attr, NULL};

static ssize_t cpumask_show(struct device* device, struct device_attribute* attribute, char* page) {
    return sysfs_emit(page, "0\n");
}
static DEVICE_ATTR_RO(cpumask);
static struct attribute* cpumask_files[] = {&dev_attr_cpumask.attr, NULL};

static const struct attribute_group format_group = {.name = "format", .attrs = format_files};
static const struct attribute_group event_group = {.name = "events", .attrs = event_files};
static const struct attribute_group cpumask_group = {.attrs = cpumask_files};
static const struct attribute_group* groups[] = {&format_group, &event_group, &cpumask_group, NULL};

/* registered once: before Linux 6.15 a PMU cannot be removed while a counter is open */
static int register_pmu(const struct pci_dev* pf) {
    int error;

    state.name = kasprintf(GFP_KERNEL, "xe_%s", pci_name(pf));
    if (!state.name) return -ENOMEM;
    strreplace(state.name, ':', '_');
    raw_spin_lock_init(&state.lock);
    state.pmu = (struct pmu){.module = THIS_MODULE,
                             .task_ctx_nr = perf_invalid_context,
                             .capabilities = PERF_PMU_CAP_NO_EXCLUDE,
                             .attr_groups = groups,
                             .event_init = init_event,
                             .add = add_event,
                             .del = remove_event,
                             .start = start_event,
                             .stop = stop_event,
                             .read = read_event};
    error = perf_pmu_register(&state.pmu, state.name, -1);
    if (!error) return 0;
    kfree(state.name);
    state.name = NULL;
    return error;
}

int xe_pmu_add(struct pci_dev* pf, xe_quantum quantum, const void* gpu, unsigned int total) {
    int error = pmu && !state.name ? register_pmu(pf) : 0;
    unsigned long flags;

    if (error || !pmu) return error;
    raw_spin_lock_irqsave(&state.lock, flags);
    state.quantum = quantum;
    state.total = min_t(unsigned int, total, MAX_FUNCTIONS - 1);
    state.updated_ns = ktime_get_ns();
    state.gpu = gpu;
    raw_spin_unlock_irqrestore(&state.lock, flags);
    return 0;
}

void xe_pmu_remove(void) {
    unsigned long flags;

    if (!state.name) return;
    raw_spin_lock_irqsave(&state.lock, flags);
    state.gpu = NULL;
    raw_spin_unlock_irqrestore(&state.lock, flags);
}

void xe_pmu_exit(void) {
    if (!state.name) return;
    perf_pmu_unregister(&state.pmu);
    kfree(state.name);
}
