//! The parameters of uncertain inputs, where they have some.

use super::UncertainInputs;
use crate::param::{Param, Parameterized};

impl Parameterized for UncertainInputs {
    fn params(&self) -> Vec<(String, &Param)> {
        let mut all = Vec::new();
        if !self.cells.is_empty() {
            all.extend([("missing.mean".to_string(), &self.mean), ("missing.var".to_string(), &self.var)]);
        }
        if self.has_errors() {
            let read = &self.read;
            all.extend([
                ("errors.offset".to_string(), &read.offset),
                ("errors.ratio".to_string(), &read.ratio),
            ]);
            all.extend((!read.learn.is_empty()).then(|| ("errors.std".to_string(), &read.std)));
        }
        all
    }

    fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
        let (missing, errors) = (!self.cells.is_empty(), self.has_errors());
        let mut all = Vec::new();
        if missing {
            all.extend([
                ("missing.mean".to_string(), &mut self.mean),
                ("missing.var".to_string(), &mut self.var),
            ]);
        }
        if errors {
            let read = &mut self.read;
            all.extend([
                ("errors.offset".to_string(), &mut read.offset),
                ("errors.ratio".to_string(), &mut read.ratio),
            ]);
            all.extend((!read.learn.is_empty()).then_some(("errors.std".to_string(), &mut read.std)));
        }
        all
    }

    fn each_param(&self, visit: &mut dyn FnMut(&Param)) {
        if !self.cells.is_empty() {
            [&self.mean, &self.var].into_iter().for_each(&mut *visit);
        }
        if self.has_errors() {
            [&self.read.offset, &self.read.ratio].into_iter().for_each(&mut *visit);
            if !self.read.learn.is_empty() {
                visit(&self.read.std);
            }
        }
    }

    fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
        let errors = self.has_errors();
        if !self.cells.is_empty() {
            [&mut self.mean, &mut self.var].into_iter().for_each(&mut *visit);
        }
        if errors {
            [&mut self.read.offset, &mut self.read.ratio].into_iter().for_each(&mut *visit);
            if !self.read.learn.is_empty() {
                visit(&mut self.read.std);
            }
        }
    }
}
