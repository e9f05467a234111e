"""The link: a real broker, and a proxy that breaks the line in every way."""

import asyncio
import contextlib
import ipaddress
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from controller import mqtt
from controller.connection import Broker, Delivered, Disconnected
from controller.mqtt import Link, Subscription, client_id
from tests.broker import DEADLINE_S, Consumer, Proxy, running
from tests.broker import Broker as Mosquitto

BASE = "casino/demo/t-1"


@dataclass
class Harness:
    """A link and what it told."""

    link: Link
    task: asyncio.Task[None]
    messages: list[Delivered] = field(default_factory=list)
    ups: list[bool] = field(default_factory=list)
    downs: list[str] = field(default_factory=list)
    alarms: dict[str, str] = field(default_factory=dict)

    async def until(self, condition: Callable[[], object], what: str = "condition") -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():  # noqa: ASYNC110  # the condition is the caller's
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{what} did not come: ups {self.ups}, downs {self.downs}, {self.alarms}") from None


@contextlib.asynccontextmanager
async def linked(
    port: int,
    *,
    will: Callable[[], bytes] = lambda: b"gone",
    topics: tuple[str, ...] = ("cmd/+",),
    on_message: Callable[[Delivered], None] | None = None,
    **options: object,
) -> AsyncIterator[Harness]:
    settings: dict[str, object] = {"keepalive_s": 20, "connect_timeout_s": 2.0, "ack_timeout_s": 3.0, **options}
    broker = replace(Broker.at(f"mqtt://127.0.0.1:{port}", "t-1"), **settings)  # type: ignore[arg-type]
    messages: list[Delivered] = []
    ups: list[bool] = []
    downs: list[str] = []
    alarms: dict[str, str] = {}
    link = Link(
        broker,
        will_topic=f"{BASE}/will",
        will=will,
        subscriptions=[Subscription(f"{BASE}/{topic}") for topic in topics],
        on_message=on_message or messages.append,
        on_up=ups.append,
        on_down=downs.append,
        alarm=lambda name, _code, text: alarms.update({name: text}),
        clear=lambda name: alarms.update() if alarms.pop(name, None) is None else None,
        rng=random.Random(1),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(link.run())
        yield Harness(link, task, messages, ups, downs, alarms)
        await link.close()
        if not task.done():
            task.cancel()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with running(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture
def proxy(broker: Mosquitto) -> Iterator[Proxy]:
    with Proxy(broker.port) as proxy:
        yield proxy


async def test_publish_answers_with_the_broker_s_reason_for_that_message(broker: Mosquitto) -> None:
    async with linked(broker.port) as here:
        await here.until(lambda: here.link.up, "link")
        nobody = await here.link.publish(f"{BASE}/result", b"1")
        async with Consumer(broker.port, "casino/x/y", ("#",)):
            somebody = await here.link.publish("casino/x/y/cmd/z", b"1")
    assert (nobody.code, nobody.ok) == (16, True)
    assert (somebody.code, somebody.name, somebody.ok) == (0, "Success", True)
    assert here.task.done()
    assert here.downs == ["connection lost: Normal disconnection (0)"]


async def test_offline_nothing_is_queued_and_nothing_goes_out_later() -> None:
    """Field cases 5, 23."""
    with Proxy(1) as nowhere:
        nowhere.refuse = True
        async with linked(nowhere.port) as here:
            await here.until(lambda: nowhere.accepted >= 2, "second attempt")
            with pytest.raises(Disconnected):
                await here.link.publish(f"{BASE}/result", b"1")
            assert not here.link.up


async def test_case_01_a_callback_that_raises_costs_one_connection_not_the_link(broker: Mosquitto) -> None:
    heard: list[bytes] = []

    def fragile(message: Delivered) -> None:
        heard.append(message.payload)
        if heard.count(b"poison") == 1 and message.payload == b"poison":
            raise RuntimeError("a bug of ours")

    async with linked(broker.port, on_message=fragile) as here, Consumer(broker.port, BASE, ()) as floor:
        await here.until(lambda: here.link.up, "link")
        for payload in (b"{", b"\xff\xfe", b"x" * 900_000, b"poison"):
            await floor.publish(f"{BASE}/cmd/open", payload)
        await here.until(lambda: len(here.ups) == 2, "second connection")
        assert here.downs == ["RuntimeError: a bug of ours"]
        await floor.publish(f"{BASE}/cmd/open", b"good")
        await here.until(lambda: b"good" in heard, "the next good command")


async def test_case_07_subscriptions_come_back_after_each_cut(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port) as here, Consumer(broker.port, BASE, ()) as floor:
        for turn in range(3):
            await here.until(lambda turn=turn: len(here.ups) == turn + 1 and here.link.up, f"connection {turn}")  # type: ignore[misc]
            await floor.publish(f"{BASE}/cmd/ping", b"%d" % turn)
            await here.until(lambda turn=turn: [m.payload for m in here.messages][-1:] == [b"%d" % turn], "command")  # type: ignore[misc]
            proxy.cut()
        await here.until(lambda: len(here.ups) == 4, "last connection")
        assert "mqtt:client_id" not in here.alarms  # three cuts are a bad cable, not a twin


async def test_case_07_no_suback_no_link(broker: Mosquitto, proxy: Proxy) -> None:
    """The line goes dead between CONNACK and SUBACK: the link never says that it is up."""
    proxy.hold_replies = True
    async with linked(proxy.port, connect_timeout_s=0.5) as here:
        await here.until(lambda: proxy.accepted >= 2, "second attempt")
        assert here.ups == []
        proxy.hold_replies = False
        await here.until(lambda: here.link.up, "link")


async def test_case_08_the_session_is_kept_and_said_to_be(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port) as here, Consumer(broker.port, BASE, ()) as floor:
        await here.until(lambda: here.link.up, "link")
        proxy.refuse = True
        proxy.cut()
        await here.until(lambda: not here.link.up, "cut")
        await floor.publish(f"{BASE}/cmd/close", b"while away")
        proxy.refuse = False
        await here.until(lambda: here.messages and len(here.ups) == 2, "what was said while away")
        assert here.ups == [False, True]
        assert here.link.health()["session_present"] is True


async def test_case_13_dialling_never_holds_up_the_loop() -> None:
    """A broker that accepts and says nothing; the loop goes on turning meanwhile."""
    with Proxy(1) as proxy:
        proxy.silent = True
        async with linked(proxy.port, connect_timeout_s=0.3) as here:
            turns = 0
            while proxy.accepted < 2:
                await asyncio.sleep(0)
                turns += 1
            assert turns > 100
            assert here.ups == []


async def test_case_16_a_wrong_password_is_told_by_name_and_number_and_not_hammered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("wrong\n")
    with running(tmp_path / "broker", passwords={"table": "right"}) as broker, Proxy(broker.port) as proxy:
        caplog.set_level(logging.WARNING, "controller.mqtt")
        async with linked(proxy.port, username="table", password_file=str(secret)) as here:
            await here.until(lambda: "mqtt:refused" in here.alarms, "alarm")
            assert "Not authorized (135)" in here.alarms["mqtt:refused"]
            assert proxy.accepted == 1
        assert "refused: Not authorized (135)" in caplog.text
        secret.write_text("right\n")
        async with linked(proxy.port, username="table", password_file=str(secret)) as here:
            await here.until(lambda: here.link.up, "link")


async def test_case_31_a_will_outside_the_rights_is_told_with_the_likely_reason() -> None:
    """Mosquitto 2.0.11 lets such a will pass; brokers that do not answer CONNACK 0x87."""
    with Proxy(1) as proxy:
        proxy.script = (b"\x20\x03\x00\x87\x00",)
        async with linked(proxy.port) as here:
            await here.until(lambda: "mqtt:refused" in here.alarms, "alarm")
            assert f"{BASE}/will" in here.alarms["mqtt:refused"]
            assert proxy.accepted == 1


async def test_case_17_every_kind_of_bad_line_ends_in_a_new_connection(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port, connect_timeout_s=0.5) as here:
        await here.until(lambda: len(here.ups) == 1, "first connection")
        proxy.script = (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not a broker",)
        proxy.cut()
        await here.until(lambda: proxy.accepted >= 2, "garbage")
        proxy.script = ()
        await here.until(lambda: len(here.ups) == 2, "recovery from garbage")
        proxy.refuse = True
        proxy.cut()
        await here.until(lambda: proxy.accepted >= 4, "refusal")
        proxy.refuse = False
        await here.until(lambda: len(here.ups) == 3, "recovery from refusal")
        broker.kill()
        await here.until(lambda: len(here.downs) == 3, "broker gone")
        broker.start()
        await here.until(lambda: len(here.ups) == 4, "recovery from a dead broker")


async def test_case_11_an_unanswered_message_gives_up_a_half_open_line(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port, ack_timeout_s=0.3) as here:
        await here.until(lambda: here.link.up, "link")
        proxy.freeze()
        with pytest.raises(Disconnected):
            await here.link.publish(f"{BASE}/result", b"1")
        assert here.downs == ["a message was not acknowledged in 0.3 s"]
        await here.until(lambda: here.link.up, "second connection")
        assert (await here.link.publish(f"{BASE}/result", b"1")).ok


async def test_case_19_no_wait_is_unbounded_when_the_line_is_full_and_dead(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port, ack_timeout_s=5.0) as here:
        await here.until(lambda: here.link.up, "link")
        proxy.freeze()
        async with asyncio.TaskGroup() as group:
            many = [group.create_task(here.link.publish(f"{BASE}/result", b"1")) for _ in range(mqtt.IN_FLIGHT + 1)]
            await asyncio.sleep(0)
            with pytest.raises(Disconnected):
                await here.link.publish(f"{BASE}/status", b"bye", ack_within_s=0.2)
            for task in many:
                task.cancel()
        assert here.downs == ["a message was not acknowledged in 0.2 s"]


def certificates(folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for 127.0.0.1 by itself, and its key."""
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    return paths


async def test_case_41_tls_with_our_own_ca_and_an_error_that_says_what_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = certificates(tmp_path / "broker")
    with running(tmp_path / "broker", extra=f"certfile {cert}\nkeyfile {key}") as broker:
        async with linked(broker.port, tls=True, ca_file=str(cert)) as here:
            await here.until(lambda: here.link.up, "link")
            for size in (10, 100_000, 10):
                assert (await here.link.publish(f"{BASE}/result", b"x" * size)).ok
            async with linked(broker.port, tls=True, ca_file=str(cert), client_id="other", topics=("big",)) as other:
                await other.until(lambda: other.link.up, "link")
                await here.link.publish(f"{BASE}/big", b"x" * 100_000)
                await other.until(lambda: other.messages, "a message of many records")
                assert len(other.messages[0].payload) == 100_000
        async with linked(broker.port, tls=True) as here:
            await here.until(lambda: "TLS: " in caplog.text, "reason")
            assert not here.link.up


@pytest.mark.parametrize(("code", "said"), [(9, "is the clock right?"), (18, "TLS: ")])
def test_case_41_a_certificate_that_is_not_valid_yet_points_at_the_clock(code: int, said: str) -> None:
    error = ssl.SSLCertVerificationError("no")
    error.verify_code, error.verify_message = code, "certificate is not yet valid"
    assert said in mqtt._said(error)


async def test_case_18_a_silent_line_is_found_dead_without_traffic(broker: Mosquitto, proxy: Proxy) -> None:
    async with linked(proxy.port, keepalive_s=1) as here:
        await here.until(lambda: here.link.up, "link")
        proxy.freeze()
        await here.until(lambda: len(here.ups) == 2, "second connection")


async def test_case_32_a_twin_with_our_id_is_told_and_left_alone(broker: Mosquitto) -> None:
    async with linked(broker.port) as here:
        await here.until(lambda: here.link.up, "link")
        async with Consumer(broker.port, BASE, (), client_id="t-1"):
            await here.until(lambda: "mqtt:client_id" in here.alarms, "alarm")
            assert "t-1" in here.alarms["mqtt:client_id"]
            attempts = len(here.ups)
            await here.until(lambda: not here.link.up, "loss")
            assert here.link.health()["client_id_taken"] is True
            assert len(here.ups) == attempts


async def test_case_32_a_broker_that_names_the_take_over_is_believed_sooner(caplog: pytest.LogCaptureFixture) -> None:
    """DISCONNECT 0x8E as of Mosquitto 2.1: CONNACK, SUBACK for packet 1, then the reason."""
    with Proxy(1) as proxy:
        proxy.script = (b"\x20\x03\x00\x00\x00", b"\x90\x04\x00\x01\x00\x01\xe0\x02\x8e\x00")
        async with linked(proxy.port) as here:
            await here.until(lambda: "mqtt:client_id" in here.alarms, "alarm")
            assert proxy.accepted == mqtt.TOLD_MANY
            assert not here.link.up
    assert "broker says Session taken over (142)" in caplog.text


async def test_a_refused_subscription_raises_an_alarm() -> None:
    with Proxy(1) as proxy:
        proxy.script = (b"\x20\x03\x00\x00\x00", b"\x90\x04\x00\x01\x00\x87")
        async with linked(proxy.port) as here:
            await here.until(lambda: here.link.up, "link")
            assert f"{BASE}/cmd/+: Not authorized (135)" in here.alarms["mqtt:subscription"]


async def test_what_the_broker_cannot_take_is_refused_here_and_the_line_stays() -> None:
    """CONNACK with Maximum Packet Size 300."""
    with Proxy(1) as proxy:
        proxy.script = (b"\x20\x08\x00\x00\x05\x27\x00\x00\x01\x2c", b"\x90\x04\x00\x01\x00\x01")
        async with linked(proxy.port) as here:
            await here.until(lambda: here.link.up, "link")
            acked = await here.link.publish(f"{BASE}/result", b"x" * 300)
            assert (acked.code, acked.ok) == (149, False)
            assert here.link.up


async def test_cancelled_without_goodbye_the_broker_tells_the_will(broker: Mosquitto) -> None:
    async with Consumer(broker.port, BASE, ("will",)) as floor:
        floor.problems = []
        async with linked(broker.port, will=lambda: b"gone") as here:
            await here.until(lambda: here.link.up, "link")
            here.task.cancel()
        await floor.until(lambda: floor.of("will"), "will")
        assert floor.of("will")[0].payload == b"gone"
        floor.problems.clear()  # `will` is no address of the contract


def test_the_client_id_is_fixed_by_table_and_machine() -> None:
    first = client_id(BASE, "machine-a")
    assert first == client_id(BASE, "machine-a")
    assert first != client_id(BASE, "machine-b")
    assert first.startswith("casino-demo-t-1-")


@pytest.mark.parametrize("url", ["http://x", "mqtt://", "nonsense"])
def test_an_impossible_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="mqtt://host"):
        Broker.at(url, "x")


def test_ports_have_the_usual_defaults() -> None:
    assert Broker.at("mqtt://h", "x").port == 1883
    assert Broker.at("mqtts://h", "x").port == 8883
    assert Broker.at("mqtts://h:1", "x").tls
