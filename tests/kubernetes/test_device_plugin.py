# SPDX-License-Identifier: MIT
"""vgpu-dra --mode device-plugin, with a server in the place of a kubelet that starts, stops and starts again."""
import concurrent.futures
import os
import unittest

import grpc

import deviceplugin_pb2
import deviceplugin_pb2_grpc

from dra_host import DRA, LARGE, SECONDS, SMALL, Host, wait_for
from vfio_user_client import VfUserClient


class OldKubelet(deviceplugin_pb2_grpc.RegistrationServicer):
    """The kubelet's side: it removes all sockets when it starts, then takes registrations."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        self.endpoints = {}
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        deviceplugin_pb2_grpc.add_RegistrationServicer_to_server(self, self.server)
        self.server.add_insecure_port('unix:' + os.path.join(directory, 'kubelet.sock'))
        self.server.start()

    def Register(self, request, context):
        self.endpoints[request.resource_name] = (request.version, request.endpoint)
        return deviceplugin_pb2.Empty()

    def stop(self):
        self.server.stop(None).wait()

    def stub(self, resource):
        path = os.path.join(self.directory, self.endpoints[resource][1])
        return deviceplugin_pb2_grpc.DevicePluginStub(grpc.insecure_channel('unix:' + path))

    def allocate(self, resource, *ids):
        request = deviceplugin_pb2.AllocateRequest(container_requests=[
            deviceplugin_pb2.ContainerAllocateRequest(devices_ids=ids)])
        return self.stub(resource).Allocate(request, timeout=SECONDS).container_responses[0]

    def lists(self, resource):
        return self.stub(resource).ListAndWatch(deviceplugin_pb2.Empty(), timeout=SECONDS)


class DevicePlugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = Host(cls.__name__)
        cls.host.__enter__()
        cls.addClassCleanup(cls.host.__exit__)

    def setUp(self):
        self.directory = os.path.join(self.host.kubelet_dir, 'device-plugins')
        self.kubelet = OldKubelet(self.directory)
        self.addCleanup(lambda: self.kubelet.stop())
        self.host.start('dra', DRA, '--mode', 'device-plugin', '--bus', self.host.bus, '--kubelet-dir',
                        self.host.kubelet_dir, '--cluster', 'lab')
        self.addCleanup(self.clean)
        self.wait_for_registration()

    def clean(self):
        self.host.stop('dra')
        self.host.release_all()

    def wait_for_registration(self):
        wait_for('both resources', lambda: len(self.kubelet.endpoints) == 2)

    def test_each_profile_is_a_resource(self):
        self.assertEqual(self.kubelet.endpoints, {'vgpu.org/small': ('v1beta1', 'vgpu-small.sock'),
                                                  'vgpu.org/large': ('v1beta1', 'vgpu-large.sock')})
        for resource, count in (('vgpu.org/small', SMALL), ('vgpu.org/large', LARGE)):
            devices = next(self.kubelet.lists(resource)).devices
            self.assertEqual([device.health for device in devices], ['Healthy'] * count)

    def test_a_vf_of_somebody_else_is_unhealthy_at_once(self):
        lists = self.kubelet.lists('vgpu.org/small')
        next(lists)
        self.host.ctl('claim', 'small-1', '--owner', 'libvirt:vm1')
        self.assertEqual([device.health for device in next(lists).devices].count('Unhealthy'), 1)
        self.host.release_all()
        self.assertEqual([device.health for device in next(lists).devices].count('Unhealthy'), 0)

    def test_each_container_gets_an_empty_vf(self):
        device = next(self.kubelet.lists('vgpu.org/small')).devices[0].ID
        for _ in range(2):
            answer = self.kubelet.allocate('vgpu.org/small', device)
            self.assertEqual(list(self.host.owners().values()), [f'k8s:lab:device-{device}.0'])
            self.assertEqual(list(answer.envs.values()), [answer.mounts[0].container_path])
            with VfUserClient(answer.mounts[0].host_path) as vf:
                self.assertEqual(vf.read(0, 1 << 20, 16), bytes(16))
                vf.write(0, 1 << 20, b'0123456789abcdef')
                with self.assertRaisesRegex(grpc.RpcError, f'still has {device} open'):
                    self.kubelet.allocate('vgpu.org/small', device)
            wait_for('its end', lambda: not any(vf['attached'] for vf in self.host.ctl('list', '--vfs')['vfs']))

    def test_a_kubelet_that_starts_again_gets_its_registrations(self):
        self.kubelet.stop()
        self.kubelet = OldKubelet(self.directory)
        self.wait_for_registration()
        self.assertEqual(len(next(self.kubelet.lists('vgpu.org/small')).devices), SMALL)

    def test_without_vgpud_nothing_is_allocated(self):
        self.host.stop('vgpud')
        try:
            with self.assertRaisesRegex(grpc.RpcError, 'vgpud does not answer'):
                self.kubelet.allocate('vgpu.org/small', 'gpu0-vf1')
        finally:
            self.host.start_vgpud()
        self.assertEqual(self.host.owners(), {})
