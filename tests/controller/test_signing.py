"""The table's key: made once, private, and its public half for everybody."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.signing import KEY_FILE, PUBLIC_FILE, KeyFileError, key_of, read_public, verify


def test_the_first_start_makes_a_key_that_stays(tmp_path: Path) -> None:
    key = key_of(tmp_path)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / PUBLIC_FILE).stat().st_mode & 0o777 == 0o644
    assert read_public(tmp_path / PUBLIC_FILE) == key.public
    assert sorted(p.name for p in tmp_path.iterdir()) == [KEY_FILE, PUBLIC_FILE]
    again = key_of(tmp_path)
    assert again.public == key.public
    assert verify(key.public, b"coup", again.sign(b"coup"))


def test_a_lost_or_altered_public_file_is_written_again(tmp_path: Path) -> None:
    key = key_of(tmp_path)
    (tmp_path / PUBLIC_FILE).write_text("something else\n")
    assert key_of(tmp_path).public == key.public
    assert read_public(tmp_path / PUBLIC_FILE) == key.public


def test_a_key_elsewhere_is_used_and_never_made(tmp_path: Path) -> None:
    elsewhere = tmp_path / "credentials"
    folder = tmp_path / "state"
    folder.mkdir()
    with pytest.raises(KeyFileError, match="No such file"):
        key_of(folder, str(elsewhere))
    raw = Ed25519PrivateKey.generate().private_bytes_raw()
    elsewhere.write_bytes(base64.b64encode(raw))
    elsewhere.chmod(0o400)
    assert key_of(folder, str(elsewhere)).private.private_bytes_raw() == raw
    assert [p.name for p in folder.iterdir()] == [PUBLIC_FILE]


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key_of(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600"):
        key_of(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not base64!", base64.b64encode(b"short"), b"\xff\xfe"])
def test_a_spoilt_key_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    key_of(tmp_path)
    (tmp_path / KEY_FILE).write_bytes(content)
    with pytest.raises(KeyFileError, match="restore it from its backup"):
        key_of(tmp_path)
    (tmp_path / PUBLIC_FILE).write_bytes(content)
    with pytest.raises(KeyFileError, match="is not the base64 of 32 bytes"):
        read_public(tmp_path / PUBLIC_FILE)


def test_what_does_not_verify(tmp_path: Path) -> None:
    key = key_of(tmp_path)
    sig = key.sign(b"coup")
    assert not verify(key.public, b"coup 2", sig)
    assert not verify(key.public, b"coup", key.sign(b"other"))
    assert not verify(key.public, b"coup", sig[:-4])
    assert not verify(key.public, b"coup", "é")
    assert not verify("AAAA", b"coup", sig)
    assert not verify("?", b"coup", sig)
