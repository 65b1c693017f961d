// SPDX-License-Identifier: MIT
// Ackermann and Fibonacci numbers on a stack of calls in scratch.
#define PHASES 1
#define LOCAL_WORDS 1
#ifdef __OPENCL_C_VERSION__
__attribute__((noinline))
#endif
static uint
fibonacci_step(uint a, uint b, uint left, uint* last) {
    *last = b;
    return left == 0 ? a : a + b;
}
static inline uint fibonacci(uint n) {
    uint a = 0, b = 1, last = 0;
    for (uint k = 0; k < n; ++k) {
        const uint next = fibonacci_step(a, b, n - k, &last);
        a = last;
        b = next;
    }
    return a;
}
static void item(uint phase, uint id, uint in_group, local uint* shared, global const uint* in,
                 global uint* out) {
    (void)phase, (void)in_group, (void)shared;
    uint stack[64];
    uint depth = 0, n = in[id] % 5;
    stack[depth++] = id % 2 + 1;
    while (depth > 0) {
        const uint m = stack[--depth];
        if (m == 0) {
            n = n + 1;
        } else if (n == 0) {
            n = 1;
            stack[depth++] = m - 1;
        } else {
            n = n - 1;
            stack[depth++] = m - 1;
            stack[depth++] = m;
        }
    }
    out[0] = n;
    out[1] = fibonacci(id % 12);
}
