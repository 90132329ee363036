"""Five-fold cross-validation: every sample is in training and in validation, of different models, each with its own scaler."""
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

X, y = load_breast_cancer(return_X_y=True)
scores = []
for fold, (tr, va) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
    torch.manual_seed(fold)
    scaler = StandardScaler().fit(X[tr])
    xt, xv = (torch.tensor(scaler.transform(X[i]), dtype=torch.float32) for i in (tr, va))
    yt, yv = (torch.tensor(y[i], dtype=torch.float32) for i in (tr, va))
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(12):
        model.train()
        for rows in torch.randperm(len(xt)).split(32):
            loss = nn.functional.binary_cross_entropy_with_logits(model(xt[rows]).squeeze(1), yt[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        scores.append(((model(xv).squeeze(1) > 0) == (yv > 0.5)).float().mean().item())
    print(f"fold {fold}: {scores[-1]:.3f}")
print(sum(scores) / 5)
