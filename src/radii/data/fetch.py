"""Downloads with a checksum and resume; a file is either whole and checked, or not there."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path

from radii.data.sources.place import default_root
from radii.data.sources.registry import source
from radii.errors import DataError

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all (None: not known)
_CHUNK = 1 << 18
_TIMEOUT = 30.0
_ATTEMPTS = 3


def fetch_dataset(name: str, root: str | os.PathLike[str] | None = None, progress: Progress | None = None) -> Path:
    """The folder that now holds the data set's files; what is there already and whole is not fetched again."""
    chosen = source(name)
    if not chosen.downloads:
        got = (
            "it comes with a package: " + (chosen.how() or "nothing to fetch") if chosen.embedded else "it is a format"
        )
        raise DataError(f"{name}: expected a data set that can be fetched, but {got}")
    folder = default_root(name) if root is None else Path(root).expanduser()
    for download in chosen.downloads:
        path = fetch(download.url, folder / download.filename, download.checksum, progress)
        if download.unpack:
            unpack(path, folder)
    return folder


def fetch(url: str, path: Path, checksum: str, progress: Progress | None = None) -> Path:
    """The path, holding what the address gives; `checksum` is "md5:…" or "sha256:…".

    Bytes go to path.part, which a later call continues; it gets its name only when it is whole and its checksum fits.
    """
    if path.is_file() and _digest(path, checksum) == checksum:
        return path
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _download(url, part, progress)
        got = _digest(part, checksum)
        if got != checksum:
            part.unlink()
            raise DataError(
                f"{url}: expected {checksum}, got {got}: the file is not the published one; nothing was kept"
            )
        os.replace(part, path)
    except OSError as error:
        raise DataError(f"{path}: expected a folder that can be written to: {error.strerror or error}") from None
    return path


def _digest(path: Path, checksum: str) -> str:
    kind = checksum.partition(":")[0]
    with path.open("rb") as stream:
        return f"{kind}:{hashlib.file_digest(stream, kind).hexdigest()}"


def _download(url: str, part: Path, progress: Progress | None) -> None:
    """Fill the .part file, continuing where an earlier transfer stopped."""
    reason = ""
    for _ in range(_ATTEMPTS):
        try:
            _transfer(url, part, progress)
            return
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416 and part.exists():  # nothing is left to send: the checksum decides
                    return
                raise DataError(f"{url}: expected the file, the server said {error.code} {error.reason}") from None
        except (http.client.HTTPException, urllib.error.URLError, TimeoutError, ConnectionError) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            reason = str(cause) or type(cause).__name__
    have = part.stat().st_size if part.exists() else 0
    kept = f"; {have} bytes are kept, the same command continues" if have else "; is there a network?"
    raise DataError(f"{url}: expected to fetch it, got: {reason}{kept}")


def _transfer(url: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        continued = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if continued else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        with part.open("ab" if continued else "wb") as stream:
            while chunk := answer.read(_CHUNK):
                stream.write(chunk)
                have += len(chunk)
                if progress is not None:
                    progress(have, total)
    if total is not None and have != total:
        raise http.client.IncompleteRead(b"", total - have)


def unpack(archive: Path, folder: Path) -> None:
    """Put the members of a tar or zip archive into the folder, each whole or not at all, none outside of it."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as work:
        try:
            if zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive) as stored:
                    stored.extractall(work)  # drops drive letters, leading slashes and ".."
            else:
                with tarfile.open(archive) as packed:
                    packed.extractall(work, filter="data")
        except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
            raise DataError(f"{archive}: expected a tar or zip archive that can be unpacked, got: {error}") from None
        _merge(Path(work), folder)


def _merge(source_folder: Path, target: Path) -> None:
    """Move everything into the target; folders that are there already are filled up (two archives share some)."""
    for entry in sorted(source_folder.iterdir()):
        place = target / entry.name
        if entry.is_dir() and place.is_dir():
            _merge(entry, place)
        elif entry.is_dir():
            shutil.move(entry, place)
        else:
            os.replace(entry, place)
