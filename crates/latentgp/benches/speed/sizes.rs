//! The sizes, the data at them, and what their computations ask for.

use crate::limit::Work;
use latentgp::Mat;
use latentgp::data::{Scale, Scaling};
use latentgp::expectation::{Analytic, Expectation, Gaussians, Unscented};
use latentgp::kernel::{Kernel, Matern32, Rbf};
use latentgp::model::{BayesianGplvm, Outputs};

/// N, D, Q, M.
#[derive(Clone, Copy)]
pub struct Size {
    pub n: usize,
    pub d: usize,
    pub q: usize,
    pub m: usize,
}

const fn size(n: usize, d: usize, q: usize, m: usize) -> Size {
    Size { n, d, q, m }
}

/// From a hundred rows of oil flow to a table of twenty thousand.
pub const SIZES: [Size; 5] = [
    size(100, 12, 5, 20),
    size(1000, 12, 10, 50),
    size(5000, 256, 5, 20),
    size(5000, 256, 5, 100),
    size(20000, 50, 10, 100),
];

impl Size {
    /// All sizes, or the smallest alone.
    pub fn all(quick: bool) -> &'static [Size] {
        if quick { &SIZES[..1] } else { &SIZES }
    }

    fn name(&self) -> String {
        format!("({}, {}, {}, {})", self.n, self.d, self.q, self.m)
    }

    /// Numbers without a pattern, the same in every run.
    pub fn numbers(rows: usize, cols: usize, seed: u64) -> Mat {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        // The sum of four uniform numbers, of variance 1: near enough to a normal one.
        Mat::from_fn(rows, cols, |_, _| ((0..4).map(|_| uniform()).sum::<f64>() - 2.0) * 3f64.sqrt())
    }

    pub fn gaussians(&self) -> Gaussians {
        let var = Self::numbers(self.n, self.q, 2).map(|v| 0.1 * (0.3 * v).exp());
        Gaussians::new(Self::numbers(self.n, self.q, 1), var).expect("finite numbers")
    }

    pub fn z(&self) -> Mat {
        Self::numbers(self.m, self.q, 3)
    }

    pub fn model(&self, how: &Method) -> BayesianGplvm {
        let y = Self::numbers(self.n, self.d, 4);
        let scaling = Scaling::fit(&y, Scale::None).expect("finite data");
        let (kernel, rule) = (how.kernel(self.q), how.expectation());
        BayesianGplvm::new(Outputs::new(y), scaling, kernel, rule, self.gaussians(), self.z(), 0.1)
            .expect("shapes agree")
    }
}

/// A kernel and how its Ψ-statistics are computed.
#[derive(Clone, Copy, PartialEq)]
pub enum Method {
    RbfAnalytic,
    Matern32Unscented,
}

pub const METHODS: [Method; 2] = [Method::RbfAnalytic, Method::Matern32Unscented];

impl Method {
    pub fn kernel(&self, q: usize) -> Box<dyn Kernel> {
        // Lengthscales at which neither everything nor nothing is correlated.
        let scale = (q as f64).sqrt();
        let (mut rbf, mut matern) = (Rbf::new(q), Matern32::new(q));
        rbf.lengthscale.set(scale);
        matern.lengthscale.set(scale);
        match self {
            Method::RbfAnalytic => Box::new(rbf),
            Method::Matern32Unscented => Box::new(matern),
        }
    }

    pub fn expectation(&self) -> Box<dyn Expectation> {
        match self {
            Method::RbfAnalytic => Box::new(Analytic),
            Method::Matern32Unscented => Box::new(Unscented),
        }
    }

    /// "bound/rbf analytic (100, 12, 5, 20)".
    pub fn case(&self, suite: &str, size: &Size) -> String {
        let name = match self {
            Method::RbfAnalytic => "rbf analytic",
            Method::Matern32Unscented => "matern32 unscented",
        };
        format!("{suite}/{name} {}", size.name())
    }

    /// What Ψ asks for: with P = M(M+1)/2 pairs and S = 2Q nodes, the exponents are a product with 2Q + 1
    /// features a pair, Ψ2 one half of KᵀK.
    pub fn psi(&self, s: &Size) -> Work {
        let (n, q, m) = (s.n as f64, s.q as f64, s.m as f64);
        let pairs = n * (m * (m + 1.0) / 2.0 + m);
        let values = n * 2.0 * q * m;
        match self {
            Method::RbfAnalytic => Work { exps: pairs, roots: 0.0, flops: 2.0 * pairs * (2.0 * q + 1.0) },
            Method::Matern32Unscented => Work { exps: values, roots: values, flops: values * (m + 4.0) },
        }
    }

    /// What the adjoint of Ψ asks for where the values of the kernel are at hand.
    pub fn psi_adjoint(&self, s: &Size) -> Work {
        let forward = self.psi(s);
        match self {
            Method::RbfAnalytic => Work { flops: 2.0 * forward.flops, ..Work::default() },
            Method::Matern32Unscented => {
                Work { flops: forward.exps * (2.0 * s.m as f64 + 8.0), ..Work::default() }
            }
        }
    }

    /// What one bound with its whole gradient asks for.
    pub fn bound(&self, s: &Size) -> Work {
        let (n, d, m) = (s.n as f64, s.d as f64, s.m as f64);
        let (forward, backward) = (self.psi(s), self.psi_adjoint(s));
        let rest = 4.0 * n * m * d + 10.0 * m.powi(3);
        Work { flops: forward.flops + backward.flops + rest, ..forward }
    }
}
