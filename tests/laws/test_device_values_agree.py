"""Kernels, run by an emulated device, give the values of eager execution.

What runs on the host in double precision is listed here, so that a fall back to it shows; the page
docs/gpu.md says why.
"""

import numpy as np

from wengert._engine.backends.cuda.host_callbacks import CallbackLog
from wengert.testing.laws.native_code import device_values_agree

PLAIN = {np.dtype(t) for t in (np.float64, np.int64, np.uint64, np.int32, np.bool_)}
ON_HOST = set(
    "argpartition definite_packed det_derivative expm histogram_sums lexsort linalg.balancing "
    "linalg.banded_solve linalg.block_signs linalg.continuous_are linalg.definite_banded_solve "
    "linalg.discrete_are linalg.ldl_factors linalg.left_eig linalg.logarithm linalg.lu_factors "
    "linalg.matrix_sign linalg.schur_form linalg.schur_rotation linalg.square_root "
    "linalg.structured_solve linalg.sylvester linalg.toeplitz_solve matrix_rank pinv "
    "random_binomial random_poisson reciprocal_condition row_by_row scatter_add signal.lfilter "
    "sized tied bracketed interpolate.banded isotonic_blocks linear_sum_assignment "
    "nonlinear_program partition_sum quadrature scipy_integral scipy_integral.reported "
    "scipy_lsoda scipy_solver sparse.iterative_method sparse.near_solve sparse.row_numbers "
    "sparse.selected_inverse sparse.slogdet sparse.solve sundials_cotangents "
    "sundials_states".split()
)
FAMILIES = ("special.", "mpi.", "debug_")  # CuPy lacks many; messages and printing


def test_device_values_agree(op, rng, monkeypatch):
    seen = []
    note = CallbackLog.note

    def noted(self, node, reason=None):
        dtypes = {a.spec.dtype for a in node.inputs}
        if node.op is op and dtypes <= PLAIN and np.dtype(np.float64) in dtypes:
            seen.append(f"{node} ({reason})")
        note(self, node, reason)

    monkeypatch.setattr(CallbackLog, "note", noted)
    device_values_agree(op, rng)
    assert not seen or op.name in ON_HOST or op.name.startswith(FAMILIES), seen[0]
