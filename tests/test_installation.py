"""What is installed on a Raspberry Pi: unit, users, folders, broker. Each is given to the program that will read it."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "systemd/table-controller.service"
PROGRAM = "/opt/table-controller/venv/bin/table-controller"
DEADLINE_S = 20


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit with its program where one is, since verify looks whether it can be executed."""
    text = UNIT.read_text()
    assert text.count(PROGRAM) == 2
    copy = tmp_path / UNIT.name
    program = tmp_path / "table-controller"
    program.symlink_to(Path(sys.executable).with_name("table-controller"))
    copy.write_text(text.replace(PROGRAM, str(program)))
    return copy


def test_the_unit_verifies_without_a_word(unit: Path) -> None:
    seen = run("systemd-analyze", "verify", unit)
    assert (seen.returncode, seen.stdout + seen.stderr) == (0, "")


def test_the_unit_is_exposed_two_at_most(unit: Path) -> None:
    seen = run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit)
    assert seen.returncode == 0, seen.stdout
    level = re.search(r"exposure level for table-controller.service: ([\d.]+)", seen.stdout)
    assert level
    assert float(level[1]) <= 2.0


@pytest.mark.skipif(os.geteuid() != 0, reason="owners are set, which only root may")
def test_users_and_folders_are_made_as_the_unit_expects(tmp_path: Path) -> None:
    folder = tmp_path / "etc/table-controller"
    folder.mkdir(parents=True)
    modes = {"table.toml": 0o640, "broker.password": 0o640, "table.key": 0o400}
    for name in modes:
        (folder / name).touch(mode=0o600)
    for name in ("sysusers", "tmpfiles"):
        # both refuse an unknown line; --root keeps them out of this machine
        program = [f"systemd-{name}", f"--root={tmp_path}", *(["--create"] if name == "tmpfiles" else [])]
        seen = run(*program, ROOT / f"systemd/{name}.d/table-controller.conf")
        assert seen.returncode == 0, seen.stderr
    assert "table-controller" in (tmp_path / "etc/passwd").read_text()
    groups = (tmp_path / "etc/group").read_text()
    for group in re.findall(r"^(?:Group|SupplementaryGroups)=(.*)$", UNIT.read_text(), re.MULTILINE):
        for name in group.split():
            assert re.search(rf"^{name}:", groups, re.MULTILINE)
    assert folder.stat().st_mode & 0o777 == 0o750
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == modes
    assert (folder / "table.key").stat().st_uid != (folder / "table.toml").stat().st_uid


def test_udev_rules_use_only_known_keys() -> None:
    pair = re.compile(
        r"(ACTION|SUBSYSTEM|KERNEL|DRIVER|TEST|ENV\{\w+\}|ATTR\{[\w/]+\}|GROUP|MODE|SYMLINK)(==|=|\+=)\"[^\"]*\""
    )
    rules = [line for line in (ROOT / "systemd/90-table.rules").read_text().splitlines() if line[:1] not in ("", "#")]
    assert rules
    for rule in rules:
        for part in rule.split(", "):
            assert pair.fullmatch(part), part


# --- the broker ------------------------------------------------------------------------------------------------------

PASSWORD = "geheim"  # of a broker that lives for one test


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[int]:
    """Mosquitto with the shipped configuration; only its files, port and user are this test's."""
    passwords, acl = tmp_path / "passwd", tmp_path / "acl"
    passwords.touch(mode=0o600)
    for user in ("roue-1", "floor", "results"):
        assert run("mosquitto_passwd", "-b", passwords, user, PASSWORD).returncode == 0
    acl.write_text((ROOT / "config/mosquitto.acl").read_text())
    acl.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    text = (ROOT / "config/mosquitto.conf").read_text()
    for old, new in (
        ("/etc/mosquitto/table.passwd\n", f"{passwords}\n"),
        ("/etc/mosquitto/table.acl\n", f"{acl}\n"),
        ("listener 1883 127.0.0.1", f"user root\nlistener {port} 127.0.0.1"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "mosquitto.conf").write_text(text)
    with subprocess.Popen(
        ["mosquitto", "-c", tmp_path / "mosquitto.conf"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        said = []
        for line in process.stderr:
            said.append(line)
            if "running" in line:
                break
        else:
            pytest.fail(f"mosquitto refuses the shipped configuration:\n{''.join(said)}")
        drain = threading.Thread(target=process.stderr.read)
        drain.start()
        yield port
        process.terminate()
        drain.join()


Say = Callable[[str, str], bool]


@pytest.fixture
def say(broker: int) -> Say:
    """user, topic -> did the broker take a message of this user on this topic? (QoS 1, MQTT 5: it tells)"""

    def publish(user: str, topic: str) -> bool:
        answered = threading.Event()
        reasons: list[bool] = []
        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        client.username_pw_set(user, PASSWORD)

        def connected(*_: object) -> None:
            client.publish(topic, b"{}", qos=1)

        def acknowledged(_client: object, _data: object, _mid: object, reason: object, _props: object) -> None:
            reasons.append(not reason.is_failure)  # type: ignore[attr-defined]
            answered.set()

        client.on_publish = acknowledged
        client.on_connect = connected
        client.connect("127.0.0.1", broker)
        client.loop_start()
        assert answered.wait(DEADLINE_S)
        client.disconnect()
        client.loop_stop()
        return reasons[0]

    return publish


def test_each_user_of_the_broker_says_only_what_is_his(say: Say) -> None:
    assert say("roue-1", "casino/demo/roue-1/result")
    assert not say("roue-1", "casino/demo/rf-1/result")
    assert say("roue-1", "replies/floor/1")
    assert say("floor", "casino/demo/roue-1/cmd/state")
    assert not say("floor", "casino/demo/roue-1/result")
    assert not say("results", "casino/demo/roue-1/cmd/state")
