"""Counts what models of sound hold whose own class was run whole: the truth for tables/facts/sound_class.csv.

    pip install torch transformers kokoro==0.9.4 coqui-tts==0.28.0 pyannote.audio==4.0.7 chatterbox-tts==0.1.7 speechbrain==1.1.2 \
        snac==1.2.1 bigvgan==2.4.1 vocos==0.1.0 omnivoice==0.2.1 voxcpm==2.0.3
    python tests/oracle/count_sound_classes.py            # all rows of sound_classes.csv that have no peak yet
    python tests/oracle/count_sound_classes.py --again kokoro

Peaks are bytes of live storage beside the parameters, with what convolutions work in (hollow.Convolving). Classes of Transformers are here, those
of other packages in sound_packages.py and sound_writers.py. Parakeet and its relatives (Nemotron's) hear sound with the mask that their processor gives, until the
frames are ready that their small decoder goes through one by one. VITS is given the lengths of its tokens after it worked out its own.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from packages.codecs import BIGVGAN
from rows import configs, count_rows
from sound_encoders import parakeet_ctc, w2v_bert
from sound_packages import (
    bigvgan,
    chatterbox,
    ecapa_tdnn,
    kokoro,
    pyannote_diarization,
    pyannote_diarization_2,
    pyannote_segmentation,
    pyannote_segmentation_2,
    snac,
    vocos,
    wespeaker,
    xtts,
)
from sound_writers import omnivoice, vibevoice, voxcpm2

ROWS = Path(__file__).with_name("sound_classes.csv")
FRAMES = 100  # of features in a second
VOXTRAL_BEGUN = 39  # tokens before the sound: 32 of silence, 6 of delay, one that begins
TEXT = 512  # tokens of text, where a class reads as many as it is given
# descript/dac_44khz, the codec of Dia's processor
DAC = {
    "sampling_rate": 44100,
    "encoder_hidden_size": 64,
    "downsampling_ratios": [2, 4, 8, 8],
    "n_codebooks": 9,
    "codebook_size": 1024,
    "codebook_dim": 8,
    "decoder_hidden_size": 1536,
}
SAMPLES = 16_000  # of a second
WAVLM = {
    315_453_120: "microsoft/wavlm-large",
    94_381_936: "microsoft/wavlm-base-plus",
}  # (wavlm-base has the sizes of the latter)
VITS_COUNT, VITS_WORDS, VITS_FRAMES, VITS_TOKENS = 36_284_592, 38, 62.5, 40  # of mms-tts-eng; of a second


def transducer(seconds: float, dtype, kind: str, model_id: str):
    """A conformer that hears all of the sound at once, with the projection of its frames for the small decoder."""
    import torch
    import transformers

    config = {k: v for k, v in configs()[model_id].items() if k not in ("model_type", "architectures")}
    name = configs()[model_id]["model_type"]
    with torch.device("meta"):
        settings = transformers.AutoConfig.for_model(name, **config)
        model = getattr(transformers, kind)._from_config(settings, dtype=dtype)
    model = model.eval().to_empty(device="cpu")

    def run() -> None:
        frames = int(seconds * FRAMES) + 1
        features = torch.empty(1, frames, settings.encoder_config.num_mel_bins, dtype=dtype)
        model.get_audio_features(features, attention_mask=torch.ones(1, frames, dtype=torch.bool))

    return model, run


parakeet = partial(transducer, kind="ParakeetForTDT", model_id="nvidia/parakeet-tdt-0.6b-v3")
nemotron_asr_streaming = partial(
    transducer, kind="NemotronAsrStreamingForRNNT", model_id="nvidia/nemotron-speech-streaming-en-0.6b"
)
nemotron3_5_asr = partial(transducer, kind="Nemotron3_5AsrForRNNT", model_id="nvidia/nemotron-3.5-asr-streaming-0.6b")


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


def _empty(kind, settings, dtype):
    """A class of Transformers whose weights hold nothing; its buffers do, by which some layers choose their sizes."""
    import torch
    from accelerate import init_empty_weights
    from hollow import SMALL

    with init_empty_weights(include_buffers=False):
        model = kind._from_config(settings, dtype=dtype).eval()
    made: dict[int, torch.nn.Parameter] = {}
    for module in model.modules():
        for name, held in module._parameters.items():
            if held is not None:
                if id(held) not in made:
                    make = torch.zeros if held.numel() <= SMALL else torch.empty  # (what is large is never read)
                    made[id(held)] = torch.nn.Parameter(make(held.shape, dtype=held.dtype), False)
                module._parameters[name] = made[id(held)]
    model.tie_weights()
    return model


def wavlm(seconds: float, dtype, count: int):
    """All of the sound at once: its attention writes all scores out, and a table of how far any two positions lie apart."""
    import torch
    import transformers

    said = {k: v for k, v in configs()[WAVLM[count]].items() if k not in ("model_type", "architectures")}
    model = _empty(transformers.WavLMModel, transformers.WavLMConfig(**said), dtype)
    return model, lambda: model(torch.zeros(1, int(seconds * SAMPLES), dtype=dtype))


def _lengthen(cache, length: int) -> None:
    """To what it holds before its last step: none of its tensors has values."""
    import torch

    for layer in cache.layers:
        shape = (*layer.keys.shape[:2], length, layer.keys.shape[3])
        layer.keys, layer.values = (
            torch.empty(shape, dtype=layer.keys.dtype),
            torch.empty(shape, dtype=layer.keys.dtype),
        )


def speecht5(seconds: float, dtype):
    """The last step of its loop, whose prenet reads all frames, its postnet, its vocoder; of the longest text that it reads."""
    import torch
    import transformers

    settings = transformers.SpeechT5Config(max_speech_positions=1876, max_text_positions=600)
    model = _empty(transformers.SpeechT5ForTextToSpeech, settings, dtype)
    vocoder = _empty(transformers.SpeechT5HifiGan, transformers.SpeechT5HifiGanConfig(), dtype)
    steps = max(1, int(seconds * 62.5 / settings.reduction_factor))  # frames of 256 samples at 16 kHz
    letters = settings.max_text_positions

    def step(encoded, mask, written, cache=None):
        hidden = model.speecht5.decoder.prenet(written, torch.zeros(1, settings.speaker_embedding_dim, dtype=dtype))
        told = {"encoder_hidden_states": encoded, "encoder_attention_mask": mask, "past_key_values": cache}
        out = model.speecht5.decoder.wrapped_decoder(
            hidden_states=hidden[:, -1:], use_cache=True, return_dict=True, **told
        )
        model.speech_decoder_postnet.feat_out(out.last_hidden_state.squeeze(1))
        return out.past_key_values

    def run() -> None:
        text = torch.full((1, letters), 5)
        mask = torch.ones(1, letters, dtype=torch.int)
        encoded = model.speecht5.encoder(input_values=text, attention_mask=mask, return_dict=True).last_hidden_state
        cache = step(encoded, mask, encoded.new_zeros(1, 1, settings.num_mel_bins))
        _lengthen(cache.self_attention_cache, steps - 1)
        written = encoded.new_zeros(1, steps, settings.num_mel_bins)
        step(encoded, mask, written, cache)
        pieces = [torch.zeros(1, settings.reduction_factor, settings.num_mel_bins, dtype=dtype) for _ in range(steps)]
        vocoder(model.speech_decoder_postnet.postnet(torch.stack(pieces).transpose(0, 1).flatten(1, 2))[0])

    return model, run, vocoder


def csm(seconds: float, dtype):
    """512 tokens of text, then the last step of its backbone and of its depth decoder, then its codec for all frames."""
    import torch
    import transformers

    settings = transformers.CsmConfig()
    model = _empty(transformers.CsmForConditionalGeneration, settings, dtype)
    frames = max(1, int(seconds * 12.5))
    model.depth_decoder.generation_config.update(
        min_new_tokens=settings.num_codebooks - 1,
        max_new_tokens=settings.num_codebooks - 1,
        eos_token_id=None,
        pad_token_id=0,
    )

    def write() -> None:
        first = model(
            torch.zeros(1, TEXT, dtype=torch.long), use_cache=True, output_hidden_states=True, logits_to_keep=1
        )
        cache = first.past_key_values
        del first
        _lengthen(cache, TEXT + frames - 1)
        last = model(
            torch.zeros(1, 1, settings.num_codebooks, dtype=torch.long),
            past_key_values=cache, use_cache=True, output_hidden_states=True, logits_to_keep=1,
        )  # fmt: skip
        last.logits[:, -1].float()
        model.depth_decoder.generate(
            input_ids=torch.zeros(1, 2, dtype=torch.long),
            backbone_last_hidden_state=last.hidden_states[-1][:, -1, :].clone(),
        )

    def run() -> None:
        write()
        model.codec_model.decode(torch.zeros(1, settings.num_codebooks, frames, dtype=torch.long))

    return model, run


def dia(seconds: float, dtype):
    """Two sequences (its guidance), 512 letters, the last step of its decoder; then the codec of its processor, in fp32 as it is published."""
    import torch
    import transformers

    settings = transformers.DiaConfig()
    model = _empty(transformers.DiaForConditionalGeneration, settings, dtype)
    codec = _empty(transformers.DacModel, transformers.DacConfig(**DAC), torch.float32)
    frames, channels = max(1, int(seconds * 44100 / 512)), settings.decoder_config.num_channels

    def write() -> None:
        given = {
            "input_ids": torch.ones(2, TEXT, dtype=torch.long),
            "attention_mask": torch.ones(2, TEXT, dtype=torch.long),
        }
        begun = torch.zeros(2, 1, channels, dtype=torch.long)
        first = model(**given, decoder_input_ids=begun, use_cache=True)
        cache = first.past_key_values
        _lengthen(cache.self_attention_cache, frames + max(settings.delay_pattern) - 1)
        encoded = (first.encoder_last_hidden_state,)
        del first
        last = model(
            encoder_outputs=encoded,
            attention_mask=given["attention_mask"],
            decoder_input_ids=begun,
            past_key_values=cache,
            use_cache=True,
        )
        last.logits[:, -1].float()

    def run() -> None:
        write()
        codec.decode(audio_codes=torch.zeros(1, channels, frames, dtype=torch.long))

    return model, run, codec


def musicgen(seconds: float, dtype):
    """MusicGen medium: two sequences (its guidance), 512 tokens of text, the last step of its decoder, then its codec for all frames. Its
    generation holds what the first step gave, with a cache of its own, until it ends."""
    import torch
    import transformers

    said = {k: v for k, v in configs()["facebook/musicgen-medium"].items() if k not in ("model_type", "architectures")}
    settings = transformers.MusicgenConfig(**said)
    model = _empty(transformers.MusicgenForConditionalGeneration, settings, dtype)
    books, frames = settings.decoder.num_codebooks, max(1, int(seconds * 50))

    def write() -> None:
        given = torch.ones(2, TEXT, dtype=torch.long)
        begun = torch.zeros(2 * books, 1, dtype=torch.long)
        first = model(input_ids=given, attention_mask=given, decoder_input_ids=begun, use_cache=True)
        encoded = (first.encoder_last_hidden_state,)
        told = {"encoder_outputs": encoded, "attention_mask": given, "decoder_input_ids": begun, "use_cache": True}
        cache = model(**told).past_key_values
        _lengthen(cache.self_attention_cache, frames + books - 1)
        last = model(**told, past_key_values=cache)
        last.logits[:, -1].float()

    def run() -> None:
        write()
        model.audio_encoder.decode(torch.zeros(1, 1, books, frames, dtype=torch.long), audio_scales=[None])

    return model, run


def voxtral_realtime(seconds: float, dtype):
    """Features of all of the sound at once, then a step of 39 tokens as it begins and its last step, with what its windows hold by then."""
    import torch
    import transformers

    settings = transformers.VoxtralRealtimeConfig()
    model = _empty(transformers.VoxtralRealtimeForConditionalGeneration, settings, dtype)
    each, begun = settings.downsample_factor, VOXTRAL_BEGUN
    tokens = begun + math.ceil(seconds * FRAMES / settings.audio_length_per_tok)

    def run() -> None:
        features = torch.zeros(
            1, settings.audio_config.num_mel_bins, tokens * settings.audio_length_per_tok, dtype=dtype
        )
        heard = model.model.audio_tower.embedder(features)
        del features
        told = {"use_cache": True, "logits_to_keep": 1, "num_delay_tokens": settings.default_num_delay_tokens}
        first = model(torch.zeros(1, begun, dtype=torch.long), encoder_inputs_embeds=heard[:, : begun * each], **told)
        caches = first.past_key_values, first.encoder_past_key_values
        del first
        for held, length, part in zip(
            caches, (tokens - 1, (tokens - 1) * each), (settings.text_config, settings.audio_config), strict=True
        ):
            _lengthen(held, min(length, part.sliding_window - 1))
            for layer in held.layers:
                layer.cumulative_length = length
        last = model(
            torch.zeros(1, 1, dtype=torch.long),
            encoder_inputs_embeds=heard[:, (tokens - 1) * each : tokens * each],
            past_key_values=caches[0],
            encoder_past_key_values=caches[1],
            position_ids=torch.tensor([[tokens - 1]]),
            **told,
        )
        last.logits[:, -1].float()

    return model, run


CLASSES = {
    "parakeet_tdt": parakeet,
    "nemotron_asr_streaming": nemotron_asr_streaming,
    "nemotron3_5_asr": nemotron3_5_asr,
    "kokoro": kokoro,
    "xtts": xtts,
    "chatterbox": chatterbox,
    "snac": snac,
    "vocos": vocos,
    **{name: partial(bigvgan, name=name) for name in BIGVGAN},
    "ecapa_tdnn": ecapa_tdnn,
    "pyannote_diarization": pyannote_diarization,
    "pyannote_segmentation": pyannote_segmentation,
    "pyannote_diarization_2": pyannote_diarization_2,
    "pyannote_segmentation_2": pyannote_segmentation_2,
    "pyannote_activity": pyannote_segmentation_2,
    "wespeaker": wespeaker,
    "vits": vits,
    "wavlm": wavlm,
    "speecht5": speecht5,
    "csm": csm,
    "dia": dia,
    "musicgen": musicgen,
    "voxtral_realtime": voxtral_realtime,
    "omnivoice": omnivoice,
    "voxcpm2": voxcpm2,
    **dict.fromkeys(("vibevoice", "vibepod"), vibevoice),
    "wav2vec2-bert": w2v_bert,
    "parakeet_ctc": parakeet_ctc,
}


def counted(row: dict[str, str]) -> dict[str, str]:
    import hollow
    import torch

    asked = [float(row["seconds"]), {"2": torch.bfloat16, "4": torch.float32}[row["element_bytes"]]]
    if row["model_type"] in ("vits", "wavlm", "vibevoice", "vibepod"):  # (of several sizes)
        asked.append(int(row["parameter_count"]))
    model, run, *beside = CLASSES[row["model_type"]](*asked)
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != int(row["parameter_count"]):
        raise ValueError(f"the class has {count} parameters")
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for part in (model, *beside):
            for tensor in (*part.parameters(), *part.buffers()):
                tracker.track(tensor)
        tracker.reset_peak()
        run()
        peak = tracker.peak - count * int(row["element_bytes"])
    print(row["model_type"], row["element_bytes"], row["seconds"], peak, tracker.at, flush=True)
    return {"peak_bytes": str(peak), "versions": f"torch {torch.__version__.split('+')[0]}"}


if __name__ == "__main__":
    count_rows(ROWS, __doc__, lambda row: row["model_type"], counted)
