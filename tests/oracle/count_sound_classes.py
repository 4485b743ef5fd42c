"""Counts what models of sound hold whose own class was run whole: the truth for tables/facts/sound_class.csv.

    pip install torch transformers kokoro==0.9.4 coqui-tts==0.28.0
    python tests/oracle/count_sound_classes.py            # all rows of sound_classes.csv that have no peak yet
    python tests/oracle/count_sound_classes.py --again kokoro

Peaks are bytes of live storage beside the parameters, with what convolutions work in (hollow.Convolving). Parakeet hears sound with the mask that
its processor gives, until the frames are ready that its small decoder goes through one by one. Kokoro makes sound of as many phonemes as
it reads at once (its pipeline cuts longer text), whose lengths are set so that they take the seconds of the row; its inverse Fourier transform,
which looks at values, is replaced by tensors of the same sizes. XTTS makes sound of the longest text that it reads at once, for a voice that is known already. VITS is given the lengths of its
tokens after it worked out its own.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

from rows import configs, count_rows

ROWS = Path(__file__).with_name("sound_classes.csv")
CONDITIONS, SPEAKER = 32, 512  # of xtts: positions of a voice, and its width
FRAMES = 100  # of features in a second
PHONEMES, STYLE = 512, 256  # of kokoro: read at once, and the width of a voice
KOKORO_FRAMES, LONGEST = 40, 50  # of kokoro: frames of a second, and of a phoneme at most
VITS_COUNT, VITS_WORDS, VITS_FRAMES, VITS_TOKENS = 36_284_592, 38, 62.5, 40  # of mms-tts-eng; of a second


@cache
def packaged(name: str):
    """A model of another package, with the sizes that were published."""
    import list_packages

    return getattr(list_packages, name)(list_packages.CONFIGS[name])


def parakeet(seconds: float, dtype):
    import torch
    import transformers

    config = {k: v for k, v in configs()["nvidia/parakeet-tdt-0.6b-v3"].items() if k != "model_type"}
    with torch.device("meta"):
        settings = transformers.AutoConfig.for_model("parakeet_tdt", **config)
        model = transformers.ParakeetForTDT._from_config(settings, dtype=dtype)
    model = model.eval().to_empty(device="cpu")

    def run() -> None:
        frames = int(seconds * FRAMES) + 1
        features = torch.empty(1, frames, settings.encoder_config.num_mel_bins, dtype=dtype)
        model.get_audio_features(features, attention_mask=torch.ones(1, frames, dtype=torch.bool))

    return model, run


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


def vits(seconds: float, dtype, count: int):
    """Of a text of forty tokens a second (twenty letters, each with the blank that MMS puts before it); languages differ in their letters."""
    import torch
    import transformers

    config = transformers.VitsConfig()
    config.vocab_size = VITS_WORDS + (count - VITS_COUNT) // config.hidden_size
    with torch.device("meta"):
        model = transformers.VitsModel._from_config(config, dtype=dtype)
    model = model.eval().to_empty(device="cpu")
    frames, tokens = int(seconds * VITS_FRAMES), max(1, int(seconds * VITS_TOKENS))
    each = torch.full((tokens,), frames // tokens, dtype=torch.float32)
    each[: frames % tokens] += 1
    told = torch.log(each - 0.01)[None, None].to(dtype)
    for parameter in model.parameters():
        parameter.data.zero_()  # it looks at values
    predict = model.duration_predictor.forward

    def durations(*given, **how):
        predict(*given, **how)
        return told

    model.duration_predictor.forward = durations
    return model, lambda: model(torch.zeros(1, tokens, dtype=torch.long))


CLASSES = {"parakeet_tdt": parakeet, "kokoro": kokoro, "xtts": xtts, "vits": vits}


def counted(row: dict[str, str]) -> dict[str, str]:
    import hollow
    import torch

    asked = [float(row["seconds"]), {"2": torch.bfloat16, "4": torch.float32}[row["element_bytes"]]]
    if row["model_type"] == "vits":
        asked.append(int(row["parameter_count"]))
    model, run = CLASSES[row["model_type"]](*asked)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != int(row["parameter_count"]):
        raise ValueError(f"the class has {count} parameters")
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        tracker.reset_peak()
        run()
        peak = tracker.peak - count * int(row["element_bytes"])
    print(row["model_type"], row["element_bytes"], row["seconds"], peak, tracker.at, flush=True)
    return {"peak_bytes": str(peak), "versions": f"torch {torch.__version__.split('+')[0]}"}


if __name__ == "__main__":
    count_rows(ROWS, __doc__, lambda row: row["model_type"], counted)
