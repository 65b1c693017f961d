// SPDX-License-Identifier: MIT
//
// vgpu-operator-figures: measures what an operator waits for, with one vgpud, 16 GPUs and 256 VFs.
// Some figures have a floor in the same run and are ratios to it. The floor is a method of a
// process that does nothing else on the same bus (Echo), or the system calls that replace a file of
// the same size in the same directory. The GPUs are fakes behind real uapi sockets, so that vgpud
// is measured and not the engine. Prints what was measured and what is aimed at, without a verdict.
#include "daemon/adapters/heap_trimmer.h"
#include "tests/scenario/dbus/bus_fixture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

namespace vgpu::daemon {
namespace {

using testing::BusFixture;
using testing::UapiServer;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kGpus = 16;
constexpr std::size_t kVfsPerGpu = 16;
constexpr int kRounds = 5;
constexpr const char* kEchoName = "org.vgpu1echo";
constexpr const char* kEchoPolicy = R"(<policy context="default">
  <allow own="org.vgpu1echo"/><allow send_destination="org.vgpu1echo"/></policy>)";

double milliseconds_of(const std::function<void()>& act) {
    const auto start = Clock::now();
    act();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values.at(values.size() / 2);
}

double median_of(int count, const std::function<void()>& act) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) times.push_back(milliseconds_of(act));
    return median(std::move(times));
}

void row(const std::string& what, const std::string& measured, const std::string& aim = "") {
    fmt::print("  {:<58} {:>22}   {}\n", what, measured, aim);
    std::fflush(stdout);
}

struct FakeGpus {
    test::TempDir sockets;
    std::vector<std::unique_ptr<UapiServer>> servers;

    FakeGpus() {
        for (std::size_t i = 0; i < kGpus; ++i)
            servers.push_back(std::make_unique<UapiServer>(uapi(i)));
    }
    [[nodiscard]] std::string uapi(std::size_t gpu) const {
        return sockets.file(fmt::format("uapi{}.sock", gpu));
    }
    [[nodiscard]] std::string config() const {
        auto gpus = nlohmann::json::array();
        for (std::size_t i = 0; i < kGpus; ++i)
            gpus.push_back(
                {{"id", fmt::format("gpu{}", i)},
                 {"attach", {{"uapi", uapi(i)}, {"vf_socket_dir", sockets.path().string()}}}});
        return gpus.dump();
    }
};

/// The bus, vgpud and its GPUs; a fixture outside of a test.
class Plane : private FakeGpus, public BusFixture {
public:
    Plane() : BusFixture(Setup{.gpus = config(), .bus_policy = kEchoPolicy}) {}
    void TestBody() override {}

    [[nodiscard]] const std::string& bus_address() const { return address; }
    [[nodiscard]] std::string state_file(const std::string& name) const {
        return directory.file("state/" + name);
    }
    [[nodiscard]] std::vector<pid_t> servers() const { return {bus->pid(), vgpud->pid()}; }
    void kill_daemon() { vgpud->kill_now(); }
    /// Starts vgpud and does not wait until it serves.
    void launch_daemon() {
        vgpud.reset();
        vgpud.emplace(test::ChildProcess::Spec{"vgpud", daemon_command(),
                                               directory.file(fmt::format("again{}.log", ++n_))});
    }
    void list() const {
        if (const auto done = ctl({"list"}); done.status != 0) throw std::runtime_error(done.out);
    }
    [[nodiscard]] double resident_mib() const {
        std::ifstream status(fmt::format("/proc/{}/status", vgpud->pid()));
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
        throw std::runtime_error("no VmRSS in /proc/PID/status of vgpud");
    }

private:
    int n_ = 0;
};

/// The properties of each VF that `vgpuctl list` requests (cli/verb_list.cpp).
constexpr const char* kColumns = "Name,State,VramBytes,Weight,ShareWindow,Attached,Owner,OwnerName";

using Row = std::map<std::string, sdbus::Variant>;

/// An answer of the size and types of ListVfs with kColumns.
Row list_answer() {
    constexpr std::size_t kVfs = kGpus * kVfsPerGpu;
    std::vector<sdbus::ObjectPath> paths;
    std::vector<std::string> targets, names;
    for (std::size_t i = 0; i < kVfs; ++i) {
        paths.emplace_back(fmt::format("/org/vgpu1/gpu/gpu{}/vf/{}", i / 16, i));
        targets.push_back(fmt::format("gpu{}/vf{}", i / 16, i));
        names.push_back(fmt::format("vm{}-{}", i / 16, i));
    }
    const std::vector<std::string> states(kVfs, "provisioned"), nobody(kVfs);
    return {{"Path", paths},
            {"Target", targets},
            {"Name", names},
            {"State", states},
            {"VramBytes", std::vector<std::uint64_t>(kVfs, std::uint64_t{64} << 20)},
            {"Weight", std::vector<std::uint32_t>(kVfs, 100)},
            {"ShareWindow", std::vector<double>(kVfs, 0.5)},
            {"Attached", std::vector<bool>(kVfs)},
            {"Owner", nobody},
            {"OwnerName", nobody}};
}

/// A process on the bus that answers four methods and does nothing else: an empty one, one that
/// returns a list, and two that keep a list and return it.
class Echo {
public:
    explicit Echo(const std::string& address) : pid_(::fork()) {
        if (pid_ == 0) serve(address);
    }
    ~Echo() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Echo(const Echo&) = delete;
    Echo& operator=(const Echo&) = delete;
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    [[noreturn]] static void serve(const std::string& address) {
        const auto connection = sdbus::createSessionBusConnectionWithAddress(address);
        connection->requestName(kEchoName);
        const auto object = sdbus::createObject(*connection, "/echo");
        object->registerMethod("Echo").onInterface(kEchoName).implementedAs(
            [](std::uint32_t value) { return value; });
        object->registerMethod("List").onInterface(kEchoName).implementedAs(&list_answer);
        Row kept;
        object->registerMethod("Keep").onInterface(kEchoName).implementedAs(
            [&](const Row& columns) { kept = columns; });
        object->registerMethod("Kept").onInterface(kEchoName).implementedAs([&] { return kept; });
        object->finishRegistration();
        connection->enterEventLoop();
        std::_Exit(0);
    }
    pid_t pid_;
};

class Client {
public:
    explicit Client(const std::string& address)
        : connection_(sdbus::createSessionBusConnectionWithAddress(address)),
          echo_(proxy(kEchoName, "/echo")),
          manager_(proxy("org.vgpu1", "/org/vgpu1")),
          bus_(proxy("org.freedesktop.DBus", "/org/freedesktop/DBus")) {}

    void echo() {
        std::uint32_t answer = 0;
        echo_->callMethod("Echo").onInterface(kEchoName).withArguments(7u).storeResultsTo(answer);
    }
    void echo_list() {
        Row answer;
        echo_->callMethod("List").onInterface(kEchoName).storeResultsTo(answer);
    }
    void echo_keeps(const Row& columns) {
        echo_->callMethod("Keep").onInterface(kEchoName).withArguments(columns);
    }
    void echo_kept() {
        Row answer;
        echo_->callMethod("Kept").onInterface(kEchoName).storeResultsTo(answer);
    }
    [[nodiscard]] bool is_owned(const std::string& name) {
        bool is_owned = false;
        bus_->callMethod("NameHasOwner")
            .onInterface("org.freedesktop.DBus")
            .withArguments(name)
            .storeResultsTo(is_owned);
        return is_owned;
    }
    /// Lists these properties of all VFs; all properties if `names` is empty.
    Row list_vfs(const std::string& names = "") {
        Row answer;
        manager_->callMethod("ListVfs")
            .onInterface("org.vgpu1.Manager")
            .withArguments(Row{{"properties", names}})
            .storeResultsTo(answer);
        return answer;
    }
    [[nodiscard]] std::size_t count_vfs() {
        return list_vfs("Name").at("Name").get<std::vector<std::string>>().size();
    }
    [[nodiscard]] std::vector<Row> list_gpus() {
        std::vector<Row> answer;
        manager_->callMethod("ListGpus")
            .onInterface("org.vgpu1.Manager")
            .withArguments(Row{})
            .storeResultsTo(answer);
        return answer;
    }
    sdbus::ObjectPath create(const std::string& gpu, const std::string& name) {
        sdbus::ObjectPath made;
        manager_->callMethod("CreateVf")
            .onInterface("org.vgpu1.Manager")
            .withTimeout(std::chrono::seconds(60))
            .withArguments(gpu, Row{{"name", name}, {"vram_bytes", std::uint64_t{64} << 20}})
            .storeResultsTo(made);
        return made;
    }
    void take(const std::string& vf) { vf_ = proxy("org.vgpu1", vf); }
    void read_property() {
        static_cast<void>(vf_->getProperty("Weight").onInterface("org.vgpu1.Vf"));
    }
    /// Claims the VF; returns the generation of the claim.
    std::uint64_t claim(const std::string& owner) {
        std::uint64_t generation = 0;
        vf_->callMethod("Claim")
            .onInterface("org.vgpu1.Vf")
            .withArguments(owner, Row{})
            .storeResultsTo(generation);
        return generation;
    }
    void release(const std::string& owner, std::uint64_t generation) {
        vf_->callMethod("Release")
            .onInterface("org.vgpu1.Vf")
            .withArguments(owner, generation, Row{});
    }
    void set_weight(std::uint32_t weight) {
        vf_->callMethod("Set").onInterface("org.vgpu1.Vf").withArguments(Row{{"weight", weight}});
    }

private:
    [[nodiscard]] std::unique_ptr<sdbus::IProxy> proxy(const std::string& name,
                                                       const std::string& path) const {
        auto made = sdbus::createProxy(*connection_, name, path);
        made->finishRegistration();
        return made;
    }
    std::unique_ptr<sdbus::IConnection> connection_;
    std::unique_ptr<sdbus::IProxy> echo_, manager_, bus_, vf_;
};

/// Medians of interleaved rounds, so that both sides see the same load of the machine.
struct Pair {
    double floor_ms = 0, vgpu_ms = 0;
};
Pair compare(int count, const std::function<void()>& floor, const std::function<void()>& subject) {
    std::vector<double> floors, measured;
    for (int round = 0; round < kRounds; ++round) {
        floors.push_back(median_of(count, floor));
        measured.push_back(median_of(count, subject));
    }
    return {median(std::move(floors)), median(std::move(measured))};
}
/// While it exists, all threads of some processes run on the first CPU that this process may use.
/// The kernel's choice of CPUs then does not change the figure. New threads inherit the CPU.
class OnOneCpu {
public:
    explicit OnOneCpu(std::vector<pid_t> processes) : processes_(std::move(processes)) {
        if (::sched_getaffinity(0, sizeof all_, &all_) != 0)
            throw std::runtime_error("sched_getaffinity");
        int first = 0;
        while (!CPU_ISSET(first, &all_)) ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        put(one);
    }
    ~OnOneCpu() { put(all_); }
    OnOneCpu(const OnOneCpu&) = delete;
    OnOneCpu& operator=(const OnOneCpu&) = delete;

private:
    void put(const cpu_set_t& cpus) const {
        for (const pid_t process : processes_)
            for (const auto& task :
                 std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process)))
                ::sched_setaffinity(std::stoi(task.path().filename()), sizeof cpus, &cpus);
    }
    std::vector<pid_t> processes_;
    cpu_set_t all_{};
};

void ratio(const std::string& what, const Pair& pair, const std::string& aim) {
    row(what, fmt::format("{:.3f} / {:.3f} ms", pair.vgpu_ms, pair.floor_ms));
    row("  ratio", fmt::format("{:.2f}", pair.vgpu_ms / pair.floor_ms), aim);
}

/// Makes the system calls by which vgpud replaces the file of one GPU, with as many bytes.
class DurableReplace {
public:
    explicit DurableReplace(std::string path) : path_(std::move(path)) {}
    void operator()() const {
        const std::string text(6000, 'x'), temporary = path_ + ".new", copy = path_ + ".bak";
        {
            const adapters::UniqueFd fd(
                ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
            if (::write(fd.get(), text.data(), text.size()) < 0 || ::fdatasync(fd.get()) != 0)
                throw std::runtime_error("fdatasync " + temporary);
        }
        ::unlink(copy.c_str());
        static_cast<void>(::link(path_.c_str(), copy.c_str()));
        const std::string directory = path_.substr(0, path_.rfind('/'));
        const adapters::UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (::rename(temporary.c_str(), path_.c_str()) != 0 || ::fsync(fd.get()) != 0)
            throw std::runtime_error("rename to " + path_);
    }

private:
    std::string path_;
};

/// Runs both sides in turns for 12 s. The kernel remembers how many threads a thread has woken,
/// halves the number once a second, and chooses CPUs by it. vgpud's main loop has just woken 16
/// threads to make 256 VFs, which would change the figure for some seconds.
void settle(const std::function<void()>& floor, const std::function<void()>& subject) {
    const auto until = Clock::now() + std::chrono::seconds(12);
    while (Clock::now() < until) {
        floor();
        subject();
    }
}

bool all_is_back(Client& client) {
    const auto gpus = client.list_gpus();
    return gpus.size() == kGpus && std::ranges::all_of(gpus, [](const auto& gpu) {
               return gpu.at("State").template get<std::string>() == "ok";
           });
}

void restart(Plane& plane, Client& client) {
    std::vector<double> owned, recovered;
    for (int round = 0; round < kRounds; ++round) {
        plane.kill_daemon();
        const auto start = Clock::now();
        const auto passed = [&] {
            return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
        };
        plane.launch_daemon();
        while (!client.is_owned("org.vgpu1")) ::usleep(500);
        owned.push_back(passed());
        while (!all_is_back(client)) ::usleep(500);
        recovered.push_back(passed());
        if (const auto vfs = client.count_vfs(); vfs != kGpus * kVfsPerGpu)
            throw std::runtime_error(fmt::format("{} VFs after the restart", vfs));
    }
    row("from exec to the name on the bus, 256 VFs of state",
        fmt::format("{:.1f} ms", median(owned)), "<= 50 ms");
    row("from exec to 16 GPUs adopted, after kill -9", fmt::format("{:.1f} ms", median(recovered)),
        "<= 100 ms");
}

double claims(Client& client) {
    const std::string owner = "bench:1";
    std::vector<double> times;
    for (int i = 0; i < 40; ++i) {
        std::uint64_t generation = 0;
        times.push_back(milliseconds_of([&] { generation = client.claim(owner); }));
        client.release(owner, generation);
    }
    return median(std::move(times));
}

void run() {
    Plane plane;
    const Echo echo(plane.bus_address());
    Client client(plane.bus_address());
    while (!client.is_owned(kEchoName) || !all_is_back(client)) ::usleep(1000);

    fmt::print("  {:<58} {:>22}   {}\n", "figure", "measured / floor", "aim");
    row("resident memory of vgpud, 16 GPUs without VFs",
        fmt::format("{:.1f} MiB", plane.resident_mib()), "<= 16 MiB");
    sdbus::ObjectPath last;
    for (std::size_t gpu = 0; gpu < kGpus; ++gpu)
        for (std::size_t vf = 0; vf < kVfsPerGpu; ++vf)
            last = client.create(fmt::format("gpu{}", gpu), fmt::format("vm{}-{}", gpu, vf));
    client.take(last);
    row("resident memory of vgpud, 256 VFs", fmt::format("{:.1f} MiB", plane.resident_mib()),
        "<= 25 MiB");

    const auto empty = [&] { client.echo(); };
    const auto read = [&] { client.read_property(); };
    ratio("one property / Echo, just after 256 VFs were made", compare(200, empty, read), "");
    settle(empty, read);
    ratio("one property / Echo", compare(200, empty, read), "<= 1.3");
    {
        std::vector<pid_t> all = plane.servers();
        all.insert(all.end(), {echo.pid(), ::getpid()});
        const OnOneCpu together(std::move(all));
        ratio("one property / Echo, all on one CPU", compare(200, empty, read), "<= 1.3");
    }
    ratio("ListVfs of 256 VFs, those of a table / Echo of the same",
          compare(
              10, [&] { client.echo_list(); }, [&] { client.list_vfs(kColumns); }),
          "<= 3");
    client.echo_keeps(client.list_vfs());
    ratio("ListVfs of 256 VFs, all properties / Echo of the same",
          compare(
              3, [&] { client.echo_kept(); }, [&] { client.list_vfs(); }),
          "<= 3");
    const DurableReplace durable(plane.state_file("figures.tmp"));
    std::uint32_t weight = 100;
    ratio("a new weight, durable / its system calls + Echo",
          compare(
              200,
              [&] {
                  durable();
                  client.echo();
              },
              [&] { client.set_weight(++weight); }),
          "<= 1.3");
    row("a VF claimed, clean slice ready", fmt::format("{:.2f} ms", claims(client)), "<= 10 ms");
    row("vgpuctl list, 256 VFs", fmt::format("{:.1f} ms", median_of(20, [&] { plane.list(); })),
        "<= 15 ms");
    restart(plane, client);
    std::this_thread::sleep_for(2 * adapters::HeapTrimmer::kQuiet);
    row("resident memory of vgpud, 256 VFs, adopted",
        fmt::format("{:.1f} MiB", plane.resident_mib()), "<= 25 MiB");
}

}  // namespace
}  // namespace vgpu::daemon

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    try {
        vgpu::daemon::run();
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-operator-figures: {}\n", error.what());
        return 1;
    }
}
