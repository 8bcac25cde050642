"""SciPy and scikit-learn take other libraries' arrays if they are asked to on import.

So their programs run in a process of their own, and the other tests see SciPy as users do:

    SCIPY_ARRAY_API=1 python tests/clients/scientific.py
"""

import importlib
import json
import os
import sys

from handover import outcome, refusal, where
from scipy_programs import SCIPY, SCIPY_MODULES
from sklearn_programs import SCIKIT_LEARN, SCIKIT_LEARN_MODULES

TABLES = {"scipy": (SCIPY, SCIPY_MODULES), "sklearn": (SCIKIT_LEARN, SCIKIT_LEARN_MODULES)}


def main():
    """Print, as JSON, what is wrong with each program on each family of arrays it is for."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    found = {}
    for package, (table, modules) in TABLES.items():
        try:
            imported = importlib.import_module(package)
        except ModuleNotFoundError:
            continue
        if package == "sklearn":
            imported.set_config(array_api_dispatch=True)
        found |= {f"{family}: {p}": outcome(p, modules, family) for p in table for family in where(p)}
        found |= {f"refused: {p}": refusal(p, modules) for p in table if where(p) == ["host"]}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
