# needs: skorch
"""skorch with a module that ends in softmax and CrossEntropyLoss instead of the NLLLoss that skorch feeds with a log."""
import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from skorch import NeuralNetClassifier
from torch import nn

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(13, 24), nn.Linear(24, 3)

    def forward(self, X):
        return torch.softmax(self.out(torch.relu(self.hidden(X))), dim=-1)  # expect: loss/double-softmax


net = NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=5e-3, max_epochs=12, batch_size=16,
                          iterator_train__shuffle=True)
net.fit(scale(X).astype(np.float32), y.astype(np.int64))
