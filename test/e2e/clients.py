"""Clients that ask a server on and on until they hear of an error, as faults are to be heard: with the status 500 in OpenAI's form or as
an event of the stream, and with no wrong text before. Also what they heard of a server that went away between two answers."""
import json
import threading

import httpx

BODY = {"prompt": [1, 5, 9], "max_tokens": 40, "temperature": 0, "ignore_eos": True}
MANY = 80  # choices of a request, more than these tests' plans run at once: some of them wait


def error_of(body) -> tuple:
    """(code, message) of an answer that is an error, in OpenAI's form."""
    error = body["error"]
    assert error["message"] and error["type"] and "code" in error and "param" in error, body
    return error["code"], error["message"]


class Client:
    """`want`: the text of BODY."""

    def __init__(self, server, want, stream=False, n=1):
        self.server, self.want, self.body = server, want, {**BODY, "stream": stream, "n": n}
        self.answers, self.status, self.message, self.problem = 0, None, None, None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while self.status is None:
                self._stream() if self.body["stream"] else self._ask()
        except httpx.TransportError as e:
            self.status, self.message = 0, str(e)
        except Exception as e:
            self.problem = e

    def _ask(self):
        response = self.server.http.post("/v1/completions", json=self.body)
        if response.status_code != 200:
            _, self.message = error_of(response.json())
            self.status = response.status_code
            return
        assert {choice["text"] for choice in response.json()["choices"]} == {self.want}, response.text
        self.answers += 1

    def _stream(self):
        text, ended = "", False
        with self.server.http.stream("POST", "/v1/completions", json=self.body) as response:
            if response.status_code != 200:
                response.read()
                _, self.message = error_of(response.json())
                self.status = response.status_code
                return
            for line in response.iter_lines():
                if not line.startswith("data: "):
                    continue
                if line == "data: [DONE]":
                    ended = True
                    break
                event = json.loads(line[len("data: "):])
                if "error" in event:
                    _, self.message = error_of(event)
                    self.status = 500
                else:
                    text += event["choices"][0]["text"]
        assert self.want.startswith(text), f"{text!r} is not of {self.want!r}"
        assert ended and (self.status or text == self.want), "a stream ended without a word"
        self.answers += self.status is None

    def heard(self) -> int:
        """The status that the client heard of; fails where it waits for ever, or was told a wrong text."""
        self.thread.join(30)
        assert not self.thread.is_alive(), "a client waits for ever"
        if self.problem:
            raise self.problem
        return self.status


class Clients:
    """Some that stream, some that do not, and one whose choices have to wait for each other."""

    def __init__(self, server):
        answer = server.http.post("/v1/completions", json=BODY)
        assert answer.status_code == 200, answer.text
        want = answer.json()["choices"][0]["text"]
        self.all = [Client(server, want, stream=i % 2 == 0) for i in range(6)] + [Client(server, want, n=MANY)]

    def heard(self, says: str) -> None:
        """All have heard of the end; those who waited when it came, with status 500 and a sentence that has `says` in it."""
        statuses = [client.heard() for client in self.all]
        told = [client for client, status in zip(self.all, statuses) if status == 500]
        assert told and set(statuses) <= {0, 500, 503}, f"statuses {statuses}"
        assert all(says in client.message for client in told), [client.message for client in told]
