#!/usr/bin/env python3
"""Draws sentences of comments and documents, for a reader who has not seen them.

    scripts/sample.py [--seed N] [--comments 200] [--documents 100]

Prints each with its file and line. The reader marks the sentences that they had to read twice. At
most three of a hundred may be such: then whole files are mended, not the sample.
"""

import argparse
import random
import re
import subprocess

WORDS_MIN = 5  # shorter ones are cells of tables

ITEM = re.compile(r"([*-]|\d+\.) ")  # begins an item of a list
REPEATED = ("Also: ", "Default: ", "Environment: ", "<!--")  # begin lines that programs write into each section
CODE = re.compile(r"`[^`]*`")


def files(*patterns: str) -> list[str]:
    found = subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in found if not name.endswith("_test.go")]


def blocks(name: str):
    """Yields the first line and the text of each comment of a Go file, or of each paragraph of a page.

    Headings, tables, code and diagrams are left out.
    """
    is_go, fenced, first, lines = name.endswith(".go"), False, 0, []
    with open(name, encoding="utf-8") as source:
        numbered = list(enumerate(source, 1)) + [(0, "")]
    for number, line in numbered:
        text = line.strip()
        if is_go:
            text = text[2:] if text.startswith("//") and not text.startswith("//go:") else ""
            is_drawn = text.startswith(("\t", "    ")) and not lines  # a diagram, or a sample of code
            text = "" if is_drawn else text.strip()
        elif text.startswith("```"):
            fenced = not fenced
            text = ""
        elif fenced or text.startswith("|"):
            text = ""
        if text.startswith("#"):
            text = ""
        starts = ITEM.match(text) is not None
        if lines and (not text or starts):
            yield first, " ".join(lines)
            lines = []
        if text:
            first = first if lines else number
            lines.append(text)


def split(text: str) -> list[str]:
    """Returns the sentences of a paragraph. No sentence ends within a code span."""
    hidden = CODE.sub(lambda span: "`" + "_" * (len(span[0]) - 2) + "`", text)
    found, begin = [], 0
    for end in re.finditer(r"[.!?][)*`\"]*\s+", hidden):  # in comments, an identifier may begin a sentence
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    return [*found, text[begin:].strip()]


def sentences(names: list[str]) -> list[str]:
    found = []
    for name in names:
        for line, text in blocks(name):
            text = ITEM.sub("", text, count=1) if ITEM.match(text) else text
            if text.startswith(REPEATED):
                continue
            found += [f"{name}:{line}: {sentence}" for sentence in split(text) if len(sentence.split()) >= WORDS_MIN]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--comments", type=int, default=200)
    parser.add_argument("--documents", type=int, default=100)
    words = parser.parse_args()
    chance = random.Random(words.seed)
    print(f"seed {words.seed}")
    for wanted, names in ((words.comments, files("*.go")), (words.documents, files("docs/*.md", "README.md"))):
        for sentence in chance.sample(sentences(names), wanted):
            print(sentence)


if __name__ == "__main__":
    main()
