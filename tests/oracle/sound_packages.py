"""Models of sound of other packages than Transformers, each with what runs it for so many seconds: count_sound_classes.py counts them.

Kokoro makes sound of as many phonemes as it reads at once (its pipeline cuts longer text), whose lengths are set so that they take the seconds
of the row; its inverse Fourier transform, which looks at values, is replaced by tensors of the same sizes. XTTS makes sound of the longest text
that it reads at once, for a voice that is known already. pyannote's pipeline looks at windows of ten seconds, a second apart, 32 at a time; then
at each of them once for each of three speakers, 32 at a time again, with the frames at which that one speaks.
"""

from __future__ import annotations

import math
from functools import cache

CONDITIONS, SPEAKER = 32, 512  # of xtts: positions of a voice, and its width
PHONEMES, STYLE = 512, 256  # of kokoro: read at once, and the width of a voice
KOKORO_FRAMES, LONGEST = 40, 50  # of kokoro: frames of a second, and of a phoneme at most
RATE, WINDOW, STEP = (
    16_000,
    10,
    1,
)  # of pyannote: samples of a second; seconds of what it looks at, and from one to the next
SPEAKERS, AT_ONCE = 3, 32  # told apart in a window; windows in a batch, as the pipeline's settings say


@cache
def packaged(name: str):
    """A model of another package, with the sizes that were published."""
    import list_packages

    return getattr(list_packages, name)(list_packages.CONFIGS[name])


def kokoro(seconds: float, _dtype):
    import torch
    from kokoro.istftnet import TorchSTFT
    from kokoro.model import KModel

    model = KModel.__new__(KModel)
    torch.nn.Module.__init__(model)
    for name, part in packaged("kokoro").named_children():
        setattr(model, {"text_encoder_bert": "bert"}.get(name, name), part)
    frames = int(seconds * KOKORO_FRAMES)
    each = torch.full((PHONEMES,), frames // PHONEMES, dtype=torch.float32)
    each[: frames % PHONEMES] += 1
    told = torch.logit(each / LONGEST)[None, :, None].expand(1, PHONEMES, LONGEST).contiguous()
    model.predictor.duration_proj.forward = lambda _hidden: told

    def inverse(self, magnitude, phase):
        (magnitude * torch.exp(phase * 1j)).shape  # noqa: B018
        columns = magnitude.shape[-1]
        windowed = torch.empty(1, columns, self.filter_length) * self.window
        return windowed.new_empty(1, 1, self.hop_length * (columns - 1))

    TorchSTFT.inverse = inverse
    run = lambda: model.forward_with_tokens(torch.zeros(1, PHONEMES, dtype=torch.long), torch.zeros(1, STYLE))  # noqa: E731
    return model.eval(), run


def xtts(seconds: float, _dtype):
    """Of a piece of text as long as it reads: the last step of its language model, its pass over all codes, its decoder."""
    import torch

    model = packaged("xtts")
    model.eval()
    gpt, arguments = model.gpt, model.args
    gpt.init_gpt_for_inference()
    codes = math.ceil(seconds * arguments.input_sample_rate / arguments.gpt_code_stride_len)
    text = torch.zeros(1, arguments.gpt_max_text_tokens - 2, dtype=torch.int)

    def write(voice) -> None:
        given = gpt.compute_embeddings(voice, text)
        cache = gpt.gpt_inference(given, use_cache=True, return_dict=True).past_key_values
        for layer in cache.layers:
            shape = (1, layer.keys.shape[1], given.shape[1] + codes - 1, layer.keys.shape[3])
            layer.keys, layer.values = torch.empty(shape), torch.empty(shape)
        gpt.gpt_inference(given[:, -1:], past_key_values=cache, use_cache=True, return_dict=True)

    def run() -> None:
        voice, speaker = torch.zeros(1, CONDITIONS, arguments.gpt_n_model_channels), torch.zeros(1, SPEAKER, 1)
        write(voice)
        lengths = [torch.tensor([n]) for n in (text.shape[1], codes * arguments.gpt_code_stride_len)]
        said = torch.zeros(1, codes, dtype=torch.long)
        latents = gpt(
            text, lengths[0], said, lengths[1], cond_latents=voice, return_attentions=False, return_latent=True
        )
        model.hifigan_decoder(latents, g=speaker)

    return model, run


def _pyannote_parts():
    """Both models whole, with what their classes work out before they convolve."""
    import list_packages
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.embedding.wespeaker import WeSpeakerResNet34
    from pyannote.audio.models.segmentation import PyanNet

    said = list_packages.CONFIGS["pyannote_segmentation"]
    segmentation = PyanNet(
        **{name: said[name] for name in ("sincnet", "lstm", "linear", "sample_rate", "num_channels")}
    )
    segmentation.specifications = Specifications(
        problem=Problem.MONO_LABEL_CLASSIFICATION, resolution=Resolution.FRAME, duration=WINDOW, permutation_invariant=True,
        classes=[f"speaker#{n + 1}" for n in range(SPEAKERS)], powerset_max_classes=2,
    )  # fmt: skip
    segmentation.build()
    return segmentation.eval(), WeSpeakerResNet34().eval()


def _windows(seconds: float) -> int:
    return max(1, math.ceil((seconds - WINDOW) / STEP) + 1)


def _scored(segmentation, windows: int) -> int:
    """A batch of pyannote's Inference; how many frames a window has. (Who speaks when is made of the scores, which are small.)"""
    import torch

    return segmentation(torch.zeros(windows, 1, WINDOW * RATE)).shape[1]


def pyannote_segmentation(seconds: float, _dtype):
    segmentation, _ = _pyannote_parts()
    return segmentation, lambda: _scored(segmentation, min(AT_ONCE, _windows(seconds)))


def pyannote_diarization(seconds: float, _dtype):
    import torch

    segmentation, embedding = _pyannote_parts()
    whole = torch.nn.ModuleList((segmentation, embedding))

    def run() -> None:
        frames = _scored(segmentation, min(AT_ONCE, _windows(seconds)))
        each = min(AT_ONCE, SPEAKERS * _windows(seconds))
        embedding(torch.zeros(each, 1, WINDOW * RATE), weights=torch.ones(each, frames))

    return whole, run


def wespeaker(seconds: float, _dtype):
    """One voice, all of it at once."""
    import torch

    _, embedding = _pyannote_parts()
    return embedding, lambda: embedding(torch.zeros(1, 1, int(seconds * RATE)))
