import pytest

from chapterverse.grounding.alignment import fit
from chapterverse.grounding.statements import statements
from chapterverse.grounding.words import tokens


def holds(claim: str, evidence: str) -> bool:
    (statement,) = statements(evidence)
    return bool(fit(tokens(claim), statement))


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("When commands stop, a watchdog halts the robot.", "A watchdog halts the robot when commands stop."),
        ("A motor needs care.", "A motor lasts longer and turns faster, but needs care."),
        ("NITROS lets nodes share data.", "NITROS, short for NVIDIA Isaac Transport for ROS, lets nodes share data."),
        ("Most robots are slow.", "Most robots (all of ours) are slow."),
        ("A lidar can measure distance.", "A lidar measures distance."),
        ("The server accepts the goal.", "The client sends a goal, and the server accepts the goal."),
    ],
)
def test_what_may_be_had_from_a_statement(claim: str, evidence: str) -> None:
    assert holds(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("A watchdog halts the robot.", "A watchdog halts the robot when commands stop."),
        ("Commands stop when a watchdog halts the robot.", "A watchdog halts the robot when commands stop."),
        (
            "Category 0 keeps the power on.",
            "Category 0 cuts the power, and category 2 halts it and keeps the power on.",
        ),
        ("The client accepts the goal.", "The client sends a goal, and the server accepts the goal."),
        ("It goes from the CPU to the GPU.", "It goes from the GPU to the CPU."),
        ("It is read to the server.", "It is read from the server."),
        ("The server is refused by the client.", "The server refused the client."),
        ("The boat acts with a relay.", "The boat acts as a relay."),
        ("The planner was tested.", "The planner will be tested."),
        ("The code cannot work.", "The code may not work."),
        ("Frames cannot be sealed.", "Frames are not sealed."),
        ("The lidar sees glass.", "A common myth: the lidar sees glass."),
        ("`rm -rf /tmp/x`", "Do not write: `rm -rf /tmp/x`."),
        ("It is fast.", "It is fast, but only on land."),
        ("The lidar sees glass.", "The lidar sees glass, but that is a myth."),
        ("Nodes block others.", "Nodes that sleep block others."),
        ("A model must never decide.", "A learned model must never decide."),
        ("It works.", "It works optionally."),
        ("If B fails, A stops.", "If A fails, B stops."),
        ("Pumps fill tanks, and tanks fill pumps.", "Pumps fill tanks."),
    ],
)
def test_what_may_not(claim: str, evidence: str) -> None:
    assert not holds(claim, evidence)


def test_the_reason_names_the_word() -> None:
    (statement,) = statements("The battery stores 620 Wh.")
    assert fit(tokens("The battery stores 640 Wh."), statement).why == "“640” is not in it"
