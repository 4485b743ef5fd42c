"""The error that all others of a crawl are kinds of; by itself, so that who only reads a snapshot loads no client of the Hub."""

from __future__ import annotations


class HubError(Exception):
    """A request that gave nothing; the message says why, in words for `rejected`."""
