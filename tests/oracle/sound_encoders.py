"""Encoders of Transformers that hear all of the sound at once, run whole for count_sound_classes.py: Wav2Vec2-BERT, Parakeet with CTC."""

from __future__ import annotations

from functools import partial

from rows import configs

FRAMES = 100  # of features in a second


def _encoder(seconds: float, dtype, kind: str, model_id: str, stride: int, width: int):
    """Frames of features with the mask that its processor gives; `stride` of them are put into one of `width`."""
    import torch
    import transformers
    from count_sound_classes import _empty

    said = {k: v for k, v in configs()[model_id].items() if k not in ("model_type", "architectures")}
    settings = transformers.AutoConfig.for_model(configs()[model_id]["model_type"], **said)
    model = _empty(getattr(transformers, kind), settings, dtype)
    frames = max(1, int(seconds * FRAMES) // stride)

    def run() -> None:
        heard = torch.zeros(1, frames, width, dtype=dtype)
        model(input_features=heard, attention_mask=torch.ones(1, frames, dtype=torch.bool))

    return model, run


w2v_bert = partial(_encoder, kind="Wav2Vec2BertModel", model_id="facebook/w2v-bert-2.0", stride=2, width=160)
parakeet_ctc = partial(_encoder, kind="ParakeetForCTC", model_id="nvidia/parakeet-ctc-1.1b", stride=1, width=80)
