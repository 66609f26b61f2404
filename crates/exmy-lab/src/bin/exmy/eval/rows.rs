//! What recipes were found to cost, as a table and as JSON.

use exmy_lab::amounts::thousands;
use exmy_lab::table::aligned;
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::{Mean, Measures};
use exmy_train::recipe::Recipe;
use serde_json::json;

/// What one recipe was found to cost.
#[derive(Clone)]
pub(super) struct Row<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) tokens: usize,
    pub(super) loss: Mean,
    pub(super) above: Mean,
    pub(super) divergence: Mean,
    pub(super) agreement: Mean,
    pub(super) layers: &'a Layers,
    /// The part of the model whose numbers it is about, when one part at a time has others.
    pub(super) part: Option<&'a str>,
}

impl<'a> Row<'a> {
    pub(super) fn new(
        recipe: &'a Recipe,
        [own, first]: [&Measures; 2],
        layers: &'a Layers,
    ) -> Self {
        let (loss, divergence) = (own.loss(), own.mean(&own.divergence));
        // Where logits are no numbers none is the likeliest.
        let none = Mean { mean: f64::NAN, error: f64::NAN };
        let is_number = !loss.mean.is_nan() && !divergence.mean.is_nan();
        let of_numbers = |mean: Mean| if is_number { mean } else { none };
        Self {
            layers,
            part: None,
            recipe,
            tokens: own.count(),
            loss,
            above: own.loss_above(first),
            divergence: of_numbers(divergence),
            agreement: of_numbers(own.mean(&own.agreement)),
        }
    }

    /// Bits a byte of the text.
    fn bits(&self, bytes: usize) -> f64 {
        self.loss.mean * self.tokens as f64 / bytes as f64 / core::f64::consts::LN_2
    }

    pub(super) fn json(
        &self,
        bytes: usize,
        inside: Option<serde_json::Value>,
    ) -> serde_json::Value {
        let mut value = json!({
            "recipe": self.recipe.to_string(),
            "tokens": self.tokens,
            "nats_per_token": self.loss.mean,
            "nats_per_token_error": self.loss.error,
            "perplexity": libm::exp(self.loss.mean),
            "bits_per_byte": self.bits(bytes),
            "nats_above_first": self.above.mean,
            "nats_above_first_error": self.above.error,
            "kl": self.divergence.mean,
            "kl_error": self.divergence.error,
            "top1_agreement": self.agreement.mean,
            "top1_agreement_error": self.agreement.error,
        });
        if let Some(part) = self.part {
            value["part"] = part.into();
        }
        if let Some(inside) = inside {
            value["drift"] = self.layers.drifts().collect();
            value["layers"] = inside;
        }
        value
    }
}

/// A standard error, which one window has not.
pub(super) fn error(error: f64) -> String {
    known(error, format!("{error:.5}"))
}

/// What is shown of a number, if it is one.
pub(super) fn known(number: f64, shown: String) -> String {
    if number.is_nan() { "-".into() } else { shown }
}

pub(super) fn table(rows: &[Row<'_>], bytes: usize) -> String {
    let head = [
        "recipe",
        "perplexity",
        "nats/token",
        "+-",
        "bits/byte",
        "above first",
        "+-",
        "KL",
        "+-",
        "same top",
    ];
    let mut cells = vec![head.map(String::from).to_vec()];
    for (i, row) in rows.iter().enumerate() {
        let mut line = vec![
            row.recipe.to_string(),
            format!("{:.4}", libm::exp(row.loss.mean)),
            format!("{:.5}", row.loss.mean),
            error(row.loss.error),
            format!("{:.5}", row.bits(bytes)),
        ];
        if i > 0 {
            line.extend([
                format!("{:+.5}", row.above.mean),
                error(row.above.error),
                // Of two equal recipes rounding may leave a little less than 0.
                known(row.divergence.mean, format!("{:.5}", row.divergence.mean))
                    .replace("-0.00000", "0.00000"),
                error(row.divergence.error),
                known(row.agreement.mean, format!("{:.2} %", 100.0 * row.agreement.mean)),
            ]);
        }
        cells.push(line);
    }
    let first = rows[0].recipe;
    let scored = thousands(rows[0].tokens as u64);
    aligned(&cells, 1)
        + &format!(
            "{scored} tokens scored; above first: nats/token above {first}; KL from {first} in nats\n"
        )
}
