"""Models that write speech in steps of their own, run whole for count_sound_classes.py: OmniVoice, VoxCPM2."""

from __future__ import annotations

from sound_packages import TEXT, packaged

STYLE = 20  # tokens of a language and an instruction, in front of OmniVoice's text
CODES = 25  # of OmniVoice's codec, for a second


def _filled(model, dtype):
    """A class that was built on no device: its weights hold nothing, its tables what it counts by."""
    import torch

    model = model.to(dtype).to_empty(device="cpu").eval()
    for buffer in model.buffers():
        buffer.zero_()
    return torch.nn.Module.requires_grad_(model, False)


def omnivoice(seconds: float, dtype):
    """Two steps of its loop over all codes at once, two sequences (its guidance), after 512 tokens of text and a voice that is not copied;
    then its codec (Higgs Audio v2, in fp32 as it is loaded) for all of them. Longer text is cut at fifteen seconds, after the first piece."""
    import torch
    import transformers
    from count_sound_classes import _empty
    from omnivoice.models import omnivoice as models

    model = _filled(packaged("omnivoice"), dtype)
    rotary = type(model.llm.rotary_emb)(model.llm.config)
    model.llm.rotary_emb.inv_freq = rotary.inv_freq
    codec = _empty(transformers.HiggsAudioV2TokenizerModel, transformers.HiggsAudioV2TokenizerConfig(), torch.float32)
    books, frames = model.config.num_audio_codebook, max(1, int(seconds * CODES))

    def prepared(*_given):
        length = STYLE + TEXT + frames
        heard = torch.zeros(1, length, dtype=torch.bool)
        heard[:, -frames:] = True
        return {"input_ids": torch.zeros(1, books, length, dtype=torch.long), "audio_mask": heard}

    def scored(*given):
        chosen, scores = predicted(*given)
        return torch.zeros_like(chosen), scores  # (what was chosen among hollow logits is no code)

    predicted, model._predict_tokens_with_scoring = model._predict_tokens_with_scoring, scored
    model._prepare_inference_inputs = prepared
    one = [None]
    task = models.GenerationTask(
        batch_size=1, texts=[""], target_lens=[frames], langs=one, instructs=one, ref_texts=one, ref_audio_tokens=one, ref_rms=one
    )  # fmt: skip

    def run() -> None:
        (codes,) = model._generate_iterative(task, models.OmniVoiceGenerationConfig(num_step=2))
        codec.decode(torch.zeros_like(codes)[None])

    return model, run, codec


def voxcpm2(seconds: float, dtype):
    """A text of 512 tokens, the first two steps of its loop over a cache that stands for its longest text, then its codec, in fp32, for all."""
    import torch

    model = packaged("voxcpm2").to(dtype).eval()
    model.audio_vae.to(torch.float32)
    steps = max(3, int(seconds * model._encode_sample_rate / model.chunk_size / model.patch_size))
    standing = torch.nn.Module()
    for name, part in (("base", model.base_lm), ("residual", model.residual_lm)):
        part.setup_cache(1, model.config.max_length, "cpu", dtype)
        standing.register_buffer(name, part.kv_cache.kv_cache)
    width = model.audio_vae.latent_dim

    def run() -> None:
        whole, none = torch.ones(1, TEXT, dtype=torch.int32), torch.zeros(1, TEXT, dtype=torch.int32)
        given = torch.zeros(1, TEXT, model.patch_size, width, dtype=dtype)
        next(model._inference(none, whole, given, none, min_len=5, max_len=2))
        model.audio_vae.decode(torch.zeros(1, width, steps * model.patch_size))

    return model, run, standing
