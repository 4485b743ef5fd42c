"""What forecasts time series."""

from __future__ import annotations

from packages.registry import builds

CONFIGS: dict[str, dict] = {
    # of config.json of Maple728/TimeMoE-200M at 3d1e09d
    "time_moe": {
        "hidden_size": 768, "horizon_lengths": [1, 8, 32, 64], "input_size": 1, "intermediate_size": 3072, "max_position_embeddings": 4096,
        "num_attention_heads": 12, "num_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 12, "num_key_value_heads": 12,
        "tie_word_embeddings": False, "use_dense": False,
    },
    # what the class of thuml/sundial-base-128m takes by itself
    "sundial": {
        "input_token_len": 16, "hidden_size": 768, "intermediate_size": 3072, "output_token_lens": [720], "num_hidden_layers": 12,
        "num_attention_heads": 12, "max_position_embeddings": 10000, "flow_loss_depth": 3, "num_sampling_steps": 50,
    },
    # of config.json of Salesforce/moirai-1.1-R-large at b2b123f9
    "moirai": {
        "d_model": 1024, "num_layers": 24, "patch_sizes": [8, 16, 32, 64, 128], "max_seq_len": 512, "scaling": True,
        "distr_output": {
            "_target_": "uni2ts.distribution.mixture.MixtureOutput",
            "components": [
                {"_target_": "uni2ts.distribution.student_t.StudentTOutput"},
                {"_target_": "uni2ts.distribution.normal.NormalFixedScaleOutput", "scale": 0.001},
                {"_target_": "uni2ts.distribution.negative_binomial.NegativeBinomialOutput"},
                {"_target_": "uni2ts.distribution.log_normal.LogNormalOutput"},
            ],
        },
    },
    # of config.json of Salesforce/moirai-2.0-R-small, as programs that check its hash write it out
    "moirai2": {
        "d_model": 384, "d_ff": 1024, "num_layers": 6, "patch_size": 16, "max_seq_len": 512, "num_predict_token": 4, "scaling": True,
        "quantile_levels": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    },
    # of 512 steps and 96 to come: the sizes that give the 805,280 parameters which a run of granite-timeseries-ttm-r2 printed
    "tinytimemixer": {
        "context_length": 512, "prediction_length": 96, "patch_length": 64, "patch_stride": 64, "d_model": 192, "num_layers": 2,
        "adaptive_patching_levels": 3, "decoder_d_model": 128, "decoder_num_layers": 2, "expansion_factor": 2, "use_decoder": True,
        "gated_attn": True, "self_attn": False, "use_positional_encoding": False, "mode": "common_channel", "decoder_mode": "common_channel",
        "resolution_prefix_tuning": False, "decoder_adaptive_patching_levels": 0,
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = {
    "time_moe": "decoder",
    "sundial": "decoder",
    "moirai": "encoder",
    "moirai2": "decoder",
    "tinytimemixer": "encoder",
}


@builds("time_moe", "TimeMoeForPrediction", "sktime")
def time_moe(config: dict):
    import torch
    from sktime.libs.timemoe import timemoe, timemoe_config

    with torch.device("meta"):
        return timemoe.TimeMoeForPrediction(timemoe_config.TimeMoeConfig(**config))


@builds("sundial", "SundialForPrediction", "sktime")
def sundial(config: dict):
    import torch
    from sktime.libs.sundial import configuration_sundial, modeling_sundial

    with torch.device("meta"):
        return modeling_sundial.SundialForPrediction(configuration_sundial.SundialConfig(**config))


@builds("moirai", "MoiraiModule", "uni2ts")
def moirai(config: dict):
    import torch
    from uni2ts.model.moirai.module import MoiraiModule, decode_distr_output

    outputs = decode_distr_output(config["distr_output"])
    with torch.device("meta"):
        return MoiraiModule(**{**config, "distr_output": outputs}, attn_dropout_p=0.0, dropout_p=0.0)


@builds("moirai2", "Moirai2Module", "uni2ts")
def moirai2(config: dict):
    import torch
    from uni2ts.model.moirai2.module import Moirai2Module

    with torch.device("meta"):
        return Moirai2Module(**config, attn_dropout_p=0.0, dropout_p=0.0)


@builds("tinytimemixer", "TinyTimeMixerForPrediction", "granite-tsfm")
def tinytimemixer(config: dict):
    import torch
    from tsfm_public.models.tinytimemixer import configuration_tinytimemixer, modeling_tinytimemixer

    with torch.device("meta"):
        return modeling_tinytimemixer.TinyTimeMixerForPrediction(
            configuration_tinytimemixer.TinyTimeMixerConfig(**config)
        )
