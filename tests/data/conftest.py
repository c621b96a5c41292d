"""A real web server on this machine, and a compressor for the format that UCI's .Z files have."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Answer:
    """What the server gives for a path: a status, a body, and what may go wrong on the way."""

    body: bytes = b""
    status: int = 200
    head_status: int | None = None
    location: str = ""
    cut: int = 0
    silent: bool = False


@dataclass
class Server:
    """Answers by path: several answers are given one after the other, the last one for ever."""

    url: str
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def serve(self, path: str, body: bytes = b"", **answer: object) -> None:
        """Answer `path` so (see `Answer`) from now on."""
        self.answers[path] = [Answer(body, **answer)]

    def then(self, path: str, body: bytes = b"", **answer: object) -> None:
        """Answer `path` so after its earlier answers were given once each."""
        self.answers[path].append(Answer(body, **answer))

    def answer(self, method: str, path: str) -> Answer:
        self.asked.append((method, path))
        answers = self.answers.get(path, [Answer(status=404)])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.respond(server.answer("HEAD", self.path))

        def do_GET(self) -> None:
            self.respond(server.answer("GET", self.path))

        def respond(self, answer: Answer) -> None:
            if answer.silent:
                server.closing.wait()
            self.send_response((self.command == "HEAD" and answer.head_status) or answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.location:
                self.send_header("Location", answer.location)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(answer.body[: len(answer.body) - answer.cut])

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that stands for UCI, for the hub and for GitHub; without waiting between retries."""
    state = Server("")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(state)) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("ENSEMBLEPP_UCI_URL", state.url)
        monkeypatch.setenv("HF_ENDPOINT", f"{state.url}/")
        monkeypatch.setenv("ENSEMBLEPP_GITHUB_URL", state.url)
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
        yield state
        state.closing.set()
        http.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def compress() -> Callable[[bytes], bytes]:
    """What Unix `compress` makes of bytes: LZW, codes of 9 to 16 bits, padded to groups of 8 where the width grows."""

    def compressed(data: bytes) -> bytes:
        table = {bytes([byte]): byte for byte in range(256)}
        free, width, in_group, buffer, held = 257, 9, 0, 0, 0
        out = bytearray(b"\x1f\x9d\x90")

        def emit(code: int) -> None:
            nonlocal buffer, held, in_group
            buffer |= code << held
            held += width
            in_group = (in_group + 1) % 8
            whole = held // 8
            out.extend((buffer & ((1 << 8 * whole) - 1)).to_bytes(whole, "little"))
            buffer >>= 8 * whole
            held -= 8 * whole

        prefix = b""
        for byte in data:
            longer = prefix + bytes([byte])
            if longer in table:
                prefix = longer
                continue
            emit(table[prefix])
            if free < 1 << 16:
                table[longer] = free
                free += 1
                if free > 1 << width and width < 16:
                    while in_group:
                        emit(0)
                    width += 1
            prefix = bytes([byte])
        if prefix:
            emit(table[prefix])
        return bytes(out) + buffer.to_bytes((held + 7) // 8, "little")

    return compressed
