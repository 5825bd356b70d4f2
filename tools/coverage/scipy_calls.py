"""Calls of functions of SciPy that are not called as their operations are, to be probed with.

Written as in numpy_calls.py, with the same names for arrays, one table for each package; besides, S
are four places in order, L twelve numbers, U the band of a positive definite matrix.  What is not
here is called with the operands that its operation states, or with usual arguments that SciPy
takes.
"""

from __future__ import annotations

SCIPY: dict[str, str] = {
    "special": """
bdtr 2, 5, V
bdtrc 2, 5, V
bdtri 2, 5, V
eval_hermite 3, V
eval_hermitenorm 3, V
nbdtr 2, 5, V
nbdtrc 2, 5, V
nbdtri 2, 5, V
comb V * 9, W * 3
assoc_laguerre V, 2.5, 1.2
chebyc 3
chebys 3
chebyt 3
chebyu 3
chndtr V, W, V + W
chndtridf V, W * 0.3, V + W
chndtrinc V + 3, W, V * 0.3
chndtrix V, W, V + W
diric V, 3
eval_chebyc 2.5, V
eval_chebys 2.5, V
eval_sh_chebyt 2.5, V
eval_sh_chebyu 2.5, V
eval_sh_jacobi 2.5, 2.7, 1.4, V
eval_sh_legendre 2.5, V
expn I, V
h1vp 1.5, V
h2vp 1.5, V
hermite 3
hermitenorm 3
ivp 1.5, V
jvp 1.5, V
kvp 1.5, V
laguerre 3
legendre 3
legendre_p 3, V
sh_chebyt 3
sh_chebyu 3
sh_legendre 3
sph_harm_y 2, 1, V, W
spherical_jn 2, V
spherical_yn 2, V
spherical_in 2, V
spherical_kn 2, V
stdtridf V * 0.15 + 0.65, W + 0.5
yvp 1.5, V
factorial V * 5
log_softmax V
logsumexp V
multigammaln V + 3, 2
perm V * 9, W * 3
polygamma 2, V
round V * 10 + 0.2
softmax V
factorial2 I
factorialk I, 2
""",
    "linalg": """
block_diag A, X
cho_factor P
cho_solve (scipy.linalg.cholesky(P, lower=True), True), V[:3]
cho_solve_banded (scipy.linalg.cholesky_banded(U), False), V[:3]
cholesky P
cholesky_banded U
companion V
convolution_matrix V, 5
det A
dft 4
diagsvd V[:2], 2, 3
eig A @ np.diag([1.0, -1.0, 1.0])[:, [1, 0, 2]]
eig_banded U
eigh P
eigh_tridiagonal V, W[:3]
eigvals A @ np.diag([1.0, -1.0, 1.0])[:, [1, 0, 2]]
eigvals_banded U
eigvalsh P
eigvalsh_tridiagonal V, W[:3]
expm A
expm_cond A
expm_frechet A, B
fiedler V
fractional_matrix_power P, 0.3
funm P, np.exp
hadamard 4
hankel V, W
helmert 4
hessenberg A
hilbert 3
inv A
invhilbert 3
invpascal 3
issymmetric A
ishermitian A
bandwidth A
khatri_rao X, Y
kron X, Y
ldl P
leslie V, W[:3]
logm P
lstsq np.vstack([A, X]), np.array([0.3, 0.6, 0.1, 0.7, 0.2])
lu A
lu_factor A
lu_solve scipy.linalg.lu_factor(A), V[:3]
matmul_toeplitz V, W
matrix_balance A
norm A
null_space X
ordqz A, B
orth X
orthogonal_procrustes A, B
pascal 3
pinv X
pinvh P
polar A
qr A
qr_multiply A, B
qz A, B
rq A
rsf2csf *scipy.linalg.schur(np.array([[1.0, 2.0], [-0.3, 1.2]]))
schur A
signm A
solve A, V[:3]
solve_banded (1, 1), np.array([[0.0, 0.3, 0.2], [2.1, 1.7, 1.9], [0.4, 0.1, 0.0]]), V[:3]
solve_circulant V, W
solve_continuous_are A, B, P, np.eye(3)
solve_continuous_lyapunov A, P
solve_discrete_are A * 0.3, B, P, np.eye(3)
solve_discrete_lyapunov A * 0.3, P
solve_lyapunov A, P
solve_sylvester A, B, P
solve_toeplitz np.array([2.3, 0.4, 0.2, 0.1]), V
solve_triangular np.tril(A), V[:3], lower=True
solveh_banded U, V[:3]
sqrtm P
subspace_angles A[:, :1], B[:, :2]
svd X, full_matrices=False
toeplitz V, W
cdf2rdf *np.linalg.eig(np.array([[1.0, 2.0], [-0.3, 1.2]]))
cossin np.linalg.qr(P)[0], 1, 1
clarkson_woodruff_transform A, 2
sinm A
cosm A
tanm A * 0.3
sinhm A
coshm A
tanhm A
""",
    "fft": """
fft2 X
fftn X
dctn X
dstn X
idctn X
idstn X
fftfreq 5
fftshift V
hfft2 X
hfftn X
ifft2 X
ifftn X
ifftshift V
ihfft2 X
ihfftn X
irfft2 X
irfftn X
next_fast_len 7
prev_fast_len 7
rfft2 X
rfftfreq 5
rfftn X
fht V, 0.1, 0.5
ifht V, 0.1, 0.5
fhtoffset 0.1, 0.5
""",
    "signal": """
butter 2, V[0]
cheby1 3, 0.5, V[0]
cheby2 3, 20.0, V[:2], "bandpass"
lp2lp_zpk V, W, V[1], W[1]
lp2hp_zpk V, W, V[1], W[1]
lp2bp_zpk V[:2], W * (1 + 1j), V[1], W[1], V[2]
lp2bs_zpk V[:2] * (1 + 1j), W * (1 + 1j), V[1], W[1], V[2]
bilinear_zpk -V[:2], -W, V[1], W[1] * 9
chirp V, W[0], 1.3, W[1], "logarithmic"
sawtooth V, 0.7
square V, 0.3
gausspulse V, 0.8
vectorstrength V, W[0]
freqs V, W, L
freqz_zpk V, W, V[1], L
freqz_sos [[0.3, 0.2, 0.1, 1.0, -0.4, 0.2]], L
wiener L, 3
medfilt2d X, 3
group_delay (V, W), S
convolve2d X, Y
correlate2d X, Y
deconvolve V, W[:2]
filtfilt [0.3, 0.2], [1.0, -0.4], L
firwin 5, 0.3
freqz V, W
lfilter W[:2], V[:3], np.linspace(0.1, 1.0, 6) ** 2
lfilter_zi W[:2], V[:3]
lfiltic W[:2], V[:3], W
get_window "hann", 5
hilbert2 X
medfilt V
resample_poly V, 2, 1
oaconvolve V, W
periodogram V
resample V, 6
savgol_filter np.linspace(0.1, 1.0, 9) ** 2, 5, 2
sosfilt [[0.3, 0.2, 0.1, 1.0, -0.4, 0.2]], np.linspace(0.1, 1.0, 6) ** 2
sosfiltfilt [[0.3, 0.2, 0.1, 1.0, -0.4, 0.2]], np.linspace(0.1, 1.0, 30) ** 2
sosfilt_zi [[0.3, 0.2, 0.1, 1.0, -0.4, 0.2]]
spectrogram L, nperseg=4
stft L, nperseg=4
welch L, nperseg=4
csd L, np.linspace(0.3, 0.9, 12) ** 2, nperseg=4
coherence L, np.linspace(0.3, 0.9, 12) ** 2, nperseg=4
upfirdn W, V
decimate np.linspace(0.1, 1.0, 40) ** 2, 2
detrend V
""",
    "interpolate": """
Akima1DInterpolator np.array([0.0, 0.4, 0.9, 1.3, 1.9]), np.append(V, 0.9), W
BSpline np.array([-0.3, -0.1, 0.0, 0.5, 1.0, 1.2, 1.3]), V, 2, W
CubicHermiteSpline S, V, W, W
CubicSpline S, V, W
PPoly A, S, W
PchipInterpolator S, V, W
BarycentricInterpolator S, V, W
KroghInterpolator S, V, W
InterpolatedUnivariateSpline S, V, W
barycentric_interpolate S, V, W
krogh_interpolate S, V, W
pchip_interpolate S, V, W
splev W, (np.array([0] * 4 + [1] * 4), np.concatenate([V, np.zeros(4)]), 3)
splint V[0], W[1], (np.array([0] * 4 + [1] * 4), np.concatenate([V, np.zeros(4)]), 3)
splrep S, V
RBFInterpolator X.T, V[:3], Y.T
RegularGridInterpolator (np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0])), X, Y.T
interp1d S, V, W
interpn (np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0])), X, Y.T
make_interp_spline S, V
""",
    "stats": """
dirichlet.entropy V[:3] + 1
dirichlet.logpdf [0.2, 0.3, 0.5], V[:3] + 1
dirichlet.mean V[:3] + 1
dirichlet.pdf [0.2, 0.3, 0.5], V[:3] + 1
dirichlet.var V[:3] + 1
invwishart.logpdf P, 5.5, P @ P
invwishart.pdf P, 5.5, P @ P
matrix_normal.logpdf X, Y
matrix_normal.pdf X, Y
moment V, 3
pmean V, 2.5
gstd V
gzscore V
iqr V
median_abs_deviation np.append(V, 0.39)
trim_mean V, 0.25
tmean V, (0.2, 0.9)
tvar V, (0.2, 0.9)
tstd V, (0.2, 0.9)
tsem V, (0.2, 0.9)
tmin V, 0.2
tmax V, 0.6
circmean V
circvar V
circstd V
directional_stats X
kstat V, 3
kstatvar V
differential_entropy L
boxcox V, 0.6
yeojohnson V - 0.5, 0.6
yeojohnson_llf 0.6, V - 0.5
pearsonr V, W
linregress V, W
ttest_1samp V, 0.3
ttest_rel V, W
ttest_ind V, W
f_oneway V, W
power_divergence V * 9
chisquare V * 9
wasserstein_distance V, W
energy_distance V, W, W, V
multinomial.logpmf [1, 2, 1], 4, [0.2, 0.5, 0.3]
multinomial.pmf [1, 2, 1], 4, [0.2, 0.5, 0.3]
multivariate_normal.entropy V[:3], P
multivariate_normal.logpdf X, V[:3], P
multivariate_normal.pdf X, V[:3], P
multivariate_t.entropy V[:3], P, 5.5
multivariate_t.logpdf X, V[:3], P, 5.5
multivariate_t.pdf X, V[:3], P, 5.5
wishart.logpdf P, 5.5, P @ P
wishart.pdf P, 5.5, P @ P
""",
    "ndimage": """
affine_transform X, 0.9 * P[:2, :2]
center_of_mass X
convolve X, X[:2, :2]
convolve1d X, V[:3]
correlate X, X[:2, :2]
correlate1d X, V[:3]
gaussian_filter X, 0.8
gaussian_filter1d X, 0.8
gaussian_gradient_magnitude X, 0.8
gaussian_laplace X, 0.8
laplace X
map_coordinates X, X[:2]
maximum X
maximum_filter X, 2
maximum_filter1d X, 2
mean X
median X
median_filter X, 3
minimum X
minimum_filter X, 2
minimum_filter1d X, 2
percentile_filter X, 40, 3
prewitt X
rank_filter X, 1, 3
rotate X, 21.0
shift X, V[0]
sobel X
spline_filter X
spline_filter1d X
standard_deviation X
sum X
sum_labels X
uniform_filter X, 2
uniform_filter1d X, 2
variance X
zoom X, 1.5
""",
    "integrate": """
cumulative_simpson V
cumulative_trapezoid V, x=S
fixed_quad np.exp, V[0], W[1]
dblquad np.multiply, V[0], W[1], 0.0, 1.0
newton_cotes 3
quad np.sin, V[0], W[1]
quad_vec np.sin, V[0], W[1]
romb np.append(V, 0.9)
simpson V, x=S
trapezoid V, x=S
""",
}

# How a call is a function of its arrays, where it is in another way; see `probe.Program`.
WAYS: dict[str, dict[str, str]] = {
    "scipy.linalg": {
        **dict.fromkeys("cholesky eigvalsh ldl pinvh sqrtm logm".split(), "symmetric 0"),
        **dict.fromkeys("fractional_matrix_power funm".split(), "symmetric 0"),
        **dict.fromkeys("solve_continuous_are solve_discrete_are".split(), "symmetric 2 3"),
        **dict.fromkeys("orth null_space".split(), "basis"),
        "cho_factor": "upper 0",
        "cholesky_banded": "band",
        "eigh": "eigenvectors 0",
    },
    "scipy.stats": {
        **dict.fromkeys("pearsonr ttest_1samp ttest_rel ttest_ind".split(), "significance"),
        "linregress": "line",
        "directional_stats": "directions",
        **dict.fromkeys("wishart.logpdf wishart.pdf".split(), "symmetric 0 2"),
        **dict.fromkeys("invwishart.logpdf invwishart.pdf".split(), "symmetric 0 2"),
        "multivariate_normal.entropy": "symmetric 1",
        "multivariate_t.entropy": "symmetric 1",
        "multivariate_normal.logpdf": "symmetric 2",
        "multivariate_normal.pdf": "symmetric 2",
        "multivariate_t.logpdf": "symmetric 2",
        "multivariate_t.pdf": "symmetric 2",
    },
}
