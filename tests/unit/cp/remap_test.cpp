// SPDX-License-Identifier: MIT
//
// A queue that is taken off the hardware in the middle of its work and put on again goes on where
// it was: every kind of queue, with and without a context save area, wherever its ring stands, for
// every reason to take it off. The kernel adds to its cell once, at its very end, so only the one
// that was in flight can have written what is found there.
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>

#include "pf-driver/hw/mqd.h"
#include "pf-driver/hw/tc_op.h"
#include "tests/unit/cp/cp_rig.h"

namespace vgpu::test {
namespace {

enum class Kind { Aql, Pm4, Ring, Kiq };
enum class Area { No, Yes };
enum class Place { Start, Middle, Wrapped, Waiting, InIb, BeforeDispatch, Copying, Halted };
enum class Reason { Preempt, Drain, Reset, Evict, Switch };
constexpr std::array kKindNames{"Aql", "Pm4", "Ring", "Kiq"};
constexpr std::array kPlaceNames{"Start", "Middle",         "Wrapped", "Waiting",
                                 "InIb",  "BeforeDispatch", "Copying", "Halted"};
constexpr std::array kReasonNames{"Preempt", "Drain", "Reset", "Evict", "Switch"};

using Case = std::tuple<Kind, Area, Place, Reason>;

/// The run list alone evicts, and it holds user queues.
std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (unsigned kind = 0; kind < kKindNames.size(); ++kind)
        for (const Area area : {Area::No, Area::Yes})
            for (unsigned place = 0; place < kPlaceNames.size(); ++place)
                for (unsigned why = 0; why < kReasonNames.size(); ++why) {
                    const Case one{static_cast<Kind>(kind), area, static_cast<Place>(place),
                                   static_cast<Reason>(why)};
                    const bool is_user = kind <= static_cast<unsigned>(Kind::Pm4);
                    if (is_user || std::get<Reason>(one) != Reason::Evict) cases.push_back(one);
                }
    return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    const auto [kind, area, place, why] = info.param;
    return std::string(kKindNames[static_cast<unsigned>(kind)]) +
           (area == Area::Yes ? "WithArea" : "") + kPlaceNames[static_cast<unsigned>(place)] +
           kReasonNames[static_cast<unsigned>(why)];
}

constexpr std::uint32_t kRounds = 3000;
constexpr std::uint32_t kSum = 3 * kRounds;
constexpr std::uint32_t kFiller = PM4_HEADER_OF(PM4_OP_NOP, PM4_COUNT_NO_BODY + 1u);
constexpr std::size_t kAreaBytes = 256u << 10;
constexpr std::size_t kMovedBytes = 512u << 10;
constexpr std::size_t kMovedBy = 64u << 10;
constexpr std::uint32_t kPm4Dwords = 512;
constexpr std::uint32_t kAqlPackets = 8;

Words set_registers(hw_reg first, const Words& values) {
    const Words body = Words{static_cast<std::uint32_t>(first) - HW_REG_BASE_SH} + values;
    return Words{PM4_HEADER_OF(PM4_OP_SET_SH_REG, static_cast<std::uint32_t>(body.size()))} + body;
}

class Remap : public testing::TestWithParam<Case> {
protected:
    Remap() : rig({.memory_bytes = 6u << 20}) {
        std::tie(kind, area, place, why) = GetParam();
        rig.start_kiq();
        rig.start_hiq(0x0100);  // one VMID: two processes take turns
        make_kernel();
        make_queue();
    }

    // --- what the queue does

    /// s5 = 3 added kRounds times; one lane adds it to the cell.
    void make_kernel() {
        const KernelCode code = rig.load_words({
            0xc0060180, 0x00000000,  // s_load_dwordx2 s[6:7], s[0:1], 0
            0xbf8cc07f,              // s_waitcnt lgkmcnt(0)
            0xbe8400ff, kRounds,     // s_mov_b32 s4, kRounds
            0xbe850080,              // s_mov_b32 s5, 0
            0x80058305,              // s_add_u32 s5, s5, 3
            0x80848104,              // s_sub_u32 s4, s4, 1
            0xbf078004,              // s_cmp_lg_u32 s4, 0
            0xbf85fffc,              // s_cbranch_scc1 -4
            0xbefe0181,              // s_mov_b64 exec, 1
            0x7e020205,              // v_mov_b32 v1, s5
            0x7e040206,              // v_mov_b32 v2, s6
            0x7e060207,              // v_mov_b32 v3, s7
            0xdd088000, 0x007f0102,  // global_atomic_add v[2:3], v1, off
            0xbf810000,              // s_endpgm
        });
        cell = rig.memory.allocate(8);
        arguments = rig.arguments(cell);
        object = code.descriptor;
        const auto descriptor = rig.memory.get<aql_kernel_descriptor>(object);
        const std::uint64_t entry = object + 256;
        registers = set_registers(REG_GC_COMPUTE_PGM_LO, {lo(entry >> 8), hi(entry >> 8)}) +
                    set_registers(REG_GC_COMPUTE_PGM_RSRC1,
                                  {descriptor.compute_pgm_rsrc1, descriptor.compute_pgm_rsrc2}) +
                    set_registers(REG_GC_COMPUTE_NUM_THREAD_X, {64, 1, 1}) +
                    set_registers(REG_GC_COMPUTE_USER_DATA_0, {lo(arguments), hi(arguments)});
        launch = pm4(PM4_OP_DISPATCH_DIRECT,
                     {1, 1, 1, HW_PREP(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, 1)});
        flag = rig.make_signal(1);
    }
    /// A counter of how often a packet was executed.
    std::uint64_t make_counter() {
        return kind == Kind::Aql ? rig.make_signal(1) : rig.memory.allocate(8);
    }
    Words add_one(std::uint64_t counter) {
        const std::uint32_t add = HW_PREP(ATOMIC_MEM_1, ATOMIC, TC_OP_ADD_64);
        return pm4(PM4_OP_ATOMIC_MEM, {add, lo(counter), hi(counter), 1, 0, 0, 0, 0});
    }
    std::int64_t times(std::uint64_t counter) {
        return kind == Kind::Aql ? 1 - rig.signal_value(counter)
                                 : rig.memory.get<std::int64_t>(counter);
    }
    /// Until the flag's value is 0.
    Words wait_for_flag() const {
        const std::uint64_t va = flag + offsetof(aql_signal, value);
        return pm4(PM4_OP_WAIT_REG_MEM, {HW_PREP(WAIT_REG_MEM_1, FUNCTION, PM4_COMPARE_EQUAL) |
                                             HW_PREP(WAIT_REG_MEM_1, MEM_SPACE, 1),
                                         lo(va), hi(va), 0, ~0u, 10});
    }
    void raise_flag() { rig.memory.put(flag + offsetof(aql_signal, value), std::int64_t{0}); }
    /// Memory moved downwards: begun again, it would move what it has moved already.
    Words move_memory() {
        std::vector<std::uint32_t> values((kMovedBytes + kMovedBy) / 4);
        std::iota(values.begin(), values.end(), 0u);
        moved = rig.memory.upload(values);
        const std::uint64_t from = moved + kMovedBy;
        return pm4(PM4_OP_DMA_DATA, {0, lo(from), hi(from), lo(moved), hi(moved),
                                     static_cast<std::uint32_t>(kMovedBytes)});
    }
    Words ib_words() {
        if (place == Place::BeforeDispatch)
            return registers + wait_for_flag() + launch + add_one(inside);
        if (place == Place::Copying) return registers + launch + move_memory() + add_one(inside);
        return registers + launch + add_one(inside) + wait_for_flag();
    }
    [[nodiscard]] bool is_in_ib() const {
        return place == Place::InIb || place == Place::BeforeDispatch ||
               (place == Place::Copying && kind == Kind::Aql);
    }
    [[nodiscard]] bool needs_flag() const {
        return place == Place::InIb || place == Place::BeforeDispatch;
    }

    void submit_count(std::uint64_t counter) {
        if (kind == Kind::Aql)
            rig.barrier(queue(), AQL_TYPE_BARRIER_AND, {}, counter);
        else
            rig.submit(queue(), add_one(counter));
    }
    void submit_fillers(unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            if (kind == Kind::Aql)
                rig.barrier(queue(), AQL_TYPE_BARRIER_AND, {}, 0);
            else
                rig.submit(queue(), Words(16, kFiller));
            rig.ring_doorbell(queue());
            rig.pump();
        }
    }
    void submit_ib() {
        const Words words = ib_words();
        if (kind == Kind::Aql) return rig.vendor_ib(queue(), words, packet_end);
        const std::uint64_t va = rig.memory.upload(words);
        rig.submit(
            queue(),
            pm4(PM4_OP_INDIRECT_BUFFER,
                {lo(va), hi(va),
                 HW_PREP(INDIRECT_BUFFER_3, IB_SIZE, static_cast<std::uint32_t>(words.size()))}));
    }
    void submit_kernel() {
        if (kind != Kind::Aql) return rig.submit(queue(), registers + launch);
        AqlKernel kernel;
        kernel.object = object;
        kernel.arguments = arguments;
        kernel.signal = packet_end;
        rig.dispatch(queue(), kernel);
    }
    void submit_wait() {
        if (kind == Kind::Aql)
            rig.barrier(queue(), AQL_TYPE_BARRIER_AND, {flag}, 0);
        else
            rig.submit(queue(), wait_for_flag());
    }
    void submit_nonsense() {
        if (kind == Kind::Aql) {
            aql_barrier packet{};
            packet.header = AQL_TYPE_AGENT_DISPATCH;
            rig.put_packet(queue(), softgpu::bytes_of(packet));
        } else {
            rig.submit(queue(), pm4(static_cast<pm4_opcode>(0xfe), {0}));
        }
    }

    // --- the queue

    Ring& queue() { return kind == Kind::Kiq ? rig.kiq : own; }
    void make_queue() {
        const std::size_t bytes = area == Area::Yes ? kAreaBytes : 0;
        if (kind == Kind::Aql) own = rig.make_aql_queue(kAqlPackets, bytes);
        if (kind == Kind::Pm4 || kind == Kind::Ring) own = rig.make_pm4_queue(kPm4Dwords, bytes);
        if (kind == Kind::Ring)
            rig.set_mqd(own, MQD_DWORD_OF(REG_GC_CP_HQD_PQ_CONTROL),
                        HW_PREP(CP_HQD_PQ_CONTROL, QUEUE_SIZE, 8) |
                            HW_PREP(CP_HQD_PQ_CONTROL, PRIV_STATE, 1));
        other = rig.make_aql_queue(kAqlPackets, kAreaBytes);
        if (kind == Kind::Kiq && area == Area::Yes) give_kiq_an_area();
    }
    void give_kiq_an_area() {
        constexpr std::uint32_t kControlStack = 4096;
        const std::uint64_t va = rig.memory.allocate(kAreaBytes);
        select_queue();
        rig.write(REG_GC_CP_HQD_PERSISTENT_STATE,
                  HW_PREP(CP_HQD_PERSISTENT_STATE, QSWITCH_MODE, 1));
        rig.write(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_LO, lo(va));
        rig.write(REG_GC_CP_HQD_CTX_SAVE_BASE_ADDR_HI, hi(va));
        rig.write(REG_GC_CP_HQD_CTX_SAVE_SIZE, kAreaBytes);
        rig.write(REG_GC_CP_HQD_CNTL_STACK_SIZE, kControlStack);
        rig.write(REG_GC_CP_HQD_CNTL_STACK_OFFSET, kControlStack);
        rig.write(REG_GC_CP_HQD_WG_STATE_OFFSET, kControlStack);
    }
    [[nodiscard]] bool is_on() { return rig.cp.owns_doorbell(queue().doorbell); }
    /// GRBM_GFX_CNTL to where the queue is.
    void select_queue() {
        constexpr std::uint32_t kPerMec = CP_PIPES_PER_MEC * CP_QUEUES_PER_PIPE;
        constexpr std::uint32_t kKiq = kPerMec + CP_QUEUES_PER_PIPE;  // as start_kiq() does
        for (std::uint32_t i = kind == Kind::Kiq ? kKiq : 0; i < CP_HQD_COUNT; ++i) {
            rig.write(REG_GC_GRBM_GFX_CNTL,
                      HW_PREP(GRBM_GFX_CNTL, ME, 1 + i / kPerMec) |
                          HW_PREP(GRBM_GFX_CNTL, PIPE, i / CP_QUEUES_PER_PIPE % CP_PIPES_PER_MEC) |
                          HW_PREP(GRBM_GFX_CNTL, QUEUE, i % CP_QUEUES_PER_PIPE));
            const std::uint32_t control = rig.read(REG_GC_CP_HQD_PQ_DOORBELL_CONTROL);
            const std::uint32_t offset = HW_GET(CP_HQD_PQ_DOORBELL_CONTROL, OFFSET, control);
            if (offset == softgpu::raw(queue().doorbell)) return;
        }
        FAIL() << "the queue is nowhere";
    }
    void put_on() {
        if (kind == Kind::Kiq) {
            if (is_on()) return;
            select_queue();
            rig.write(REG_GC_CP_HQD_ACTIVE, 1);
        } else if (kind == Kind::Ring) {
            rig.submit(rig.kiq,
                       pm4(PM4_OP_MAP_QUEUES,
                           {HW_PREP(MAP_QUEUES_1, PIPE, 1) | HW_PREP(MAP_QUEUES_1, NUM_QUEUES, 1),
                            HW_PREP(MAP_QUEUES_2, DOORBELL_OFFSET, softgpu::raw(own.doorbell)),
                            lo(own.mqd), hi(own.mqd), lo(own.wptr_poll), hi(own.wptr_poll)}));
        } else if (why != Reason::Evict) {
            rig.map(own);
        } else if (has_run_list) {
            rig.clock.advance(std::chrono::milliseconds(11));
        } else {
            rig.run_list({{1, 10, {&own}}, {2, 10, {&other}}}, CpRig::Chain::Yes);
            has_run_list = true;
        }
    }
    void dequeue(std::uint32_t request) {
        select_queue();
        rig.write(REG_GC_CP_HQD_DEQUEUE_REQUEST, request);
    }
    void ask_off() {
        constexpr std::uint32_t kDrain = 1;
        constexpr std::uint32_t kReset = 2;
        constexpr std::uint32_t kSave = 3;
        const bool is_reset = why == Reason::Reset;
        if (why == Reason::Drain) return dequeue(kDrain);
        if (why == Reason::Evict) return rig.clock.advance(std::chrono::milliseconds(11));
        if (kind == Kind::Kiq) return dequeue(is_reset ? kReset : kSave);
        const pm4_unmap_action action = is_reset ? PM4_UNMAP_RESET : PM4_UNMAP_PREEMPT;
        if (kind != Kind::Ring) return void(rig.unmap_all(action));
        rig.submit(
            rig.kiq,
            pm4(PM4_OP_UNMAP_QUEUES,
                {HW_PREP(UNMAP_QUEUES_1, ACTION, action) | HW_PREP(UNMAP_QUEUES_1, NUM_QUEUES, 1),
                 HW_PREP(UNMAP_QUEUES_2, DOORBELL_OFFSET, softgpu::raw(own.doorbell)), 0, 0, 0}));
    }
    void switch_world() {
        rig.cp.drain();
        std::vector<std::byte> stream;
        softgpu::Writer out(stream);
        rig.cp.save(out);
        rig.cp.poison();
        softgpu::Reader in(stream);
        ASSERT_TRUE(rig.cp.load(in));
    }
    /// A step at a time, with world switches between if they are the reason.
    void pump() {
        for (unsigned i = 0; why == Reason::Switch && i < 4; ++i) {
            rig.pump_turns(1, 50);
            switch_world();
        }
        rig.pump();
    }

    // --- the story

    void begin() {
        put_on();
        rig.pump();
        if (place == Place::Middle) submit_fillers(5);
        if (place == Place::Wrapped) submit_fillers(kind == Kind::Kiq ? 130 : 43);
        submit_count(before);
        if (is_in_ib())
            submit_ib();
        else
            submit_kernel();
        if (place == Place::Waiting) submit_wait();
        if (place == Place::Halted) submit_nonsense();
        if (place == Place::Copying && kind != Kind::Aql) rig.submit(queue(), move_memory());
        if (place != Place::Start) submit_count(after);
        rig.ring_doorbell(queue());
        rig.pump_turns(place == Place::Copying ? 4 : 30, 40);
    }
    void take_off() {
        ask_off();
        pump();
        if (area == Area::No && needs_flag() && why != Reason::Reset) {
            EXPECT_TRUE(is_on()) << "the IB ends first";
            raise_flag();
            pump();
        }
        ASSERT_FALSE(is_on());
    }

    CpRig rig;
    Kind kind{};
    Area area{};
    Place place{};
    Reason why{};
    Ring own;
    Ring other;
    bool has_run_list = false;
    std::uint64_t object = 0;
    std::uint64_t arguments = 0;
    std::uint64_t cell = 0;
    std::uint64_t flag = 0;
    std::uint64_t moved = 0;
    Words registers;
    Words launch;
    std::uint64_t packet_end = rig.make_signal(1);
    std::uint64_t before = 0;
    std::uint64_t inside = 0;
    std::uint64_t after = 0;
};

TEST_P(Remap, GoesOnWhereItWas) {
    before = make_counter();
    inside = rig.memory.allocate(8);
    after = make_counter();
    const std::uint64_t last = make_counter();
    begin();
    ASSERT_TRUE(is_on());
    ASSERT_EQ(rig.memory.get<std::uint32_t>(cell), 0u) << "it is in flight";

    take_off();
    const bool is_halted = place == Place::Halted;
    const bool is_reset = why == Reason::Reset;
    const bool is_dropped_by_halt = is_halted && kind != Kind::Aql;
    if (area == Area::Yes || is_reset || is_dropped_by_halt) {
        EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), 0u) << "it is off the device";
    }
    put_on();
    raise_flag();
    pump();
    ASSERT_TRUE(is_on());
    submit_count(last);
    rig.ring_doorbell(queue());
    pump();

    EXPECT_EQ(times(before), 1);
    EXPECT_TRUE(rig.vf.faults.empty());
    if (is_halted) {  // a runtime answers for its AQL queue; other streams are looked at again
        EXPECT_EQ(rig.cp.counters().bad_packets, kind == Kind::Aql ? 1u : 2u);
        EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), is_dropped_by_halt || is_reset ? 0u : kSum);
        EXPECT_EQ(times(after), 0);
        return;
    }
    EXPECT_EQ(rig.cp.counters().bad_packets, 0u);
    EXPECT_EQ(times(last), 1);
    // a reset drops what the queue has begun; an AQL packet that has not ended is still in its ring
    const bool is_dropped = is_reset && kind != Kind::Aql;
    EXPECT_EQ(rig.memory.get<std::uint32_t>(cell), is_dropped ? 0u : kSum);
    EXPECT_EQ(rig.cp.counters().dispatches, is_dropped ? 0u : 1u);
    const bool is_begun_again = is_reset && kind == Kind::Aql;
    if (place != Place::Start && !is_begun_again) {
        EXPECT_EQ(times(after), 1);
    }
    if (is_in_ib() && !is_reset) {
        EXPECT_EQ(rig.memory.get<std::uint32_t>(inside), 1u);
    }
    if (kind == Kind::Aql) {
        EXPECT_EQ(rig.signal_value(packet_end), 0);
    }
    if (place != Place::Copying || is_reset) return;
    std::vector<std::uint32_t> want(kMovedBytes / 4);
    std::iota(want.begin(), want.end(), static_cast<std::uint32_t>(kMovedBy / 4));
    EXPECT_EQ(rig.memory.download<std::uint32_t>(moved, want.size()), want);
}

INSTANTIATE_TEST_SUITE_P(Queues, Remap, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace vgpu::test
