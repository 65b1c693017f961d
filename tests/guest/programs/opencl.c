// SPDX-License-Identifier: MIT
// OpenCL: a program built at run time by the guest's compiler; LDS, barriers, atomics, a 2D range,
// an event time.
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS 20
#define SIZE 64
#define COUNT (GROUPS * SIZE)

static const char* source =
    "kernel void sums(global const uint *x, global uint *sums, global uint *total) {\n"
    "    local uint part[64];\n"
    "    const uint l = get_local_id(0);\n"
    "    part[l] = x[get_global_id(0)];\n"
    "    for (uint half_ = 32; half_ > 0; half_ /= 2) {\n"
    "        barrier(CLK_LOCAL_MEM_FENCE);\n"
    "        if (l < half_) part[l] += part[l + half_];\n"
    "    }\n"
    "    if (l == 0) { sums[get_group_id(0)] = part[0]; atomic_add(total, part[0]); }\n"
    "}\n"
    "kernel void transpose(global const float *in, global float *out, uint width, uint height) {\n"
    "    const uint x = get_global_id(0), y = get_global_id(1);\n"
    "    out[x * height + y] = sqrt(in[y * width + x]) * 2.0f;\n"
    "}\n";

static void check(const char* what, cl_int error) {
    if (error == CL_SUCCESS) return;
    printf("%s: OpenCL error %d\n", what, error);
    exit(1);
}

static void expect(const char* what, int holds) {
    if (holds) return;
    printf("%s does not hold\n", what);
    exit(1);
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check("clGetPlatformIDs", clGetPlatformIDs(1, &platform, NULL));
    check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check("clCreateContext", error);
    const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(context, device, properties, &error);
    check("clCreateCommandQueueWithProperties", error);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check("clCreateProgramWithSource", error);
    error = clBuildProgram(program, 1, &device, "-cl-std=CL1.2", NULL, NULL);
    if (error != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
        printf("%s\n", log);
    }
    check("clBuildProgram", error);

    cl_uint x[COUNT], sums[GROUPS], total = 0, want_total = 0;
    for (cl_uint i = 0; i < COUNT; i++) want_total += x[i] = i * 2654435761u;
    cl_mem dx =
        clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, sizeof(x), x, &error);
    check("clCreateBuffer", error);
    cl_mem dsums = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(sums), NULL, &error);
    check("clCreateBuffer", error);
    cl_mem dtotal = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(total),
                                   &total, &error);
    check("clCreateBuffer", error);
    cl_kernel kernel = clCreateKernel(program, "sums", &error);
    check("clCreateKernel", error);
    clSetKernelArg(kernel, 0, sizeof(dx), &dx);
    clSetKernelArg(kernel, 1, sizeof(dsums), &dsums);
    clSetKernelArg(kernel, 2, sizeof(dtotal), &dtotal);
    const size_t global = COUNT, local = SIZE;
    cl_event event;
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, &event));
    check("clEnqueueReadBuffer",
          clEnqueueReadBuffer(queue, dsums, CL_TRUE, 0, sizeof(sums), sums, 0, NULL, NULL));
    check("clEnqueueReadBuffer",
          clEnqueueReadBuffer(queue, dtotal, CL_TRUE, 0, sizeof(total), &total, 0, NULL, NULL));
    for (int g = 0; g < GROUPS; g++) {
        cl_uint want = 0;
        for (int i = 0; i < SIZE; i++) want += x[g * SIZE + i];
        expect("a group's sum", sums[g] == want);
    }
    expect("the total", total == want_total);
    cl_ulong begin = 0, end = 0;
    check("clGetEventProfilingInfo",
          clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, NULL));
    check("clGetEventProfilingInfo",
          clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL));
    expect("the kernel took some time", end > begin);

    const cl_uint width = 48, height = 16;
    float in[48 * 16], out[48 * 16];
    for (cl_uint i = 0; i < width * height; i++) in[i] = (float)(i * i);
    cl_mem din = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(in), in, &error);
    check("clCreateBuffer", error);
    cl_mem dout = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(out), NULL, &error);
    check("clCreateBuffer", error);
    kernel = clCreateKernel(program, "transpose", &error);
    check("clCreateKernel", error);
    clSetKernelArg(kernel, 0, sizeof(din), &din);
    clSetKernelArg(kernel, 1, sizeof(dout), &dout);
    clSetKernelArg(kernel, 2, sizeof(width), &width);
    clSetKernelArg(kernel, 3, sizeof(height), &height);
    const size_t range[] = {width, height};
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 2, NULL, range, NULL, 0, NULL, NULL));
    check("clEnqueueReadBuffer",
          clEnqueueReadBuffer(queue, dout, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
    for (cl_uint y = 0; y < height; y++)
        for (cl_uint i = 0; i < width; i++)
            expect("a transposed root", out[i * height + y] == 2.0f * (float)(y * width + i));
    printf("ok opencl\n");
    return 0;
}
