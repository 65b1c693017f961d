// SPDX-License-Identifier: MIT
#include "tests/unit/gpu/gpu_rig.h"

#include <fmt/format.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "pf-driver/hw/fields.h"
#include "pf-driver/hw/vf_page_table.h"
#include "tests/support/isa/tier.h"

namespace vgpu::softgpu::test {

using vfio_user::Command;

namespace {

constexpr std::uint32_t kCommandRegister = 4;
constexpr std::uint16_t kMemoryAndBusMaster = 0x6;

void require(bool is_met, const char* what) {
    if (!is_met) throw std::runtime_error(fmt::format("vfio-user client: {} failed", what));
}

OwnedFd connect_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    require(path.size() < sizeof(address.sun_path), "socket path");
    path.copy(address.sun_path, path.size());
    OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{kLongest.count(), 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    require(connect(fd.get(), generic, sizeof(address)) == 0, "connect");
    return fd;
}

void send_message(int socket, std::span<const std::byte> message, std::span<const int> fds) {
    iovec part{const_cast<std::byte*>(message.data()), message.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 4)> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* out = CMSG_FIRSTHDR(&header);
        out->cmsg_level = SOL_SOCKET;
        out->cmsg_type = SCM_RIGHTS;
        out->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(out), fds.data(), fds.size_bytes());
    }
    require(sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size()), "send");
}

/// Receives exactly out.size() bytes; a descriptor that comes along goes to `fd`.
void receive(int socket, std::span<std::byte> out, OwnedFd* fd) {
    while (!out.empty()) {
        iovec part{out.data(), out.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        require(count > 0, "receive");
        if (const cmsghdr* in = CMSG_FIRSTHDR(&header); in != nullptr) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(in), sizeof(number));
            OwnedFd received(number);
            if (fd != nullptr) *fd = std::move(received);
        }
        out = out.subspan(static_cast<std::size_t>(count));
    }
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

// --- Client --------------------------------------------------------------------------------------

Client::Client(const std::string& path, vfio_user::Irq irq) : socket_(connect_to(path)), irq_(irq) {
    constexpr std::string_view kCapabilities = R"({"capabilities":{"max_msg_fds":8}})";
    std::vector<std::byte> body = body_of(vfio_user::Version{});
    const auto text = std::as_bytes(std::span(kCapabilities));
    body.insert(body.end(), text.begin(), text.end());
    body.push_back(std::byte{0});
    call(Command::Version, body);
    set_config(kCommandRegister, kMemoryAndBusMaster);
}

std::vector<std::byte> Client::call(Command command, std::span<const std::byte> body,
                                    std::span<const int> fds, OwnedFd* fd) {
    vfio_user::Header header;
    header.id = next_id_++;
    header.command = static_cast<std::uint16_t>(command);
    header.size = static_cast<std::uint32_t>(sizeof(header) + body.size());
    std::vector<std::byte> message = body_of(header);
    message.insert(message.end(), body.begin(), body.end());
    send_message(socket_.get(), message, fds);
    vfio_user::Header reply;
    receive(socket_.get(), bytes_of(reply), fd);
    require(reply.id == header.id && reply.size >= sizeof(reply), "reply");
    std::vector<std::byte> answer(reply.size - sizeof(reply));
    receive(socket_.get(), answer, fd);
    if ((reply.flags & vfio_user::kError) != 0)
        throw std::runtime_error(
            fmt::format("command {} answered errno {}", header.command, reply.error));
    return answer;
}

void Client::read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out) {
    const auto answer = call(
        Command::RegionRead,
        body_of(vfio_user::RegionAccess{offset, region, static_cast<std::uint32_t>(out.size())}));
    require(answer.size() == sizeof(vfio_user::RegionAccess) + out.size(), "read");
    std::copy_n(answer.begin() + sizeof(vfio_user::RegionAccess), out.size(), out.begin());
}

void Client::write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data) {
    auto body =
        body_of(vfio_user::RegionAccess{offset, region, static_cast<std::uint32_t>(data.size())});
    body.insert(body.end(), data.begin(), data.end());
    call(Command::RegionWrite, body);
}

void Client::post_write(std::uint32_t region, std::uint64_t offset,
                        std::span<const std::byte> data) {
    auto body =
        body_of(vfio_user::RegionAccess{offset, region, static_cast<std::uint32_t>(data.size())});
    body.insert(body.end(), data.begin(), data.end());
    vfio_user::Header header;
    header.id = next_id_++;
    header.command = static_cast<std::uint16_t>(Command::RegionWrite);
    header.flags = vfio_user::kNoReply;
    header.size = static_cast<std::uint32_t>(sizeof(header) + body.size());
    std::vector<std::byte> message = body_of(header);
    message.insert(message.end(), body.begin(), body.end());
    send_message(socket_.get(), message, {});
}

Client::PostedWrite Client::receive_write() {
    vfio_user::Header header;
    receive(socket_.get(), bytes_of(header), nullptr);
    require(header.command == static_cast<std::uint16_t>(Command::DmaWrite) &&
                header.flags == vfio_user::kNoReply,
            "posted write");
    vfio_user::DmaAccess access;
    receive(socket_.get(), bytes_of(access), nullptr);
    PostedWrite write{access.address, 0};
    require(access.count == sizeof(write.data), "posted dword");
    receive(socket_.get(), bytes_of(write.data), nullptr);
    return write;
}

OwnedFd Client::bar_memory(std::uint32_t region) {
    vfio_user::RegionInfo info;
    info.argsz = 256;
    info.index = region;
    OwnedFd fd;
    call(Command::DeviceGetRegionInfo, body_of(info), {}, &fd);
    return fd;
}

void Client::assign_vector(std::uint32_t vector, int eventfd) {
    vfio_user::IrqSet set;
    set.flags = vfio_user::kIrqDataEventfd | vfio_user::kIrqActionTrigger;
    set.index = static_cast<std::uint32_t>(irq_);
    set.start = vector;
    set.count = 1;
    call(Command::DeviceSetIrqs, body_of(set), std::array{eventfd});
}

void Client::map_dma(std::uint64_t address, std::uint64_t size, int fd) {
    vfio_user::DmaMap map;
    map.flags = vfio_user::kDmaMapRead | vfio_user::kDmaMapWrite;
    map.address = address;
    map.size = size;
    call(Command::DmaMap, body_of(map), std::array{fd});
}

void Client::device_reset() {
    call(Command::DeviceReset, {});
    set_config(kCommandRegister, kMemoryAndBusMaster);
}

// --- Event ---------------------------------------------------------------------------------------

Event::Event() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

bool Event::wait() {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(std::chrono::milliseconds(kLongest).count())) != 1)
        return false;
    return is_signalled();
}

bool Event::is_signalled() {
    std::uint64_t count = 0;
    return ::read(fd_.get(), &count, sizeof(count)) == sizeof(count);
}

// --- PF and VF -----------------------------------------------------------------------------------

PfClient::PfClient(const std::string& directory)
    : Client(directory + "/pf.sock", vfio_user::Irq::Msix) {
    assign_vector(GPUIOV_VECTOR_SWITCH, switch_event.fd());
    assign_vector(GPUIOV_VECTOR_MAILBOX, mailbox_event.fd());
}

void PfClient::provision(unsigned vf, std::uint64_t first, std::uint32_t megabytes) {
    const std::uint64_t root = 0x100000 + vf * 2ull * VF_PAGE_TABLE_BYTES;
    const std::uint64_t leaves = root + VF_PAGE_TABLE_BYTES;
    put(VGPU_BAR_VRAM, root, leaves | VF_PAGE_TABLE_VALID);
    for (std::uint64_t i = 0; i < megabytes / 2; ++i)
        put(VGPU_BAR_VRAM, leaves + 8 * i,
            (first + (i << VF_PAGE_TABLE_LEAF_SHIFT)) | VF_PAGE_TABLE_VALID);
    set_bank(vf, REG_VGPU_VF0_FB_SIZE_MB, megabytes);
    set_bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO,
             static_cast<std::uint32_t>(root | VF_PAGE_TABLE_VALID));
    set_bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_HI, 0);
    set_bank(vf, REG_VGPU_VF0_CU_MASK_LO, 0xff);
    set_bank(vf, REG_VGPU_VF0_GATES,
             HW_PREP(VGPU_GATES, FB_EN, 1) | HW_PREP(VGPU_GATES, DOORBELL_EN, 1) |
                 HW_PREP(VGPU_GATES, REGWR_EN, 1));
}

void PfClient::release(unsigned vf) {
    set_bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_LO, 0);
    set_bank(vf, REG_VGPU_VF0_FB_TABLE_ROOT_HI, 0);
}

std::uint32_t PfClient::command(gpuiov_command code, unsigned vf, unsigned next) {
    const auto fcn = [](unsigned n) { return n == 0 ? GPUIOV_FCN_PF : GPUIOV_FCN_VF | (n - 1); };
    set_vsec(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_CMD_CONTROL,
             GPUIOV_COMMAND(code, fcn(vf), fcn(next)));
    EXPECT_TRUE(eventually([this] {
        return (vsec<std::uint8_t>(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_CMD_CONTROL) &
                GPUIOV_CMD_EXECUTE) == 0;
    }));
    return vsec<std::uint8_t>(unsigned{GPUIOV_GFX_SCH0} + GPUIOV_SCH_CMD_STATUS);
}

std::uint32_t PfClient::take_interrupts() {
    const auto bits = vsec<std::uint32_t>(GPUIOV_INTR_STATUS);
    set_vsec(GPUIOV_INTR_STATUS, bits);
    return bits;
}

void PfClient::flr(unsigned vf) {
    set_bank(vf, REG_VGPU_VF0_RESET, HW_PREP(VGPU_RESET, FLR, 1));
    EXPECT_TRUE(
        eventually([&] { return HW_GET(VGPU_RESET, FLR, bank(vf, REG_VGPU_VF0_RESET)) == 0; }));
}

std::uint32_t PfClient::operation(vgpu_hw_op op, unsigned vf, std::uint64_t source,
                                  std::uint64_t destination, std::uint64_t size) {
    set_reg(REG_VGPU_OP_SRC_LO, low32(source));
    set_reg(REG_VGPU_OP_SRC_HI, high32(source));
    set_reg(REG_VGPU_OP_DST_LO, low32(destination));
    set_reg(REG_VGPU_OP_DST_HI, high32(destination));
    set_reg(REG_VGPU_OP_SIZE_LO, low32(size));
    set_reg(REG_VGPU_OP_SIZE_HI, high32(size));
    set_reg(REG_VGPU_OP_COMMAND,
            HW_PREP(VGPU_OP_COMMAND, OPCODE, op) | HW_PREP(VGPU_OP_COMMAND, VF, vf));
    EXPECT_TRUE(eventually([this] { return reg(REG_VGPU_OP_STATUS) != VGPU_OP_BUSY; }));
    return reg(REG_VGPU_OP_STATUS);
}

VfClient::VfClient(const std::string& directory, unsigned vf)
    : Client(fmt::format("{}/vf{}.sock", directory, vf), vfio_user::Irq::Msi) {
    assign_vector(0, msi.fd());
}

// --- HostClient ----------------------------------------------------------------------------------

HostClient::HostClient(const std::string& directory)
    : Client(directory + "/host.sock", vfio_user::Irq::Msix) {
    constexpr std::uint32_t kLow = 0xf8000000;
    constexpr std::uint16_t kVfs = 4;
    const auto bar = [](std::uint32_t index) { return PCI_BASE_ADDRESS_0 + 4 * index; };
    set_config(bar(VGPU_HOST_VIEW_BAR_LOW), kLow);
    const auto set_port = [this](std::uint32_t at, auto value) {
        put(VGPU_HOST_VIEW_BAR_CONFIG, at, value);
    };
    set_port(PCI_PRIMARY_BUS, std::uint32_t{1u << 8 | 1u << 16});
    set_port(PCI_MEMORY_BASE, std::uint32_t{0xf800 | 0xfb00u << 16});
    set_port(PCI_COMMAND, kMemoryAndBusMaster);
    set_port(VGPU_CAP_ROOT_PORT_PCIE + PCI_EXP_DEVCTL2, std::uint16_t{PCI_EXP_DEVCTL2_ARI});
    set_function_config(0, bar(VGPU_BAR_REGISTERS), kLow);
    set_function_config(0, VGPU_ECAP_SRIOV + PCI_SRIOV_BAR + 4 * VGPU_BAR_REGISTERS,
                        static_cast<std::uint32_t>(kLow + kVfRegisters));
    set_function_config(0, PCI_COMMAND, kMemoryAndBusMaster);
    set_function_config(0, VGPU_ECAP_SRIOV + PCI_SRIOV_NUM_VF, kVfs);
    set_function_config(0, VGPU_ECAP_SRIOV + PCI_SRIOV_CTRL,
                        std::uint16_t{PCI_SRIOV_CTRL_VFE | PCI_SRIOV_CTRL_MSE});
}

void HostClient::enable_messages() {
    for (std::uint32_t vector = 0; vector < GPUIOV_VECTOR_COUNT; ++vector) {
        const std::uint32_t entry[] = {0xfee00000, 0, vector, 0};
        put(VGPU_HOST_VIEW_BAR_LOW, VGPU_MSIX_TABLE_OFFSET + vector * sizeof(entry), entry);
    }
    set_function_config(0, VGPU_CAP_MSIX + PCI_MSIX_FLAGS, std::uint16_t{PCI_MSIX_FLAGS_ENABLE});
}

// --- RunningGpu ----------------------------------------------------------------------------------

RunningGpu::RunningGpu(const Clock& clock, iov::SwitchMode mode, iov::DoorbellMode doorbells) {
    std::string name = (std::filesystem::temp_directory_path() / "softgpu-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "mkdtemp");
    directory = name;
    Gpu::Spec spec;
    spec.vfs = 4;
    spec.vram = 128_MiB;
    spec.aperture = 32_MiB;
    spec.socket_dir = directory;
    spec.switch_mode = mode;
    spec.doorbell_mode = doorbells;
    spec.host_view = host_view::EndpointKind::Bridge;
    if (vgpu::test::is_translator_run()) spec.isa_tier = IsaTier::Translator;
    gpu = *Gpu::create(spec, clock);
    require(gpu->listen().has_value(), "listen");
    gpu->start();
    io = std::thread([this] { gpu->run(); });
}

RunningGpu::~RunningGpu() {
    gpu->stop();
    io.join();
    gpu.reset();
    std::filesystem::remove_all(directory);
}

}  // namespace vgpu::softgpu::test
