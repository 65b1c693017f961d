// SPDX-License-Identifier: MIT
//
// A whole GPU in this process, reached the way everybody reaches it: through its sockets. Client is
// the least that speaks vfio-user; Pf and Vf add what their drivers do first. Nothing sleeps: waits
// are on eventfds or on a condition read from the device, with a generous bound.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pf-driver/hw/gpuiov.h"
#include "pf-driver/hw/pci.h"
#include "pf-driver/hw/regs.h"
#include "pf-driver/softgpu/base/clock.h"
#include "pf-driver/softgpu/base/owned_fd.h"
#include "pf-driver/softgpu/gpu.h"
#include "pf-driver/softgpu/vfio_user/protocol.h"

namespace vgpu::softgpu::test {

inline constexpr std::chrono::seconds kLongest{30};

/// Waits until `condition` holds; false after kLongest.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

class Client {
public:
    Client(const std::string& path, vfio_user::Irq irq);

    void read(std::uint32_t region, std::uint64_t offset, std::span<std::byte> out);
    void write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data);
    template <typename T> T get(std::uint32_t region, std::uint64_t offset) {
        T value{};
        read(region, offset, bytes_of(value));
        return value;
    }
    template <typename T> void put(std::uint32_t region, std::uint64_t offset, const T& value) {
        write(region, offset, bytes_of(value));
    }
    template <typename T> T config(std::uint32_t offset) { return get<T>(kConfig, offset); }
    template <typename T> void set_config(std::uint32_t offset, const T& value) {
        put(kConfig, offset, value);
    }
    std::uint32_t reg(std::uint32_t number) {
        return get<std::uint32_t>(VGPU_BAR_REGISTERS, number * 4ull);
    }
    void set_reg(std::uint32_t number, std::uint32_t value) {
        put(VGPU_BAR_REGISTERS, number * 4ull, value);
    }

    /// The fd behind a BAR, if the device offers one now.
    OwnedFd bar_memory(std::uint32_t region);
    void assign_vector(std::uint32_t vector, int eventfd);
    void map_dma(std::uint64_t address, std::uint64_t size, int fd);
    void device_reset();
    /// A write without a reply, and the next message of the device, which must be a posted write.
    template <typename T> void post(std::uint32_t region, std::uint64_t offset, const T& value) {
        post_write(region, offset, bytes_of(value));
    }
    struct PostedWrite {
        std::uint64_t address = 0;
        std::uint32_t data = 0;
    };
    [[nodiscard]] PostedWrite receive_write();
    void close() { socket_.reset(); }

protected:
    static constexpr std::uint32_t kConfig = static_cast<std::uint32_t>(vfio_user::Region::Config);

private:
    void post_write(std::uint32_t region, std::uint64_t offset, std::span<const std::byte> data);
    std::vector<std::byte> call(vfio_user::Command command, std::span<const std::byte> body,
                                std::span<const int> fds = {}, OwnedFd* fd = nullptr);
    template <typename T> static std::vector<std::byte> body_of(const T& value) {
        const auto bytes = bytes_of(value);
        return {bytes.begin(), bytes.end()};
    }

    OwnedFd socket_;
    vfio_user::Irq irq_;
    std::uint16_t next_id_ = 1;
};

/// An eventfd that counts.
class Event {
public:
    Event();
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// Waits for a signal; false after kLongest.
    [[nodiscard]] bool wait();
    [[nodiscard]] bool is_signalled();

private:
    OwnedFd fd_;
};

class PfClient : public Client {
public:
    explicit PfClient(const std::string& directory);

    std::uint32_t bank(unsigned vf, hw_reg number) { return reg(bank_reg(vf, number)); }
    void set_bank(unsigned vf, hw_reg number, std::uint32_t value) {
        set_reg(bank_reg(vf, number), value);
    }
    template <typename T> T vsec(std::uint32_t offset) {
        return config<T>(VGPU_ECAP_VSEC + offset);
    }
    template <typename T> void set_vsec(std::uint32_t offset, const T& value) {
        set_config(VGPU_ECAP_VSEC + offset, value);
    }
    /// Gives the VF contiguous VRAM from `first` on and opens all gates.
    void provision(unsigned vf, std::uint64_t first, std::uint32_t megabytes);
    void release(unsigned vf);
    /// Writes a world switch command and waits for its end; the status.
    std::uint32_t command(gpuiov_command code, unsigned vf, unsigned next = 0);
    void enable_interrupts(std::uint32_t bits) { set_vsec(GPUIOV_INTR_ENABLE, bits); }
    /// Reads and clears INTR_STATUS.
    std::uint32_t take_interrupts();
    void flr(unsigned vf);
    /// A VGPU_OP_COMMAND; its status.
    std::uint32_t operation(vgpu_hw_op op, unsigned vf, std::uint64_t source,
                            std::uint64_t destination, std::uint64_t size);

    Event switch_event;
    Event mailbox_event;

private:
    static std::uint32_t bank_reg(unsigned vf, hw_reg number) {
        return static_cast<std::uint32_t>(number) + vf * HW_VGPU_BANK_STRIDE;
    }
};

class VfClient : public Client {
public:
    VfClient(const std::string& directory, unsigned vf);
    void ring(std::uint32_t dword, std::uint64_t value) {
        put(VGPU_BAR_DOORBELL, dword * 4ull, value);
    }
    template <typename T> T vram(std::uint64_t offset) { return get<T>(VGPU_BAR_VRAM, offset); }
    template <typename T> void set_vram(std::uint64_t offset, const T& value) {
        put(VGPU_BAR_VRAM, offset, value);
    }
    Event msi;
};

/// A VM behind the host view, with its firmware and kernel: buses numbered, BARs placed, all VFs
/// enabled. Behind it the PF is driven as through its own socket.
class HostClient : public Client {
public:
    explicit HostClient(const std::string& directory);

    /// Configuration of function 0, the PF, or of a VF.
    template <typename T> T function_config(unsigned function, std::uint32_t offset) {
        return get<T>(VGPU_HOST_VIEW_BAR_CONFIG, window(function) + offset);
    }
    template <typename T>
    void set_function_config(unsigned function, std::uint32_t offset, const T& value) {
        put(VGPU_HOST_VIEW_BAR_CONFIG, window(function) + offset, value);
    }
    static std::uint64_t window(unsigned function) {
        return std::uint64_t{VGPU_ECAM_BUS_BYTES} | std::uint64_t{function}
                                                        << VGPU_ECAM_FUNCTION_SHIFT;
    }
    std::uint32_t pf_reg(std::uint32_t number) {
        return get<std::uint32_t>(VGPU_HOST_VIEW_BAR_LOW, number * 4ull);
    }
    std::uint32_t vf_reg(unsigned vf, std::uint32_t number) {
        return get<std::uint32_t>(VGPU_HOST_VIEW_BAR_LOW,
                                  kVfRegisters + (vf - 1) * kRegisterBytes + number * 4ull);
    }
    /// Programs both MSI-X vectors of the PF: 0xfee00000 <- vector.
    void enable_messages();

private:
    static constexpr std::uint64_t kRegisterBytes = 512u << 10;
    static constexpr std::uint64_t kVfRegisters = 1u << 20;  // in the low window
};

/// A GPU with its io thread; sockets in a fresh directory. `clock` outlives it.
class RunningGpu {
public:
    RunningGpu(const Clock& clock, iov::SwitchMode mode, iov::DoorbellMode doorbells);
    ~RunningGpu();
    RunningGpu(const RunningGpu&) = delete;
    RunningGpu& operator=(const RunningGpu&) = delete;

    [[nodiscard]] std::unique_ptr<PfClient> pf() const {
        return std::make_unique<PfClient>(directory);
    }
    [[nodiscard]] std::unique_ptr<VfClient> vf(unsigned number) const {
        return std::make_unique<VfClient>(directory, number);
    }

    std::string directory;
    std::unique_ptr<Gpu> gpu;
    std::thread io;
};

class GpuRig : public ::testing::Test, protected RunningGpu {
protected:
    explicit GpuRig(iov::SwitchMode mode = iov::SwitchMode::Pointer,
                    iov::DoorbellMode doorbells = iov::DoorbellMode::Trap)
        : RunningGpu(kSteady, mode, doorbells) {}

private:
    static inline const SteadyClock kSteady;
};

}  // namespace vgpu::softgpu::test
