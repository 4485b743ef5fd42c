"""Which models make or hear sound, and how long a prompt their sound makes, as the published tables tell it: words of SQL that pages and the
terminal ask alike.
"""

from __future__ import annotations

# conditions on a row of `model`: it writes the codes of a codec; its class was run whole
WRITES = """EXISTS (FROM speech_model AS writes WHERE writes.writer_type = model.model_type
    AND (writes.vocab_size IS NULL OR writes.vocab_size = model.vocab_size))"""
WAS_RUN = """EXISTS (FROM sound_class AS class WHERE class.sound_type = model.model_type
    AND class.parameter_count = model.parameter_count)"""
# by model whose class was run whole: what runs it, what is to know of that, and what comes of it
CLASSES = """
    SELECT model.model_id, any_value(class.program) AS program, string_agg(class.note, '. ' ORDER BY class.element_bytes) AS note,
        any_value(class.gives) AS gives
    FROM sound_class AS class JOIN model ON model.model_type = class.sound_type AND model.parameter_count = class.parameter_count
    GROUP BY ALL ORDER BY ALL
"""
TEXT_TOKENS = 512  # of text, beside the sound
# tokens of a prompt with so many `seconds` of sound in it, of a row of `tower`; null where sound is no part of the prompt
CONTEXT_TOKENS = f"""ceil(seconds * (SELECT value FROM constant WHERE constant_id = 'audio_samples_per_second')
    / nullif(samples_each, 0)) * text_tokens_each + {TEXT_TOKENS}"""
