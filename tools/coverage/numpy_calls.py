"""A call of every public function of numpy, numpy.linalg and numpy.fft, to be probed with.

One line for each: its name, and the arguments, in which these stand for arrays of float64:

    V W      four numbers between 0 and 1, distinct           A B      matrices, 3 by 3
    X Y      2 by 3                                           P        positive definite, 3 by 3
    T        2 by 2 by 3                                      Z        four complex numbers
    I J      four integers                                    C        four booleans

The floating arrays are what is differentiated by.  A name that is not here is called with V, or
with V and W if NumPy says that it takes two.
"""

from __future__ import annotations

NUMPY = """
acosh V + 1
allclose V, W
apply_along_axis square_sum, 0, X
apply_over_axes np.sum, X, 0
arange 5
arccosh V + 1
argpartition V, 2
array_split V, 2
array [1.0, 2.0]
asanyarray V
asarray V
asarray_chkfinite V
ascontiguousarray X
asfortranarray X
astype V, np.complex128
atleast_3d X
average V, weights=W
bartlett 5
bincount I, W
bitwise_and I, J
bitwise_count I
bitwise_invert I
bitwise_left_shift I, J
bitwise_not I
bitwise_or I, J
bitwise_right_shift I, J
bitwise_xor I, J
blackman 5
block [[X, X], [Y, Y]]
broadcast_arrays V, A[:, :1]
broadcast_shapes (2, 1), (3,)
broadcast_to V, (2, 4)
can_cast np.float32, np.float64
choose [0, 1, 0, 1], [V, W]
clip V, 0.3, 0.6
column_stack (V, W)
compress C, V
concat (V, W)
concatenate (X, Y)
copyto V, W * 2
corrcoef X
cov X
cross X, Y
cumulative_prod V
cumulative_sum V
delete V, 1
diag_indices 3
diag_indices_from A
diagonal A
digitize V, [0.25, 0.5, 0.75]
dot A, B
dsplit T, [1]
einsum "ij,jk->ik", A, B
einsum_path "ij,jk->ik", A, B
empty 3
empty_like I
expand_dims V, 0
extract C, V
eye 3
fill_diagonal A, V[:3]
flip V
fliplr X
from_dlpack V
full 3, V[0]
full_like V, W[0]
gcd I, J
geomspace V[0], W[1] + 1, 5
hamming 5
hanning 5
heaviside V, W
histogram V, bins=3, range=(0, 1), weights=W
histogram2d V, W, 3, weights=V
histogram_bin_edges V, 3
histogramdd (V, W), bins=3, weights=V
hsplit X, 3
hstack (V, W)
i0 V
identity 3
indices (2, 3)
inner X, Y
insert V, 1, W[0]
interp [0.3, 0.6], [0.1, 0.4, 0.9], V[:3]
invert I
isdtype np.float64, "real floating"
isin V, W
ix_ [0, 1], [1, 2]
kaiser 5, V[0]
kron X, Y
lcm I, J
ldexp V, I
left_shift I, J
lexsort (V, W)
linspace V[0], W[1], 5
logspace V[0], W[1], 5
mask_indices 3, np.triu
matmul A, B
matrix_transpose A
matvec A, V[:3]
meshgrid V, W
min_scalar_type V
moveaxis T, 0, -1
nan_to_num V
nanpercentile V, 30.0
nanquantile V, 0.3
ones 3
packbits I.astype(np.uint8)
pad V, 2
partition V, 2
percentile V, 30.0
permute_dims X
piecewise V, [V > 0.5], [np.sin, np.cos]
place V, C, W
poly V
polyadd V, W
polyder V
polydiv V, W[:2]
polyfit V, W, 1
polyint V
polymul V, W
polysub V, W
polyval V, W
promote_types np.float32, np.int64
put V, [0, 1], W[:2]
put_along_axis X, np.zeros((2, 1), int), W[:1], 1
putmask V, C, W
quantile V, 0.3
ravel_multi_index (1, 2), (3, 4)
repeat V, 2
reshape X, (3, 2)
resize V, (2, 3)
result_type V, np.float32
right_shift I, J
roll V, 1
rollaxis T, 2
rot90 X
angle Z
imag Z
real Z
intersect1d V, V
round V * 10 + 0.2
around V * 10 + 0.2
searchsorted np.sort(V), W
select [V > 0.5, V > 0.3], [V, W], 0.0
split V, 2
squeeze V[None]
stack (V, W)
swapaxes X, 0, 1
take V, [0, 2, 2]
take_along_axis X, np.zeros((2, 1), int), 1
tensordot X, Y, axes=([0, 1], [0, 1])
tile V, 2
trace A
trapezoid V, W
tri 3
tril A
tril_indices 3
tril_indices_from A
triu A
triu_indices 3
triu_indices_from A
unpackbits I.astype(np.uint8)
unravel_index 4, (2, 3)
unstack X
vdot V, W
vecdot V, W
vecmat V[:3], A
vsplit X, 2
vstack (V, W)
where C, V, W
zeros 3
"""

LINALG = """
cholesky P
cond A
cross X, Y
det A
diagonal A
eig A @ np.diag([1.0, -1.0, 1.0])[:, [1, 0, 2]]
eigh P
eigvals A @ np.diag([1.0, -1.0, 1.0])[:, [1, 0, 2]]
eigvalsh P
inv A
lstsq np.vstack([A, X]), np.array([0.3, 0.6, 0.1, 0.7, 0.2])
matmul A, B
matrix_norm A
matrix_power A, 3
matrix_rank A
matrix_transpose A
multi_dot (A, B, P)
norm A
outer V, W
pinv X
qr A
slogdet A
solve A, V[:3]
svd X, full_matrices=False
svdvals X
tensordot X, Y
tensorinv A, 1
tensorsolve A, V[:3]
trace A
vecdot V, W
vector_norm V
"""

FFT = """
fft2 X
fftfreq 5
fftn X
fftshift V
ifft2 X
ifftn X
ifftshift V
irfft2 X
irfftn X
rfft2 X
rfftfreq 5
rfftn X
"""

# Of each family of polynomials; % stands for what the names of its functions begin with.
SERIES = """
%2poly V
%add V, W
%companion V
%der V
%div V, W[:2]
%fit V, W, 1
%fromroots V
%gauss 3
%grid2d V, W, A
%grid3d V, W, V, T
%int V
%interpolate np.exp, 2
%line V[0], W[1]
%mul V, W
%mulx V
%pow V, 2
%pts1 3
%pts2 3
%roots np.array([2.0, 0.2, 0.5])
%sub V, W
%trim V, 0.2
%val V, W
%val2d V, W, A
%val3d V, W, V, T
%valfromroots V, W
%vander V, 2
%vander2d V, W, (1, 2)
%vander3d V, W, V, (1, 2, 1)
%weight V
poly2% V
"""
FAMILIES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "laguerre": "lag",
    "hermite": "herm",
    "hermite_e": "herme",
}

# How a call is a function of its arrays, where it is in another way; see `probe.Program`.
WAYS: dict[str, dict[str, str]] = {
    "numpy": dict.fromkeys(
        "copyto fill_diagonal place put put_along_axis putmask".split(), "changed"
    ),
    "numpy.linalg": dict.fromkeys("cholesky eigh eigvalsh".split(), "symmetric 0"),
}
