"""Files: atomic writes, honest listings and errors that name the file, locally and in a bucket."""

from __future__ import annotations

import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from s3fs import S3FileSystem

from ragmetrics.errors import StoreError
from ragmetrics.storage import Files
from tests.fakes.clients import Bucket


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty store, in a folder or in a bucket."""
    if request.param == "local":
        return Files(str(tmp_path / "store"))
    return Files(request.getfixturevalue("s3").uri + "/store")


@contextmanager
def full_disk(free: int) -> Iterator[None]:
    """No file of this process may grow beyond so many bytes: a write fails half way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def paths(files: Files, folder: str = "") -> list[str]:
    """What a listing shows."""
    return [info.path for info in files.below(folder)]


@pytest.mark.process
def test_what_is_written_is_read(files: Files) -> None:
    """Whole, as a stream, and from below a folder."""
    files.write("a/b.json", b"{}")
    assert files.read("a/b.json") == files.find("a/b.json") == b"{}"
    assert files.at("a").read("b.json") == b"{}"
    with files.open("a/b.json") as file:
        assert file.readline() == b"{}"


@pytest.mark.process
def test_writing_again_replaces(files: Files) -> None:
    """The last one counts, and its version differs."""
    files.write("a", b"old")
    before = files.below()
    files.write("a", b"brand new")
    assert files.read("a") == b"brand new"
    assert files.below()[0].version != before[0].version


@pytest.mark.process
def test_put_brings_a_finished_file(files: Files, tmp_path: Path) -> None:
    """The source stays with its owner."""
    source = tmp_path / "made.parquet"
    source.write_bytes(b"PAR1")
    files.put(source, "x/y.parquet")
    assert files.read("x/y.parquet") == b"PAR1"
    assert source.exists()


@pytest.mark.process
def test_what_is_not_there(files: Files) -> None:
    """`find` gives None, `exists` is false, removing is fine, reading says which file."""
    assert files.find("a/nosuch") is None
    assert not files.exists("a/nosuch")
    assert files.below("a") == []
    assert files.glob("*.json") == []
    files.remove("a/nosuch")
    with pytest.raises(StoreError, match=r"reading .*store/a/nosuch: no such file"):
        files.read("a/nosuch")


@pytest.mark.process
def test_files_and_folders_exist(files: Files) -> None:
    """A folder is there as soon as something is in it."""
    files.write("runs/a.json", b"1")
    assert files.exists("runs/a.json")
    assert files.exists("runs")


@pytest.mark.process
def test_remove(files: Files) -> None:
    """One file goes, its neighbours stay."""
    files.write("a", b"1")
    files.write("ab", b"2")
    files.remove("a")
    assert paths(files) == ["ab"]


@pytest.mark.process
def test_a_listing_is_sorted_and_sized(files: Files) -> None:
    """All files below a folder, however deep, by path; a folder of a like name is another."""
    for name in ("b/2", "b/1", "b/deep/er/3", "bb/4"):
        files.write(name, b"x" * 5)
    assert paths(files, "b") == ["b/1", "b/2", "b/deep/er/3"]
    assert {info.size for info in files.below()} == {5}


@pytest.mark.process
def test_glob_gives_files_alone(files: Files) -> None:
    """Folders that match are no files."""
    for name in ("a/1.json", "b/2.json", "b/3.txt", "x.json/4"):
        files.write(name, b"")
    assert [info.path for info in files.glob("*/*.json")] == ["a/1.json", "b/2.json"]
    assert files.glob("*.json") == []


@pytest.mark.parametrize("folder", ["[old] store", "what?", "a*b"])
@pytest.mark.parametrize("pattern", ["gates/*.json", "**/*.json", "gates/1.json"])
def test_the_folder_of_a_store_is_no_pattern(tmp_path: Path, folder: str, pattern: str) -> None:
    """Whatever its name: gates of a store in `[old] store` are found."""
    files = Files(str(tmp_path / folder))
    files.write("gates/1.json", b"")
    assert [info.path for info in files.glob(pattern)] == ["gates/1.json"]


@pytest.mark.parametrize("bucket", [False, True])
def test_a_pattern_that_is_none_is_told(tmp_path: Path, bucket: bool) -> None:
    """In one line, in a folder and in a bucket."""
    files = Files("memory://logs" if bucket else str(tmp_path))
    with pytest.raises(StoreError, match=r"listing .*a\*\*\.jsonl: Invalid pattern"):
        files.glob("a**.jsonl")


def test_a_reader_never_sees_half(tmp_path: Path) -> None:
    """While one writes again and again, another reads: the old content or the new, whole."""
    files = Files(str(tmp_path))
    contents = {b"a" * 300_000, b"b" * 500_000}
    files.write("file", min(contents))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in contents:
                files.write("file", content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {files.read("file") for _ in range(200)} <= contents
    finally:
        stop.set()
        writer.join()


def test_a_file_of_a_bucket_that_is_written_anew_is_read_from_the_start(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run puts the same part while it is read: never half of one and half of the other."""
    files, copy = Files(s3.uri), shutil.copyfileobj
    files.write("part", b"a" * 20_000_000)

    def overtaken(source: IO[bytes], target: IO[bytes], length: int) -> None:
        monkeypatch.undo()
        target.write(source.read(length))
        files.write("part", b"b" * 20_000_001)
        copy(source, target, length)

    monkeypatch.setattr("ragmetrics.storage.files.shutil.copyfileobj", overtaken)
    with files.open_as_is("part") as file:
        assert file.read() == b"b" * 20_000_001


def test_a_failing_write_leaves_the_old_content(tmp_path: Path) -> None:
    """On a full disk: the old file, no temporary one, and an error that names the file."""
    files, big = Files(str(tmp_path)), b"x" * 3_000_000
    files.write("state.json", b"old")
    with full_disk(1_000_000), pytest.raises(StoreError, match=r"writing .*state\.json") as error:
        files.write("state.json", big)
    assert error.value.transient
    assert files.read("state.json") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_temporary_file_is_no_part_of_a_listing(tmp_path: Path) -> None:
    """What a killed process left behind is never read as a log or a part."""
    (tmp_path / ".state.json.ab12").write_bytes(b"half")
    assert Files(str(tmp_path)).below() == []


def test_listings_of_a_bucket_are_not_cached(s3: Bucket) -> None:
    """What another worker writes is seen by the next listing."""
    files = Files(s3.uri)
    files.write("a", b"1")
    assert paths(files) == ["a"]
    s3.client.put_object(Bucket=s3.name, Key="b", Body=b"2")
    assert paths(files) == ["a", "b"]
    assert files.exists("b")
    s3.client.delete_object(Bucket=s3.name, Key="a")
    assert not files.exists("a")
    assert paths(files) == ["b"]


def test_a_small_file_of_a_bucket_is_one_request(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is not asked for first."""
    asked: list[str] = []
    call = S3FileSystem._call_s3

    async def noted(self: S3FileSystem, method: str, *given: Any, **more: Any) -> Any:
        asked.append(method)
        return await call(self, method, *given, **more)

    files = Files(s3.uri + "/store")
    files.write("a.json", b"{}")
    monkeypatch.setattr(S3FileSystem, "_call_s3", noted)
    assert files.read("a.json") == b"{}"
    assert asked == ["get_object"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("index.html", "text/html; charset=utf-8"), ("run.json", "application/json")],
)
def test_a_browser_opens_what_is_in_the_bucket(
    s3: Bucket, tmp_path: Path, name: str, kind: str
) -> None:
    """Pages carry their content type, however they were written; else they would download."""
    files, source = Files(s3.uri), tmp_path / name
    source.write_bytes(b"<p>")
    files.write(f"written/{name}", b"<p>")
    files.put(source, f"put/{name}")
    for how in ("written", "put"):
        head = s3.client.head_object(Bucket=s3.name, Key=f"{how}/{name}")
        assert head["ContentType"] == kind, how


def test_a_missing_bucket_is_told(s3: Bucket) -> None:
    """Reading, writing, listing: the message names the bucket and says that there is none."""
    files = Files("s3://nowhere/store")

    def stream() -> None:
        with files.open("a"):
            pass

    acts = [stream, lambda: files.read("a"), lambda: files.write("a", b""), files.below]
    for act in acts:
        with pytest.raises(StoreError, match=r"s3://nowhere/store.*no such bucket"):
            act()


def test_a_file_that_is_missing_is_not_taken_for_its_bucket(s3: Bucket, tmp_path: Path) -> None:
    """Also where "bucket" is part of the name, as it often is."""
    s3.client.create_bucket(Bucket="my-bucket")
    for root in ("s3://my-bucket/x", str(tmp_path / "bucket")):
        with pytest.raises(StoreError, match="a: no such file"):
            Files(root).read("a")
        assert Files(root).below("logs") == []


def test_a_wrong_secret_is_told(s3_strict: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 403 is access denied, to which file, and no retry would help."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    said = rf"reading {s3_strict.uri}/a: access denied \(SignatureDoesNotMatch, HTTP 403"
    with pytest.raises(StoreError, match=said) as error:
        Files(s3_strict.uri).read("a")
    assert not error.value.transient
    assert "wrong" not in str(error.value)


def test_an_unknown_kind_of_address_is_told() -> None:
    """One line that names the address."""
    with pytest.raises(StoreError, match=r"opening ftpx://host/x: "):
        Files("ftpx://host/x").read("a")


def test_addresses_are_for_people(tmp_path: Path, s3: Bucket) -> None:
    """Local paths and bucket addresses, without doubled slashes."""
    assert Files(f"{tmp_path}/").uri("a/b") == f"{tmp_path}/a/b"
    assert Files(f"{s3.uri}/x/").uri("a/b") == f"{s3.uri}/x/a/b"
    assert Files(f"{s3.uri}/x").at("y").uri("z") == f"{s3.uri}/x/y/z"
    assert (Files(str(tmp_path)).local, Files(s3.uri).local) == (tmp_path, None)
