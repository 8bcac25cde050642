"""The part of the package that is written in C: it is built with NumPy's headers, which only NumPy can find.

All else about the package stands in pyproject.toml.
"""

from glob import glob

import numpy as np
from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "mirabelle.dispatch._native",
            sorted(glob("dispatch/csrc/*.c")),
            include_dirs=[np.get_include()],
            depends=sorted(glob("dispatch/csrc/*.h")),
        )
    ]
)
