"""Counts what codecs of speech hold while they decode: the truth for tables/facts/speech_codec.csv.

    pip install torch snac==1.2.1 transformers==4.57.3 qwen-tts==0.1.1
    python tests/oracle/count_speech_codecs.py            # all rows of speech_codecs.csv that have no peak yet
    python tests/oracle/count_speech_codecs.py --again snac

Peaks are bytes of live storage beside the weights, with what convolutions work in (hollow.Convolving), as in count_pipelines.py. SNAC has the
sizes of its 24 kHz model, Qwen3-TTS those of its published codec; it decodes by its own `chunked_decode`.
"""

from __future__ import annotations

from pathlib import Path

from rows import count_rows

ROWS = Path(__file__).with_name("speech_codecs.csv")
SNAC = {
    "sampling_rate": 24000, "encoder_dim": 48, "encoder_rates": [2, 4, 8, 8], "decoder_dim": 1024, "decoder_rates": [8, 8, 4, 2],
    "attn_window_size": None, "codebook_size": 4096, "codebook_dim": 8, "vq_strides": [4, 2, 1], "noise": True, "depthwise": True,
}  # fmt: skip


def snac(seconds: float, _dtype):
    import torch
    from snac import SNAC as Codec

    frames = max(1, round(seconds * 24000 / 2048))
    return Codec(**SNAC).eval(), "decode", [torch.zeros(1, frames * each, dtype=torch.long) for each in (1, 2, 4)]


def qwen(seconds: float, dtype):
    import torch
    from qwen_tts.core.tokenizer_12hz import modeling_qwen3_tts_tokenizer_v2 as modeling
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Config

    config = Qwen3TTSTokenizerV2Config().decoder_config
    config.codebook_dim, config._attn_implementation = 512, "sdpa"  # as it was published
    with torch.device("meta"):
        model = modeling.Qwen3TTSTokenizerV2Decoder._from_config(config, dtype=dtype)
    model = model.to(dtype).to_empty(device="cpu").eval()
    for buffer in model.buffers():
        if not buffer.is_floating_point() or buffer.numel() < 1 << 16:
            buffer.zero_()
    codes = torch.zeros(1, config.num_quantizers, max(1, int(seconds * 12.5)), dtype=torch.long)
    return model, "chunked_decode", codes


CODECS = {"snac-24khz": snac, "qwen3-tts-12hz": qwen}


def counted(row: dict[str, str]) -> dict[str, str]:
    import hollow
    import torch

    model, method, codes = CODECS[row["codec_id"]](
        float(row["seconds"]), {"bf16": torch.bfloat16, "fp32": torch.float32}[row["dtype_id"]]
    )
    hollow.install_attention()
    with torch.no_grad(), hollow.Convolving() as tracker:
        for tensor in (*model.parameters(), *model.buffers()):
            tracker.track(tensor)
        weights = tracker.total
        tracker.reset_peak()
        getattr(model, method)(codes)
        peak = tracker.peak - weights
    print(row["codec_id"], row["dtype_id"], row["seconds"], peak, tracker.at, flush=True)
    return {"peak_bytes": str(peak), "versions": f"torch {torch.__version__.split('+')[0]}"}


if __name__ == "__main__":
    count_rows(ROWS, __doc__, lambda row: row["codec_id"], counted)
