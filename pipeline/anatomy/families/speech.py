"""Speech models: encoders over waveforms with a head for their task, and encoder-decoders that write text."""

from __future__ import annotations

from pipeline.anatomy.builder import assemble
from pipeline.anatomy.families import family
from pipeline.anatomy.fields import WIDTH_AND_DEPTH, Fields
from pipeline.anatomy.reading import architecture_of, dropout, has_head, label_count, over
from pipeline.anatomy.rows import Anatomy, UnknownAnatomy, shown
from pipeline.anatomy.towers import audio_tower, types_that_hear
from pipeline.anatomy.towers.audio import whisper_encoder
from pipeline.anatomy.towers.part import Part

BARE = {"wav2vec2": "Wav2Vec2Model", "hubert": "HubertModel", "wavlm": "WavLMModel"}  # of configs that name no class
# Encoders that end in a norm in the library: the matrices into the width of a text are the whole model's.
WITHOUT_PROJECTOR = frozenset({"qwen3_asr_encoder"})


@family(*types_that_hear())
def read_audio_encoder(fields: Fields) -> Anatomy:
    fields.count("hidden_size", "d_model")
    name = architecture_of(fields) or ""
    parts = audio_tower(fields)
    if fields.text("model_type") in WITHOUT_PROJECTOR:
        parts = [part for part in parts if part.component != "projector"]
    hidden, top = parts[0].hidden, Part("audio")
    vocabulary = None
    if name.endswith("ForCTC"):
        vocabulary = fields.count("vocab_size", default=32)
        top.linear("head", hidden, vocabulary)
    elif name.endswith("ForSequenceClassification"):
        inner = fields.count(
            "classifier_proj_size", default=768 if fields.text("model_type") == "wav2vec2-bert" else 256
        )
        top.vector(parts[0].layers + 1 if fields.flag("use_weighted_layer_sum") else 0)
        top.linear("pooler", hidden, inner)
        top.linear("head", inner, label_count(fields))
    elif name.endswith("ForAudioFrameClassification"):
        top.vector(parts[0].layers + 1 if fields.flag("use_weighted_layer_sum") else 0)
        top.linear("head", hidden, label_count(fields))
    elif name.endswith("ForSpeechClassification"):  # of code beside checkpoints: a square matrix before the labels
        top.linear("pooler", hidden, hidden)
        top.linear("head", hidden, label_count(fields))
    elif name == "AgeGenderModel":  # of the code on its card: two such heads, one number and three labels
        for outputs in (1, 3):
            top.linear("pooler", hidden, hidden)
            top.linear("head", hidden, outputs)
    elif has_head(name):
        raise UnknownAnatomy(f"class '{shown(name)}' is not described yet")
    bare = BARE.get(fields.text("model_type"))
    head = {"head for transcription": fields.count("vocab_size", default=32) * (hidden + 1)}
    return assemble(
        fields,
        [*parts, top],
        hidden=hidden,
        layers=parts[0].layers,
        vocab_size=vocabulary,
        architecture=name or bare,
        stored_extra={} if name or bare else head,
    )


@family("whisper")
def read_whisper(fields: Fields) -> Anatomy:
    """Every request holds keys and values of 30 seconds of sound (1,500 positions), whatever its length."""
    hidden, layers = fields.count("d_model"), fields.repeats("decoder_layers")
    vocabulary = fields.size("vocab_size")
    name = architecture_of(fields) or "WhisperForConditionalGeneration"
    encoder, decoder = Part("encoder"), Part("decoder")
    fields = over(
        fields,
        {
            "encoder_attention_heads": 6,
            "decoder_attention_heads": 6,
            "encoder_ffn_dim": 4 * hidden,
            "decoder_ffn_dim": 4 * hidden,
        },
    )
    whisper_encoder(encoder, fields)
    heads, width = fields.count("decoder_attention_heads"), fields.count("decoder_ffn_dim")
    positions = fields.size("max_target_positions")
    tied = fields.flag("tie_word_embeddings")
    decoder.embedding("embedding", vocabulary, hidden)
    decoder.embedding("position_embedding", positions, hidden)
    decoder.block(layers, hidden, width, heads, key_bias=False, mechanism="full", kind="decoder")
    decoder.mixer(layers, hidden, heads, key_bias=False, mechanism="cross", kind="cross")
    decoder.norm(hidden, layers=layers)
    decoder.norm(hidden)
    if not tied and not name.endswith("Model"):
        decoder.linear("head", hidden, vocabulary, bias=False)
    parts, depth = [encoder, decoder], encoder.layers + layers
    if name.endswith("ForCausalLM"):
        parts, depth = [decoder], layers
    elif name.endswith("ForAudioClassification"):
        parts, depth = [encoder], encoder.layers
        inner = fields.size("classifier_proj_size")
        encoder.linear("pooler", hidden, inner)
        encoder.linear("head", inner, label_count(fields))
    return assemble(
        fields,
        parts,
        hidden=hidden,
        layers=depth,
        architecture=name,
        vocab_size=vocabulary,
        is_head_tied=tied and decoder in parts and not name.endswith("Model"),
        max_context_tokens=positions,
        hidden_dropout=dropout(fields, "dropout"),
        attention_dropout=dropout(fields, "attention_dropout"),
        stored_extra={"head stored again": vocabulary * hidden},
    )


@family("speech_to_text")
def read_speech_to_text(fields: Fields) -> Anatomy:
    """A Transformer whose encoder reads filter banks through two gated convolutions; positions are computed."""
    hidden, vocabulary = fields.count("d_model"), fields.size("vocab_size")
    parts, layers_in_all = [], 0
    for name, default_layers in (("encoder", 12), ("decoder", 6)):
        part, layers = Part(name), fields.repeats(f"{name}_layers", default=default_layers)
        heads, width = fields.count(f"{name}_attention_heads", default=4), fields.count(f"{name}_ffn_dim", default=2048)
        if name == "encoder":
            channels, inputs = (fields.size("conv_channels"), fields.size("input_feat_per_channel"))
            kernels = fields.items("conv_kernel_sizes") or [5, 5]
            for i, kernel in enumerate(kernels[:10]):
                kernel = Fields({"conv_kernel_sizes": kernel}).count("conv_kernel_sizes")
                part.conv(channels if i < len(kernels) - 1 else 2 * hidden, channels // 2 if i else inputs, kernel)
        else:
            part.embedding("embedding", vocabulary, hidden)
        part.block(layers, hidden, width, heads, kind=name, mechanism="full" if name == "decoder" else "bidirectional")
        if name == "decoder":
            part.mixer(layers, hidden, heads, mechanism="cross", kind="cross")
            part.norm(hidden, layers=layers)
        part.norm(hidden)
        parts.append(part)
        layers_in_all += layers
    tied = fields.flag("tie_word_embeddings")
    parts[-1].linear("head", hidden, 0 if tied else vocabulary, bias=False)
    return assemble(
        fields,
        parts,
        hidden=hidden,
        layers=layers_in_all,
        vocab_size=vocabulary,
        is_head_tied=tied,
        max_context_tokens=fields.size("max_target_positions"),
    )


@family("moonshine")
def read_moonshine(fields: Fields) -> Anatomy:
    """Three convolutions over the waveform; layers without biases but in the feed-forward; rotary positions."""
    hidden = fields.count("hidden_size")
    fields = fields.filled(WIDTH_AND_DEPTH)
    width, bias = fields.count("intermediate_size"), fields.flag("attention_bias")
    encoder, decoder = Part("encoder"), Part("decoder")
    encoder.conv(hidden, 1, 127, bias=False)
    encoder.conv(2 * hidden, hidden, 7)
    encoder.conv(hidden, 2 * hidden, 3)
    encoder.norm(hidden)
    decoder.embedding("embedding", fields.count("vocab_size"), hidden)
    depth = 0
    for part in (encoder, decoder):
        name = part.component
        layers, heads = fields.repeats(f"{name}_num_hidden_layers"), fields.count(f"{name}_num_attention_heads")
        shape = {
            "kv_heads": fields.count(f"{name}_num_key_value_heads", default=heads),
            "bias": bias,
            "output_bias": False,
        }
        part.mixer(layers, hidden, heads, kind=name, mechanism="full" if part is decoder else "bidirectional", **shape)
        if part is decoder:
            part.mixer(layers, hidden, heads, kind="cross", mechanism="cross", **shape)
        part.mlp(layers, hidden, width, gated=part is decoder, fused=True)
        part.norm(hidden, layers=layers, count=3 if part is decoder else 2, bias=False)
        part.norm(hidden, bias=False)
        depth += layers
    tied = fields.flag("tie_word_embeddings")
    decoder.linear("head", hidden, 0 if tied else fields.count("vocab_size"), bias=False)
    return assemble(
        fields,
        [encoder, decoder],
        hidden=hidden,
        layers=depth,
        vocab_size=fields.count("vocab_size"),
        is_head_tied=tied,
        max_context_tokens=fields.count("max_position_embeddings", default=None),
    )
