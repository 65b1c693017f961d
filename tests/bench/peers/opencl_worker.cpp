// SPDX-License-Identifier: MIT
//
// vgpu-peer-opencl PLATFORM: the worker that runs workloads on another implementation of OpenCL. It
// uses the first device of the platform whose name begins with PLATFORM. The kernels are the
// sources of softgpu's code objects. Time is from the first clEnqueueNDRangeKernel to the end of
// clFinish.
#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 110
#include <CL/opencl.hpp>

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/bench/peers/worker.h"

namespace vgpu::test {
namespace {

std::string text_of(const std::string& name) {
    const std::string path = std::string(VGPU_KERNEL_SOURCES) + "/" + name;
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open the kernel's text " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The kernel's source with its header in place of the #include, because not every compiler finds
/// files.
std::string source_of(const std::string& kernel) {
    static const std::string include = "#include \"kernel.h\"";
    std::string text = text_of(kernel + ".cl");
    const auto at = text.find(include);
    if (at == std::string::npos) throw std::runtime_error(kernel + ".cl includes no kernel.h");
    return text.replace(at, include.size(), text_of("kernel.h"));
}

cl::Device device_of(const std::string& wanted) {
    std::vector<cl::Platform> platforms;
    cl::Platform::get(&platforms);
    std::string seen;
    for (const auto& platform : platforms) {
        const auto name = platform.getInfo<CL_PLATFORM_NAME>();
        seen += " '" + name + "'";
        if (!name.starts_with(wanted)) continue;
        std::vector<cl::Device> devices;
        platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
        if (!devices.empty()) return devices.front();
    }
    throw std::runtime_error(fmt::format("no platform '{}' with a device; there are:{}", wanted,
                                         seen.empty() ? " none" : seen));
}

class OpenCl final : public Machine {
public:
    explicit OpenCl(const std::string& platform)
        : device_(device_of(platform)), context_(device_), queue_(context_, device_) {}

    [[nodiscard]] std::string description() const override {
        return fmt::format("{}, {}, compute units: {}", device_.getInfo<CL_DEVICE_VERSION>(),
                           device_.getInfo<CL_DEVICE_NAME>(),
                           device_.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    }

    void place(const Workload& workload) override {
        kernel_ = cl::Kernel(build(workload.kernel), workload.kernel.c_str());
        buffers_.clear();
        for (const auto& words : workload.buffers)
            buffers_.emplace_back(context_, CL_MEM_READ_WRITE, words.size() * sizeof(words[0]));
        for (cl_uint i = 0; i < workload.arguments.size(); ++i) {
            const auto& argument = workload.arguments[i];
            if (argument.kind == WorkArgument::Kind::Buffer)
                kernel_.setArg(i, buffers_[argument.value]);
            else
                kernel_.setArg(i, sizeof argument.value, &argument.value);
        }
        items_ = cl::NDRange(workload.items[0], workload.items[1]);
        group_ = cl::NDRange(workload.group[0], workload.group[1]);
        output_ = workload.output;
        output_words_ = workload.expected.size();
    }

    void refill(const Workload& workload) override {
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            const auto& words = workload.buffers[i];
            queue_.enqueueWriteBuffer(buffers_[i], CL_TRUE, 0, words.size() * sizeof(words[0]),
                                      words.data());
        }
    }

    void run(std::uint32_t runs) override {
        for (std::uint32_t i = 0; i < runs; ++i)
            queue_.enqueueNDRangeKernel(kernel_, cl::NullRange, items_, group_);
        queue_.finish();
    }

    [[nodiscard]] WorkWords output() override {
        WorkWords out(output_words_);
        queue_.enqueueReadBuffer(buffers_[output_], CL_TRUE, 0, out.size() * sizeof(out[0]),
                                 out.data());
        return out;
    }

private:
    cl::Program build(const std::string& kernel) {
        cl::Program program(context_, source_of(kernel));
        try {
            program.build("-cl-std=CL1.2");
        } catch (const cl::Error&) {
            throw std::runtime_error(kernel + ".cl does not compile: " +
                                     program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_));
        }
        return program;
    }

    cl::Device device_;
    cl::Context context_;
    cl::CommandQueue queue_;
    cl::Kernel kernel_;
    std::vector<cl::Buffer> buffers_;
    cl::NDRange items_, group_;
    std::size_t output_ = 0, output_words_ = 0;
};

}  // namespace
}  // namespace vgpu::test

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: vgpu-peer-opencl PLATFORM, as the platform's name begins\n");
        return 2;
    }
    try {
        vgpu::test::OpenCl machine(argv[1]);
        return vgpu::test::serve(machine);
    } catch (const cl::Error& error) {
        fmt::print(stderr, "vgpu-peer-opencl: {}: error {}\n", error.what(), error.err());
    } catch (const std::exception& error) {
        fmt::print(stderr, "vgpu-peer-opencl: {}\n", error.what());
    }
    return 1;
}
