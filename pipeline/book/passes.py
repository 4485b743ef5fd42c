"""Classes whose forward pass was counted whole (the table forward_pass), as pages and the terminal ask it alike."""

from __future__ import annotations

# by model: what one sequence is, whether it has one size whatever is asked, the formats that were counted, what runs it and what is to know
TOLD = """
    SELECT model.model_id, min(pass.input) AS input, max(pass.bytes_per_position + pass.bytes_per_token + pass.bytes_per_square + pass.bytes_per_group) = 0 AS is_one_size,
        list_sort(list_distinct(list(pass.element_bytes))) AS element_bytes, min(pass.program) AS program,
        string_agg(pass.note, '. ' ORDER BY pass.element_bytes, pass.stage_rank) AS note
    FROM forward_pass AS pass JOIN model ON model.model_type = pass.pass_type AND model.parameter_count = pass.parameter_count
    GROUP BY ALL ORDER BY ALL
"""
FORMATS = {2: "bf16", 4: "fp32"}  # of elements of so many bytes, those that are told
