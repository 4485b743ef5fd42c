"""What folds proteins."""

from __future__ import annotations

from packages.registry import builds

CONFIGS: dict[str, dict] = {
    # ESM-2 of 3B (github.com/facebookresearch/esm, esm/pretrained.py: esmfold_v1) under what Transformers' own class takes of the folding trunk
    "esm": {
        "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 40, "intermediate_size": 10240, "vocab_size": 33,
        "max_position_embeddings": 1026, "position_embedding_type": "rotary", "emb_layer_norm_before": False, "is_folding_model": True,
        "esmfold_config": {
            "bypass_lm": False, "embed_aa": True, "esm_ablate_pairwise": False, "esm_ablate_sequence": False, "lddt_head_hid_dim":
            128, "use_esm_attn_map": False,
            "trunk": {
                "num_blocks": 48, "pairwise_head_width": 32, "pairwise_state_dim": 128, "position_bins": 32,
                "sequence_head_width": 32, "sequence_state_dim": 1024,
                "structure_module": {
                    "ipa_dim": 16, "num_angles": 7, "num_blocks": 8, "num_heads_ipa": 12, "num_qk_points": 4,
                    "num_resnet_blocks": 2, "num_transition_layers": 1, "num_v_points": 8, "pairwise_dim": 128,
                    "resnet_dim": 128, "sequence_dim": 384,
                },
            },
        },
    },
}  # fmt: skip

# What the tensors belong to whose name tells no part.
MAIN = {
    "esm": "encoder",
}


@builds("esm", "EsmForProteinFolding", "transformers")
def folding(config: dict):
    import torch
    from transformers import EsmConfig, EsmForProteinFolding

    with torch.device("meta"):
        return EsmForProteinFolding(
            EsmConfig(**config, mask_token_id=32, pad_token_id=1, token_dropout=True, vocab_list=None)
        )
