"""Programs for SciPy, by its chapters: what SciPy itself marks as made for any array type.

What it marks as made for memory that the host reads is run on the host, `# host`.
"""

from handover import programs

STATS = """
    stats.zscore(x)
    stats.gzscore(p)
    stats.zmap(x, y)
    stats.ttest_ind(x, y).pvalue  # host
    stats.ttest_1samp(x, 0.1).statistic  # host
    stats.ttest_rel(x, y).pvalue  # host
    stats.pearsonr(x, y).statistic  # host
    stats.spearmanrho(x, y).statistic  # host
    stats.chatterjeexi(x, y).statistic  # host
    stats.kurtosis(A, axis=0)
    stats.skew(x)
    stats.skewtest(x).pvalue  # host
    stats.kurtosistest(x).pvalue  # host
    stats.normaltest(A, axis=0).statistic  # host
    stats.jarque_bera(x).statistic  # host
    stats.gmean(p)
    stats.hmean(p)
    stats.pmean(p, 2.5)
    stats.gstd(p)
    stats.moment(x, 3)
    stats.describe(A).variance
    stats.entropy(p)  # host
    stats.differential_entropy(x)
    stats.variation(A, axis=0)
    stats.sem(A, axis=0)
    stats.iqr(x)
    stats.median_abs_deviation(x)
    stats.kstat(x, 3)
    stats.kstatvar(x)
    stats.lmoment(x)  # host
    stats.mode(k).mode
    stats.rankdata(x)
    stats.circmean(p)
    stats.circvar(p)
    stats.circstd(p)
    stats.directional_stats(A).mean_direction
    stats.tmean(x, (-1, 1))
    stats.tvar(x, (-1, 1))
    stats.tmin(x, -1)
    stats.tmax(x, 1)
    stats.tstd(x, (-1, 1))
    stats.tsem(x, (-1, 1))
    stats.trim_mean(x, 0.1)
    stats.sigmaclip(x, 2.0, 2.0).clipped
    stats.bartlett(x, y).pvalue  # host
    stats.levene(x, y).statistic  # host
    stats.fligner(x, y).statistic  # host
    stats.f_oneway(x, y).statistic  # host
    stats.alexandergovern(x, y).statistic  # host
    stats.kruskal(x, y).statistic  # host
    stats.friedmanchisquare(x, y, x + y).statistic  # host
    stats.ansari(x, y).statistic  # host
    stats.mood(x, y).statistic  # host
    stats.epps_singleton_2samp(x, y).statistic  # host
    stats.brunnermunzel(x, y).statistic  # host
    stats.mannwhitneyu(x, y).statistic  # host
    stats.wilcoxon(x).statistic  # host
    stats.kstest(p, lambda t: t).statistic  # host
    stats.cramervonmises_2samp(x, y).statistic  # host
    stats.chisquare(p).statistic  # host
    stats.power_divergence(p, lambda_="neyman").pvalue  # host
    stats.combine_pvalues(p).statistic  # host
    stats.false_discovery_control(p)
    stats.quantile(A, 0.25, axis=0)
    stats.boxcox_llf(0.5, p)
    stats.yeojohnson_llf(0.5, x)
    mean = lambda a, axis: a.mean(axis=axis);
        stats.permutation_test((x,), mean, permutation_type="samples", n_resamples=9, rng=1).statistic
    mean = lambda a, axis: a.mean(axis=axis);
        stats.monte_carlo_test(x, lambda *, size: make(np.ones(size)), mean, n_resamples=9).pvalue
    mean = lambda a, axis: a.mean(axis=axis);
        stats.bootstrap((x,), mean, method="basic", n_resamples=99, rng=1).standard_error
    stats.Normal(mu=x, sigma=2.0).pdf(y)  # copies
"""

SPECIAL = """
    special.logsumexp(A, axis=1)
    special.logsumexp(A, b=A * A)
    special.softmax(A, axis=1)
    special.log_softmax(A, axis=1)
    special.erf(x)  # host
    special.erfc(x)  # host
    special.erfinv(p)  # host
    special.gamma(p)  # host
    special.gammaln(p)  # host
    special.gammainc(p, 2.0)  # host
    special.betainc(p, 1.0, p)  # host
    special.digamma(p)  # host
    special.polygamma(1, p)  # host
    special.multigammaln(p + 5, 2)  # host
    special.zeta(p + 1, 1.0)  # host
    special.expit(x)  # host
    special.logit(p)  # host
    special.entr(p)  # host
    special.rel_entr(p, p + 1)
    special.kl_div(p, p + 1)  # host
    special.xlogy(p, p)
    special.xlog1py(p, p)  # host
    special.ndtr(x)  # host
    special.ndtri(p)  # host
    special.log_ndtr(x)  # host
    special.j0(x)  # host
    special.i0(x)  # host
    special.i1e(x)  # host
    special.k1(p)  # host
    special.exp1(p)  # host
    special.expm1(x)
    special.log1p(p)
    special.cbrt(x)  # host
    special.sinc(x)  # host
    special.cosm1(x)  # host
    special.exp2(x)  # host
    special.boxcox(p, 0.5)  # host
    special.huber(1.0, x)  # host
    special.chdtrc(p, p)  # host
    special.stdtr(p + 1, x[:20])  # host
    special.binom(p, p)  # host
    special.sindg(x)  # host
"""

FFT = """
    fft.fft(x)
    fft.ifft(z)
    fft.fft2(image)
    fft.rfft(x)
    fft.rfft2(image)
    fft.irfft(fft.rfft(x), n=40)
    fft.ifftn(fft.fftn(image))
    fft.irfftn(fft.rfftn(image))
    fft.hfft(z)
    fft.ihfft(x)
    fft.fft(x, n=64, norm="ortho")
    fft.fft(A, axis=0)
    fft.fftshift(fft.fftfreq(8, xp=xp))
    fft.ifftshift(fft.rfftfreq(8, xp=xp))
    fft.dct(x)  # host
    fft.idctn(image)  # host
    fft.dst(x, type=3)  # host
    fft.fht(p, 0.1, 0.5)
"""

SIGNAL = """
    signal.fftconvolve(x, y)
    signal.oaconvolve(x, y[:5])
    signal.convolve(x, y, method="fft")
    signal.convolve(x, y[:4], method="direct")  # host
    signal.correlate(x, y, method="fft")
    signal.hilbert(x)
    signal.hilbert2(image)
    signal.envelope(x, (1, None))
    signal.detrend(x, type="constant")  # host
    signal.detrend(x)  # host
    signal.resample(x, 20)
    signal.resample_poly(x, 3, 2)  # host
    signal.upfirdn(v, x)  # host
    signal.lfilter(make([1.0, 0.5]), make([1.0, -0.2]), x)  # host
    signal.filtfilt(make([1.0, 0.5]), make([1.0, -0.2]), x)  # host
    signal.savgol_filter(x, 7, 2)  # host
    signal.medfilt(x, 3)  # host
    signal.wiener(x)  # host
    signal.order_filter(x, make([1.0, 1, 1]), 1)  # host
    signal.convolve2d(image, S)  # host
    signal.correlate2d(image, S)  # host
    signal.freqz(v)[1]
    signal.tf2zpk(make([1.0, 0.5]), make([1.0, -0.2]))[1]  # host
    signal.zpk2tf(v, v[:2], 1.0)[0]
    signal.vectorstrength(p, 0.3)[0]
    signal.windows.hann(8, xp=xp)
    signal.windows.kaiser(8, 4.0, xp=xp)  # host
    signal.windows.tukey(8, xp=xp)
    signal.windows.gaussian(8, 2.0, xp=xp)
    signal.welch(x, nperseg=16)  # copies
"""

NDIMAGE = """
    ndimage.gaussian_filter(image, 1.0)  # host
    ndimage.uniform_filter(image, 3)  # host
    ndimage.median_filter(image, 3)  # host
    ndimage.maximum_filter(image, 3)  # host
    ndimage.percentile_filter(image, 30, 3)  # host
    ndimage.gaussian_laplace(image, 1.0)  # host
    ndimage.laplace(image)  # host
    ndimage.sobel(image)  # host
    ndimage.convolve(image, S)  # host
    ndimage.correlate1d(image, v[:3])  # host
    ndimage.generic_filter(image, np.max, 3)  # host
    ndimage.zoom(image, 2)  # host
    ndimage.rotate(image, 30.0)  # host
    ndimage.shift(image, 0.5)  # host
    ndimage.affine_transform(image, make([[1.0, 0.1], [0.0, 1.0]]))  # host
    ndimage.map_coordinates(image, make([[1.5, 2.0], [3.0, 4.2]]))  # host
    ndimage.spline_filter(image)  # host
    ndimage.fourier_gaussian(image, 1.0)  # host
    ndimage.label(image > 0)  # host
    ndimage.sum_labels(image, ndimage.label(image > 0)[0], make([1, 2]))  # host
    ndimage.center_of_mass(p)  # host
    ndimage.maximum_position(image)  # host
    ndimage.extrema(image)  # host
    ndimage.histogram(image, -1, 1, 4)  # host
    ndimage.binary_erosion(image > -1)  # host
    ndimage.binary_dilation(image > 1)  # host
    ndimage.binary_fill_holes(image > 0)  # host
    ndimage.grey_closing(image, 3)  # host
    ndimage.white_tophat(image, 3)  # host
    ndimage.distance_transform_edt(image > 0)  # host
    ndimage.mean(image)  # host
    ndimage.standard_deviation(image)  # host
"""

OTHERS = """
    vq.whiten(A)
    vq.vq(A, A[:4, :])  # host
    vq.kmeans2(A, A[:3, :], rng=1)[1]  # host
    hierarchy.linkage(A)  # host
    hierarchy.ward(distance.pdist(A[:6, :]))  # host
    hierarchy.fcluster(hierarchy.linkage(A), 2, "maxclust")  # host
    hierarchy.cophenet(hierarchy.linkage(A))  # host
    integrate.trapezoid(x, dx=0.5)
    integrate.trapezoid(image, axis=0)
    integrate.cumulative_trapezoid(x)
    integrate.cumulative_simpson(x, dx=0.5)
    integrate.simpson(image, axis=0)  # copies
    integrate.romb(x[:33])
    integrate.cubature(lambda t: t[:, 0] ** 2, make([0.0]), make([1.0])).estimate
    integrate.tanhsinh(lambda t: xp.exp(-t * t), make([0.0, 0.5]), make([1.0, 2.0])).integral
    integrate.nsum(lambda n: 1 / n**2, make([1.0, 2.0]), make([20.0, 30.0])).sum
    integrate.solve_ivp(lambda t, u: -u, (0.0, 1.0), v).y  # host
    c = make([2.0, 3.0]); elementwise.find_root(lambda t, c: t * t - c, (c * 0, c), args=(c,)).x
    elementwise.find_minimum(lambda t, c: (t - c) ** 2, (v - 2, v - 0.5, v + 2), args=(v,)).x
    c = make([2.0, 3.0]); elementwise.bracket_root(lambda t, c: t - c, c * 0, args=(c,)).success
    elementwise.bracket_minimum(lambda t, c: (t - c) ** 2, v - 1, args=(v,)).success
    optimize.rosen(v)
    optimize.rosen_der(v)
    optimize.rosen_hess(v)
    optimize.rosen_hess_prod(v, v + 1)
    optimize.minimize(lambda t: xp.sum(xp.asarray(t) ** 2), v).x.round(4)  # copies
    optimize.least_squares(lambda t: S @ t - v, v * 0).x  # host
    differentiate.derivative(lambda t: t**3, p).df
    differentiate.jacobian(lambda t: t**2, v[:2]).df
    differentiate.hessian(lambda t: xp.sum(t**3, axis=0), v[:2], maxiter=2).ddf
    interpolate.BSpline(make([0.0, 1, 2, 3, 4, 5, 6]), make([1.0, 2, 0, -1]), 2)(p + 2)  # host
    interpolate.CubicSpline(ordered, ordered**2)(p)  # host
    interpolate.PchipInterpolator(ordered, ordered**2)(p)  # host
    interpolate.Akima1DInterpolator(ordered, ordered**2)(p)  # host
    interpolate.make_interp_spline(ordered, ordered**2)(p)  # host
    interpolate.RegularGridInterpolator((ordered,), ordered**2)(p)  # host
    interpolate.RBFInterpolator(A[:10, :], x[:10])(A[:4, :])
    transform.Rotation.from_rotvec(make([0.1, 0.2, 0.3])).as_matrix()
    transform.Rotation.from_euler("xyz", make([0.1, 0.2, 0.3])).apply(make([1.0, 0.0, 0.0]))
    distance.cdist(A[:5, :], A[:4, :])  # copies
    linalg.block_diag(S, B)
    linalg.fiedler(v)
    linalg.orthogonal_procrustes(S, S + 1)[0]
    linalg.solve(S, v)  # copies
    linalg.expm(S)  # copies
    sparse_linalg.cg(S, v, rtol=1e-12)[0]  # copies
    sparse_linalg.gmres(S, v, rtol=1e-12)[0]  # copies
    sparse_linalg.eigsh(S, 1, v0=np.ones(4))[0]  # copies
    sparse_linalg.svds(S, 1, v0=np.ones(4))[1]  # copies
    sparse.csr_array(S) @ v  # copies
    constants.convert_temperature(p, "C", "K")
    constants.lambda2nu(p)
"""

SCIPY = [program for chapter in (STATS, SPECIAL, FFT, SIGNAL, NDIMAGE, OTHERS) for program in programs(chapter)]

# The names programs use → modules.
SCIPY_MODULES = {
    name: f"scipy.{path}.{name}" if path else f"scipy.{name}"
    for path, names in {
        "": "stats special fft signal ndimage integrate differentiate interpolate constants linalg sparse",
        "cluster": "vq hierarchy",
        "optimize": "elementwise",
        "spatial": "transform distance",
    }.items()
    for name in names.split()
} | {"optimize": "scipy.optimize", "sparse_linalg": "scipy.sparse.linalg"}
