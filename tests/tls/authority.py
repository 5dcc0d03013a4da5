"""A CA and the certificates that it signs, made by openssl."""

import os
import subprocess

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
HERE = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Authority:
    """A CA, whose files have `name` in a directory: `NAME.pem`, `NAME.key`."""

    def __init__(self, directory, name, is_new=True):
        self.directory, self.name = directory, name
        if not is_new:
            return
        openssl(
            "req", "-x509", *CURVE, "-days", 30, "-subj", f"/CN=the CA {name}",
            "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"),
        )

    def path(self, file):
        """A file of the directory."""
        return os.path.join(self.directory, file)

    def issue(self, name, common_name="localhost", names=HERE, days=30):
        """Makes `NAME.pem` and `NAME.key`, signed by the CA. `names` is an extension, or `None` for none."""
        request = self.path(f"{name}.csr")
        extension = ["-addext", names] if names else []
        key = self.path(f"{name}.key")
        openssl("req", *CURVE, "-subj", f"/CN={common_name}", *extension, "-keyout", key, "-out", request)
        openssl(
            "x509", "-req", "-in", request, "-CA", self.path(f"{self.name}.pem"),
            "-CAkey", self.path(f"{self.name}.key"), "-days", days, "-copy_extensions", "copy",
            "-out", self.path(f"{name}.pem"),
        )
        return self.path(f"{name}.pem"), key


def openssl(*words):
    """Runs openssl, which prints nothing unless it fails."""
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {words[0]}: {done.stderr.strip()}")
