//! The study of "Characterization and Mitigation of Training Instabilities in Microscaling Formats"
//! (arXiv 2506.20752): which runs in MX formats become unstable, why, and what helps.
//!
//! Figures and tables are numbered as in the study; `F-zeta` is its figure of the gradient bias, `Nb-1`
//! and `Nb-2` come from its published notebook, `Ext` answers what reviewers asked. Proxies are judged by [`Factor`](crate::detect::Factor), language models by
//! [`Nats`](crate::detect::Nats).

mod appc;
mod appd;
mod appg;
mod appj;
mod common;
mod confirm;
mod draw;
mod ext;
mod f1;
mod f2;
mod f3;
mod f4;
mod fzeta;
mod interventions;
mod judge;
mod t1;
mod t3;
mod unstable;

use crate::papers::Paper;

/// The study.
pub const PAPER: Paper = Paper {
    name: "mx-instabilities",
    title: "Training instabilities in MX formats",
    source: "Characterization and Mitigation of Training Instabilities in Microscaling Formats, arXiv 2506.20752",
    about: "The study trains language models of up to 1.7 G parameters and student-teacher proxies of width 512 \
            for thousands of steps of 2048 rows. Here the same recipes train models of minutes, so instabilities \
            that need size or length cannot show: rates are stressed, gains are put into the clamp band, and \
            what the search covered is part of the report.",
    figures: &[
        &f1::Curves { mx: false },
        &f1::Curves { mx: true },
        &f2::Activations { norm: true },
        &f2::Activations { norm: false },
        &f3::LastBin,
        &fzeta::Zeta,
        &f4::Interventions,
        &t1::Gaps,
        &t3::Hyperparameters,
        &appc::Search,
        &appd::Simplified,
        &appg::Laws,
        &appg::Damage,
        &appj::Pairs,
        &appj::Onsets,
        &ext::Variations,
    ],
};
