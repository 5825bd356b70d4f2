"""Rows of SEED_CHECKLIST about models and data (group H): ready models, and data sets.

The models and data sets have tests of their own (tests/compat, tests/nn, tests/test_examples.py);
here is one use of each that the rows name.
"""

import numpy as np
import pytest

from wengert import data, nn
from wengert.data import encoders, synthetic, transforms


def test_row_80_ready_models():
    pytest.importorskip("sklearn", reason="needs the extra `learn`")
    from wengert.compat import sklearn

    x, y, coefficients = synthetic.make_regression(200, 4, n_informative=2, bias=3.0, rng=0)
    plain = sklearn.LinearRegression().fit(x, y)
    np.testing.assert_allclose(plain.coef_, coefficients, atol=1e-10)
    assert plain.intercept_ == pytest.approx(3.0)
    for model in (
        sklearn.Ridge(1e-8),
        sklearn.Lasso(1e-6, tol=1e-12),
        sklearn.ElasticNet(1e-6, tol=1e-12),
    ):
        np.testing.assert_allclose(model.fit(x, y).coef_, coefficients, atol=1e-3)
    for classes in (2, 3):
        x, y = synthetic.make_blobs(150, centers=np.eye(3)[:classes] * 9, rng=1)
        assert sklearn.LogisticRegression().fit(x, y).score(x, y) > 0.98


def test_row_82_data_sets():
    """Loaders, transforms and encoders of synthetic sets."""
    points, classes = synthetic.make_spirals(90, classes=3, noise=0.02, rng=0)
    scaler = encoders.Standard().fit(points)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(points)), points)
    onehot = encoders.OneHot().fit(classes)
    np.testing.assert_array_equal(onehot.inverse_transform(onehot.transform(classes)), classes)
    change = transforms.Compose([scaler.transform, transforms.AsFloat()])
    whole = data.TensorDataset(points, classes).map(change, field=0)
    sizes = [len(y) for _, y in data.DataLoader(whole, batch_size=40, shuffle=True, rng=0)]
    assert sizes == [40, 40, 10]
    x, y = next(iter(data.DataLoader(whole, batch_size=90)))
    loss = nn.CrossEntropyLoss()(nn.Linear(2, 3, rng=0)(np.asarray(x, float)), y)
    assert np.isfinite(loss.item())
