"""Models that write speech in steps of their own, run whole for count_sound_classes.py: OmniVoice, VoxCPM2."""

from __future__ import annotations

from sound_packages import TEXT, packaged

STYLE = 20  # tokens of a language and an instruction, in front of OmniVoice's text
CODES = 25  # of OmniVoice's codec, for a second
# of its 24 kHz model, whose frames have 960 samples: 806 MB in fp32, as the repository holds it beside the 2.45 GB of what writes codes
CODEC_RATIOS = [8, 5, 4, 2, 3]


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
    ratios = {"downsampling_ratios": CODEC_RATIOS, "upsampling_ratios": CODEC_RATIOS}
    settings = transformers.HiggsAudioV2TokenizerConfig(acoustic_model_config=ratios)
    codec = _empty(transformers.HiggsAudioV2TokenizerModel, settings, torch.float32)
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


VIBEVOICE = {  # by parameters: its Qwen2
    2_704_021_985: {
        "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "vocab_size": 151936, "tie_word_embeddings": True,
    },
    9_343_355_361: {
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "tie_word_embeddings": False,
    },
}  # fmt: skip
VIBEVOICE_FRAMES = 7.5  # of a second


def vibevoice(seconds: float, dtype, count: int):
    """A script of 512 tokens and no voice, then the last two frames of its loop as `_sample` of its class runs them: both branches of its
    guidance, its diffusion head, its decoder and the encoder that hears what was made; all sound is put together at the end."""
    import diffusers
    import torch
    import transformers
    from count_sound_classes import _empty, _lengthen

    words = VIBEVOICE[count]
    head = {"hidden_size": words["hidden_size"], "intermediate_size": 3 * words["hidden_size"]}
    settings = transformers.VibeVoiceConfig(
        text_config={"model_type": "qwen2", **words}, diffusion_head_config=head, tie_word_embeddings=words["tie_word_embeddings"]
    )  # fmt: skip
    model = _empty(transformers.VibeVoiceForConditionalGeneration, settings, dtype)
    for name in ("latent_scaling_factor", "latent_bias_factor"):  # two numbers, which its checkpoints do not count
        model.model.register_buffer(name, model.model._parameters.pop(name).data)
    frames = max(3, int(seconds * VIBEVOICE_FRAMES))
    scheduler = diffusers.DPMSolverMultistepScheduler(beta_schedule="squaredcos_cap_v2", prediction_type="v_prediction")
    every = torch.ones(1, dtype=torch.bool)

    def run() -> None:
        told = {"use_cache": True, "logits_to_keep": 1}
        first = model(torch.zeros(1, TEXT, dtype=torch.long), **told)
        apart = model(torch.zeros(1, 1, dtype=torch.long), **told)
        caches = first.past_key_values, apart.past_key_values
        for cache, length in zip(caches, (TEXT + frames - 2, frames - 2), strict=True):
            _lengthen(cache, length)
        sound = [torch.zeros(1, 3200, dtype=dtype) for _ in range(frames - 2)]
        heard = model.get_input_embeddings()(torch.zeros(1, 1, dtype=torch.long))
        said = listened = None
        del first, apart
        for _ in range(2):
            out = model(inputs_embeds=heard, past_key_values=caches[0], **told)
            out.logits[:, -1].to(torch.float32)
            other = model(inputs_embeds=heard, past_key_values=caches[1], **told)
            latent = model._sample_audio_latent(
                out.last_hidden_state[:, -1], other.last_hidden_state[:, -1], scheduler, 10, 1.3
            )
            made = model._decode_audio_latent(latent, every, 1, said)
            said = made.padding_cache
            sound.append(made.audio[0])
            meant = model.model.semantic_tokenizer_encoder(made.audio, padding_cache=listened, use_cache=True)
            listened = meant.padding_cache
            heard = model.model.multi_modal_projector(latent) + model.model.semantic_connector(meant.latents)
        torch.cat(sound, dim=-1)

    return model, run
