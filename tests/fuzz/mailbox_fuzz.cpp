// SPDX-License-Identifier: MIT
//
// Fuzzes the mailbox with any order of accesses from both sides. The input is a list of {what,
// value} bytes. After each access, the mailbox is compared with an independent model of the
// handshake; at the end it is saved and loaded.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "pf-driver/hw/fields.h"
#include "pf-driver/softgpu/iov/mailbox.h"
#include "pf-driver/softgpu/regs/register_file.h"

namespace {

using namespace vgpu::softgpu;

constexpr RegisterIndex kControl{REG_NBIO_MAILBOX_CONTROL};
constexpr std::uint64_t kControlByte = REG_NBIO_MAILBOX_CONTROL * 4ull;

void require(bool is_true) {
    if (!is_true) std::abort();
}

/// The state that both sides must see by the rules of the handshake.
struct Model {
    bool is_to_pf_valid = false;
    bool is_to_pf_taken = false;
    bool is_to_vf_valid = false;
    bool is_pending_at_pf = false;

    void guest_byte0(std::uint8_t value) {
        const bool was_valid = is_to_pf_valid;
        is_to_pf_valid = (value & 1) != 0;
        if (!is_to_pf_valid || !was_valid) is_to_pf_taken = false;
        if (is_to_pf_valid && !was_valid) is_pending_at_pf = true;
        if (!is_to_pf_valid) is_pending_at_pf = false;
    }
    void guest_byte1(std::uint8_t value) {
        if ((value & 2) != 0) is_to_vf_valid = false;
    }
    void pf_control(std::uint32_t value) {
        if ((value & HW_FIELD_MASK(MAILBOX_CONTROL, RCV_ACK)) != 0) {
            if (is_to_pf_valid) is_to_pf_taken = true;
            is_pending_at_pf = false;
        } else {
            is_to_vf_valid = (value & 1) != 0;
        }
    }
};

struct Box {
    bool is_pending_at_pf = false;
    regs::RegisterFile registers{regs::Role::Vf};
    iov::Mailbox mailbox{registers,
                         {[this] { is_pending_at_pf = true; }, [this] { is_pending_at_pf = false; },
                          [] {}, [](ih_source) {}}};
    Model model;

    void guest_byte(std::uint64_t offset, std::uint8_t value) {
        registers.mmio_write(offset, std::as_bytes(std::span(&value, 1)), regs::Gate::Shut);
    }
    void step(std::uint8_t what, std::uint8_t value) {
        const RegisterIndex dword{REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + what % 10u};
        if (what < 64) {
            guest_byte(kControlByte, value);
            model.guest_byte0(value);
        } else if (what < 128) {
            guest_byte(kControlByte + 1, value);
            model.guest_byte1(value);
        } else if (what < 192) {
            const std::uint32_t control = (value & 1u) | (value & 2u) << 8;
            mailbox.pf_write(kControl, control);
            model.pf_control(control);
        } else if (dword != kControl && what < 224) {
            registers.mmio_write(dword, value, regs::Gate::Shut);
        } else if (dword != kControl) {
            mailbox.pf_write(dword, value);
        }
    }
    /// Checks that reading the mailbox's words and saving and loading it change nothing.
    void check_whole() {
        std::vector<std::byte> stream, again;
        Writer out(stream), out_again(again);
        for (std::uint32_t i = 0; i < 10; ++i)
            static_cast<void>(mailbox.pf_read(RegisterIndex{REG_NBIO_MAILBOX_MSGBUF_TRN_DW0 + i}));
        mailbox.save(out);
        Reader in(stream);
        require(mailbox.load(in).has_value());
        mailbox.save(out_again);
        require(stream == again);
        check();
    }
    void check() const {
        const std::uint32_t guest = registers.get(kControl);
        require(HW_GET(MAILBOX_CONTROL, TRN_VALID, guest) == (model.is_to_pf_valid ? 1 : 0));
        require(HW_GET(MAILBOX_CONTROL, TRN_ACK, guest) == (model.is_to_pf_taken ? 1 : 0));
        require(HW_GET(MAILBOX_CONTROL, RCV_VALID, guest) == (model.is_to_vf_valid ? 1 : 0));
        require(is_pending_at_pf == model.is_pending_at_pf);
        require(HW_GET(MAILBOX_CONTROL, RCV_VALID, mailbox.pf_read(kControl)) ==
                (model.is_pending_at_pf ? 1 : 0));
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Box box;
    box.registers.reset();
    box.mailbox.reset();
    box.model = {};
    for (std::size_t i = 0; i + 1 < size; i += 2) {
        box.step(data[i], data[i + 1]);
        box.check();
    }
    box.check_whole();
    return 0;
}
