"""Three folds, each with a scaler and a model of its own, early stopping on the fold's validation loss, best weights restored from a deep copy."""
import copy

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(0)
X, Y = load_breast_cancer(return_X_y=True)
scores = []
for fold, (tr, va) in enumerate(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y)):
    scaler = StandardScaler().fit(X[tr])
    xt, xv = (torch.tensor(scaler.transform(X[i]), dtype=torch.float32) for i in (tr, va))
    yt, yv = (torch.tensor(Y[i], dtype=torch.float32) for i in (tr, va))
    net = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3, weight_decay=1e-4)
    loss_fn = nn.BCEWithLogitsLoss()
    best, best_loss, patience = None, np.inf, 0
    for epoch in range(9):
        net.train()
        for rows in torch.randperm(len(xt)).split(48):
            opt.zero_grad()
            loss_fn(net(xt[rows]).squeeze(1), yt[rows]).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            val = loss_fn(net(xv).squeeze(1), yv).item()
        if val < best_loss - 1e-4:
            best_loss, best, patience = val, copy.deepcopy(net.state_dict()), 0
        else:
            patience += 1
            if patience >= 3:
                break
    net.load_state_dict(best)
    with torch.no_grad():
        scores.append(((net(xv).squeeze(1) > 0).float() == yv).float().mean().item())
print("accuracy", np.mean(scores), "+-", np.std(scores))
