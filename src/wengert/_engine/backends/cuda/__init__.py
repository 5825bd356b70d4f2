"""The backend "cuda": a graph as kernels of a graphics card, and calls of its libraries.

backend          "cuda"
program          the stages of a graph: kernels, calls, loops
kernel_codegen   a loop group as a function that many threads run
library_calls    operations as a whole, by the library of the device or on the host
device           what a program needs of a device, and the one in use
cupy_device      a graphics card, by CuPy
emulated_device  a device that the processor emulates, for tests
"""
