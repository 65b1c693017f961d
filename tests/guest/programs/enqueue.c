// SPDX-License-Identifier: MIT
// Kernels that start kernels (OpenCL 2.0, enqueue_kernel): the device writes packets into a queue
// and rings its doorbell, which KFD maps for the GPU at the bus address of the device's own BAR.
#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 256, QUEUE_BYTES = 64 << 10 };

static const char* source =
    "kernel void parent(global uint *out, global int *status, uint factor) {\n"
    "    if (get_global_id(0) != 0) return;\n"
    "    queue_t queue = get_default_queue();\n"
    "    status[0] = enqueue_kernel(queue, CLK_ENQUEUE_FLAGS_WAIT_KERNEL, ndrange_1D(256, 64), ^{\n"
    "        const uint i = get_global_id(0);\n"
    "        out[i] = i * factor + 1;\n"
    "        if (i != 0) return;\n"
    "        status[1] = enqueue_kernel(get_default_queue(), CLK_ENQUEUE_FLAGS_WAIT_KERNEL,\n"
    "                                   ndrange_1D(256, 64), ^{\n"
    "            const uint k = get_global_id(0);\n"
    "            out[256 + k] = out[k] * 3;\n"
    "        });\n"
    "    });\n"
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

static cl_kernel build(cl_context context, cl_device_id device) {
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    check("clCreateProgramWithSource", error);
    error = clBuildProgram(program, 1, &device, "-cl-std=CL2.0", NULL, NULL);
    if (error != CL_SUCCESS) {
        char log[4096] = "";
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log, NULL);
        printf("%s\n", log);
    }
    check("clBuildProgram", error);
    cl_kernel kernel = clCreateKernel(program, "parent", &error);
    check("clCreateKernel", error);
    return kernel;
}

static cl_command_queue make_queue(cl_context context, cl_device_id device,
                                   const cl_queue_properties* properties) {
    cl_int error;
    cl_command_queue queue =
        clCreateCommandQueueWithProperties(context, device, properties, &error);
    check("clCreateCommandQueueWithProperties", error);
    return queue;
}

int main(void) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    check("clGetPlatformIDs", clGetPlatformIDs(1, &platform, NULL));
    check("clGetDeviceIDs", clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL));
    cl_uint queues = 0;
    clGetDeviceInfo(device, CL_DEVICE_MAX_ON_DEVICE_QUEUES, sizeof(queues), &queues, NULL);
    expect("a queue on the device", queues > 0);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    check("clCreateContext", error);
    cl_command_queue queue = make_queue(context, device, NULL);
    const cl_queue_properties on_device[] = {
        CL_QUEUE_PROPERTIES,
        CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_ON_DEVICE | CL_QUEUE_ON_DEVICE_DEFAULT,
        CL_QUEUE_SIZE, QUEUE_BYTES, 0};
    cl_command_queue device_queue = make_queue(context, device, on_device);
    cl_kernel kernel = build(context, device);

    cl_uint out[2 * ITEMS] = {0};
    cl_int status[2] = {-1, -1};
    cl_mem dout = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(out), out, &error);
    check("clCreateBuffer", error);
    cl_mem dstatus = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(status), status, &error);
    check("clCreateBuffer", error);
    const cl_uint factor = 7;
    clSetKernelArg(kernel, 0, sizeof(dout), &dout);
    clSetKernelArg(kernel, 1, sizeof(dstatus), &dstatus);
    clSetKernelArg(kernel, 2, sizeof(factor), &factor);
    const size_t range = 64;
    check("clEnqueueNDRangeKernel",
          clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &range, NULL, 0, NULL, NULL));
    check("clFinish", clFinish(queue));
    check("clEnqueueReadBuffer",
          clEnqueueReadBuffer(queue, dstatus, CL_TRUE, 0, sizeof(status), status, 0, NULL, NULL));
    check("clEnqueueReadBuffer",
          clEnqueueReadBuffer(queue, dout, CL_TRUE, 0, sizeof(out), out, 0, NULL, NULL));
    expect("the parent's enqueue", status[0] == 0);
    expect("the child's enqueue", status[1] == 0);
    for (cl_uint i = 0; i < ITEMS; i++) {
        expect("what the child wrote", out[i] == i * factor + 1);
        expect("what the grandchild wrote", out[ITEMS + i] == (i * factor + 1) * 3);
    }
    clReleaseCommandQueue(device_queue);
    printf("ok enqueue\n");
    return 0;
}
