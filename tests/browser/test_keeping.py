"""Partial answers are kept: after an abort, a stop, a reload, and with damaged storage."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from chapterverse.api.openapi.examples import EVENTS, SOURCE, SUMMARY
from tests.browser.chromium import ask, visiting
from tests.browser.shelf import Shelf, scripted_server
from tests.browser.test_reader_page import CODE_PAGE, LONG_PAGE, PAGES, answer_with, stream
from tests.scripted import Scripted
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CITED = SOURCE | {"page_id": LONG_PAGE.page_id, "quote_start": 8, "quote_end": 20}
CHUNK = EVENTS[1] | {"content": "It is so [1]. ", "sources": [CITED]}
LONG_CHUNK = CHUNK | {"content": "It is so [1].\n\n" + "A long answer goes on and on.\n\n" * 40}
ERROR = {"type": "error", "error_code": "agent_unavailable", "message": "Down."}
# Simulates a server that sends the beginning of an answer and then nothing.
HELD_BACK = """([body]) => {
    const real = fetch;
    globalThis.fetch = (address, options) => {
        if (!String(address).endsWith("/chat/stream")) return real(address, options);
        return Promise.resolve(new Response(new ReadableStream({
            start(controller) {
                controller.enqueue(new TextEncoder().encode(body));
                const stop = () => controller.error(new DOMException("", "AbortError"));
                options.signal.addEventListener("abort", stop);
            },
        })));
    };
}"""


@pytest.fixture(scope="module")
def server(scripted: Scripted) -> Iterator[Served]:
    with scripted_server(Shelf(PAGES), scripted, api_rate_limit=100_000) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}") as opened:
        opened.locator("main .headed").first.wait_for()
        yield opened


def hold_back(page: Page, *events: dict[str, Any]) -> None:
    page.evaluate(HELD_BACK, [stream(*events)])


@pytest.mark.parametrize("events", [[EVENTS[0], CHUNK], [EVENTS[0], CHUNK, ERROR], [ERROR]])
def test_incomplete_answer_is_shown_after_a_reload(page: Page, events: list[dict[str, Any]]) -> None:
    answer_with(page, *events)
    ask(page, "anything")
    alert = page.locator(".failure [role=alert]").inner_text()
    page.reload()
    expect(page.locator(".question")).to_have_text("anything")
    expect(page.locator(".failure [role=alert]")).to_have_text(alert)
    if CHUNK in events:
        page.locator(".answer .chip[href]").click()
        expect(page.locator("mark.evidence").first).to_be_focused()
    answer_with(page, EVENTS[0], CHUNK, {"type": "sources", "sources": [CITED]}, {"type": "done", **SUMMARY})
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".confidence")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(1)
    page.reload()
    expect(page.locator(".confidence")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(1)


def test_reload_during_an_answer_keeps_what_arrived(page: Page) -> None:
    hold_back(page, EVENTS[0], CHUNK)
    ask(page, "anything")
    expect(page.locator(".answer .chip[href]")).to_have_count(1)
    page.reload()
    expect(page.locator(".answer")).to_contain_text("It is so")
    expect(page.locator(".failure")).to_contain_text("The rest did not arrive.")
    expect(page.locator(".sources .card")).to_have_count(1)


def test_stopped_answer_is_kept_after_a_reload_and_in_past_conversations(page: Page) -> None:
    hold_back(page, EVENTS[0], CHUNK)
    ask(page, "anything")
    expect(page.locator(".answer .chip[href]")).to_have_count(1)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".remark")).to_contain_text("Stopped.")
    page.reload()
    expect(page.locator(".remark")).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_role("button", name="New conversation").click()
    page.get_by_role("button", name="Past conversations").click()
    expect(page.locator(".past .reopen strong")).to_have_text(["anything"])


def test_new_conversation_keeps_the_running_answer_in_past_conversations(page: Page) -> None:
    hold_back(page, EVENTS[0], CHUNK)
    ask(page, "first")
    expect(page.locator(".answer .chip[href]")).to_have_count(1)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    page.get_by_role("button", name="Past conversations").click()
    page.locator(".past .reopen").click()
    expect(page.locator(".answer")).to_contain_text("It is so")
    expect(page.locator(".failure")).to_contain_text("The rest did not arrive.")


@pytest.mark.parametrize("link", [".answer .chip", ".brand", ".contents a"])
def test_following_a_link_does_not_stop_the_running_answer(page: Page, link: str) -> None:
    ask(page, "pause 2" if link != ".answer .chip" else "anything")
    if link == ".answer .chip":
        page.get_by_role("button", name="New conversation").click()
        hold_back(page, EVENTS[0], CHUNK)
        ask(page, "anything")
    page.locator(link).first.click()
    if link == ".answer .chip":
        expect(page.locator("mark.evidence").first).to_be_focused()
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        return
    if link == ".brand":
        expect(page.locator("main .cover")).to_be_visible()
    expect(page.locator(".confidence")).to_be_visible()


@pytest.mark.parametrize("view", [{"width": 1280, "height": 700}, {"width": 360, "height": 640}])
def test_end_of_a_stopped_or_failed_answer_is_scrolled_into_view(
    browser: Browser, server: Served, view: dict[str, int]
) -> None:
    with visiting(browser, server.url, f"/read/{LONG_PAGE.page_id}", viewport=view) as page:
        page.locator("main .headed").first.wait_for()
        page.evaluate("document.fonts.ready.then(() => null)")  # afterwards the line height does not change
        if view["width"] < 800:
            page.locator("#cv-ask-bar").click()
        answer_with(page, EVENTS[0], LONG_CHUNK, ERROR)
        ask(page, "anything")
        expect(page.locator(".failure")).to_be_in_viewport(ratio=1)
        hold_back(page, EVENTS[0], LONG_CHUNK)
        ask(page, "something")
        expect(page.locator(".turn").last.locator(".chip[href]")).to_have_count(1)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".stopping")).to_be_in_viewport(ratio=1)
        expect(page.locator(".stopping").get_by_role("button", name="Try again")).to_be_in_viewport(ratio=1)


def test_live_region_announces_each_sentence_and_is_not_busy(page: Page) -> None:
    heard = page.locator(".heard[aria-live=polite]")
    hold_back(page, EVENTS[0], CHUNK | {"content": "It is **so** in `one` place [1]. "})
    ask(page, "anything")
    expect(heard).to_have_text("It is so in one place .")
    assert page.locator("[aria-busy=true] .heard").count() == 0
    expect(page.locator(".status[role=status]")).to_have_text("Reading 1 passage.")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".status[role=status]")).to_have_text("Stopped.")
    expect(heard).to_have_text("")
    page.reload()
    answer_with(page, EVENTS[0], CHUNK, {"type": "sources", "sources": [CITED]}, {"type": "done", **SUMMARY})
    ask(page, "anything")
    expect(page.locator(".status[role=status]")).to_contain_text("1 source.")


DAMAGED = ["{", "null", "7", '[{"query": 1}, null, {"query": "x", "selection": null, "events": [{"type": "chunk"}]}]']


@pytest.mark.parametrize("stored", DAMAGED)
def test_damaged_storage_does_not_break_the_page(browser: Browser, server: Served, stored: str) -> None:
    good = {"query": "kept", "selection": None, "events": [EVENTS[0], CHUNK]}
    with visiting(browser, server.url) as page:
        page.evaluate(
            """([stored]) => {
                sessionStorage.setItem("chapterverse.session", "x");
                sessionStorage.setItem("chapterverse.session.turns", stored);
                localStorage.setItem("chapterverse.conversations", stored);
            }""",
            [stored],
        )
        page.reload()
        expect(page.get_by_label("Your question")).to_be_visible()
        expect(page.locator(".turn")).to_have_count(0)
        expect(page.locator(".hint")).to_be_visible()
        page.evaluate("([turns]) => sessionStorage.setItem('chapterverse.session.turns', turns)", [json.dumps([good])])
        page.reload()
        expect(page.locator(".question")).to_have_text("kept")
        ask(page, "answer")
        expect(page.locator(".confidence")).to_be_visible()


def test_past_conversations_show_their_time_and_can_be_deleted(page: Page) -> None:
    deleted: list[str] = []

    def delete(route: Route) -> None:
        deleted.append(route.request.url)
        route.fulfill(status=204)

    page.route("**/sessions/*", delete)
    for question in ("answer", "refuse"):
        ask(page, question)
        expect(page.locator(".turn .tools")).to_be_visible()
        page.get_by_role("button", name="New conversation").click()
    page.get_by_role("button", name="Past conversations").click()
    expect(page.locator(".past .reopen span").first).to_contain_text(":")  # the time of day
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete: answer").click()
    expect(page.locator(".past .reopen strong")).to_have_text(["refuse"])
    assert len(deleted) == 1
    page.get_by_role("button", name="Delete: refuse").click()
    expect(page.get_by_role("button", name="Past conversations")).to_be_hidden()
    expect(page.locator(".hint")).to_be_visible()


def test_another_page_can_be_opened_while_a_question_waits(page: Page) -> None:
    ask(page, "pause 1")
    page.locator(f".contents a[href$='{CODE_PAGE.page_id}']").click()
    expect(page.locator("main h1")).to_have_text("Code")
    page.go_back()
    expect(page.locator(".confidence")).to_be_visible()
