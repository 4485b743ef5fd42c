"""Models of sound of other packages than Transformers, each with what runs it for so many seconds: count_sound_classes.py counts them.

Kokoro makes sound of as many phonemes as it reads at once (its pipeline cuts longer text), whose lengths are set so that they take the seconds
of the row; its inverse Fourier transform, which looks at values, is replaced by tensors of the same sizes. XTTS makes sound of the longest text
that it reads at once, for a voice that is known already. pyannote's pipeline looks at windows of ten seconds, a second apart, 32 at a time; then
at each of them once for each of three speakers, 32 at a time again, with the frames at which that one speaks. Chatterbox is counted at the last
step of its language model, two sequences (its guidance) after 512 letters and a voice that is known, then at the sound made of all tokens.
"""

from __future__ import annotations

import math
from functools import cache

CONDITIONS, SPEAKER = 32, 512  # of xtts: positions of a voice, and its width
PHONEMES, STYLE = 512, 256  # of kokoro: read at once, and the width of a voice
KOKORO_FRAMES, LONGEST = 40, 50  # of kokoro: frames of a second, and of a phoneme at most
TEXT = 512  # letters, of who reads as many as it is given
TOKEN_RATE, REFERENCE = 25, 10  # of chatterbox: tokens of a second; seconds of a voice
SNAC_RATE, SNAC_FRAME, SNAC_CODES = 24_000, 2048, (1, 2, 4)  # samples of a second and of a frame, codes of a frame
RATE, WINDOW, STEP = (
    16_000,
    10,
    1,
)  # of pyannote: samples of a second; seconds of what it looks at, and from one to the next
OLDER_WINDOW, OLDER_STEP = 5, 0.5  # of its models before 3.0
VOCOS_RATE, VOCOS_STEP, VOCOS_MELS = 24_000, 256, 100
SPEAKERS, AT_ONCE = 3, 32  # told apart in a window; windows in a batch, as the pipeline's settings say


@cache
def packaged(name: str):
    """A model of another package, with the sizes that were published."""
    import list_packages

    return list_packages.BUILDERS[name][2](list_packages.CONFIGS[name])


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


def _windows(seconds: float, window: float = WINDOW, step: float = STEP) -> int:
    return max(1, math.ceil((seconds - window) / step) + 1)


def _scored(segmentation, windows: int, window: int = WINDOW) -> int:
    """A batch of pyannote's Inference; how many frames a window has. (Who speaks when is made of the scores, which are small.)"""
    import torch

    return segmentation(torch.zeros(windows, 1, window * RATE)).shape[1]


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


def _older_segmentation():
    import list_packages
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.segmentation import PyanNet

    said = list_packages.CONFIGS["pyannote_segmentation_2"]
    model = PyanNet(**{name: said[name] for name in ("sincnet", "lstm", "linear", "sample_rate", "num_channels")})
    model.specifications = Specifications(
        problem=Problem.MULTI_LABEL_CLASSIFICATION, resolution=Resolution.FRAME, duration=OLDER_WINDOW,
        permutation_invariant=True, classes=[f"speaker#{n + 1}" for n in range(said["max_num_speakers"])],
    )  # fmt: skip
    model.build()
    return model.eval()


def pyannote_segmentation_2(seconds: float, _dtype):
    """The pipeline of voice activity looks at the same windows."""
    model = _older_segmentation()
    windows = min(AT_ONCE, _windows(seconds, OLDER_WINDOW, OLDER_STEP))
    return model, lambda: _scored(model, windows, OLDER_WINDOW)


def pyannote_diarization_2(seconds: float, _dtype):
    """Then at each window once for each of three speakers, at most whole, 32 at a time."""
    import torch
    from speechbrain.lobes.features import Fbank
    from speechbrain.processing.features import InputNormalization

    segmentation, embedding = _older_segmentation(), packaged("ecapa_tdnn").eval()
    features, normal = Fbank(n_mels=80), InputNormalization(norm_type="sentence", std_norm=False)
    windows = _windows(seconds, OLDER_WINDOW, OLDER_STEP)

    def run() -> None:
        _scored(segmentation, min(AT_ONCE, windows), OLDER_WINDOW)
        each = min(AT_ONCE, SPEAKERS * windows)
        whole = torch.ones(each)
        embedding(normal(features(torch.zeros(each, OLDER_WINDOW * RATE)), whole), whole)

    return torch.nn.ModuleList((segmentation, embedding)), run


def wespeaker(seconds: float, _dtype):
    """One voice, all of it at once."""
    import torch

    _, embedding = _pyannote_parts()
    return embedding, lambda: embedding(torch.zeros(1, 1, int(seconds * RATE)))


def chatterbox(seconds: float, _dtype):
    import torch
    from chatterbox.models.s3gen.hifigan import HiFTGenerator
    from chatterbox.models.t3.inference.t3_hf_backend import T3HuggingfaceBackend
    from chatterbox.models.t3.modules.cond_enc import T3Cond

    model = packaged("chatterbox").eval()
    model.t3.to_empty(device="cpu")
    tokens = int(seconds * TOKEN_RATE)
    writer, maker = model.t3, model.s3gen
    told = {"use_cache": True, "output_attentions": True, "output_hidden_states": True, "return_dict": True}

    def inverse(self, magnitude, phase):
        """Of the same sizes: torch.istft looks at the values of its window."""
        size, hop = self.istft_params["n_fft"], self.istft_params["hop_len"]
        whole = torch.complex(magnitude * torch.cos(phase), magnitude * torch.sin(phase))
        columns = whole.shape[-1]
        windowed = magnitude.new_empty(1, columns, size) * self.stft_window.to(magnitude.device)
        return windowed.new_empty(1, hop * (columns - 1))

    HiFTGenerator._istft = inverse

    def write() -> None:
        voice = T3Cond(
            speaker_emb=torch.zeros(1, 256), emotion_adv=torch.zeros(1, 1, 1),
            cond_prompt_speech_tokens=torch.zeros(1, writer.hp.speech_cond_prompt_len, dtype=torch.long),
        )  # fmt: skip
        begun = torch.zeros(2, 1, dtype=torch.long)
        letters = torch.zeros(2, TEXT, dtype=torch.long)
        given, _ = writer.prepare_input_embeds(t3_cond=voice, text_tokens=letters, speech_tokens=begun, cfg_weight=0.5)
        first = writer.speech_emb(begun) + writer.speech_pos_emb.get_fixed_embedding(0)
        given = torch.cat([given, first], dim=1)
        backend = T3HuggingfaceBackend(
            config=writer.cfg, llama=writer.tfmr, speech_enc=writer.speech_emb, speech_head=writer.speech_head
        )
        cache = backend(inputs_embeds=given, past_key_values=None, **told).past_key_values
        for layer in cache.layers:
            shape = (*layer.keys.shape[:2], given.shape[1] + tokens - 1, layer.keys.shape[3])
            layer.keys, layer.values = torch.empty(shape), torch.empty(shape)
        backend(inputs_embeds=given[:, -1:], past_key_values=cache, **told)

    def run() -> None:
        write()
        known = {
            "prompt_token": torch.zeros(1, REFERENCE * TOKEN_RATE, dtype=torch.long),
            "prompt_token_len": torch.tensor([REFERENCE * TOKEN_RATE]),
            "prompt_feat": torch.zeros(1, 2 * REFERENCE * TOKEN_RATE, 80), "prompt_feat_len": None, "embedding": torch.zeros(1, 192),
        }  # fmt: skip
        maker.inference(torch.zeros(1, tokens, dtype=torch.long), ref_dict=known)

    return model, run


def ecapa_tdnn(seconds: float, _dtype):
    """One voice, all of it at once, from its samples on (encode_batch)."""
    import torch
    from speechbrain.lobes.features import Fbank
    from speechbrain.processing.features import InputNormalization

    model = packaged("ecapa_tdnn").eval()
    features, normal = Fbank(n_mels=80), InputNormalization(norm_type="sentence", std_norm=False)

    def run() -> None:
        whole = torch.ones(1)
        model(normal(features(torch.zeros(1, int(seconds * RATE))), whole), whole)

    return model, run


def snac(seconds: float, _dtype):
    """Of as many codes as the seconds have, all of them at once; making codes of sound holds less."""
    import torch

    model, frames = packaged("snac").eval(), max(1, round(seconds * SNAC_RATE / SNAC_FRAME))
    return model, lambda: model.decode([torch.zeros(1, frames * each, dtype=torch.long) for each in SNAC_CODES])


def bigvgan(seconds: float, _dtype, name: str):
    """Of as many frames of a spectrum as the seconds have, all of them at once."""
    import list_packages
    import torch

    said, model = list_packages.CONFIGS[name], packaged(name).eval()
    frames = int(seconds * said["sampling_rate"] / said["hop_size"])
    return model, lambda: model(torch.zeros(1, said["num_mels"], frames))


def vocos(seconds: float, _dtype):
    """Of as many frames of a spectrum as the seconds have, all of them at once. Its inverse Fourier transform looks at values: torch.istft holds
    the spectrum, its columns in time and the sound."""
    import torch

    model, frames = packaged("vocos").eval(), int(seconds * VOCOS_RATE / VOCOS_STEP)

    def inverse(spectrum):
        columns = torch.empty(1, spectrum.shape[2], model.head.istft.n_fft)
        windowed = columns * model.head.istft.window
        return windowed.new_empty(1, VOCOS_STEP * (columns.shape[1] - 1))

    model.head.istft.forward = inverse
    return model, lambda: model.decode(torch.zeros(1, VOCOS_MELS, frames))
