# SPDX-License-Identifier: MIT
"""A minimal API server for vgpu-dra: ResourceSlices, ResourceClaims and Nodes over TLS, with
resource versions, the error texts of Kubernetes, and faults.

    with ApiServer(directory) as server:
        server.add_claim('train', devices=['gpu0-vf1'])
        server.fault = faults.status(500)
"""
import contextlib
import copy
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid

GROUP = '/apis/resource.k8s.io/v1'
SLICES = GROUP + '/resourceslices'
DRIVER = 'gpu.vgpu.org'
NODE = 'worker-1'


class faults:
    """Faults of the server: each is a function of (handler, body) that answers in a wrong way."""

    @staticmethod
    def status(code, text='{"kind":"Status","message":"etcd is away"}'):
        return lambda handler, body: handler.send(code, text.encode())

    @staticmethod
    def late(seconds):
        """The right answer, too late."""
        def answer(handler, body):
            handler.server.owner.over.wait(seconds)
            with contextlib.suppress(OSError):
                handler.send(*handler.answer(body))
        return answer

    @staticmethod
    def in_part(handler, body):
        """The connection is cut after half of the answer."""
        code, text = handler.answer(body)
        handler.send(code, text[:len(text) // 2], length=len(text))
        handler.close_connection = True

    @staticmethod
    def cut(handler, body):
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def half_a_document(handler, body):
        """A complete HTTP answer with half of the document."""
        code, text = handler.answer(body)
        handler.send(code, text[:len(text) // 2])


def refusal(code, reason, kind, name):
    return code, json.dumps({'kind': 'Status', 'status': 'Failure', 'code': code, 'reason': reason,
                             'message': f'{kind}.resource.k8s.io "{name}" {reason}',
                             'details': {'kind': kind, 'name': name}}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def send(self, code, text, length=None):
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text) if length is None else length))
        self.end_headers()
        self.wfile.write(text)

    def answer(self, body):
        return self.server.owner.answer(self.command, self.path, body, self.headers.get('Authorization', ''))

    def serve(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        owner = self.server.owner
        owner.requests.append((self.command, self.path))
        if owner.fault is not None and owner.fault_on(self.command, self.path):
            return owner.fault(self, body)
        return self.send(*self.answer(body))

    do_GET = do_POST = do_PUT = do_DELETE = serve

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Prints nothing: clients that disconnect are part of the tests."""


class ApiServer:
    def __init__(self, directory):
        self.key, self.certificate = (os.path.join(directory, name) for name in ('key.pem', 'ca.pem'))
        self.token_file = os.path.join(directory, 'token')
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
                        '-keyout', self.key, '-out', self.certificate, '-days', '2', '-subj', '/CN=api',
                        '-addext', 'subjectAltName=IP:127.0.0.1'], check=True, capture_output=True)
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.version = 100
        self.slices, self.claims = {}, {}
        self.requests = []
        self.fault = None
        self.fault_on = lambda method, path: True
        self.set_token('first')
        self.server = Server(('127.0.0.1', 0), Handler)
        self.server.owner = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f'https://127.0.0.1:{self.server.server_address[1]}'

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()

    def set_token(self, token):
        self.token = token
        with open(self.token_file, 'w', encoding='utf-8') as file:
            file.write(token + '\n')

    def options(self):
        return ['--server', self.url, '--token-file', self.token_file, '--ca-file', self.certificate]

    # --- what tests change and see

    def add_claim(self, name, devices, uid=None, namespace='default', pool=NODE, request='gpu', annotations=None):
        """Makes or replaces a claim with these devices allocated; returns (namespace, uid, name)."""
        uid = uid or str(uuid.uuid4())
        self.claims[namespace, name] = {
            'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim',
            'metadata': {'namespace': namespace, 'name': name, 'uid': uid, 'annotations': annotations or {}},
            'status': {'allocation': {'devices': {'results': [
                {'request': request, 'driver': DRIVER, 'pool': pool, 'device': device} for device in devices]}}}}
        return namespace, uid, name

    def devices(self):
        """{name: device} of the pool; {} unless all slices of its newest generation exist."""
        with self.lock:
            slices = copy.deepcopy(list(self.slices.values()))
        if not slices:
            return {}
        newest = max(one['spec']['pool']['generation'] for one in slices)
        slices = [one for one in slices if one['spec']['pool']['generation'] == newest]
        if any(one['spec']['pool']['resourceSliceCount'] != len(slices) for one in slices):
            return {}
        return {device['name']: device for one in slices for device in one['spec']['devices']}

    def generation(self):
        return max((one['spec']['pool']['generation'] for one in self.slices.values()), default=0)

    def writes(self):
        return [method for method, path in self.requests if method != 'GET' and path.startswith(SLICES)]

    # --- answers

    def answer(self, method, path, body, authorization):
        if authorization != 'Bearer ' + self.token:
            return refusal(401, 'Unauthorized', 'tokens', '')
        url = urllib.parse.urlparse(path)
        parts = url.path.split('/')
        with self.lock:
            if url.path.startswith(SLICES):
                return self.slice_answer(method, url, parts[-1], body)
            if method == 'GET' and parts[1:4] == ['api', 'v1', 'nodes']:
                return 200, json.dumps({'kind': 'Node', 'metadata': {'name': parts[4], 'uid': 'node-' + parts[4]}}).encode()
            if method == 'GET' and parts[4:5] == ['namespaces'] and parts[6:7] == ['resourceclaims']:
                claim = self.claims.get((parts[5], parts[7]))
                return (200, json.dumps(claim).encode()) if claim else refusal(404, 'NotFound', 'resourceclaims', parts[7])
        return 404, b'404 page not found\n'

    def slice_answer(self, method, url, name, body):
        if method == 'GET':
            wanted = dict(word.split('=') for word in urllib.parse.parse_qs(url.query)['fieldSelector'][0].split(','))
            found = [one for one in self.slices.values() if one['spec']['driver'] == wanted['spec.driver'] and
                     one['spec']['nodeName'] == wanted['spec.nodeName']]
            return 200, json.dumps({'kind': 'ResourceSliceList', 'apiVersion': 'resource.k8s.io/v1', 'metadata': {},
                                    'items': found}).encode()
        if method == 'DELETE':
            return (200, b'{}') if self.slices.pop(name, None) else refusal(404, 'NotFound', 'resourceslices', name)
        new = json.loads(body)
        name = new['metadata']['name']
        old = self.slices.get(name)
        if method == 'POST' and old:
            return refusal(409, 'AlreadyExists', 'resourceslices', name)
        if method == 'PUT' and not old:
            return refusal(404, 'NotFound', 'resourceslices', name)
        if old and old['metadata']['resourceVersion'] != new['metadata'].get('resourceVersion'):
            return refusal(409, 'Conflict', 'resourceslices', name)
        self.version += 1
        new['metadata']['resourceVersion'] = str(self.version)
        for device in new['spec']['devices']:
            for taint in device.get('taints', []):
                taint['timeAdded'] = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        self.slices[name] = new
        return 200 if old else 201, json.dumps(new).encode()
