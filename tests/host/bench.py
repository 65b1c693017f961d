# SPDX-License-Identifier: MIT
"""Measures what the module costs, and prints it beside floors and aims; nothing is asserted.

    VGPU_BIN=... python3 bench.py

    functions   sriov_numvfs for 16 VFs, and beside it the kernel's own part: the same with pci-pf-stub
    switch      from the planned end of a VF's slice to the moment when the next one runs, beside a late
                timer and one access to the device
    ioctl       SET_RUN_TABLE, and beside it GET_ERROR, which copies a struct, and GET_INFO, which also
                asks the device for its time

Measured in the machine by vgpu-pf-figures (figures/main.c); ratios are made within a round, figures are
medians of the rounds.
"""
import os
import shutil
import statistics

from card_test import CardTest
from machine import HOST, Card, Machine
from vf_guest import VfGuest

ROUNDS = 5
VFS = 16
MIB = 1 << 20
GUEST_MIB = 64
# the aims: docs/pf-driver.md
KERNEL_FLOOR_MS, MS_OF_VF = 100, 10
TIMER_FACTOR = 1.2
TABLE_US = 20
PROGRAM = 'in_root vgpu-pf-figures'


def write(vm, path, value):
    vm.check(f'echo {value} > {path}', 240)


def functions_ms(vm, pf):
    """{driver: median ms of a write of VFS to sriov_numvfs}. The drivers take turns; each is bound
    again before a write."""
    found = {'pci-pf-stub': [], 'vgpu_pf': []}
    slot = os.path.basename(pf)
    for driver in [*found] * ROUNDS:
        vm.check(f'test ! -e {pf}/driver || echo {slot} > {pf}/driver/unbind', 240)
        write(vm, f'{pf}/driver_override', driver)
        write(vm, f'/sys/bus/pci/drivers/{driver}/bind', slot)
        # a driver for the VFs is not part of the figure
        write(vm, f'{pf}/sriov_drivers_autoprobe', 0)
        found[driver].append(int(vm.check(f'{PROGRAM} functions {pf} {VFS}', 240).split()[1]) / 1e6)
    return {driver: statistics.median(values) for driver, values in found.items()}


def rounds(vm, registers):
    """A dict of figures in µs for each round."""
    text = vm.check(f'{PROGRAM} rounds {registers} {ROUNDS}', 900)
    found = []
    for line in text.split('\n'):
        words = line.split()[1:]
        found.append({name: int(value) / 1000 for name, value in zip(words[::2], words[1::2])})
    return found


def median(found, figure):
    return statistics.median(figure(each) for each in found)


def show(what, figure, aim, unit):
    verdict = 'met' if figure <= aim else 'missed'
    print(f'{what:42} {figure:9.2f} {unit:3}  aim {aim:9.2f} {unit:3}  {verdict}', flush=True)


def show_functions(vm, pf):
    got = functions_ms(vm, pf)
    show(f'sriov_numvfs, {VFS} VFs', got['vgpu_pf'], KERNEL_FLOOR_MS + VFS * MS_OF_VF, 'ms')
    print(f'  the same with pci-pf-stub {got["pci-pf-stub"]:.1f} ms')


def show_rounds(found):
    floor = median(found, lambda each: TIMER_FACTOR * each['timer'] + each['access'])
    show('run table: error of a switch', median(found, lambda each: each['switch']), floor, 'µs')
    for name, meaning in (('timer', 'a timer is late by'), ('access', 'a register is read in'),
                          ('quantum', 'a run is off its quantum by')):
        print(f'  {meaning} {median(found, lambda each, name=name: each[name]):.1f} µs')
    ratio = median(found, lambda each: each['switch'] / (TIMER_FACTOR * each['timer'] + each['access']))
    print(f'  of the aim, by round {ratio:.2f}')
    show('SET_RUN_TABLE', median(found, lambda each: each['table']), TABLE_US, 'µs')
    for name, ioctl in (('empty', 'GET_ERROR'), ('info', 'GET_INFO')):
        print(f'  {ioctl} {median(found, lambda each, name=name: each[name]):.1f} µs; ratio '
              f'{median(found, lambda each, name=name: each["table"] / each[name]):.2f}')


def main():
    directory = os.path.join(HOST, 'logs', 'Bench')
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    pf = CardTest.path().rstrip('/')
    with Card(directory, vfs=VFS, vram_mb=1024) as card, Machine(card.path('host.sock'), directory) as vm:
        vm.check('insmod /built/vgpu_test_bridge.ko && load pf_stub && insmod /built/vgpu_pf.ko time_scale=20', 240)
        show_functions(vm, pf)
        for vf in (1, 2):
            write(vm, f'{pf}/sriov_admin/vf{vf}/profile/vram_quota', GUEST_MIB * MIB)
        write(vm, f'{pf}/sriov_numvfs', VFS)
        with VfGuest(card.path('vf1.sock')) as one, VfGuest(card.path('vf2.sock')) as two:
            for guest in (one, two):
                guest.boot()
                guest.endless()
            # registers of a VF without a driver, because a driver owns those of the PF
            show_rounds(rounds(vm, f'{pf}/virtfn{VFS - 1}/resource5'))


if __name__ == '__main__':
    main()
