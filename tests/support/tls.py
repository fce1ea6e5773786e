"""Self-signed certificates."""

import subprocess
from pathlib import Path


def self_signed_certificate(folder: Path) -> tuple[Path, Path]:
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key
