"""Programs for scikit-learn: estimators and metrics that its `array_api_dispatch` runs on any array type."""

from handover import programs

SCIKIT_LEARN = programs("""
    preprocessing.StandardScaler().fit_transform(A)
    preprocessing.StandardScaler().fit(A).inverse_transform(A)
    preprocessing.MinMaxScaler().fit(A).transform(A)
    preprocessing.MaxAbsScaler().fit_transform(A)
    preprocessing.Normalizer().fit_transform(A)
    preprocessing.Binarizer().fit_transform(A)
    preprocessing.KernelCenterer().fit_transform(A @ A.T)
    preprocessing.PolynomialFeatures(2).fit_transform(A)
    preprocessing.LabelEncoder().fit_transform(k)
    preprocessing.LabelBinarizer().fit_transform(k)
    decomposition.PCA(2, svd_solver="full").fit(A).transform(A)
    decomposition.PCA(2, svd_solver="covariance_eigh").fit(A).explained_variance_
    pca = decomposition.PCA(2, svd_solver="randomized", power_iteration_normalizer="QR"); pca.fit(A).mean_
    linear_model.Ridge(solver="svd").fit(A, x).coef_
    linear_model.Ridge(solver="svd").fit(A, x).predict(A)
    linear_model.RidgeCV().fit(A, x).coef_
    linear_model.RidgeClassifier(solver="svd").fit(A, k).predict(A)
    linear_model.RidgeClassifierCV().fit(A, k).predict(A)
    linear_model.LogisticRegression().fit(A, k).coef_
    linear_model.PoissonRegressor().fit(A, x * x).coef_
    discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(A, k).predict(A)
    discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(A, k).transform(A)
    mixture.GaussianMixture(2, random_state=0, init_params="random", max_iter=9, tol=1.0).fit(A).means_
    naive_bayes.GaussianNB().fit(A, k).predict_proba(A)
    kernel_approximation.Nystroem(kernel="rbf", n_components=5, random_state=0).fit_transform(A)
    metrics.mean_squared_error(x, y)
    metrics.root_mean_squared_error(x, y)
    metrics.r2_score(x, y)
    metrics.mean_absolute_error(x, y)
    metrics.mean_absolute_percentage_error(x, y)
    metrics.median_absolute_error(x, y)
    metrics.max_error(x, y)
    metrics.mean_pinball_loss(x, y)
    metrics.mean_poisson_deviance(x * x, y * y + 1)
    metrics.explained_variance_score(x, y)
    metrics.d2_absolute_error_score(x, y)
    metrics.accuracy_score(k, 1 - k)
    metrics.balanced_accuracy_score(k, k)
    metrics.zero_one_loss(k, 1 - k)
    metrics.hamming_loss(k, 1 - k)
    metrics.confusion_matrix(k, 1 - k)
    metrics.f1_score(k, 1 - k)
    metrics.precision_score(k, k)
    metrics.recall_score(k, k)
    metrics.jaccard_score(k, k)
    metrics.cohen_kappa_score(k, k)
    metrics.log_loss(k, 1 / (1 + x * x))
    metrics.brier_score_loss(k, 1 / (1 + x * x))
    metrics.roc_auc_score(k, x)
    metrics.roc_curve(k, x)[0]
    metrics.det_curve(k, x)[0]
    metrics.precision_recall_curve(k, x)[0]
    metrics.average_precision_score(k, x)
    metrics.multilabel_confusion_matrix(k, 1 - k)
    metrics.d2_tweedie_score(x * x, y * y + 1)
    metrics.mean_squared_log_error(x * x, y * y)
    metrics.mean_gamma_deviance(x * x + 1, y * y + 1)
    pairwise.euclidean_distances(A, A[:5, :])
    pairwise.cosine_similarity(A)
    pairwise.cosine_distances(A)
    pairwise.rbf_kernel(A)
    pairwise.linear_kernel(A)
    pairwise.polynomial_kernel(A)
    pairwise.sigmoid_kernel(A)
    pairwise.laplacian_kernel(A)
    pairwise.manhattan_distances(A)
    pairwise.paired_manhattan_distances(A, A + 1)
    pairwise.paired_euclidean_distances(A, A + 1)
    pairwise.additive_chi2_kernel(A * A)
    model_selection.train_test_split(A, x, random_state=0)
    model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), A, x)
    model_selection.cross_val_score(linear_model.Ridge(solver="svd"), A, x)  # copies
    pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(2)).fit_transform(A)
    covariance.empirical_covariance(A)
    covariance.LedoitWolf().fit(A).covariance_  # host
    linear_model.LinearRegression().fit(A, x).coef_  # host
    neighbors.KNeighborsRegressor().fit(A, x).predict(A)  # host
    svm.SVC().fit(A, k).predict(A)  # host
""")

# The names programs use → modules.
SCIKIT_LEARN_MODULES = {
    name: f"sklearn.{name}"
    for name in (
        "covariance", "decomposition", "discriminant_analysis", "kernel_approximation", "linear_model",
        "metrics", "mixture", "model_selection", "naive_bayes", "neighbors", "pipeline", "preprocessing", "svm",
    )
} | {"pairwise": "sklearn.metrics.pairwise"}  # fmt: skip
