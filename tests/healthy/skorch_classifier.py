"""skorch: a classifier with its own validation split, early stopping, gradient clipping, a scaler in a scikit-learn pipeline fitted on the training rows."""
# needs: skorch
import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, GradientNormClipping
from torch import nn

torch.manual_seed(0)
X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X.astype(np.float32), y.astype(np.int64), random_state=0, stratify=y)


class Net(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(13, hidden), nn.ReLU(), nn.Dropout(0.2), nn.Linear(hidden, 3))

    def forward(self, X):
        return self.layers(X)


net = NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=1e-2, max_epochs=12, batch_size=16,
                          iterator_train__shuffle=True, callbacks=[EarlyStopping(patience=6), GradientNormClipping(5.0)])
pipe = make_pipeline(StandardScaler(), net)
pipe.fit(X_train, y_train)
print("accuracy", pipe.score(X_test, y_test))
