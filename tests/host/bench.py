# SPDX-License-Identifier: MIT
"""What the module costs, as ratios within one run; nothing is asserted.

    VGPU_BIN=... python3 bench.py

    functions  sriov_numvfs of 16 VFs, against the kernel's own part: the same with pci-pf-stub as driver
    ioctl      SET_RUN_TABLE, against GET_ERROR, which does nothing but copy
    quantum    how far runs are from their quanta, against a late timer and one access to the device, 5 rounds
               in turns
    switch     from the end of one VF's run to the beginning of the next one's, against the same

Started with an argument it is the part that runs in the machine.
"""
import json
import os
import shutil
import statistics
import struct
import sys
import time

ROUNDS = 5
VFS = 16
MIB = 1 << 20


def timed(call):
    """Seconds that a call takes."""
    start = time.monotonic()
    call()
    return time.monotonic() - start


def median_us(call, count):
    return statistics.median(timed(call) for _ in range(count)) * 1e6


# ---- in the machine

def write(path, value):
    with open(path, 'w') as file:
        file.write(str(value))


def functions(pf):
    """Seconds for all VFs, by driver; each time bound anew."""
    seconds = {'pci-pf-stub': [], 'vgpu_pf': []}
    slot = os.path.basename(pf)
    for driver in [*seconds] * 3:
        if os.path.exists(f'{pf}/driver'):
            write(f'{pf}/driver/unbind', slot)
        write(f'{pf}/driver_override', driver)
        write(f'/sys/bus/pci/drivers/{driver}/bind', slot)
        # a driver for the VFs is not part of it
        write(f'{pf}/sriov_drivers_autoprobe', 0)
        seconds[driver].append(timed(lambda: write(f'{pf}/sriov_numvfs', VFS)))
        write(f'{pf}/sriov_numvfs', 0)
    return {driver: statistics.median(values) for driver, values in seconds.items()}


def ioctls(uapi):
    """Median µs of a call; Python's own part is in both."""
    pf = uapi.Pf()
    table = pf.table()
    data = bytearray(bytes(table))
    error = bytearray(struct.pack('<I', 168) + bytes(164))
    set_table = uapi.command(uapi.SET_RUN_TABLE, len(data))
    get_error = uapi.command(uapi.GET_ERROR, len(error))
    generation = uapi.RunTable.generation.offset

    def replace():
        struct.pack_into('<Q', data, generation, struct.unpack_from('<Q', data, generation)[0] + 1)
        uapi.fcntl.ioctl(pf.fd, set_table, data)

    found = {'SET_RUN_TABLE': [], 'GET_ERROR': []}
    for _ in range(ROUNDS):
        found['SET_RUN_TABLE'].append(median_us(replace, 400))
        found['GET_ERROR'].append(median_us(lambda: uapi.fcntl.ioctl(pf.fd, get_error, error), 400))
    return {name: statistics.median(values) for name, values in found.items()}


def switches(uapi, pf_path):
    """Median µs: of runs as the device stamped them, a timer's lateness, an access to the device."""
    pf = uapi.Pf()
    quantum_ns = {vf: quantum_us * 1000 for vf, quantum_us in pf.table().plan()}
    config = os.open(f'{pf_path}/config', os.O_RDONLY)
    found = {'quantum': [], 'switch': [], 'timer': [], 'access': []}
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    for _ in range(ROUNDS):
        found['timer'].append(median_us(lambda: time.sleep(0.002), 100) - 2000)
        found['access'].append(median_us(lambda: os.pread(config, 4, 0x200), 200))
        with uapi.Ring(pf) as ring:
            time.sleep(2)
            runs = [event for event in ring.take() if event.type == uapi.EVENT_RUN]
        found['quantum'].append(statistics.median(
            abs(run.duration_ns - quantum_ns[run.vf]) for run in runs) / 1000)
        found['switch'].append(statistics.median(
            after.time_ns - after.duration_ns - before.time_ns
            for before, after in zip(runs, runs[1:]) if before.vf != after.vf) / 1000)
    return {name: statistics.median(values) for name, values in found.items()}


def inside(what, pf_path):
    sys.path.insert(0, '/tests')
    import uapi  # pylint: disable=import-outside-toplevel
    parts = {'functions': lambda: functions(pf_path), 'ioctl': lambda: ioctls(uapi),
             'switch': lambda: switches(uapi, pf_path)}
    print(json.dumps(parts[what]()))


# ---- outside

def measure(vm, what, pf_path):
    return json.loads(vm.check(f'in_root python3 -B /tests/bench.py {what} {pf_path} 2>&1', 900))


def show(name, value, floor, unit):
    print(f'{name:34} {value:10.1f} {unit}   floor {floor:10.1f} {unit}   ratio {value / floor:6.2f}', flush=True)


def main():
    from machine import DOMAINS, HOST, Card, Machine  # pylint: disable=import-outside-toplevel
    from vf_guest import VfGuest  # pylint: disable=import-outside-toplevel
    directory = os.path.join(HOST, 'logs', 'Bench')
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    pf = f'/sys/bus/pci/devices/{DOMAINS["bridge"]}:01:00.0'
    with Card(directory, vfs=VFS, vram_mb=1024) as card, Machine(card.path('host.sock'), directory) as vm:
        vm.check('insmod /built/vgpu_test_bridge.ko && load pf_stub && insmod /built/vgpu_pf.ko time_scale=20', 120)
        got = measure(vm, 'functions', pf)
        show('sriov_numvfs, 16 VFs', got['vgpu_pf'] * 1e3, got['pci-pf-stub'] * 1e3, 'ms')
        got = measure(vm, 'ioctl', pf)
        show('SET_RUN_TABLE / GET_ERROR', got['SET_RUN_TABLE'], got['GET_ERROR'], 'µs')
        for vf in (1, 2):
            vm.check(f'echo {64 * MIB} > {pf}/sriov_admin/vf{vf}/profile/vram_quota', 120)
        with VfGuest(card.path('vf1.sock')) as one, VfGuest(card.path('vf2.sock')) as two:
            for guest in (one, two):
                guest.boot()
                guest.endless()
            got = measure(vm, 'switch', pf)
        floor = got['timer'] + got['access']
        show('end of quantum / timer + access', got['quantum'], floor, 'µs')
        show('world switch / timer + access', got['switch'], floor, 'µs')


if __name__ == '__main__':
    if len(sys.argv) > 1:
        inside(*sys.argv[1:])
    else:
        main()
