"""HF Trainer: a tiny random BERT on a synthetic task, accumulation, warm-up, evaluation with metrics, best model restored."""
# needs: transformers accelerate
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
g = torch.Generator().manual_seed(0)


class Reviews(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = torch.randint(5, 60, (n, 12), generator=g)
        self.labels = torch.randint(0, 2, (n,), generator=g)
        self.rows[:, 1:] = torch.where(self.labels[:, None].bool(), self.rows[:, 1:] % 30 + 5, self.rows[:, 1:])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "attention_mask": torch.ones(12, dtype=torch.long), "labels": self.labels[i]}


config = BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=16,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, per_device_train_batch_size=16, gradient_accumulation_steps=2, num_train_epochs=8, learning_rate=5e-3,
                                  warmup_steps=5, logging_steps=10, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,
                                  report_to=[], disable_tqdm=True, use_cpu=True)
    trainer = Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Reviews(320), eval_dataset=Reviews(96),
                      compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())})
    trainer.train()
    print(trainer.evaluate())
