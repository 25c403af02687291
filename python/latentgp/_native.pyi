"""The compiled part of latentgp."""

from collections.abc import Callable
from typing import Any, Optional, TypedDict, Union

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Watch = Optional[Callable[[int, int, float], Any]]
Raised = Optional[BaseException]

__version__: str

class LatentSettings(TypedDict):
    latent_dim: int
    inducing: int
    expectation: str
    scale: str
    kernel: str
    max_iter: int
    restarts: int
    seed: int
    columns: list[str]

class RegressionSettings(TypedDict):
    model: str
    likelihood: str
    latent_dim: int
    inducing: int
    mean: str
    expectation: str
    scale: str
    kernel: str
    wide: bool
    max_iter: int
    restarts: int
    seed: int
    inputs: list[str]
    input_std: list[Optional[str]]
    targets: list[str]
    classes: list[str]

class NarxSettings(TypedDict):
    lags: int
    delays: list[int]
    inducing: Optional[int]
    scale: str
    kernel: str
    wide: bool
    max_iter: int
    restarts: int
    seed: int
    names: list[str]
    exogenous_names: list[str]

class SimulationSettings(TypedDict):
    propagation: str
    expectation: str
    trajectories: int
    seed: int

class Kernel:
    @staticmethod
    def parse(expression: str, dim: int, own: Optional[dict[str, Any]] = None) -> Kernel: ...
    @property
    def expression(self) -> str: ...
    def params(self) -> dict[str, Array]: ...
    def cross(self, x: Array, z: Array) -> Array: ...
    def cross_adjoint(
        self, x: Array, z: Array, bar: Array
    ) -> tuple[dict[str, Array], tuple[Array, Array]]: ...

class LatentModel:
    @staticmethod
    def fit_bayesian_gplvm(
        y: Array, kernel: Kernel, settings: LatentSettings, callback: Watch
    ) -> tuple[LatentModel, Raised]: ...
    @staticmethod
    def fit_gplvm(
        y: Array, kernel: Kernel, settings: LatentSettings, callback: Watch
    ) -> tuple[LatentModel, Raised]: ...
    @staticmethod
    def fit_ppca(y: Array, settings: LatentSettings, callback: Watch) -> tuple[LatentModel, Raised]: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def kernel(self) -> str: ...
    @property
    def noise_variance(self) -> list[float]: ...
    @property
    def inducing(self) -> Optional[Array]: ...
    @property
    def loadings(self) -> Optional[tuple[Array, list[float]]]: ...
    def report(self) -> dict[str, Any]: ...
    def latent(self) -> tuple[Array, Array]: ...
    def relevance(self) -> list[float]: ...
    def transform(self, y: Array) -> tuple[Array, Array, list[float]]: ...
    def reconstruct(self, mean: Array, var: Array) -> tuple[Array, Array]: ...
    def impute(self, y: Array) -> tuple[Array, Array]: ...
    def log_density(self, y: Array, samples: int, seed: int) -> list[float]: ...
    def sample(self, n: int, seed: int) -> tuple[Array, Array]: ...
    def to_bytes(self) -> bytes: ...

class RegressionModel:
    @staticmethod
    def fit(
        x: Array,
        x_std: Optional[Array],
        y: Array,
        kernel: Kernel,
        settings: RegressionSettings,
        callback: Watch,
    ) -> tuple[RegressionModel, Raised]: ...
    @property
    def name(self) -> str: ...
    @property
    def likelihood(self) -> str: ...
    @property
    def names(self) -> tuple[list[str], list[str], list[str]]: ...
    @property
    def sizes(self) -> tuple[int, int, int, Optional[int], Optional[int]]: ...
    @property
    def kernel(self) -> str: ...
    @property
    def relevance(self) -> Optional[list[float]]: ...
    @property
    def noise_variance(self) -> Optional[list[float]]: ...
    @property
    def projection(self) -> Optional[tuple[Array, Array]]: ...
    def report(self) -> dict[str, Any]: ...
    def predict(self, x: Array, var: Optional[Array]) -> tuple[Array, Array]: ...
    def covariance(self, x: Array, output: int) -> Array: ...
    def sample(self, x: Array, count: int, seed: int) -> list[Array]: ...
    def to_bytes(self) -> bytes: ...

class NarxModel:
    @staticmethod
    def fit(
        series: Array, exogenous: Optional[Array], kernel: Kernel, settings: NarxSettings, callback: Watch
    ) -> tuple[NarxModel, Raised]: ...
    @property
    def names(self) -> tuple[list[str], list[str]]: ...
    @property
    def lags(self) -> tuple[list[int], list[list[int]], Optional[int]]: ...
    @property
    def kernel(self) -> str: ...
    @property
    def noise_variance(self) -> list[float]: ...
    @property
    def data(self) -> tuple[Array, Optional[Array]]: ...
    def report(self) -> dict[str, Any]: ...
    def simulate(
        self, history: Array, exogenous: Optional[Array], steps: int, settings: SimulationSettings
    ) -> tuple[tuple[Array, Array], list[Array]]: ...
    def to_bytes(self) -> bytes: ...

def psi_statistics(
    kernel: Kernel, mean: Array, var: Array, z: Array, expectation: str
) -> tuple[float, Array, Array]: ...
def from_bytes(
    bytes: bytes, own: Optional[dict[str, Any]] = None
) -> Union[LatentModel, RegressionModel, NarxModel]: ...
def dataset(
    name: str, n: Optional[int] = None, seed: int = 0
) -> tuple[list[str], Array, Optional[tuple[str, list[str]]]]: ...
