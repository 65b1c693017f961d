# SPDX-License-Identifier: MIT
"""A cluster of Debian's corosync and pacemaker on two hosts of the fleet, with vgpu's resource
agent. It works only inside of tests/fleet/box.

    with Cluster(directory) as cluster:
        cluster.crm('configure', 'primitive', 'vm1', 'ocf:fleet:guest', ...)
        cluster.hosts[0].kill()

Fencing goes through the power switch: a socket that all hosts see. Behind it, this process kills
the first process of the host that is fenced.
"""
import hashlib
import json
import os
import re
import socket
import threading
import uuid
import xml.etree.ElementTree

import fleet
from fleet import BIN, NETWORK, ROOT, FleetError, Host, command, wait_for

AGENT = os.path.join(ROOT, 'daemon', 'engines', 'pacemaker', 'capacity')
VGPUCTL = os.path.join(BIN, 'vgpuctl')
HERE = os.path.join(ROOT, 'tests', 'fleet')
COROSYNC_CONF = '''totem {{
  version: 2
  cluster_name: lab
  transport: knet
  crypto_cipher: none
  crypto_hash: none
  token: 3000
}}
nodelist {{
{nodes}}}
quorum {{
  provider: corosync_votequorum
  two_node: 1
}}
logging {{
  to_syslog: no
  to_logfile: yes
  logfile: /var/log/corosync.log
  timestamp: on
}}
'''
NODE = '''  node {{
    ring0_addr: {address}
    name: {name}
    nodeid: {number}
  }}
'''


def uuid_of(guest):
    """The UUID that guest_agent makes for a guest."""
    return str(uuid.UUID(hashlib.md5(guest.encode()).hexdigest()))


class Node(Host):
    """A host with corosync and pacemaker."""

    def boot(self):
        super().boot()
        # this machine may have the user and the group already
        self.run('sh', '-c', 'getent group haclient || groupadd --system haclient; '
                 'getent passwd hacluster || useradd --system --gid haclient --no-create-home hacluster')
        for path in ('/var/lib/pacemaker/cib', '/var/lib/pacemaker/pengine', '/var/lib/pacemaker/blackbox',
                     '/var/lib/pacemaker/cores', '/var/log/pacemaker', '/var/log/crmsh', '/run/pacemaker', '/run/resource-agents'):
            self.run('install', '-d', '-o', 'hacluster', '-g', 'haclient', '-m', '0775', path)
        self.run('ln', '-s', VGPUCTL, '/usr/bin/vgpuctl')
        self.install(AGENT, '/usr/lib/ocf/resource.d/vgpu/capacity')
        self.install(os.path.join(HERE, 'guest_agent'), '/usr/lib/ocf/resource.d/fleet/guest')
        self.install(os.path.join(HERE, 'fence_fleet'), '/usr/sbin/fence_fleet')
        self.install(os.path.join(ROOT, 'daemon', 'libvirt', '50-vgpu'), '/etc/libvirt/hooks/qemu.d/50-vgpu')

    def install(self, source, path):
        with open(source) as file:
            self.write(path, file.read(), 0o755)

    def start_pacemaker(self):
        self.start('corosync', 'corosync', '-f')
        wait_for(f'corosync of {self.name}', 20, lambda: self.succeeds('corosync-cfgtool', '-s'), 0.2)
        self.start('pacemaker', 'pacemakerd')

    def guests(self):
        """Names of the guests whose processes run here."""
        return self.run('sh', '-c', 'cd /run/guests 2>/dev/null && for file in *; do read -r name pid <"$file" && '
                        'kill -0 "$pid" 2>/dev/null && echo "$name"; done; :').split()

    def succeeds(self, *words):
        try:
            self.run(*words)
        except FleetError:
            return False
        return True

    def start_all(self):
        self.start_bus()
        self.start_vgpud()
        wait_for(f'the GPU of {self.name}', 60, self.is_gpu_ok)
        self.start_pacemaker()


class PowerSwitch(threading.Thread):
    """Answers fence_fleet of any host: "off", "reboot" and "on" with "done", "status" with "on" or "off". A host that is
    rebooted stays off until the test boots it."""

    def __init__(self, path, hosts):
        super().__init__(daemon=True)
        self.hosts = {host.name: host for host in hosts}
        self.fenced = []
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            with client:
                action, _, name = client.makefile().readline().strip().partition(' ')
                client.sendall((self.answer(action, self.hosts.get(name)) + '\n').encode())

    def answer(self, action, host):
        if host is None:
            return 'no such host'
        if action == 'status':
            return 'on' if host.is_on() else 'off'
        if action in ('off', 'reboot') and host.is_on():
            host.kill()
        if action in ('off', 'reboot'):
            self.fenced.append(host.name)
        return 'done'

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Cluster:
    node = Node
    # tests/fleet/domains replaces libvirt and vgpu-libvirt
    libvirt = 'test:///default'
    vgpu_libvirt = os.path.join(HERE, 'domains')

    def __init__(self, directory):
        self.directory = os.path.abspath(directory)
        self.etc = os.path.join(self.directory, 'etc')
        self.hosts = [self.node(self, 1), self.node(self, 2)]
        self.switch = None

    def __enter__(self):
        command('rm', '-rf', self.directory)
        os.makedirs(self.etc)
        self.configure()
        command('ip', 'link', 'add', 'lab', 'type', 'bridge')
        command('ip', 'link', 'set', 'lab', 'up')
        self.switch = PowerSwitch(os.path.join(self.etc, 'power'), self.hosts)
        self.switch.start()
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.switch.close()
        for host in self.hosts:
            if host.is_on():
                host.kill()
        command('ip', 'link', 'del', 'lab')

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.etc, name)
        with open(path, 'w') as file:
            file.write(text)
        os.chmod(path, mode)

    def configure(self):
        nodes = ''.join(NODE.format(address=host.address, name=host.name, number=number)
                        for number, host in enumerate(self.hosts, 1))
        self.file('corosync.conf', COROSYNC_CONF.format(nodes=nodes))
        self.file('vgpud.json', json.dumps({
            'state_dir': '/var/lib/vgpu', 'run_dir': '/run/vgpu', 'libvirt': self.libvirt,
            'programs': {'softgpu': os.path.join(BIN, 'softgpu'), 'vgpu_pf': os.path.join(BIN, 'vgpu-pf'),
                         'vgpu_libvirt': self.vgpu_libvirt},
            'gpus': [{'id': 'gpu0', 'softgpu': {'vfs': 4, 'vram_mb': 512, 'aperture_mb': 64, 'cus': 4, 'threads': 1}}]}))
        self.file('guest', fleet.GUEST.format(guest=os.path.join(ROOT, 'tests', 'guest')), 0o755)

    def start(self):
        for host in self.hosts:
            host.boot()
            host.start_all()
        wait_for('both nodes online', 60, lambda: self.online() == {'n1', 'n2'}, 0.5)

    def run(self, *words, seconds=60):
        """Runs a program on a host that is on; returns its output."""
        host = next(host for host in self.hosts if host.is_on())
        return host.run(*words, seconds=seconds)

    def status(self):
        return xml.etree.ElementTree.fromstring(self.run('crm_mon', '--one-shot', '--output-as=xml'))

    def online(self):
        """Names of the nodes that are online, as Pacemaker sees them; empty while it does not answer."""
        try:
            status = self.status()
        except FleetError:
            return set()
        return {node.get('name') for node in status.iterfind('nodes/node') if node.get('online') == 'true'}

    def running(self):
        """{guest: host} of the guests that run, as Pacemaker sees them."""
        found = {}
        for resource in self.status().iterfind('resources/resource'):
            node = resource.find('node')
            if node is not None and resource.get('role') == 'Started' and resource.get('id').startswith('vm'):
                found[resource.get('id')] = node.get('name')
        return found

    def guests(self):
        """{guest: [host …]} of the guests whose processes run, as the hosts that are on see them."""
        found = {}
        for host in filter(Node.is_on, self.hosts):
            for name in host.guests():
                found.setdefault(name, []).append(host.name)
        return found

    def claims(self):
        """{guest: [host …]} of the claims on hosts that are on."""
        found = {}
        for host in filter(Node.is_on, self.hosts):
            for owner, vfs in host.claims().items():
                found.setdefault(self.guest_of(owner), []).extend(host.name for _ in vfs)
        return found

    @staticmethod
    def guest_of(owner):
        names = {'libvirt:' + uuid_of(f'vm{number}'): f'vm{number}' for number in range(1, 10)}
        return names.get(owner, owner)

    def is_each_claimed_once(self):
        """True if each guest that runs has exactly one VF, on its host, and nobody else has one."""
        running = {name: [host] for name, host in self.running().items()}
        return self.guests() == running == self.claims()

    def attribute(self, host, name, kind='--utilization'):
        """A utilization attribute as a number, or None if there is none."""
        try:
            return int(self.run('crm_attribute', '--type', 'nodes', '--node', host.name, kind, '--name', name, '--query', '--quiet'))
        except FleetError:
            return None

    def health(self, host):
        """The health attribute of a host, as Pacemaker has it after the delay."""
        found = re.search(r'name="#health-vgpu" value="(\w+)"', self.run(
            'sh', '-c', f"cibadmin --query --xpath \"//node_state[@uname='{host.name}']//nvpair[@name='#health-vgpu']\" || :"))
        return found and found.group(1)

    def vm(self, name):
        """Configures a guest that needs a VF."""
        self.run('crm', 'configure', 'primitive', name, 'ocf:fleet:guest', 'params', 'profile=small',
                 'utilization', 'vgpu_small=1', 'op', 'monitor', 'interval=5s', 'timeout=60s',
                 'op', 'start', 'timeout=60s', 'interval=0', 'op', 'stop', 'timeout=60s', 'interval=0')
        self.run('crm', 'configure', 'order', f'capacity-before-{name}', 'Optional:', 'vgpu-clone', name)
