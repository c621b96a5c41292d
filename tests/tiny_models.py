"""Small language models with random weights, of every make that is embedded with, as folders that need no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensemblepp.text.language_models import acquire

#: Words that the models know; any other is [UNK].
WORDS = ["[PAD]", "[UNK]", *(f"w{number}" for number in range(60)), "red", "green", "blue"]

#: What all of them share. Positions are fewer than texts may have words.
POSITIONS = 96
_SHAPE = {"vocab_size": len(WORDS), "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
_LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
_NEOX = {"rotary_pct": 0.25, "max_position_embeddings": POSITIONS}

#: Name -> class of its configuration, values of it, and how its vectors are pooled.
MAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "gpt2": ("GPT2Config", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS}, "last"),
    "gpt_neox": ("GPTNeoXConfig", _LAYERS | _NEOX, "last"),
    "llama": ("LlamaConfig", _LAYERS | {"num_key_value_heads": 2, "max_position_embeddings": POSITIONS}, "last"),
    "bert": ("BertConfig", _LAYERS | {"max_position_embeddings": POSITIONS}, "mean"),
}


def make(name: str, folder: Path, seed: int = 0) -> Path:
    """Write the model as a publisher would, bring it into `folder` as the workflow does, and return that."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    kind, values, _ = MAKES[name]
    published = folder.with_name(f"{folder.name}-published")
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]").save_pretrained(published)
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(getattr(transformers, kind)(**_SHAPE | values))
    # spread further apart than models at their start
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    model.save_pretrained(published)
    acquire({"source": "folder", "location": str(published)}, folder)
    return folder
