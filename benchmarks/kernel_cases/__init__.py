"""The workloads of benchmarks/kernels.py; what they are made of is in benchmarks/native.

grid        the ocean: sizes, masks, spacings, fields
peers       a kernel handed to every library
state       the equation of state, beside C by hand
mixing      isoneutral mixing
turbulence  turbulent kinetic energy
orders      Hessians, their products, and fifth derivatives
"""
