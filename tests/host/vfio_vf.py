# SPDX-License-Identifier: MIT
"""Runs in the host VM: opens a function through vfio-pci as a VMM would, and prints what it finds.

usage: vfio_vf.py GROUP FUNCTION        such as 3 0001:01:00.1
       vfio_vf.py GROUP FUNCTION hold   prints its pid, and keeps the function open until it is killed
"""
import ctypes
import fcntl
import mmap
import os
import signal
import struct
import sys

# <linux/vfio.h>: _IO(';', 100 + n)
GROUP_GET_STATUS, GROUP_SET_CONTAINER, SET_IOMMU = 0x3b67, 0x3b68, 0x3b66
GROUP_GET_DEVICE_FD, DEVICE_GET_INFO, DEVICE_GET_REGION_INFO = 0x3b6a, 0x3b6b, 0x3b6c
DEVICE_RESET, IOMMU_MAP_DMA = 0x3b6f, 0x3b71
TYPE1V2_IOMMU = 3
CONFIG_REGION, REGISTERS_REGION = 7, 5
COMMAND, MEMORY_AND_MASTER = 4, 6
IDENTIFIER = 4 * 0xde5  # RCC_IOV_FUNC_IDENTIFIER of hw/regs.def
DMA_BYTES, DMA_ADDRESS = 1 << 20, 0x40000000


def ask(fd, request, layout, *values):
    argument = bytearray(struct.pack(layout, struct.calcsize(layout), *values))
    fcntl.ioctl(fd, request, argument)
    return struct.unpack(layout, argument)


def region_offset(device, index):
    return ask(device, DEVICE_GET_REGION_INFO, '<IIIIQQ', 0, index, 0, 0, 0)[5]


def open_group(group_number):
    """The container and the group in it, ready for devices."""
    container = os.open('/dev/vfio/vfio', os.O_RDWR)
    group = os.open(f'/dev/vfio/{group_number}', os.O_RDWR)
    print('viable', ask(group, GROUP_GET_STATUS, '<II', 0)[1] & 1)
    fcntl.ioctl(group, GROUP_SET_CONTAINER, struct.pack('<i', container))
    fcntl.ioctl(container, SET_IOMMU, TYPE1V2_IOMMU)
    return container, group


def open_device(group, function):
    return fcntl.ioctl(group, GROUP_GET_DEVICE_FD, bytearray(function.encode() + b'\0'))


def hold(group_number, function):
    _, group = open_group(group_number)
    open_device(group, function)
    print('open', os.getpid(), flush=True)
    signal.pause()


def main(group_number, function):
    container, group = open_group(group_number)
    memory = mmap.mmap(-1, DMA_BYTES)
    memory[:] = bytes(DMA_BYTES)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ask(container, IOMMU_MAP_DMA, '<IIQQQ', 3, address, DMA_ADDRESS, DMA_BYTES)
    device = open_device(group, function)
    print('regions', ask(device, DEVICE_GET_INFO, '<IIII', 0, 0, 0)[2])
    config = region_offset(device, CONFIG_REGION)
    os.pwrite(device, struct.pack('<H', MEMORY_AND_MASTER), config + COMMAND)
    print('id', '%08x' % struct.unpack('<I', os.pread(device, 4, config))[0])
    registers = region_offset(device, REGISTERS_REGION)
    print('register', '%08x' % struct.unpack('<I', os.pread(device, 4, registers + IDENTIFIER))[0])
    fcntl.ioctl(device, DEVICE_RESET)
    print('reset done')


hold(*sys.argv[1:3]) if sys.argv[3:] == ['hold'] else main(*sys.argv[1:])
