"""The named data sets and formats: what each needs, how it is loaded, and where it is fetched from."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from radii._check import nearest
from radii.data.dataset import Dataset
from radii.data.sources.place import default_root, look_for
from radii.errors import InputError

_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_FASHION_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_GTSRB_URL = "https://sid.erda.dk/public/archives/daaeac0d7ce1152aea9b61d9f1e19370/"


@dataclass(frozen=True, slots=True)
class Download:
    """One file to fetch: its address, its checksum as "md5:…" or "sha256:…", and whether it is an archive to unpack."""

    url: str
    checksum: str
    unpack: bool = False

    @property
    def filename(self) -> str:
        """The name it is stored under."""
        return self.url.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Source:
    """A data set or a format that `load_dataset` knows by name.

    `module` and `function` name the loader in `radii.data.sources`, called as ``loader(root, split, **options)`` (or
    ``loader(split, **options)`` when the source is embedded in a package and has no files).
    """

    name: str
    about: str
    module: str
    function: str = "load"
    splits: tuple[str, ...] = ("train", "test")
    options: tuple[str, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    embedded: bool = False
    format: bool = False

    def loader(self) -> Callable[..., Dataset]:
        """The function that loads it; imports the module on first use."""
        module = importlib.import_module(f"radii.data.sources.{self.module}")
        return partial(getattr(module, self.function), **dict(self.fixed))

    @property
    def missing_packages(self) -> tuple[str, ...]:
        """The packages it needs that are not installed."""
        return tuple(package for package in self.packages if importlib.util.find_spec(package) is None)

    def present(self, root: Path | None = None) -> bool:
        """Whether it can be loaded: packages are installed, and files are under the root (or the default one)."""
        if self.missing_packages:
            return False
        return (
            self.embedded or self.format or look_for(root or default_root(self.name), self.files, self.name) is not None
        )

    def how(self, root: Path | None = None) -> str:
        """The line that gets what is missing, empty when nothing is."""
        if self.missing_packages:
            return "pip install 'radii[data]'"
        return "" if self.present(root) else f"radii datasets fetch {self.name}"


_IDX = tuple(f"train-images-idx3-ubyte{end}" for end in ("", ".gz")) + tuple(
    f"t10k-images-idx3-ubyte{end}" for end in ("", ".gz")
)
_DIGITS = tuple(str(digit) for digit in range(10))
_IMAGE_OPTIONS = ("resize", "grayscale", "crop", "domain")
_ARRAY_OPTIONS = ("domain", "scale", "layout", "class_names")


def _idx_downloads(base: str, sums: tuple[str, str, str, str]) -> tuple[Download, ...]:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(Download(f"{base}{part}-ubyte.gz", f"md5:{md5}") for part, md5 in zip(parts, sums))


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "mnist",
            "70,000 handwritten digits, 1x28x28",
            "idx",
            fixed=(("name", "mnist"), ("class_names", _DIGITS)),
            files=_IDX,
            downloads=_idx_downloads(
                _MNIST_URL,
                (
                    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    "d53e105ee54ea40749a09fcbcd1e9432",
                    "9fb629c4189551a2d022fa330f9573f3",
                    "ec29112dd5afa0611ce80d1b7f02629c",
                ),
            ),
        ),
        Source(
            "fashion-mnist",
            "70,000 pieces of clothing, 1x28x28",
            "idx",
            fixed=(("name", "fashion-mnist"), ("class_names", _FASHION)),
            files=_IDX,
            downloads=_idx_downloads(
                _FASHION_URL,
                (
                    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                    "25c81989df183df01b3e8a0aad5dffbe",
                    "bef4ecab320f06d8554ea6380940ec79",
                    "bb300cfdad3c16e7a12a480ee83cd310",
                ),
            ),
        ),
        Source(
            "cifar10",
            "60,000 small photographs of 10 classes, 3x32x32",
            "cifar10",
            options=("file",),
            files=("data_batch_1", "test_batch", "data_batch_1.bin", "test_batch.bin", "cifar10_3000.npz"),
            downloads=(
                Download(
                    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                    "md5:c58f30108f718f92721af3b95e74349a",
                    unpack=True,
                ),
            ),
        ),
        Source(
            "gtsrb",
            "51,839 German traffic signs of 43 classes, 3x32x32 after resizing",
            "gtsrb",
            options=_IMAGE_OPTIONS,
            files=("labels.csv", "GT-final_test.csv", "Training"),
            packages=("PIL",),
            downloads=(
                Download(_GTSRB_URL + "GTSRB_Final_Test_Images.zip", "md5:c7e4e6327067d32654124b0fe9e82185", True),
                Download(_GTSRB_URL + "GTSRB_Final_Test_GT.zip", "md5:fe31e9c9270bbcd7b84b7f21a9d9d9e5", True),
                Download(_GTSRB_URL + "GTSRB-Training_fixed.zip", "md5:513f3c79a4c5141765e10e952eaa2478", True),
            ),
        ),
        Source(
            "digits",
            "1,797 handwritten digits of scikit-learn, 1x8x8",
            "embedded",
            "digits",
            packages=("sklearn",),
            embedded=True,
        ),
        Source(
            "mnist5k",
            "5,000 digits of MNIST that come with radii, 1x28x28",
            "embedded",
            "mnist5k",
            embedded=True,
        ),
        Source("idx", "a folder of idx files in MNIST's form", "idx", fixed=(("name", "idx"),), format=True),
        Source(
            "images",
            "a folder of pictures: one subfolder per class, or a CSV file with file and label",
            "images",
            splits=(),
            options=(*_IMAGE_OPTIONS, "class_names"),
            packages=("PIL",),
            format=True,
        ),
        Source(
            "arrays",
            "an .npz file with x and y (or x_test, y_test, …), or x.npy beside y.npy",
            "arrays",
            splits=(),
            options=(*_ARRAY_OPTIONS, "labels"),
            format=True,
        ),
        Source(
            "table",
            "a CSV table with a column of labels",
            "table",
            splits=(),
            options=("domain", "scale", "class_names", "label", "shape", "separator"),
            format=True,
        ),
    )
}


def source(name: str) -> Source:
    """The source of this name; an unknown one is refused with the nearest that is known."""
    if name in SOURCES:
        return SOURCES[name]
    known = ", ".join(SOURCES)
    raise InputError(f"data set: expected a file, a folder or one of {known}, got {name!r}{nearest(name, SOURCES)}")
