"""Reading and asking in a real browser, on the real server with the example book and no key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import ask, in_view, open_browser, shoot, visiting
from tests.served import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUESTION = "What is ROS 2?"
NARROW = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser(example_server: Served) -> Iterator[Browser]:
    example_server.http.post("/chat", json={"query": QUESTION})  # the first question loads the models
    with open_browser() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser, example_server: Served) -> Iterator[Page]:
    with visiting(browser, example_server.url, first_page(example_server)) as page:
        page.locator("main .headed").first.wait_for()  # made by the scripts
        yield page


def first_page(server: Served) -> str:
    return f"/read/{server.http.get('/pages').json()['pages'][0]['page_id']}"


def select(page: Page, paragraph: str) -> None:
    page.locator(paragraph).first.evaluate("node => getSelection().selectAllChildren(node)")


def test_contents_list_every_page(browser: Browser, example_server: Served) -> None:
    with visiting(browser, example_server.url, first_page(example_server)) as page:
        page.locator("main .headed").first.wait_for()
        titles = [one["title"] for one in example_server.http.get("/pages").json()["pages"]]
        assert page.locator(".contents details > ul > li > a").all_text_contents() == titles
        expect(page.locator(".contents [aria-current=page]")).to_have_text(page.locator("main h1").inner_text())
        shoot(page, "01-book")


def test_citations_of_an_answer_open_their_evidence(page: Page, example_server: Served) -> None:
    ask(page, QUESTION)
    expect(page.locator(".confidence")).to_contain_text("Confidence: high")
    expect(page.locator(".reading summary")).to_have_text("Read 5 passages")
    shoot(page, "02-answer")
    chips = page.locator(".answer .chip")
    sources = page.locator(".sources .quote").all_text_contents()
    assert chips.count() >= len(sources) >= 1
    for number, quote in enumerate(sources, 1):
        chips.get_by_text(str(number), exact=True).first.click()
        expect(page.locator("mark.evidence").first).to_be_focused()
        assert "".join(page.locator("mark.evidence").all_text_contents()) == quote
        assert in_view(page, "mark.evidence")
        page_id, _, span = page.url.partition("/read/")[2].partition("?quote=")
        start, end = map(int, span.partition("&")[0].split("-"))
        assert example_server.http.get(f"/pages/{page_id}").json()["text"][start:end].replace("`", "") == quote
    shoot(page, "03-evidence")
    shared, last = page.url, page.locator("mark.evidence").first.inner_text()
    page.go_back()
    page.goto("about:blank")
    page.goto(shared)  # as a shared link
    expect(page.locator("mark.evidence").first).to_have_text(last)


def test_evidence_in_a_table_is_marked(page: Page) -> None:
    ask(page, "How heavy is Tern?")
    page.locator(".answer .chip[href]").click()
    expect(page.locator("mark.evidence").filter(has_text="6 kg")).to_be_visible()
    expect(page.locator(".quote tr").filter(has_text="mass")).to_contain_text("6 kg")
    assert in_view(page, "mark.evidence")
    shoot(page, "04-evidence-in-a-table")


def test_question_about_a_selection_can_be_widened_to_the_book(page: Page) -> None:
    page.locator(".contents a", has_text="What Is ROS 2?").click()
    expect(page.locator("main h1")).to_have_text("What Is ROS 2?")
    select(page, "main h1 + p")
    shoot(page, "05-selecting")
    page.get_by_role("button", name="Ask about this", exact=True).click()
    selected = page.locator(".asking .selection").inner_text()
    assert selected == page.locator("main h1 + p").inner_text()
    ask(page, "On what does it run?")
    page.locator(".turn .sources").wait_for()
    mark = page.locator(".turn .selection mark")
    assert "".join(mark.all_text_contents()) == page.locator(".turn .quote").text_content()
    expect(mark.first).to_be_in_viewport()
    page.locator(".turn .chip").first.click()
    expect(mark.first).to_be_focused()
    shoot(page, "06-selected-text")
    ask(page, "How heavy is Tern?")
    expect(page.locator(".refusal")).to_contain_text("Not in the selection")
    shoot(page, "07-refused-selection")
    page.get_by_role("button", name="Search the whole book").click()
    expect(page.locator(".turn").last.locator(".answer")).to_contain_text("6 kg")
    expect(page.locator(".asking .selected")).to_be_hidden()


def test_removed_selection_is_not_sent(page: Page) -> None:
    select(page, "main h1 + p")
    page.get_by_role("button", name="Ask about this", exact=True).click()
    page.get_by_role("button", name="Remove the selection").click()
    expect(page.get_by_label("Your question")).to_be_focused()
    ask(page, QUESTION)
    expect(page.locator(".confidence")).to_be_visible()
    expect(page.locator(".turn .selected")).to_have_count(0)


def test_conversation_with_refusal_follow_up_reload_and_deletion(page: Page, example_server: Served) -> None:
    ask(page, "Who won the football world cup of 1998?")
    expect(page.locator(".refusal")).to_contain_text("Not in the book")
    shoot(page, "08-refusal")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    ask(page, "What is a service in ROS 2?")
    expect(page.locator(".confidence")).to_have_count(1)
    session = page.evaluate("sessionStorage.getItem('chapterverse.session')")
    ask(page, "And an action?")
    expect(page.locator(".confidence, .refusal")).to_have_count(2)
    assert page.evaluate("sessionStorage.getItem('chapterverse.session')") == session
    assert example_server.http.get(f"/sessions/{session}").json()["turn_count"] == 2
    shoot(page, "09-follow-up")
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    page.locator(".answer .chip[href]").first.click()
    expect(page.locator("mark.evidence").first).to_be_focused()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete conversation").click()
    expect(page.locator(".status")).to_have_text("The conversation is deleted.")
    assert example_server.http.get(f"/sessions/{session}").status_code == 404
    expect(page.locator(".turn")).to_have_count(0)


def test_search_shows_hits_while_typing(page: Page) -> None:
    page.get_by_role("button", name="Search the book").click()
    page.keyboard.type("quality of service")
    results = page.locator("#cv-results .hit:has(.excerpt)")
    expect(results).to_have_count(8)  # without Enter
    assert {"quality", "service"} <= {word.lower() for word in page.locator("#cv-results mark").all_text_contents()}
    shoot(page, "10-search")
    results.first.click()
    expect(page.locator("#cv-results")).to_be_hidden()
    expect(page.locator("mark.evidence").first).to_be_visible()


def test_rows_of_a_table_are_separated_in_a_hit(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("lidar")
    hit = page.locator("#cv-results .hit", has_text="Two families of sensors").locator(".excerpt")
    expect(hit).to_contain_text("sensor_msgs/msg/Imu; 2D lidar · distance in one plane")


@pytest.mark.parametrize("width", [1400, 768, 390])
def test_names_in_a_table_are_not_broken(browser: Browser, example_server: Served, width: int) -> None:
    with visiting(
        browser, example_server.url, first_page(example_server), viewport={"width": width, "height": 800}
    ) as page:
        page.goto(page.locator(".contents a", has_text="Sensors and Actuators").first.evaluate("link => link.href"))
        names = page.locator("main td code")
        expect(names.first).to_be_visible()
        lines = """names => names.map((name) => {
            const range = document.createRange();
            range.setStart(name.firstChild, name.textContent.lastIndexOf("/") + 1);
            range.setEnd(name.firstChild, name.textContent.length);
            return range.getClientRects().length;
        })"""
        assert set(names.evaluate_all(lines)) == {1}
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_search_by_keyboard_and_without_hits(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("#cv-search-box")).to_be_focused()
    page.keyboard.type("what is ros")
    title = page.locator("#cv-results .titles .hit")
    expect(title.first).to_contain_text("What Is ROS 2?")
    expect(page.locator("#cv-results .hit:has(.excerpt)").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(title.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("What Is ROS 2?")
    page.keyboard.press("Control+k")
    page.locator("#cv-search-box").fill("xylophone")
    expect(page.locator("#cv-results .nothing")).to_have_text("Nothing found for “xylophone”.")
    shoot(page, "10-search-nothing")
    found = page.request.post(page.url.partition("/read/")[0] + "/search", data={"query": "topic", "top_k": 1}).json()
    page.route("**/search", lambda route: route.fulfill(json=found))  # similar in meaning only
    page.locator("#cv-search-box").fill("zither")
    expect(page.locator("#cv-results .nothing")).to_contain_text("Nothing in the book has the words “zither”")
    expect(page.locator("#cv-results .hit .excerpt")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#cv-search")).to_be_hidden()


def test_dark_scheme_follows_the_system_and_the_button(browser: Browser, example_server: Served) -> None:
    with visiting(browser, example_server.url, color_scheme="dark") as page:
        ask(page, QUESTION)
        page.locator(".answer .chip[href]").first.click()
        colour = "getComputedStyle(document.body).backgroundColor"
        dark = page.evaluate(colour)
        shoot(page, "11-dark")
        page.get_by_role("button", name="Switch to light").click()
        light = page.evaluate(colour)
        assert light != dark
        page.reload()
        assert page.evaluate(colour) == light, "the choice is not kept"


def test_reading_and_asking_by_keyboard(page: Page) -> None:
    page.locator("main h1").wait_for()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".sources").wait_for()
    for _ in range(12):  # from the field back over the buttons below the answer to the last source
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches('.sources a')"):
            break
    shoot(page, "12-keyboard")
    page.keyboard.press("Enter")
    expect(page.locator("mark.evidence").first).to_be_focused()
    button = page.locator("main .ask-section").first
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".asking .selection")).to_be_visible()
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("main")).to_be_focused()


def test_reading_and_asking_on_a_narrow_screen(browser: Browser, example_server: Served) -> None:
    with visiting(browser, example_server.url, viewport=NARROW, has_touch=True, is_mobile=True) as page:
        wide = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        titles = page.locator(".contents details > ul > li > a")
        expect(titles.first).to_be_hidden()
        for index in range(0, titles.count(), 4):
            page.get_by_role("button", name="Contents").click()
            titles.nth(index).click()
            expect(page.locator("main h1")).to_have_text(titles.nth(index).text_content() or "")
            assert page.evaluate(wide) <= NARROW["width"]
        bar = page.locator(".bar")
        places = [box for child in bar.locator("> *").all() if (box := child.bounding_box()) and box["width"]]
        assert all(box["y"] >= 0 and box["y"] + box["height"] <= 56 for box in places), "the bar has more than one row"
        shoot(page, "13-narrow-page")
        page.get_by_role("button", name="Contents").click()
        shoot(page, "14-narrow-contents")
        page.keyboard.press("Escape")
        expect(page.locator("#cv-contents-button")).to_be_focused()
        page.get_by_role("button", name="Ask the book", exact=True).click()
        ask(page, QUESTION)
        page.locator(".sources").wait_for()
        assert page.evaluate(wide) <= NARROW["width"]
        shoot(page, "15-narrow-answer")
        chip = page.locator(".answer .chip[href]").last
        chip.click()
        expect(page.locator("#cv-ask")).to_be_hidden()
        assert in_view(page, "mark.evidence")
        shoot(page, "16-narrow-evidence")
        page.get_by_role("button", name="Back to the answer").click()
        expect(chip).to_be_focused()
        expect(chip).to_be_in_viewport()
        page.get_by_role("button", name="Close the ask panel").click()
        expect(page.locator("#cv-ask")).to_be_hidden()
        expect(page.get_by_role("button", name="Back to the answer")).to_be_hidden()


def test_page_has_landmarks_and_live_regions(page: Page) -> None:
    for role, name in (("banner", None), ("main", None), ("navigation", "Contents"), ("complementary", "Ask the book")):
        expect(page.get_by_role(role, name=name)).to_have_count(1)  # type: ignore[arg-type]
    ask(page, QUESTION)
    expect(page.locator(".answer")).to_contain_text("ROS 2")
    expect(page.locator(".heard[aria-live=polite]")).to_have_count(1)
    expect(page.locator(".status[role=status]")).to_contain_text("Answered. Confidence high")
