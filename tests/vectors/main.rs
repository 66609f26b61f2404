//! Golden numbers: TestFloat's cases judged, vectors made, streams converted.

#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;
mod compute;
mod convert;
mod functions;
mod p3109;
mod samples;
mod vectors;

use exmy::vectors::evaluate::{Evaluator, Settings};
use exmy::vectors::function::TestFunction;
use exmy::vectors::testfloat::{Finding, LinesVerdict, Strictness, verify};
use std::ops::ControlFlow;

/// The function of a name under settings.
fn evaluator(name: &str, settings: &Settings) -> Evaluator {
    let function: TestFunction = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
    function.evaluator(settings).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The verdict on lines, and the reports.
fn judge(
    evaluator: &Evaluator,
    strictness: Strictness,
    lines: &[u8],
) -> (LinesVerdict, Vec<String>) {
    let mut reports = Vec::new();
    let verdict = verify(evaluator, strictness, lines, |finding| {
        reports.push(match finding {
            Finding::Mismatch(mismatch) => mismatch.to_string(),
            Finding::Malformed(malformed) => malformed.to_string(),
        });
        Ok(ControlFlow::Continue(()))
    });
    (verdict.unwrap(), reports)
}
