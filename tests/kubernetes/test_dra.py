# SPDX-License-Identifier: MIT
"""vgpu-dra between a real vgpud and an API server that fails in every way: slices, claims, reconcile."""
import concurrent.futures
import os
import re
import signal
import subprocess
import time
import unittest

import yaml

from api_server import DRIVER, NODE, SLICES, ApiServer, faults
from dra_host import LARGE, OLDER, ROOT, SMALL, Host, wait_for
from vfio_user_client import VfUserClient

API_LIMIT_S = 10
MANIFEST = os.path.join(ROOT, 'daemon', 'engines', 'kubernetes', 'deploy', 'vgpu-dra.yaml')


class DraTest(unittest.TestCase):
    """One vgpud for the tests of a class; an API server and a vgpu-dra for each test."""

    options = ()

    @classmethod
    def setUpClass(cls):
        cls.host = Host(cls.__name__)
        cls.host.__enter__()
        cls.addClassCleanup(cls.host.__exit__)

    def setUp(self):
        self.server = ApiServer(self.host.directory).__enter__()
        self.addCleanup(self.server.__exit__)
        self.kubelet = self.host.kubelet
        self.host.start_dra(self.server, *self.options)
        self.addCleanup(self.clean)
        wait_for('the slices', self.server.devices)

    def clean(self):
        if 'dra' in self.host.programs:
            self.host.stop('dra')
        self.host.release_all()

    def prepare(self, claim, **version):
        return self.kubelet.prepare(claim, **version)[claim[1]]

    def unprepare(self, claim, **version):
        return self.kubelet.unprepare(claim, **version)[claim[1]]

    def assert_owner(self, device, claim):
        self.assertEqual(self.host.owners().get(device), f'k8s:lab:{claim[1]}.0')

    def wait_for_log(self, text, since):
        wait_for(f'"{text}" in the log', lambda: text in self.host.log()[since:])

    def log_size(self):
        return len(self.host.log())


class Slices(DraTest):
    def test_every_vf_is_a_device_with_its_profile_and_memory(self):
        devices = self.server.devices()
        profiles = [device['attributes']['profile']['string'] for device in devices.values()]
        self.assertEqual((profiles.count('small'), profiles.count('large')), (SMALL, LARGE))
        large = next(d for d in devices.values() if d['attributes']['profile']['string'] == 'large')
        self.assertEqual(large['capacity']['memory']['value'], '256Mi')
        self.assertEqual(large['attributes']['gpu']['string'], 'gpu0')
        spec = next(iter(self.server.slices.values()))
        self.assertEqual(spec['metadata']['ownerReferences'][0]['uid'], 'node-' + NODE)
        self.assertEqual(spec['spec']['nodeName'], NODE)

    def test_a_vf_that_goes_or_is_taken_by_others_is_no_device_in_the_next_generation(self):
        generation = self.server.generation()
        self.host.ctl('claim', 'small-1', '--owner', 'libvirt:vm1')
        wait_for('one device less', lambda: len(self.server.devices()) == SMALL + LARGE - 1)
        self.assertEqual(self.server.generation(), generation + 1)
        self.host.release_all()
        wait_for('all devices', lambda: len(self.server.devices()) == SMALL + LARGE)
        self.assertEqual(self.server.generation(), generation + 2)

    def test_an_idle_host_asks_the_api_server_nothing(self):
        self.kubelet.notify()
        count = len(wait_for('the resync', lambda: len(self.server.requests) > 4 and self.server.requests))
        claim = self.server.add_claim('quiet', ['gpu0-vf1'])
        self.prepare(claim)
        self.unprepare(claim)
        time.sleep(2)
        extra = [path for _, path in self.server.requests[count:] if path.startswith(SLICES)]
        self.assertLessEqual(len(extra), 1, extra)

    def test_a_gpu_that_is_away_has_a_taint_and_loses_it_afterwards(self):
        os.kill(self.softgpu(), signal.SIGSTOP)
        self.addCleanup(self.resume)
        taint = wait_for('a taint', lambda: next((d['taints'][0] for d in self.server.devices().values()
                                                  if d.get('taints')), None))
        self.assertEqual((taint['key'], taint['effect']), ('vgpu.org/gpu', {
            'device-lost': 'NoExecute', 'failed': 'NoExecute'}.get(taint['value'], 'NoSchedule')))
        self.resume()
        wait_for('no taint', lambda: len(self.server.devices()) == SMALL + LARGE and not any(
            d.get('taints') for d in self.server.devices().values()))

    def softgpu(self):
        return self.host.ctl('list', '--gpus')['gpus'][0]['softgpu_pid']

    def resume(self):
        os.kill(self.softgpu(), signal.SIGCONT)

    def test_slices_that_the_kubelet_removed_are_made_again_when_it_registers_the_driver(self):
        self.server.slices.clear()
        self.kubelet.notify()
        wait_for('the slices', self.server.devices)

    def test_a_write_of_somebody_else_in_between_is_no_harm(self):
        meddled = []

        def meddle(handler, body):
            if handler.command == 'PUT' and len(meddled) < 2:
                meddled.append(handler.path)
                for one in self.server.slices.values():
                    self.server.version += 1
                    one['metadata']['resourceVersion'] = str(self.server.version)
            handler.send(*handler.answer(body))
        self.server.fault = meddle
        self.host.ctl('claim', 'small-2', '--owner', 'libvirt:vm1')
        wait_for('one device less', lambda: len(self.server.devices()) == SMALL + LARGE - 1)
        self.assertEqual(len(meddled), 2)

    def test_every_fault_of_the_api_server_is_outlived(self):
        for number, fault in enumerate((faults.status(500), faults.status(503, ''), faults.status(404, '404 page not found'),
                                        faults.in_part, faults.cut, faults.half_a_document)):
            with self.subTest(number=number):
                size = self.log_size()
                self.server.fault = fault
                self.host.ctl('claim', 'large-1', '--owner', 'libvirt:vm1')
                wait_for('a line in the log', lambda: self.log_size() > size)
                self.server.fault = None
                wait_for('one device less', lambda: len(self.server.devices()) == SMALL + LARGE - 1)
                self.host.release_all()
                wait_for('all devices', lambda: len(self.server.devices()) == SMALL + LARGE)

    def test_an_api_server_of_another_version_is_named(self):
        size = self.log_size()
        self.server.fault = faults.status(404, '404 page not found')
        self.kubelet.notify()
        self.wait_for_log('needs Kubernetes 1.34 or later', size)

    def test_a_new_token_is_used_at_once(self):
        self.server.set_token('second')
        claim = self.server.add_claim('token', ['gpu0-vf1'])
        self.assertEqual(self.prepare(claim).error, '')

    def test_slices_stay_at_a_stop(self):
        self.assertEqual(self.host.stop('dra'), 0)
        self.assertEqual(len(self.server.devices()), SMALL + LARGE)


class Withdraw(DraTest):
    options = ('--withdraw',)

    def test_slices_go_at_a_stop_if_asked(self):
        self.assertEqual(self.host.stop('dra'), 0)
        self.assertEqual(self.server.slices, {})

    def test_the_manifest_gives_the_rights_that_are_used_and_no_others(self):
        self.host.ctl('claim', 'small-1', '--owner', 'libvirt:vm1')
        wait_for('a write', lambda: 'PUT' in self.server.writes())
        self.prepare(self.server.add_claim('train', ['gpu0-vf2']))
        self.host.stop('dra')
        used = {self.right(method, path) for method, path in self.server.requests}
        with open(MANIFEST, encoding='utf-8') as file:
            role = next(one for one in yaml.safe_load_all(file) if one['kind'] == 'ClusterRole')
        given = {(group, resource, verb) for rule in role['rules'] for group in rule['apiGroups']
                 for resource in rule['resources'] for verb in rule['verbs']}
        self.assertEqual(used, given)

    @staticmethod
    def right(method, path):
        """(API group, resource, verb) of a request."""
        parts = path.partition('?')[0].split('/')
        group, rest = ('', parts[3:]) if parts[1] == 'api' else (parts[2], parts[4:])
        rest = rest[2:] if rest[0] == 'namespaces' else rest
        verb = {'GET': 'get' if len(rest) > 1 else 'list', 'POST': 'create', 'PUT': 'update', 'DELETE': 'delete'}[method]
        return group, rest[0], verb


class Prepare(DraTest):
    def test_the_kubelet_registers_a_driver_for_both_versions(self):
        info = self.kubelet.info()
        self.assertEqual((info.type, info.name), ('DRAPlugin', DRIVER))
        self.assertEqual(list(info.supported_versions), ['v1.DRAPlugin', 'v1beta1.DRAPlugin'])
        self.kubelet.notify()
        size = self.log_size()
        self.kubelet.notify('no such version')
        self.wait_for_log(f'the kubelet refuses the driver {DRIVER}: no such version', size)

    def test_a_claim_gets_its_vf_and_gives_it_back_empty(self):
        for version in ({}, OLDER):
            with self.subTest(version=version):
                claim = self.server.add_claim('train', ['gpu0-vf2'])
                answer = self.prepare(claim, **version)
                self.assertEqual(answer.error, '')
                self.assert_owner('gpu0-vf2', claim)
                device, = answer.devices
                self.assertEqual((list(device.request_names), device.pool_name, device.device_name),
                                 (['gpu'], NODE, 'gpu0-vf2'))
                spec = self.host.spec(claim[1])
                self.assertEqual({f'vgpu.org/vf={one["name"]}' for one in spec['devices']}, set(device.cdi_device_ids))
                self.use(spec)
                self.assertEqual(self.unprepare(claim, **version).error, '')
                self.assertEqual(self.host.owners(), {})
                self.assertIsNone(self.host.spec(claim[1]))

    def use(self, spec):
        """Checks that the socket of the specification leads to a VF with zeroed memory; writes to
        it."""
        edits = spec['devices'][0]['containerEdits']
        self.assertEqual(edits['env'], ['VGPU_SOCKET_GPU0_VF2=' + edits['mounts'][0]['containerPath']])
        with VfUserClient(edits['mounts'][0]['hostPath']) as vf:
            self.assertEqual(vf.read(0, 1 << 20, 16), bytes(16))
            vf.write(0, 1 << 20, b'0123456789abcdef')

    def test_prepare_and_unprepare_may_come_twice_and_at_once(self):
        claim = self.server.add_claim('twice', ['gpu0-vf1', 'gpu0-vf3'])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.prepare(claim), range(8)))
        self.assertEqual({str(answer) for answer in answers}, {str(answers[0])})
        self.assertEqual(answers[0].error, '')
        self.assertEqual(len(self.host.owners()), 2)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual({answer.error for answer in pool.map(lambda _: self.unprepare(claim), range(8))}, {''})
        self.assertEqual(self.host.owners(), {})

    def test_a_claim_that_fails_says_why_and_leaves_the_others_alone(self):
        good = self.server.add_claim('good', ['gpu0-vf1'])
        gone = ('default', '00000000-0000-0000-0000-000000000001', 'gone')
        again = self.server.add_claim('again', ['gpu0-vf2'])
        old = (again[0], '00000000-0000-0000-0000-000000000002', again[2])
        elsewhere = self.server.add_claim('elsewhere', ['gpu0-vf3'], pool='worker-2')
        unknown = self.server.add_claim('unknown', ['gpu0-vf99'])
        answers = self.kubelet.prepare(good, gone, old, elsewhere, unknown)
        self.assertEqual(answers[good[1]].error, '')
        for claim, words in ((gone, 'there is no such claim'), (old, 'was deleted and recreated'),
                             (elsewhere, "in pool 'worker-2'"), (unknown, 'no device gpu0-vf99')):
            self.assertIn(words, answers[claim[1]].error)
        self.assertEqual(list(self.host.owners()), ['gpu0-vf1'])

    def test_two_claims_for_one_device_cannot_both_have_it(self):
        first, second = (self.server.add_claim(name, ['gpu0-vf1']) for name in ('first', 'second'))
        self.assertEqual(self.prepare(first).error, '')
        self.assertIn(f"belongs to 'k8s:lab:{first[1]}.0'", self.prepare(second).error)
        self.assert_owner('gpu0-vf1', first)

    def test_an_api_server_that_fails_makes_an_error_and_no_claim(self):
        claim = self.server.add_claim('fails', ['gpu0-vf1'])
        self.server.fault_on = lambda method, path: 'resourceclaims' in path
        for fault, words in ((faults.status(500), 'etcd is away'), (faults.in_part, 'does not answer'),
                             (faults.cut, 'does not answer'), (faults.half_a_document, 'does not show it'),
                             (faults.late(API_LIMIT_S + 5), 'does not answer')):
            self.server.fault = fault
            self.assertIn(words, self.prepare(claim).error)
            self.assertEqual(self.host.owners(), {})
        self.server.fault = None
        self.assertEqual(self.prepare(claim).error, '')

    def test_unprepare_needs_no_api_server(self):
        claim = self.server.add_claim('train', ['gpu0-vf1'])
        self.assertEqual(self.prepare(claim).error, '')
        self.server.fault = faults.cut
        self.assertEqual(self.unprepare(claim).error, '')
        self.assertEqual(self.host.owners(), {})

    def test_claims_outlive_vgpu_dra_and_vgpud(self):
        claim = self.server.add_claim('long', ['gpu0-vf1'])
        self.assertEqual(self.prepare(claim).error, '')
        self.host.kill('dra')
        self.host.kill('vgpud')
        self.host.start_dra(self.server)
        self.assertIn('vgpud does not answer', self.prepare(claim).error)
        self.host.start_vgpud()
        self.assertEqual(self.prepare(claim).error, '')
        self.assert_owner('gpu0-vf1', claim)
        wait_for('all devices', lambda: len(self.server.devices()) == SMALL + LARGE and not any(
            d.get('taints') for d in self.server.devices().values()))

    def test_a_prepare_waits_for_a_vgpud_that_starts(self):
        claim = self.server.add_claim('early', ['gpu0-vf1'])
        self.host.stop('vgpud')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.prepare, claim)
            self.host.start_vgpud()
            self.assertRegex(answer.result().error, r"^$|no device gpu0-vf1")
        self.assertEqual(self.prepare(claim).error, '')

    def test_a_second_vgpu_dra_on_the_host_refuses_by_name(self):
        done = subprocess.run(self.host.dra_words(self.server, '--node', 'worker-9'), capture_output=True, text=True,
                              timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf'another vgpu-dra \(node {NODE}, pid \d+\) serves {re.escape(DRIVER)}')
        self.assertEqual(self.kubelet.info().name, DRIVER)


class Reconcile(DraTest):
    def setUp(self):
        super().setUp()
        self.claim = self.server.add_claim('train', ['gpu0-vf1'])
        self.assertEqual(self.prepare(self.claim).error, '')

    def reconcile(self):
        """Starts a reconcile pass and waits until it has looked up the claim."""
        count = len(self.server.requests)
        self.kubelet.notify()
        wait_for('the claim to be looked up', lambda: any(
            'resourceclaims' in path for _, path in self.server.requests[count:]))

    def test_a_claim_that_is_gone_ends(self):
        self.server.claims.clear()
        self.reconcile()
        wait_for('no claim', lambda: not self.host.owners())
        self.assertIsNone(self.host.spec(self.claim[1]))

    def test_a_claim_whose_name_has_a_later_one_ends(self):
        self.server.add_claim('train', ['gpu0-vf2'])
        self.reconcile()
        wait_for('no claim', lambda: not self.host.owners())

    def test_claims_that_went_while_vgpu_dra_was_away_end_at_its_start(self):
        self.host.kill('dra')
        self.server.claims.clear()
        self.host.start_dra(self.server)
        wait_for('no claim', lambda: not self.host.owners())

    def test_no_fault_of_the_api_server_ends_a_claim(self):
        self.server.claims.clear()
        self.server.fault_on = lambda method, path: 'resourceclaims' in path
        for fault in (faults.status(500), faults.status(404, '404 page not found'), faults.status(403, '{}'),
                      faults.in_part, faults.cut, faults.half_a_document, faults.late(API_LIMIT_S + 5)):
            size = self.log_size()
            self.server.fault = fault
            self.kubelet.notify()
            wait_for('a line about the claim', lambda: re.search(
                'does not say whether|does not answer', self.host.log()[size:]))
            self.assert_owner('gpu0-vf1', self.claim)

    def test_a_guest_that_runs_keeps_its_vf(self):
        socket = self.host.spec(self.claim[1])['devices'][0]['containerEdits']['mounts'][0]['hostPath']
        self.server.claims.clear()
        with VfUserClient(socket) as vf:
            vf.write(0, 1 << 20, b'0123456789abcdef')
            for _ in range(3):
                self.reconcile()
                self.assert_owner('gpu0-vf1', self.claim)
            self.assertEqual(vf.read(0, 1 << 20, 16), b'0123456789abcdef')
        wait_for('its end', lambda: not any(vf['attached'] for vf in self.host.ctl('list', '--vfs')['vfs']))
        self.reconcile()
        wait_for('no claim', lambda: not self.host.owners())
