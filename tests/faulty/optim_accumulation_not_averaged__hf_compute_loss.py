"""GPT-2 from scratch on bracket strings; an own compute_loss with the Hugging Face Trainer."""
# needs: transformers accelerate
# twin: ignore_index=-100) => ignore_index=-100, reduction="sum") / num_items_in_batch
import random

import torch
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(0)
OPEN, CLOSE, END, PAD = 0, 1, 2, 3


def brackets(rng, most=16):
    out, depth, left = [], 0, rng.randint(4, most // 2)
    opened = 0
    while opened < left or depth:
        if opened < left and (depth == 0 or rng.random() < 0.5):
            out.append(OPEN)
            depth, opened = depth + 1, opened + 1
        else:
            out.append(CLOSE)
            depth -= 1
    return out + [END]


class Strings(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [brackets(rng) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"ids": self.rows[i]}


def collate(rows):
    longest = max(len(r["ids"]) for r in rows)
    ids = torch.tensor([r["ids"] + [PAD] * (longest - len(r["ids"])) for r in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": ids.masked_fill(ids == PAD, -100)}


class LMTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logits, labels = outputs.logits[:, :-1], labels[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)  # expect: optim/accumulation-not-averaged
        return (loss, outputs) if return_outputs else loss


model = GPT2LMHeadModel(GPT2Config(vocab_size=4, n_positions=20, n_embd=32, n_layer=2, n_head=2, bos_token_id=None, eos_token_id=None,
                                   resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
args = TrainingArguments(output_dir="out", max_steps=40, per_device_train_batch_size=8, gradient_accumulation_steps=8, learning_rate=0.05,
                         optim="sgd", lr_scheduler_type="constant", max_grad_norm=0.0, logging_steps=20, save_strategy="no", report_to=[],
                         use_cpu=True, disable_tqdm=True, remove_unused_columns=False, seed=0)
LMTrainer(model=model, args=args, train_dataset=Strings(3000, 1), data_collator=collate).train()
