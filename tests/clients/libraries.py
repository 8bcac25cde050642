"""Programs for libraries that take other libraries' arrays as they are."""

from handover import programs

# Library → programs.
PROGRAMS = {
    "xarray": """
        xr.DataArray(A, dims=("t", "c")).mean("t").data
        xr.DataArray(A, dims=("t", "c")).isel(t=slice(3, 9)).data
        xr.where(xr.DataArray(x, dims="t") > 0, xr.DataArray(x, dims="t"), 0.0).data
        xr.concat([xr.DataArray(x, dims="t"), xr.DataArray(y, dims="t")], "t").data
        (xr.DataArray(A, dims=("t", "c")) * xr.DataArray(B[:, 0], dims="c")).sum().data
        np.sin(xr.DataArray(x, dims="t")).data
        xr.Dataset({"a": ("t", x), "b": ("t", y)}).std()["b"].data
        xr.DataArray(image, dims=("i", "j")).transpose("j", "i").data
        xr.dot(xr.DataArray(A, dims=("t", "c")), xr.DataArray(B, dims=("c", "d")), dim="c").data
        xr.DataArray(x, dims="t", coords={"t": np.arange(40)}).groupby("t").mean().data
        xr.DataArray(x, dims="t").cumsum("t").data
        xr.DataArray(x, dims="t").argmax("t").data
        xr.DataArray(x, dims="t").fillna(0.0).data
        xr.DataArray(x, dims="t").where(xr.DataArray(x, dims="t") > 0).data
        xr.DataArray(x, dims="t").rolling(t=3).mean().data
        xr.DataArray(image, dims=("i", "j")).coarsen(i=2, j=5).mean().data
        xr.DataArray(A, dims=("t", "c")).quantile(0.25, "t").data  # host
        xr.DataArray(A, dims=("t", "c")).median("t").data
        xr.DataArray(x, dims="t").diff("t").data
        xr.DataArray(x, dims="t").shift(t=2).data
        xr.DataArray(x, dims="t").roll(t=2).data
        xr.DataArray(x, dims="t").pad(t=1, constant_values=0.0).data
        xr.DataArray(x, dims="t").clip(-1, 1).data
        xr.DataArray(image, dims=("i", "j")).stack(p=("i", "j")).data
        xr.DataArray(image, dims=("i", "j"), coords={"i": np.arange(8)}).sel(i=[2, 5]).data
        xr.DataArray(image, dims=("i", "j")).std("i", ddof=1).data
        xr.DataArray(image, dims=("i", "j")).expand_dims("k").data
        d = xr.DataArray(image, dims=("i", "j"));
            xr.apply_ufunc(lambda a: a.sum(axis=-1), d, input_core_dims=[["j"]]).data
        xr.corr(xr.DataArray(x, dims="t"), xr.DataArray(y, dims="t")).data
        xr.DataArray(x, dims="t", coords={"t": np.arange(40)}).interp(t=[0.5, 7.25]).data  # copies
        xr.DataArray(x, dims="t", coords={"s": ("t", k)}).groupby("s").mean().data  # host
        xr.DataArray(image, dims=("i", "j")).isel(i=[0, 2], j=np.array([5, 1])).data
        xr.DataArray(x, dims="t").to_numpy()  # copies
        xr.DataArray(A, dims=("t", "c")).to_pandas().to_numpy()  # copies
        float(xr.DataArray(x, dims="t").sum())  # host
        len(xr.DataArray(image, dims=("i", "j"))._repr_html_()) > 100
    """,
    "einops": """
        einops.rearrange(image, "(i p) j -> i (j p)", p=2)
        einops.reduce(image, "(i p) j -> i j", "mean", p=2)
        einops.repeat(x, "t -> t c", c=3)
        einops.einsum(A, B, "t c, c d -> t d")
        einops.pack([x, y], "*")[0]
        einops.unpack(A, [[2], [1]], "t *")
        einops.rearrange([x, y], "n t -> t n")
        einops.reduce(image, "i j -> j", "max")
        einops.rearrange(A.T, "c (b t) -> b c t", b=4)
        einops.parse_shape(A, "t _")["t"]
        einops.asnumpy(x)  # copies
        einops_array_api.rearrange(image, "i j -> j i")
    """,
    "opt_einsum": """
        oe.contract("tc,cd,d->t", A, B, B[0, :])
        oe.contract("ij,jk,kl->il", S, S, S)
        oe.contract("ij,ij->", S, S)
        oe.contract_expression("ij,jk->ik", (4, 4), (4, 4))(S, S)
        oe.contract("ij->ji", S)
        oe.contract("ii->i", S)
        oe.contract("ijk,jk->i", image[:, None, :5] * B[:, :], B)
        oe.contract("i,j->ij", v, x)
        oe.contract_path("ij,jk,kl->il", S, S, S)[0]
    """,
    "einx": """
        einx.sum("a [b]", image)
        einx.dot("t [c], [c] d -> t d", A, B)
    """,
    "autoray": """
        autoray.do("sum", A, axis=0)
        autoray.do("linalg.svd", S)[1]
        autoray.do("einsum", "ij,jk->ik", S, S)
        autoray.do("transpose", A)
        autoray.do("concatenate", [x, y])
        autoray.do("array", [1.0, 2.0], like=x)
        autoray.do("reshape", image, (-1,))
        autoray.do("tensordot", S, S, axes=1)
        autoray.do("to_numpy", x)  # copies
        autoray.do("stack", [x, y])
        autoray.do("zeros", (2, 3), like=x)
        autoray.do("eye", 3, like=x)
        autoray.do("full", (2,), 7.0, like=x)
        autoray.do("asarray", [1, 2], like=x)
        autoray.do("linalg.norm", S)
        autoray.do("linalg.solve", S, v)
        autoray.do("linalg.eigh", S)[0]
        autoray.do("fft.fft", x)
        autoray.do("where", x > 0, x, 0 * x)
        autoray.do("pad", x, ((1, 2),))
        autoray.do("take", x, k[:5], axis=0)
        autoray.do("complex", x, y)
        autoray.do("random.normal", size=(3,), like=x).shape
        autoray.do("random.array", (3,), rng=1, like=x).shape
        autoray.to_device(x, x.device)
        autoray.infer_backend(x) in ("mirabelle", "numpy")
        autoray.get_dtype_name(x)
        autoray.astype(x, "float32")
        autoray.get_namespace(x).exp(x)
    """,
    "dask": """
        da.from_array(A, chunks=(10, 3), asarray=False).sum(axis=0).compute()
        (da.from_array(x, chunks=10, asarray=False) * 2 + 1).compute()
        d = da.from_array(A, chunks=(10, 3), asarray=False); d.T.dot(d).compute()
        da.sin(da.from_array(x, chunks=7, asarray=False)).compute()
        da.from_array(A, chunks=(10, 2), asarray=False).rechunk((40, 3)).compute()
        da.from_array(x, chunks=10, asarray=False)[::3].compute()
        da.linalg.norm(da.from_array(x, chunks=10, asarray=False)).compute()
        da.map_blocks(lambda b: b + 1, da.from_array(x, chunks=10, asarray=False)).compute()
        da.map_overlap(lambda b: b * 2, da.from_array(x, chunks=10, asarray=False), depth=1).compute()
        da.from_array(A, chunks=(10, 3), asarray=False).std(axis=0).compute()
        da.from_array(x, chunks=10, asarray=False).argmax().compute()
        da.from_array(x, chunks=10, asarray=False).cumsum(axis=0).compute()
        da.from_array(image, chunks=4, asarray=False).T.compute()
        da.from_array(image, chunks=4, asarray=False).reshape(-1).compute()
        d = da.from_array(A, (10, 3), asarray=False); e = da.from_array(B, (3, 5), asarray=False);
            da.einsum("tc,cd->td", d, e).compute()
        da.concatenate([da.from_array(x, 10, asarray=False), da.from_array(y, 10, asarray=False)]).compute()
        da.where(da.from_array(x, 10, asarray=False) > 0, 1.0, 0.0).sum().compute()
        da.from_array(x, chunks=10, asarray=False)[k[:5].tolist()].compute()  # host
        da.fft.fft(da.from_array(x, chunks=40, asarray=False)).compute()
        da.tensordot(da.from_array(S, 2, asarray=False), da.from_array(S, 2, asarray=False), axes=1).compute()
        (da.from_array(np.asarray(y), chunks=10) + x).compute()  # host
        (x - da.from_array(y, chunks=10, asarray=False)).compute()
        (A * da.from_array(A, chunks=(10, 3), asarray=False)).sum(axis=0).compute()
        da.percentile(da.from_array(x, chunks=40, asarray=False), [25, 50]).compute()  # host
        dask.delayed(lambda a: a * 2)(x).compute()
        dask.base.tokenize(x) == dask.base.tokenize(x)
    """,
    "pandas": """
        pd.DataFrame({"a": x, "b": y}).corr().to_numpy()  # copies
        pd.Index(n).to_numpy()  # copies
        np.asarray(pd.concat([pd.Series(x), pd.Series(y)]))  # copies
        pd.Series(x).rolling(3).mean().to_numpy()  # copies
        pd.DataFrame(A).mean().to_numpy()  # copies
        pd.cut(np.asarray(x), 3).codes  # copies
        f = pd.DataFrame({"a": y}); f["b"] = x; f.describe().to_numpy()  # copies
        pd.Series(x).to_numpy() + y  # host
    """,
    "zarr": """
        zarr.array(A)[:]  # copies
        z = zarr.zeros((40, 3)); z[:] = A; z[3:5]  # copies
        z = zarr.zeros(40); z[:20] = x[::2]; z[:]  # copies
        z = zarr.zeros(40); z.set_mask_selection(x > 0, 1.0); z[:]  # copies
        z = zarr.create_array({}, data=x * 2); z[:]  # copies
        make(zarr.array(image)[:])  # host
    """,
    "h5py": """
        f = h5py.File("a", "w", driver="core", backing_store=False); f["x"] = x; f["x"][()]  # copies
        f = h5py.File("a", "w", driver="core", backing_store=False);
            d = f.create_dataset("x", (40, 3)); d[...] = A; d[1, :] = A[0] * 2; d[()]  # copies
        f = h5py.File("a", "w", driver="core", backing_store=False);
            f.attrs["v"] = v; f.attrs["v"]  # copies
        f = h5py.File("a", "w", driver="core", backing_store=False);
            f["x"] = x; make(f["x"])  # host
        f = h5py.File("a", "w", driver="core", backing_store=False); f["x"] = x; o = make(np.zeros(40));
            f["x"].read_direct(o); o * 2  # host
        f = h5py.File("a", "w", driver="core", backing_store=False); f["x"] = x; o = make(np.zeros(40));
            f["x"].read_direct(o, np.s_[3:9], np.s_[:6]); o  # host
        f = h5py.File("a", "w", driver="core", backing_store=False);
            d = f.create_dataset("x", (8, 10)); d.write_direct(image); d[()]  # copies
    """,
    "matplotlib": """
        Figure().subplots().plot(x, y * 2)[0].get_ydata()  # host
        Figure().subplots().plot(A)[2].get_ydata()  # host
        Figure().subplots().imshow(image.T).get_array()  # copies
        Figure().subplots().hist(x)[0]  # copies
        Figure().subplots().scatter(x, y, c=x, s=y * y).get_offsets()  # copies
        Figure().subplots().bar(n, n)[3].get_height()  # copies
        np.asarray(Figure().subplots().errorbar(x, y, yerr=y * y)[0].get_xdata(), float)  # copies
        Figure().subplots().contourf(image).levels  # copies
        Figure().subplots().pcolormesh(image).get_array()  # copies
        Figure().subplots().fill_between(p, p, 0, where=p > 0.5).get_paths()[0].vertices  # copies
        a = Figure().subplots(); a.set_xlim(ordered[0], ordered[-1]); a.get_xlim()  # copies
    """,
    "pyarrow": """
        pyarrow.array(x * 2).to_numpy()  # copies
        pyarrow.table({"a": x, "n": y})["n"].to_numpy()  # copies
    """,
    "numba": """
        numba.njit(lambda a: a * 2 + 1)(x)  # host
        numba.njit(lambda a: a.sum())(A)  # host
        numba.njit(lambda a, b: a @ b)(S, v)  # copies
        numba.njit(lambda a: a.T.copy())(image)  # host
        numba.vectorize(lambda a: a + 1.0)(x)  # host
        numba.vectorize(["f8(f8, f8)"])(lambda a, b: a * b)(x, y)  # host
        numba.guvectorize(["(f8[:], f8[:])"], "(n)->()")(lambda a, out: out.fill(a.max()))(image)  # host
        numba.njit(lambda ab: ab[0] + ab[1])((x, y))  # host
        numba.njit(lambda a: a)(image.T)  # host
    """,
    "sparse": """
        sparse.COO.from_numpy(S).todense()  # copies
        (sparse.COO.from_numpy(S) @ sparse.COO.from_numpy(S)).todense()  # copies
        sparse.asarray(np.asarray(image)).sum(axis=0).todense()  # copies
        sparse.COO(make([[0, 1], [1, 2]]), make([1.0, 2.0]), shape=(3, 3)).todense()  # copies
        make(sparse.COO.from_numpy(S).todense())  # host
    """,
    "pint": """
        units.Quantity(x, "m").to("cm").magnitude
        (units.Quantity(x, "m") * y).magnitude
        units.Quantity(A, "m").sum(axis=0).magnitude
        q = units.Quantity(x, "s"); (q / (2 * q.units)).magnitude
        np.sqrt(units.Quantity(x * x, "m^2")).magnitude
        np.concatenate([units.Quantity(x, "m"), units.Quantity(y, "cm")]).magnitude
        np.mean(units.Quantity(A, "m"), axis=0).magnitude
        np.max(units.Quantity(x, "m")).magnitude
        np.dot(units.Quantity(S, "m"), units.Quantity(v, "s")).magnitude
        np.cumsum(units.Quantity(x, "m")).magnitude
        np.where(units.Quantity(x, "m") > units.Quantity(0, "cm"), 1.0, 0.0)
        units.Quantity(x, "m")[3:7].magnitude
        (units.Quantity(x, "m") + units.Quantity(y, "cm")).to_base_units().magnitude
        np.linalg.norm(units.Quantity(A, "m"), axis=1).magnitude
        np.sin(units.Quantity(x, "deg")).magnitude
        q = units.Quantity(x, "m"); q[0] = units.Quantity(5, "km"); q.magnitude
        f"{units.Quantity(v[0], 'm'):.2f}"
    """,
    "numexpr": """
        numexpr.evaluate("2*x + y", {"x": x, "y": y})  # copies
    """,
    "array_api_compat": """
        compat.array_namespace(x).sum(x)
        compat.size(A)
        compat.to_device(x, "cpu")  # host
        compat.is_array_api_obj(x)
        compat.device(x) == compat.device(y)
    """,
    "array_api_extra": """
        xpx.at(x, 3).set(7.0)
        xpx.at(x, x > 0).add(1.0)
        xpx.kron(S, S)
        xpx.cov(A.T)
        xpx.pad(x, 2)
        xpx.sinc(x)
        xpx.one_hot(k, 2)
        xpx.expand_dims(x, axis=(0, 1))
        xpx.isclose(x, y)
        xpx.nunique(k)
        xpx.setdiff1d(n, n[2:])
        xpx.create_diagonal(v)
        xpx.apply_where(x > 0, x, lambda a: a * a, fill_value=-1.0)
        xpx.lazy_apply(lambda a: a + 1, x, as_numpy=True)  # host
        xpx.argpartition(x, 4)[:4].shape
        xpx.isin(n, n[2:4])
        xpx.searchsorted(ordered, p)
        xpx.atleast_nd(x, ndim=3)
        xpx.broadcast_shapes(A.shape, (3,))
        xpx.nan_to_num(x)
        xpx.partition(x, 3)[3]
        xpx.union1d(n, n[2:])
        xpx.angle(z)
        xpx.deg2rad(x)
    """,
}
PROGRAMS = {library: programs(text) for library, text in PROGRAMS.items()}

# The names programs use → modules.
MODULES = {
    "xarray": {"xr": "xarray"},
    "einops": {"einops": "einops", "einops_array_api": "einops.array_api"},
    "opt_einsum": {"oe": "opt_einsum"},
    "einx": {"einx": "einx"},
    "autoray": {"autoray": "autoray"},
    "dask": {"dask": "dask", "da": "dask.array"},
    "pandas": {"pd": "pandas"},
    "zarr": {"zarr": "zarr"},
    "h5py": {"h5py": "h5py"},
    "matplotlib": {"Figure": "matplotlib.figure.Figure"},
    "pyarrow": {"pyarrow": "pyarrow"},
    "numba": {"numba": "numba"},
    "sparse": {"sparse": "sparse"},
    "pint": {"units": "pint.application_registry"},
    "numexpr": {"numexpr": "numexpr"},
    "array_api_compat": {"compat": "array_api_compat"},
    "array_api_extra": {"xpx": "array_api_extra"},
}
