//! The Rust blocks of README.md and of the guide in docs/, compiled and run as doctests.

/// An item whose doc comment is a page.
macro_rules! page {
    ($name:ident, $path:literal) => {
        #[doc = include_str!(concat!("../../../", $path))]
        struct $name;
    };
}

page!(Readme, "README.md");
page!(BayesianGplvm, "docs/bayesian-gplvm.md");
page!(Gplvm, "docs/gplvm.md");
page!(Ppca, "docs/ppca.md");
page!(Regression, "docs/regression.md");
page!(SparseRegression, "docs/sparse-regression.md");
page!(SpgpDr, "docs/spgp-dr.md");
page!(Vdmgp, "docs/vdmgp.md");
page!(Classes, "docs/classes.md");
page!(Counts, "docs/counts.md");
page!(Forecasting, "docs/forecasting.md");
page!(Kernels, "docs/kernels.md");
page!(Expectations, "docs/expectations.md");
page!(ModelFile, "docs/model-file.md");
page!(OwnKernel, "docs/own-kernel.md");
page!(OwnExpectation, "docs/own-expectation.md");
page!(OwnLikelihood, "docs/own-likelihood.md");
page!(OwnPrior, "docs/own-prior.md");
page!(OwnModel, "docs/own-model.md");
