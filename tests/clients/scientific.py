"""Programs for SciPy and scikit-learn, which take other libraries' arrays if asked to on import.

They run in a process of their own, so that the other tests see SciPy as users do:

    SCIPY_ARRAY_API=1 python tests/clients/scientific.py
"""

import importlib
import json
import os
import sys

from handover import outcome, programs, where

SCIPY = programs("""
    stats.zscore(x)
    stats.ttest_ind(x, y).pvalue  # host
    stats.pearsonr(x, y).statistic  # host
    stats.kurtosis(A, axis=0)
    stats.skew(x)
    stats.gmean(p)
    stats.moment(x, 3)
    stats.describe(A).variance
    stats.entropy(p)  # host
    stats.variation(A, axis=0)
    stats.sem(A, axis=0)
    stats.mannwhitneyu(x, y).statistic  # host
    stats.kstest(p, lambda t: t).statistic  # host
    stats.quantile(A, 0.25, axis=0)
    mean = lambda a, axis: a.mean(axis=axis); stats.bootstrap((x,), mean, method="basic", rng=1).standard_error
    stats.Normal(mu=x, sigma=2.0).pdf(y)  # copies
    special.logsumexp(A, axis=1)
    special.softmax(A, axis=1)
    special.log_softmax(A, axis=1)
    special.erf(x)  # host
    special.gammaln(p)  # host
    special.expit(x)  # host
    special.xlogy(p, p)
    special.ndtri(p)  # host
    fft.fft(x)
    fft.rfft2(image)
    fft.ifftn(fft.fftn(image))
    fft.fftshift(fft.fftfreq(8, xp=xp))
    fft.dct(x)  # host
    signal.fftconvolve(x, y)
    signal.oaconvolve(x, y[:5])
    signal.hilbert(x)
    signal.detrend(x)  # host
    signal.resample(x, 20)
    signal.lfilter(make([1.0, 0.5]), make([1.0, -0.2]), x)  # host
    signal.savgol_filter(x, 7, 2)  # host
    signal.welch(x, nperseg=16)  # copies
    signal.convolve2d(image, S)  # host
    ndimage.gaussian_filter(image, 1.0)  # host
    ndimage.sobel(image)  # host
    ndimage.zoom(image, 2)  # host
    ndimage.map_coordinates(image, make([[1.5, 2.0], [3.0, 4.2]]))  # host
    ndimage.label(image > 0)  # host
    ndimage.center_of_mass(p)  # host
    vq.whiten(A)
    vq.vq(A, A[:4, :])  # host
    hierarchy.linkage(A)  # host
    integrate.trapezoid(x, dx=0.5)
    integrate.trapezoid(image, axis=0)
    integrate.cumulative_trapezoid(x)
    integrate.simpson(image, axis=0)  # copies
    integrate.cubature(lambda t: t[:, 0] ** 2, make([0.0]), make([1.0])).estimate
    integrate.tanhsinh(lambda t: xp.exp(-t * t), make([0.0, 0.5]), make([1.0, 2.0])).integral
    c = make([2.0, 3.0]); elementwise.find_root(lambda t, c: t * t - c, (c * 0, c), args=(c,)).x
    elementwise.find_minimum(lambda t, c: (t - c) ** 2, (v - 2, v - 0.5, v + 2), args=(v,)).x
    c = make([2.0, 3.0]); elementwise.bracket_root(lambda t, c: t - c, c * 0, args=(c,)).success
    differentiate.derivative(lambda t: t**3, p).df
    differentiate.jacobian(lambda t: t**2, v).df
    interpolate.BSpline(make([0.0, 1, 2, 3, 4, 5, 6]), make([1.0, 2, 0, -1]), 2)(p + 2)  # host
    transform.Rotation.from_rotvec(make([0.1, 0.2, 0.3])).as_matrix()
    distance.cdist(A[:5, :], A[:4, :])  # copies
    linalg.cg(S, v, rtol=1e-12)[0]  # copies
    linalg.gmres(S, v, rtol=1e-12)[0]  # copies
    linalg.eigsh(S, 1, v0=np.ones(4))[0]  # copies
    linalg.svds(S, 1, v0=np.ones(4))[1]  # copies
    constants.convert_temperature(p, "C", "K")
""")

SCIKIT_LEARN = programs("""
    preprocessing.StandardScaler().fit_transform(A)
    preprocessing.MinMaxScaler().fit(A).transform(A)
    preprocessing.MaxAbsScaler().fit_transform(A)
    preprocessing.Normalizer().fit_transform(A)
    preprocessing.Binarizer().fit_transform(A)
    preprocessing.KernelCenterer().fit_transform(A @ A.T)
    preprocessing.PolynomialFeatures(2).fit_transform(A)
    preprocessing.LabelEncoder().fit_transform(k)
    decomposition.PCA(2, svd_solver="full").fit(A).transform(A)
    decomposition.PCA(2, svd_solver="covariance_eigh").fit(A).explained_variance_
    pca = decomposition.PCA(2, svd_solver="randomized", power_iteration_normalizer="QR"); pca.fit(A).mean_
    linear_model.Ridge(solver="svd").fit(A, x).coef_
    linear_model.Ridge(solver="svd").fit(A, x).predict(A)
    linear_model.RidgeClassifier(solver="svd").fit(A, k).predict(A)
    discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(A, k).predict(A)
    discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(A, k).transform(A)
    mixture.GaussianMixture(2, random_state=0, init_params="random").fit(A).means_
    naive_bayes.GaussianNB().fit(A, k).predict_proba(A)
    kernel_approximation.Nystroem(kernel="rbf", n_components=5, random_state=0).fit_transform(A)
    metrics.mean_squared_error(x, y)
    metrics.r2_score(x, y)
    metrics.mean_absolute_error(x, y)
    metrics.accuracy_score(k, 1 - k)
    metrics.confusion_matrix(k, 1 - k)
    metrics.f1_score(k, 1 - k)
    metrics.log_loss(k, 1 / (1 + x * x))
    pairwise.euclidean_distances(A, A[:5, :])
    pairwise.cosine_similarity(A)
    pairwise.rbf_kernel(A)
    pairwise.paired_manhattan_distances(A, A + 1)
    model_selection.train_test_split(A, x, random_state=0)
    model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), A, x)
    pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2)).fit_transform(A)
    covariance.empirical_covariance(A)
    covariance.LedoitWolf().fit(A).covariance_  # host
""")

# The names programs use → modules.
SCIPY_MODULES = {
    name: f"scipy.{path}.{name}" if path else f"scipy.{name}"
    for path, names in {
        "": "stats special fft signal ndimage integrate differentiate interpolate constants",
        "cluster": "vq hierarchy",
        "optimize": "elementwise",
        "sparse": "linalg",
        "spatial": "transform distance",
    }.items()
    for name in names.split()
}
SCIKIT_LEARN_MODULES = {
    name: f"sklearn.{name}"
    for name in (
        "covariance", "decomposition", "discriminant_analysis", "kernel_approximation", "linear_model",
        "metrics", "mixture", "model_selection", "naive_bayes", "pipeline", "preprocessing",
    )
} | {"pairwise": "sklearn.metrics.pairwise"}  # fmt: skip


def main():
    """Print, as JSON, what is wrong with each program on each family of arrays."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    found = {}
    tables = {"scipy": (SCIPY, SCIPY_MODULES), "sklearn": (SCIKIT_LEARN, SCIKIT_LEARN_MODULES)}
    for package, (table, modules) in tables.items():
        try:
            imported = importlib.import_module(package)
        except ImportError:
            continue
        if package == "sklearn":
            imported.set_config(array_api_dispatch=True)
        found |= {f"{family}: {p}": outcome(p, modules, family) for p in table for family in where(p)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
