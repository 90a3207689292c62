"""The process that unpacks an archive for an agent, whose heartbeats must not wait: ARCHIVE DIGEST FOLDER.

It prints why the archive cannot be unpacked; nothing if all is well.
"""

import hashlib
import os
import sys
import tarfile


def unpack(archive: str, digest: str, folder: str) -> str:
    """Unpack an archive with this SHA-256 into a new folder; returns what is wrong, empty if nothing is."""
    try:
        with open(archive, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                os.unlink(archive)
                return f"{archive}: its SHA-256 is another"
            file.seek(0)
            os.mkdir(folder)
            with tarfile.open(fileobj=file, mode="r:gz") as tar:
                tar.extractall(folder, filter="data")
    except (OSError, EOFError, tarfile.TarError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        return f"{folder}: {reason}"
    return ""


if __name__ == "__main__":
    print(unpack(*sys.argv[1:4]), end="")
