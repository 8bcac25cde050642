"""Certificates for tests of encrypted connections: each is its own authority."""

import shutil
import subprocess

import pytest


def certificate(folder, name="all"):
    """The paths of a certificate and its key, made in a folder."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-out", paths[0], "-keyout", paths[1], "-subj", f"/CN={name}"],
        check=True,
        capture_output=True,
    )
    return paths
