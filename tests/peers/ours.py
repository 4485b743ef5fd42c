"""The same question to the almanac: `python -m tests.peers.ours almanac.duckdb MODEL TOKENS` prints JSON."""

from __future__ import annotations

import json
import sys

import duckdb


def main(database: str, model_id: str, tokens: str) -> None:
    with duckdb.connect(database, read_only=True) as connection:
        question = "SELECT weights_bytes, kv_cache_bytes FROM footprint_of($1, dtype_id := 'bf16', context_tokens := $2::BIGINT)"
        [(weights, cache)] = connection.execute(question, [model_id, int(tokens)]).fetchall()
    print(json.dumps({"weights": weights, "cache": cache}))


if __name__ == "__main__":
    main(*sys.argv[1:])
