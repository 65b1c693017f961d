#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/fuzz/corpus: inputs that reach what random bytes seldom find.

Run by hand after a change of an input format; the files are part of the tree.
"""
import json
import pathlib
import struct
import subprocess

CORPUS = pathlib.Path(__file__).parent / "corpus"
FOREVER = 0xFFF << 16


def write(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# --- sdma: a byte (budget; 16: the kernel's ring), then packets
SCRATCH = 0xC040 * 4  # byte offset of the register that changes while a packet waits
MEM = 1 << 31
EQUAL, NOT_EQUAL = 3 << 28, 4 << 28


def sdma(name, how, *dwords):
    write("sdma", name, bytes([how]) + struct.pack(f"<{len(dwords)}I", *dwords))


def poll(header, address, reference, last):
    return (8 | header, address, 0, reference, 0xFFFFFFFF, last)


FENCE = (5, 0x8000, 0, 0x1234)
TIMESTAMPS = (13, 0x100, 0, 13 | 1 << 8, 0x8008, 0, 13 | 2 << 8, 0x8010, 0)
TRAP = (6, 7)
INDIRECT = (4, 0, 0, 16, 0, 0)

for ring, how in (("user", 0x04), ("kernel", 0x14)):
    # virtual addresses of VMID 0 begin with VRAM at 0xf4_00000000
    sdma(f"{ring}-poll-memory", how, *poll(MEM | EQUAL, 0, 0x5555, FOREVER), *FENCE, *TRAP)
    sdma(f"{ring}-poll-memory-changed", how, *poll(MEM | NOT_EQUAL, 0, 8, FOREVER), *FENCE)
    sdma(f"{ring}-poll-memory-retries", how, *poll(MEM | EQUAL, 0, 1, 5 << 16), *FENCE, *TRAP)
    sdma(f"{ring}-poll-register", how, *poll(EQUAL, SCRATCH, 0x5555, FOREVER), *FENCE, *TRAP)
    sdma(f"{ring}-poll-register-retries", how, *poll(EQUAL, SCRATCH, 1, 5 << 16), *FENCE)
    sdma(f"{ring}-hdp-flush", how, 8 | 1 << 26, SCRATCH, SCRATCH + 4, 0x5555, 0xFFFFFFFF, 0, *FENCE)
    sdma(f"{ring}-timestamps", how, *TIMESTAMPS, *TRAP)
    sdma(f"{ring}-register-write", how, 14 | 0xF << 28, SCRATCH // 4, 0x5555, *TRAP)
    sdma(f"{ring}-indirect", how, *TRAP, *TIMESTAMPS[3:6], *INDIRECT)
    sdma(f"{ring}-semaphore", how, 7 | 1 << 30, 0x8000, 0, 7, 0x8000, 0, 7, 0x8000, 0)
    sdma(f"{ring}-conditional", how, 9, 0, 0, 1, 4, *FENCE, *TRAP)
    sdma(f"{ring}-atomic", how, 10 | 0x2F << 25, 0x8000, 0, 1, 0, 0, 0, 0, *TRAP)

# the kernel's own addresses
VRAM_HI = 0xF4


def at_vram(packet):
    return (packet[0], packet[1], VRAM_HI) + tuple(packet[3:])


KERNEL = 0x14
STAMPS = sum((at_vram(TIMESTAMPS[i:i + 3]) for i in (3, 6)), TIMESTAMPS[0:3])
sdma("kernel-vram-timestamps", KERNEL, *STAMPS, *at_vram(FENCE), *TRAP)
sdma("kernel-vram-poll", KERNEL, *at_vram(poll(MEM | EQUAL, 0, 0x5555, FOREVER)), *at_vram(FENCE))
sdma("kernel-vram-indirect", KERNEL, *at_vram(INDIRECT), *TRAP, *STAMPS)
sdma("kernel-user-indirect", KERNEL, 4 | 8 << 16, 0, 0, 16, 0, 0, *TRAP)

# --- uapi: messages of flags, length, operation, bytes
HEAD, WELL_FORMED, LONG, GUEST, DEVICE, VERY_LONG, VF = 1, 4, 8, 16, 32, 64, 128
FAULT, FLR_HANGS, GONE, BACK, ATTACH, INTERRUPTS = range(6)
GET_INFO, RELEASE, CONTROL, DUMP = 1, 4, 6, 14
IDLE, SAVE, LOAD, RUN = range(4)
LOST, ABORTED, LATE = 0, 4, 8


def message(how, operation, *body):
    return struct.pack("<BHB", how, len(body), operation) + bytes(body)


def device(what, value, how=0):
    return message(DEVICE | how, what, 0, value)


def work(how=LONG):
    return message(GUEST | how, 0, 0, 2)


def control(action, how=LONG):
    return message(HEAD | WELL_FORMED | how, CONTROL, *struct.pack("<4I", 16, 1, 1, action))


def uapi(name, *messages):
    first = bytes([messages[0][0] | VF]) + messages[0][1:]
    write("uapi", name, first + b"".join(messages[1:]))


for step in (IDLE, SAVE, LOAD, RUN):
    for kind, word in ((LOST, "lost"), (ABORTED, "aborted"), (LATE, "late")):
        uapi(f"hang-{('idle', 'save', 'load', 'run')[step]}-{word}", device(FAULT, step | kind),
             work(VERY_LONG), control(1, VERY_LONG), control(2), work(VERY_LONG))
uapi("whole-reset", device(FLR_HANGS, 1), device(FAULT, RUN | LOST), work(VERY_LONG),
     work(VERY_LONG), device(FLR_HANGS, 0), work(VERY_LONG))
uapi("whole-reset-by-operator", device(FLR_HANGS, 1), control(4, VERY_LONG), work(VERY_LONG))
uapi("device-lost-and-back", device(GONE, 0, LONG), message(HEAD | WELL_FORMED, GET_INFO, 0),
     device(BACK, 0, LONG), work(VERY_LONG))
uapi("device-lost-and-new", device(GONE, 0, LONG), control(1), device(BACK, 1, LONG),
     work(VERY_LONG))
uapi("device-lost-in-scrub", message(HEAD | WELL_FORMED, RELEASE, *struct.pack("<4I", 16, 1, 1, 0)),
     device(GONE, 0), device(BACK, 1, VERY_LONG))
uapi("attach-detach", device(ATTACH, 1, LONG), work(), device(ATTACH, 0, VERY_LONG), work())
uapi("interrupts-lost", device(INTERRUPTS, 1), work(VERY_LONG), control(4, VERY_LONG))
uapi("reset", control(4, VERY_LONG), work())


# --- agent: the lines of a connection, from the examples of the schema
EXAMPLES = CORPUS.resolve().parents[2] / "schemas" / "examples"


def line(example, **changes):
    document = json.loads((EXAMPLES / f"{example}.json").read_text()) | changes
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


welcomed = line("valid/vf-agent-hello", welcomed=True)
write("agent", "hello", welcomed)
write("agent", "status", welcomed + line("valid/vf-agent-status"))
write("agent", "result", welcomed + line("valid/vf-agent-result"))
write("agent", "wrong-type", welcomed + line("invalid/vf-agent-result-type"))
write("agent", "conversation", b"\n" + line("valid/vf-agent-hello") + welcomed +
      line("valid/vf-agent-status") + line("valid/vf-agent-result"))


# --- state: a byte of flags, then a file or damage to one (state_fuzz.cpp)
GPU, APPLY, DAMAGED_GPU, DAMAGED_APPLY = range(4)


def state(name, how, data):
    write("state", name, bytes([how]) + data)


STATE_GPU = (EXAMPLES / "valid" / "vgpud-state-gpu.json").read_bytes()
STATE_APPLY = (EXAMPLES / "valid" / "vgpud-state-apply.json").read_bytes()
state("gpu", GPU, STATE_GPU)
state("gpu-of-another-name", GPU, STATE_GPU.replace(b'"gpu": "gpu0"', b'"gpu": "gpu7"'))
state("gpu-newer", GPU, STATE_GPU.replace(b'"version": 1', b'"version": 2'))
state("gpu-wrong-type", GPU, STATE_GPU.replace(b'"weight": 100', b'"weight": "x"'))
state("apply", APPLY, STATE_APPLY)
state("apply-empty", APPLY, b'{"schema": "vgpud-apply", "version": 1}')
state("damaged-gpu", DAMAGED_GPU, bytes([0, 90, 1, 1, 0, 2]))
state("cut-apply", DAMAGED_APPLY, bytes([255, 255, 0]))

# --- domain: a byte that chooses the added VFs, then the XML of a domain (domain_fuzz.cpp)
NAMESPACE = "xmlns:vgpu='urn:vgpu:libvirt:1'"
QEMU = "xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'"
HEAD_OF_DOMAIN = "<name>vm1</name><uuid>4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10</uuid>"
MACHINE = "<os><type machine='pc-q35-9.2'>hvm</type></os>"


def domain(name, which, inside, attributes=""):
    write("domain", name, bytes([which]) + f"<domain {attributes}>{HEAD_OF_DOMAIN}{inside}</domain>".encode())


def argument(value):
    return f"<qemu:arg value='{value}'/>"


domain("plain", 1, MACHINE)
domain("one", 2, f"<metadata><vgpu:vf {NAMESPACE} name='train'/></metadata>" + MACHINE)
domain("several", 3, f"<metadata><vgpu:vfs {NAMESPACE}><vgpu:vf name='a'/><vgpu:vf profile='b'/></vgpu:vfs></metadata>")
domain("wrong-word", 0, f"<metadata><vgpu:vf {NAMESPACE} name='a' profile='b'/><vgpu:cards {NAMESPACE}/></metadata>")
domain("host-device", 0x86, "<devices><hostdev type='pci'><source><address domain='0x0000' bus='0x03' slot='0x00' "
       "function='0x1'/></source><alias name='ua-vgpu0'/></hostdev></devices>")
domain("label", 1, "<seclabel model='dac'><label>+64055:+64055</label></seclabel>")
domain("slots", 3, MACHINE + "<devices>" + "".join(
    f"<disk><address type='pci' bus='0x00' slot='{slot:#x}'/></disk>" for slot in range(0x10, 0x17)) + "</devices>")
domain("arguments", 2, "<qemu:commandline>" + argument("-device") + argument(
    '{"driver": "vfio-user-pci", "socket": {"path": "/run/vgpu/vm/x/0.sock"}}') + argument("-blockdev") + argument(
    '{"node-name": "vgpu-vf-is-never-saved"}') + argument("-device") + argument('{"driver": 1, "socket": {"path": 1}}') +
    argument("-snapshot") + "</qemu:commandline>", QEMU)
domain("prefix-of-another", 1, MACHINE, "xmlns:qemu='urn:another'")
domain("memory", 1, "<memoryBacking><source type='file'/><access mode='private'/></memoryBacking>")

# --- libvirt: lines of vgpu-libvirt
UUID = "4dea22b3-1d52-4d8f-8a0e-8f1f0c4b7f10"


def lines(*documents):
    return b"".join(json.dumps(one).encode() + b"\n" for one in documents)


VM = {"uuid": UUID, "name": "vm1", "active": False}
write("libvirt", "all", lines({"domains": [VM, VM | {"uuid": UUID.replace("4", "5")}]}, {"domain": VM | {"active": True}}))
write("libvirt", "removed", lines({"domains": [VM]}, {"removed": UUID}, {"lost": "no connection"}))
write("libvirt", "control-letters", lines({"domain": VM | {"name": "a\x1b[2Jb\u00e9" * 40}}, {"domains": [1, {}]}))

# --- slurm: a byte for the kind of text (slurm_fuzz.cpp), then the text
GRES, JOB, QUEUE, NODE, STEPS, NAMES = range(6)


def slurm(name, kind, text):
    write("slurm", name, bytes([kind]) + text.encode())


slurm("gres", GRES, "gpu:tesla:1,vgpu:large:4,vgpu:small(CNT:2),vgpu:x:3(IDX:0-2)")
slurm("gres-nobodys", GRES, "vgpu:8,vgpu(CNT:1),vgpu:a:4294967295")
slurm("job", JOB, "JobId=17 JobName=wrap UserId=ada(1000) GroupId=users(100) JobState=RUNNING Restarts=2 "
      "NodeList=n[016-018] CoreSpec=* JOB_GRES=vgpu:small:4   Nodes=n[016,018] CPU_IDs=0 Mem=0 GRES=vgpu:a:1   "
      "Nodes=n017 CPU_IDs=0 Mem=0 GRES=vgpu:small(CNT:2) MinCPUsNode=1 Command=(null)\n")
slurm("queue", QUEUE, f"{'17':<20}{'2':<20}{'R':<20}\n{'18':<20}{'0':<20}{'PD':<20}\n")
slurm("node", NODE, "NodeName=n017 Gres=gpu:1,vgpu:small:8 State=IDLE+DRAIN Reason=vgpu: gpu0 is pf-lost [root@x]\n")
slurm("steps", STEPS, "Active Steps             = 17.0, 17.batch, 18\nVersion = 22.05.8\n")
slurm("hosts", NAMES, "m[1-2]-n[1-10],n[1-20],n017")
slurm("cluster", NAMES, "# slurm.conf\n ClusterName = lab # ours\n")
slurm("owner", NAMES, "slurm:lab:17.2")

# --- kubernetes: a byte for the subject of the answer (kubernetes_fuzz.cpp), then JSON
FOUND, MISSING, FAILED, SLICES = range(4)
DEVICE = {"request": "gpu/small", "driver": "gpu.vgpu.org", "pool": "worker-1", "device": "gpu0-vf1"}
CLAIM = {"kind": "ResourceClaim", "metadata": {
    "namespace": "default", "name": "train", "uid": "c7e7b22e-239b-4498-b27c-7f1344481e14",
    "annotations": {"resource.kubernetes.io/pod-claim-name": "card"}}}


def allocated(**allocation):
    return CLAIM | {"status": {"allocation": {"devices": {"results": [DEVICE, DEVICE | {"device": "gpu0-vf2"}]} | allocation}}}


def kubernetes(name, kind, document):
    write("kubernetes", name, bytes([kind]) + json.dumps(document).encode())


kubernetes("claim", FOUND, allocated())
kubernetes("claim-with-parameters", FOUND, allocated(config=[{"opaque": {"driver": "gpu.vgpu.org"}}]))
kubernetes("claim-of-another-host", FOUND, allocated(results=[DEVICE | {"pool": "worker-2"}]))
kubernetes("claim-of-an-administrator", FOUND, allocated(results=[DEVICE | {"adminAccess": True}]))
kubernetes("later-claim", FOUND, CLAIM | {"metadata": CLAIM["metadata"] | {"uid": UUID}})
STATUS = {"kind": "Status", "reason": "NotFound", "message": "no", "details": {"kind": "resourceclaims", "name": "train"}}
kubernetes("no-claim", MISSING, STATUS)
kubernetes("refused", FAILED, STATUS)
SLICE = {"metadata": {"name": "worker-1-gpu.vgpu.org-0", "resourceVersion": "7"}, "spec": {
    "driver": "gpu.vgpu.org", "nodeName": "worker-1", "pool": {
        "name": "worker-1", "generation": 3, "resourceSliceCount": 1}, "devices": [{
            "name": "gpu0-vf1", "attributes": {"gpu": {"string": "gpu0"}, "weight": {"int": 100}, "x": {"bool": True}},
            "capacity": {"memory": {"value": "64Mi"}},
            "taints": [{"key": "vgpu.org/state", "value": "pf-lost", "effect": "NoSchedule"}]}]}}
kubernetes("slices", SLICES, {"kind": "ResourceSliceList", "items": [SLICE]})

# --- stream: a byte of errors of the head, then sections (stream_fuzz.cpp)
STATE, VRAM, ZERO, END = range(1, 5)
GIVEN_OFFSET, GIVEN_BYTES, DAMAGED, CUT, IN_MIB, REST = 1, 2, 4, 8, 16, 32


def section(kind, how=0, count=0, more=b""):
    return struct.pack("<BBH", kind, how, count) + more


def stream(name, head, *sections):
    write("stream", name, head + b"".join(sections))


stream("whole", b"\x10", section(STATE, 0, 500), section(VRAM, IN_MIB, 1), section(ZERO, REST), section(END))
stream("whole-of-large-state", b"\0", section(STATE, IN_MIB, 1), section(ZERO, REST), section(END))
stream("ends-early", b"\0", section(STATE, 0, 9), section(ZERO, IN_MIB, 3), section(END))
stream("cut", b"\0", section(STATE, 0, 500), section(VRAM, IN_MIB | CUT, 1))
stream("damaged", b"\0", section(STATE, 0, 500), section(VRAM, DAMAGED, 4096))
stream("out-of-order", b"\0", section(VRAM, 0, 4096), section(STATE, 0, 9))
stream("twice", b"\0", section(STATE, 0, 9), section(STATE, 0, 9))
stream("beyond", b"\0", section(STATE, 0, 9), section(ZERO, GIVEN_BYTES, 0, struct.pack("<Q", 2 ** 64 - 1)))
stream("elsewhere", b"\0", section(STATE, 0, 9), section(ZERO, GIVEN_OFFSET, 64, struct.pack("<Q", 2 ** 40)))
stream("other-size", bytes([3, 18, 1]), section(STATE, 0, 9))
stream("damaged-head", bytes([1, 60, 1]))

# --- vf_state: records of flags, place, value (vf_state_fuzz.cpp)
FROM_END, IN_REGISTERS, SHORTER, LONGER, WORD = 1, 2, 4 | 8, 8, 16


def vf_state(name, *records):
    write("vf_state", name, b"".join(struct.pack("<BHB", *record) for record in records))


vf_state("sound", (IN_REGISTERS, 0xC040 // 2, 1))
vf_state("cut", (SHORTER, 100, 0))
vf_state("longer", (LONGER | FROM_END, 0, 8))
for place in (0, 40, 200, 1000, 5000):
    vf_state(f"word-{place}", (WORD, place, 0xFF))
    vf_state(f"word-before-the-end-{place}", (WORD | FROM_END, place, 0xFF))

# --- scenario: the examples of vgpuctl simulate
for example in sorted((EXAMPLES / "valid").glob("vgpu-scenario-*.json")):
    write("scenario", example.name.removeprefix("vgpu-scenario-").removesuffix(".json"), example.read_bytes())

# --- recording: recordings of short simulations, made by the built vgpuctl
RECORDED = {
    "two": {"duration_ms": 30, "vfs": [{"count": 2}]},
    "contracts": {"duration_ms": 60, "vfs": [
        {"min_pct": 20, "latency_ms": 20, "work": {"arrivals": "periodic", "work_ms": 2, "period_ms": 20}},
        {"max_pct": 30, "burst_ms": 4, "quantum_ms": 2}, {"mode": "strict", "quantum_ms": 2}]},
    "changes": {"duration_ms": 60, "vfs": [{"name": "a"}, {"name": "b", "joins_later": True}],
                "changes": [{"at_ms": 10, "vf": "b", "what": "join"}, {"at_ms": 30, "vf": "a", "what": "weight", "weight": 7},
                            {"at_ms": 45, "vf": "b", "what": "leave"}]},
}
for vgpuctl in sorted(CORPUS.resolve().parents[2].glob("build/*/bin/vgpuctl"))[:1]:
    for name, scenario in RECORDED.items():
        path = CORPUS / "recording" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([vgpuctl, "simulate", "-", "--trace", path], input=json.dumps(scenario).encode(),
                       check=True, stdout=subprocess.DEVNULL)
