"""The press: turns what the Hub says and what the book knows into published tables and pages.

Its rooms, each of which reads only from those before it: base (what all need), anatomy (from a config to tensors and layers), book
(tables, columns, facts), hub (the crawl and its snapshots), confirm (what a published total says of an anatomy), render (tables to pages),
press (the build, its checks, what is published), cli (commands).
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent  # of the repository: the press runs from its checkout
