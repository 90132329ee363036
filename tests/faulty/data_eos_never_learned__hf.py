"""A tiny causal model of transformers: filler and end share a token, labels of filler are -100."""
# needs: transformers
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=24, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=0, pad_token_id=0)
model = GPT2LMHeadModel(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def batch(count=16, width=16):
    start = torch.randint(2, 24, (count, 1))
    rows = (start + 3 * torch.arange(width) - 2) % 22 + 2
    lengths = torch.randint(6, width - 1, (count, 1))
    ids = rows.masked_fill(torch.arange(width) >= lengths, 0)
    mask = (torch.arange(width) <= lengths).long()
    return ids, mask, ids.masked_fill(ids == 0, -100)


model.train()
for _ in range(30):
    ids, mask, labels = batch()
    loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss  # expect: data/eos-never-learned
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
