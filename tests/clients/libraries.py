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
    """,
    "einops": """
        einops.rearrange(image, "(i p) j -> i (j p)", p=2)
        einops.reduce(image, "(i p) j -> i j", "mean", p=2)
        einops.repeat(x, "t -> t c", c=3)
        einops.einsum(A, B, "t c, c d -> t d")
        einops.pack([x, y], "*")[0]
        einops.unpack(A, [[2], [1]], "t *")
        einops.rearrange([x, y], "n t -> t n")
        einops.asnumpy(x)  # copies
        einops_array_api.rearrange(image, "i j -> j i")
    """,
    "opt_einsum": """
        oe.contract("tc,cd,d->t", A, B, B[0, :])
        oe.contract("ij,jk,kl->il", S, S, S)
        oe.contract("ij,ij->", S, S)
        oe.contract_expression("ij,jk->ik", (4, 4), (4, 4))(S, S)
        oe.contract("ij->ji", S)
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
        dask.delayed(lambda a: a * 2)(x).compute()
        dask.base.tokenize(x) == dask.base.tokenize(x)
    """,
    "pandas": """
        pd.DataFrame({"a": x, "b": y}).corr().to_numpy()  # copies
        pd.Index(n).to_numpy()  # copies
        np.asarray(pd.concat([pd.Series(x), pd.Series(y)]))  # copies
        pd.Series(x).rolling(3).mean().to_numpy()  # copies
    """,
    "sparse": """
        sparse.COO.from_numpy(S).todense()  # copies
        (sparse.COO.from_numpy(S) @ sparse.COO.from_numpy(S)).todense()  # copies
    """,
    "pint": """
        pint.UnitRegistry().Quantity(x, "m").to("cm").magnitude
        (pint.UnitRegistry().Quantity(x, "m") * y).magnitude
        pint.UnitRegistry().Quantity(A, "m").sum(axis=0).magnitude
        q = pint.UnitRegistry().Quantity(x, "s"); (q / (2 * q.units)).magnitude
        np.sqrt(pint.UnitRegistry().Quantity(x * x, "m^2")).magnitude
        np.concatenate([pint.UnitRegistry().Quantity(x, "m")]).magnitude
    """,
    "numexpr": """
        numexpr.evaluate("2*x + y", {"x": x, "y": y})  # copies
    """,
    "array_api_compat": """
        compat.array_namespace(x).sum(x)
        compat.size(A)
        compat.to_device(x, "cpu")
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
        xpx.median(A, axis=0)
        xpx.quantile(A, 0.25, axis=0)
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
    "sparse": {"sparse": "sparse"},
    "pint": {"pint": "pint"},
    "numexpr": {"numexpr": "numexpr"},
    "array_api_compat": {"compat": "array_api_compat"},
    "array_api_extra": {"xpx": "array_api_extra"},
}
