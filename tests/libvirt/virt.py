# SPDX-License-Identifier: MIT
"""libvirtd with vgpu's hook, vgpud with one softgpu, and domains. It works only inside of
tests/libvirt/box.

    with Machine(directory) as machine:
        machine.make_vfs(small=8)
        vm = machine.domain('vm1', '--profile', 'small')
        vm.define()
        vm.virsh('start')

QEMU is the stock one of tests/guest/image, run by its own loader. It runs as libvirt's user for
QEMU, so that it can open only VFs whose sockets this user was given.
"""
import json
import os
import subprocess
import uuid

from host import BIN, ROOT, Host, HostError, wait_for
from vm import GUEST

VGPUCTL = os.path.join(BIN, 'vgpuctl')
NAMESPACE = 'urn:vgpu:libvirt:1'
QEMU_CONF = '''
dynamic_ownership = 0
remember_owner = 0
cgroup_controllers = [ ]
security_driver = "none"
stdio_handler = "file"
'''
LIBVIRTD_CONF = '''
auth_unix_ro = "none"
auth_unix_rw = "none"
log_filters = "1:util.hook 3:object 3:event"
log_outputs = "2:file:{log}"
'''
EMULATOR = '''#!/bin/sh
root={root}
exec $root/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu --argv0 qemu-system-x86_64 \\
    $root/usr/bin/qemu-system-x86_64 -L $root/usr/share/qemu -L $root/usr/share/seabios "$@"
'''
DOMAIN = '''<domain type='qemu'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <memory unit='MiB'>{memory}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    {boot}
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>{emulator}</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    {devices}
  </devices>
  {more}
</domain>
'''


def run(*command, text='', seconds=60):
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=seconds, check=False)


class Machine(Host):
    """vgpud and libvirtd with their usual paths."""

    def __init__(self, directory, libvirt='', **options):
        options = {'vfs': 16, 'vram_mb': 1024, 'aperture_mb': 64, 'libvirt': libvirt, **options}
        super().__init__(directory, run_dir='/run/vgpu', bus_socket='/run/dbus/system_bus_socket', **options)
        self.libvirtd = None
        self.emulator = os.path.join(ROOT, 'build', 'libvirt', 'qemu')

    def __enter__(self):
        os.makedirs(self.directory, exist_ok=True)
        self.write_emulator()
        self.write('/etc/libvirt/qemu.conf', QEMU_CONF)
        self.write('/etc/libvirt/libvirtd.conf', LIBVIRTD_CONF.format(log=self.path('libvirtd.log')))
        with open(os.path.join(ROOT, 'daemon/libvirt/50-vgpu')) as hook:
            self.write('/etc/libvirt/hooks/qemu.d/50-vgpu', hook.read().replace('/usr/bin/vgpuctl', VGPUCTL), 0o755)
        super().__enter__()
        try:
            self.start_libvirtd()
        except BaseException:
            self.stop()
            raise
        return self

    def write_emulator(self):
        """Writes the emulator only once, because libvirtd probes a changed file again, which takes
        long."""
        text = EMULATOR.format(root=os.path.join(GUEST, 'qemu', 'root'))
        if os.path.exists(self.emulator):
            with open(self.emulator) as file:
                if file.read() == text:
                    return
        self.write(self.emulator, text, 0o755)

    @staticmethod
    def write(path, text, mode=0o644):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)

    def start_libvirtd(self):
        log = open(self.path('libvirtd.out'), 'ab')
        # the hook gets libvirtd's environment, so nothing in it may name a bus
        self.libvirtd = subprocess.Popen(['/usr/sbin/libvirtd', '-f', '/etc/libvirt/libvirtd.conf', '-p',
                                          '/run/libvirt/libvirtd.pid'], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                         env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})
        log.close()
        self.children.append(self.libvirtd)
        wait_for('libvirtd', 120, lambda: run('virsh', '-c', 'qemu:///system', 'list').returncode == 0, 0.2)

    def restart_libvirtd(self):
        self.libvirtd.terminate()
        self.libvirtd.wait(timeout=30)
        self.start_libvirtd()

    def make_vfs(self, vram='32MiB', **profiles):
        """Makes VFs of profiles; those of `small` are small-1, small-2 …"""
        document = {'profiles': {name: {'resources': {'vram': vram}} for name in profiles},
                    'configs': {'test': [{'gpu': 'gpu0', 'vfs': [
                        {'profile': name, 'count': count, 'name': name + '-{n}'}
                        for name, count in profiles.items()]}]}}
        with open(self.path('vgpu.json'), 'w') as file:
            json.dump(document, file)
        self.ctl('apply', self.path('vgpu.json'))

    def domain(self, name, *attach, **options):
        return Domain(self, name, attach, **options)

    def owned(self):
        """{VF name: owner} of the VFs that have an owner."""
        return {vf['name']: vf['owner'] for vf in self.ctl('list', '--vfs')['vfs'] if vf['owner']}

    def vf_of(self, domain):
        """The only VF of a domain."""
        mine = [vf for vf in self.ctl('list', '--vfs')['vfs'] if vf['owner'] == domain.owner]
        if len(mine) != 1:
            raise HostError(f'{domain.name} has {len(mine)} VFs')
        return mine[0]

    def is_at_rest(self):
        """True if no VF has an owner or a client, and all are provisioned."""
        vfs = self.ctl('list', '--vfs')['vfs']
        return all(not vf['owner'] and not vf['attached'] and vf['state'] == 'provisioned' for vf in vfs)


class Domain:
    """A domain; `attach` are the arguments of `vgpuctl attach-xml` that name its VFs."""

    def __init__(self, machine, name, attach, memory=64, boot='', devices='', more=''):
        self.machine = machine
        self.name = name
        self.attach = attach
        self.uuid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.owner = 'libvirt:' + self.uuid
        self.plain = DOMAIN.format(name=name, uuid=self.uuid, memory=memory, boot=boot, devices=devices, more=more,
                                   emulator=machine.emulator)

    def xml(self):
        done = run(VGPUCTL, '--bus', self.machine.bus, 'attach-xml', '-', *self.attach, text=self.plain)
        if done.returncode != 0:
            raise HostError(done.stderr)
        return done.stdout

    def define(self):
        path = self.machine.path(self.name + '.xml')
        with open(path, 'w') as file:
            file.write(self.xml())
        # on a busy machine, libvirtd needs long to probe a new QEMU
        done = run('virsh', '-c', 'qemu:///system', 'define', '--validate', path, seconds=240)
        if done.returncode != 0:
            raise HostError(done.stderr)
        return self

    def virsh(self, command, *arguments, seconds=90):
        """Runs `virsh COMMAND DOMAIN ARGUMENTS`; returns the result, also of a failure."""
        return run('virsh', '-c', 'qemu:///system', command, self.name, *arguments, seconds=seconds)

    def start(self):
        done = self.virsh('start')
        if done.returncode != 0:
            raise HostError(done.stderr)
        return self

    def state(self):
        return self.virsh('domstate').stdout.strip()

    def wait_for_state(self, state, seconds=30):
        wait_for(f'{self.name} {state}', seconds, lambda: self.state() == state, 0.1)

    def destroy(self):
        return self.virsh('destroy')

    def qemu(self):
        """Pid of the domain's QEMU."""
        with open(f'/run/libvirt/qemu/{self.name}.pid') as file:
            return int(file.read())

    def hook(self, operation, xml=None):
        """Calls the hook as libvirt does."""
        return run('/etc/libvirt/hooks/qemu.d/50-vgpu', self.name, operation, 'begin', '-', text=xml or self.xml())

    def socket(self, n=0):
        return f'/run/vgpu/vm/{self.uuid}/{n}.sock'
