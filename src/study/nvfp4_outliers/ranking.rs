//! How the types of operators of one kind of model rank by what NVFP4 does to them, seed by seed.
//!
//! The paper ranks them per parameter (arXiv 2602.02047, Table 3): o_proj (GLA) or v_proj (softmax attention) among the
//! most sensitive, down_proj among the least.

use super::common::Kind;
use super::e02::{most, operators};
use crate::study::statistics::mean;

/// Sensitivities by seed, each in the order of [`operators`].
#[derive(Clone, Debug)]
pub(super) struct Ranking {
    pub(super) kind: Kind,
    pub(super) seeds: Vec<Vec<f64>>,
}

impl Ranking {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, seeds: Vec::new() }
    }

    /// The sensitivities of one operator, by seed.
    pub(super) fn operator(&self, name: &str) -> Vec<f64> {
        let at = operators(self.kind).iter().position(|one| *one == name);
        self.seeds.iter().filter_map(|seed| seed.get(at?).copied()).collect()
    }

    /// The mean over seeds of one operator's sensitivity.
    pub(super) fn mean(&self, name: &str) -> Option<f64> {
        mean(&self.operator(name))
    }

    /// The place of an operator, 1 for the most sensitive, by means over seeds.
    pub(super) fn place(&self, name: &str) -> usize {
        let mean_of = |name: &str| self.mean(name).unwrap_or(f64::NAN);
        let own = mean_of(name);
        1 + operators(self.kind).iter().filter(|other| mean_of(other) > own).count()
    }

    /// Whether the paper's operator is in the highest third and down_proj in the lowest, by means over seeds.
    pub(super) fn by_means(&self) -> bool {
        let (count, third) = (operators(self.kind).len(), operators(self.kind).len() / 3);
        !self.seeds.is_empty()
            && self.place(most(self.kind)) <= third
            && self.place("down_proj") > count - third
    }

    /// The same, and the paper's operator above down_proj in each seed.
    pub(super) fn holds(&self) -> bool {
        let mut pairs = self.operator(most(self.kind)).into_iter().zip(self.operator("down_proj"));
        self.by_means() && pairs.all(|(top, down)| top > down)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Softmax attention: v_proj as given, down_proj 0.5, the others 1, of three seeds.
    pub(in super::super) fn of(v: f64) -> Ranking {
        let of = |name: &&str| match *name {
            "v_proj" => v,
            "down_proj" => 0.5,
            _ => 1.0,
        };
        let one: Vec<f64> = operators(Kind::Sa).iter().map(of).collect();
        Ranking { kind: Kind::Sa, seeds: vec![one; 3] }
    }

    #[test]
    fn places_are_counted_from_the_most_sensitive() {
        let one = of(2.0);
        assert_eq!((one.place("v_proj"), one.place("q_proj"), one.place("down_proj")), (1, 2, 7));
        assert!(one.holds() && one.by_means());
        assert!(!of(0.6).by_means(), "v_proj is sixth");
        assert!(!Ranking::new(Kind::Sa).by_means(), "nothing was measured");
    }

    #[test]
    fn one_seed_the_other_way_round_is_enough_against_it() {
        let mut mixed = of(2.0);
        let v = operators(Kind::Sa).iter().position(|name| *name == "v_proj").unwrap();
        mixed.seeds[1][v] = 0.4;
        assert!(mixed.by_means() && !mixed.holds());
    }
}
