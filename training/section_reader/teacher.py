"""Tunes a language model to judge passages and to write questions, on the GPU machine; it then writes and labels questions.

    python3 -m training.section_reader.teacher FOLDER STATE MODEL.gguf

FOLDER and STATE are those of `rows.py`, which runs first. MODEL.gguf is Qwen2.5-Coder-1.5B-Instruct (see the README). The weights of the teacher are
not kept. STATE/written.json: {"set", "question", "candidates": [docs], "scores": [logit that the passage answers]}.
"""

import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from training.search import DEVICE
from training.section_reader.rows import Row, books, load, log, report, searched
from transformers import AutoModelForCausalLM, AutoTokenizer

TUNING, WRITING = 230, 110  # maximum of seconds
RATE, SIZE = 1.5e-5, 20  # rows per step
SHARES = {"squad": 0.3, "selected": 0.5}  # rows of a set that are used
GROUPS = 0.75  # the same for the other rows, which are not about whole books
WRITES = 0.4  # share of the rows whose question the model also learns to write
PASSAGE, QUESTION, EARLIER, WRITTEN = 330, 110, 80, 60  # tokens at most
PER_BOOK = 480  # passages of a book for which questions are written
SHORTEST = 120  # characters of such a passage
ANSWERED = 0.6  # share of them for which an answered question is wanted
TOGETHER, NEW = 384, 44  # questions written at once, and tokens of one
CANDIDATES = 6  # candidates besides the passage that a question was written about
TOKENS = 98304  # pairs in a batch that is scored


class Teacher:
    """The language model and its prompts."""

    def __init__(self, file: Path) -> None:
        where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
        self._tokenizer = AutoTokenizer.from_pretrained(**where)
        self.model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).to(DEVICE)
        self.end = self._tokenizer.eos_token_id
        self._yes, self._no = self.tokens(" yes")[0], self.tokens(" no")[0]

    def tokens(self, text: str, most: int | None = None) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False)[:most])

    def asking(self, question: str, text: str) -> list[int]:
        """The prompt: does the passage answer the question?"""
        asked = self.tokens("Question: ") + self.tokens(question, QUESTION)
        shown = self.tokens("\n\nPassage:\n") + self.tokens(text, PASSAGE)
        return asked + shown + self.tokens("\n\nDoes the passage answer the question?\nAnswer:")

    def wanting(self, text: str, answered: bool, earlier: str = "") -> list[int]:
        """The prompt for a question that the passage answers, or for one that only sounds close."""
        shown = self.tokens("Passage:\n")
        if earlier:
            shown = self.tokens("Earlier: ") + self.tokens(earlier, EARLIER) + self.tokens("\n\nPassage:\n")
        wanted = "sounds close and that this passage does not answer"
        wanted = "this passage answers" if answered else wanted
        return shown + self.tokens(text, PASSAGE) + self.tokens(f"\n\nA reader's question that {wanted}:\n")

    def states(self, prompts: Sequence[list[int]]) -> Any:
        ids = np.zeros((len(prompts), max(map(len, prompts))), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = prompt
        with torch.autocast(DEVICE, torch.bfloat16):
            return self.model.model(input_ids=torch.from_numpy(ids).to(DEVICE), use_cache=False).last_hidden_state

    def answers(self, prompts: Sequence[list[int]]) -> Any:
        """Logits of yes minus no."""
        last = torch.tensor([len(prompt) - 1 for prompt in prompts], device=DEVICE)
        states = self.states(prompts)[torch.arange(len(prompts), device=DEVICE), last].float()
        words = self.model.get_output_embeddings().weight
        return states @ (words[self._yes] - words[self._no]).float()

    def writing_loss(self, prompts: Sequence[list[int]], questions: Sequence[list[int]]) -> Any:
        """Cross-entropy of the questions after their prompts."""
        whole = [prompt + question for prompt, question in zip(prompts, questions, strict=True)]
        places = [
            (row, at)
            for row, (prompt, one) in enumerate(zip(prompts, whole, strict=True))
            for at in range(len(prompt) - 1, len(one) - 1)
        ]
        rows, columns = torch.tensor(places, device=DEVICE).T
        states = self.states(whole)[rows, columns]
        with torch.autocast(DEVICE, torch.bfloat16):
            logits = self.model.lm_head(states)
        wanted = torch.tensor([whole[row][at + 1] for row, at in places], device=DEVICE)
        return F.cross_entropy(logits.float(), wanted)

    @torch.no_grad()
    def scores(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Logits that passages answer questions. Pairs of similar length are computed together."""
        prompts = [self.asking(*pair) for pair in pairs]
        order = sorted(range(len(pairs)), key=lambda at: len(prompts[at]))
        out = np.zeros(len(pairs), np.float32)
        while order:
            count = max(1, TOKENS // len(prompts[order[-1]]))
            part, order = order[-count:], order[:-count]
            out[part] = self.answers([prompts[at] for at in part]).float().cpu().numpy()
        return out

    @torch.no_grad()
    def written(self, prompts: Sequence[list[int]]) -> list[str]:
        """Sampled questions, the first line of each."""
        longest = max(map(len, prompts))
        ids, attended = np.full((len(prompts), longest), self.end), np.zeros((len(prompts), longest), np.int64)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :], attended[row, longest - len(prompt) :] = prompt, 1
        out = self.model.generate(
            input_ids=torch.from_numpy(ids).to(DEVICE),
            attention_mask=torch.from_numpy(attended).to(DEVICE),
            do_sample=True,
            temperature=0.9,
            top_p=0.95,
            top_k=0,
            max_new_tokens=NEW,
            use_cache=True,
            pad_token_id=self.end,
            eos_token_id=self.end,
        )
        texts = self._tokenizer.batch_decode(out[:, longest:], skip_special_tokens=True)
        return [text.strip().split("\n")[0] for text in texts]


def tune(teacher: Teacher, rows: list[Row]) -> None:
    """Train all weights except the word table until every row was used or the time is over."""
    chance, steps = random.Random(7), len(rows) // SIZE
    teacher.model.get_input_embeddings().weight.requires_grad_(False)
    moving = [one for one in teacher.model.parameters() if one.requires_grad]
    optimiser = torch.optim.AdamW(moving, lr=RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    teacher.model.train()
    started = time.time()
    for step in range(steps):
        loss = _loss(teacher, rows[step * SIZE : (step + 1) * SIZE], chance)
        progress = max((step + 1) / steps, (time.time() - started) / TUNING)
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 30) * max(0.02, 1 - progress)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if torch.isfinite(torch.nn.utils.clip_grad_norm_(moving, 1.0)):
            optimiser.step()
        if step % 50 == 0 or progress >= 1:
            log("step", step, "of", steps, "loss", round(loss.item(), 3))
        if progress >= 1:
            break


def _loss(teacher: Teacher, rows: Sequence[Row], chance: random.Random) -> Any:
    """Loss for whether each of up to four passages answers, which one does, and for some rows the question itself."""
    asked: list[list[int]] = []
    counts, prompts, questions = [], [], []
    for row in rows:
        wrong = [at for at in range(len(row["passages"])) if at != row["gold"] and at not in row["ignore"]]
        near, far = wrong[:4], wrong[4:]
        chosen = chance.sample(near, min(len(near), 2)) + chance.sample(far, min(len(far), 1))
        chosen = [row["gold"], *chosen] if row["gold"] >= 0 else chosen
        counts.append(len(chosen))
        asked += [teacher.asking(row["question"], row["passages"][at]["text"]) for at in chosen]
        if chance.random() < WRITES:
            question, *earlier = row["question"].split(" / ")
            text = row["passages"][max(row["gold"], 0)]["text"]
            prompts.append(teacher.wanting(text, row["gold"] >= 0, " / ".join(earlier)))
            questions.append([*teacher.tokens(question, WRITTEN), teacher.end])
    order = sorted(range(len(asked)), key=lambda at: len(asked[at]))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    said = torch.cat([teacher.answers([asked[at] for at in half]) for half in halves])
    said = said[torch.tensor(np.argsort(order), device=DEVICE)]
    loss = torch.zeros((), device=DEVICE)
    for row, logits in zip(rows, said.split(counts), strict=True):
        wanted = torch.zeros_like(logits)
        wanted[:1] = float(row["gold"] >= 0)
        loss = loss + F.binary_cross_entropy_with_logits(logits, wanted) / len(rows)
        if row["gold"] >= 0 and len(logits) > 1:
            first = torch.zeros(1, dtype=torch.long, device=DEVICE)
            loss = loss + 0.5 * F.cross_entropy(logits[None], first) / len(rows)
    return loss + 0.3 * teacher.writing_loss(prompts, questions) if prompts else loss


def write(teacher: Teacher, known: Sequence[Row]) -> dict[str, list[Row]]:
    """Write questions about passages of the books until the time is over."""
    chance, started = random.Random(11), time.time()
    wanted = []
    for book in known:
        good = [at for at, one in enumerate(book["docs"]) if len(one["text"]) - one["front"] > SHORTEST]
        chosen = chance.sample(good, min(len(good), PER_BOOK))
        wanted += [(book, at, chance.random() < ANSWERED) for at in chosen]
    chance.shuffle(wanted)
    made: dict[str, list[Row]] = {book["set"]: [] for book in known}
    for first in range(0, len(wanted), TOGETHER):
        if time.time() - started > WRITING:
            break
        part = wanted[first : first + TOGETHER]
        questions = teacher.written([teacher.wanting(book["docs"][at]["text"], yes) for book, at, yes in part])
        for (book, at, _), question in zip(part, questions, strict=True):
            if 8 < len(question) < 300:
                made[book["set"]].append({"question": question, "searches": [[question, 10]], "from": at})
    return made


def main() -> None:
    folder, state, file = map(Path, sys.argv[1:4])
    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    teacher = Teacher(file)
    rows, chance = load(folder, state), random.Random(7)
    train = [row for row in rows if row["role"] == "train"]
    shares = [SHARES.get(row["set"], 1.0 if "candidates" in row else GROUPS) for row in train]
    train = [row for row, share in zip(train, shares, strict=True) if chance.random() < share]
    chance.shuffle(train)
    tune(teacher, train)
    teacher.model.eval().to(torch.bfloat16)

    dev = [row for row in rows if row["role"] == "dev"]
    said = teacher.scores([(row["question"], one["text"]) for row in dev for one in row["passages"]])
    report("teacher", dev, np.split(said, np.cumsum([len(row["passages"]) for row in dev])[:-1]))

    known = [book for book in books(folder) if book["role"] == "train"]
    docs = {book["set"]: book["docs"] for book in known}
    made = []
    for name, row, found in searched(folder, write(teacher, known), known):
        others = [one for one in found if one != row["from"]][:CANDIDATES]
        made.append({"set": name, "question": row["question"], "candidates": [row["from"], *others]})
    log("written", len(made))
    said = teacher.scores([(row["question"], docs[row["set"]][at]["text"]) for row in made for at in row["candidates"]])
    ends = np.cumsum([len(row["candidates"]) for row in made])[:-1]
    for row, scores in zip(made, np.split(said, ends), strict=True):
        row["scores"] = scores.round(2).tolist()
    (state / "written.json").write_text(json.dumps(made))


if __name__ == "__main__":
    main()
