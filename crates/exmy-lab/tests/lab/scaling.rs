use exmy::random::{Philox, Stream};
use exmy_lab::scaling::{Form, Law, Point, fit, ln_loss};

/// The law that was printed for weights in MX E4M3 and activations in bfloat16, over runs like
/// those it was fitted to: eight budgets from 2e17 to 4.84e19, sizes about the best.
#[expect(clippy::approx_constant, reason = "an exponent that is near a sixth of pi by chance")]
fn printed() -> Law {
    let (alpha, beta) = (0.5236, 0.5534);
    Law { form: Form::Chinchilla, a: 2822.5, b: 20445.4, e: 0.5353, alpha, beta }
}

fn runs(law: &Law, noise: f64) -> Vec<Point> {
    let random = Philox::new(2, Stream::new("scaling"));
    let mut points = Vec::new();
    for budget in [2e17, 4.37e17, 9.56e17, 2.09e18, 4.57e18, 1e19, 2.2e19, 4.84e19] {
        for size in [2e7, 4.5e7, 7.3e7, 1.1e8, 1.6e8, 2.7e8, 4.2e8, 7.8e8, 1.7e9] {
            let tokens = budget / (6.0 * size);
            if (2.0..200.0).contains(&(tokens / size)) {
                // Uniform, of the standard deviation `noise`.
                let off = 3.0_f64.sqrt() * (2.0 * random.uniform(points.len() as u64) - 1.0);
                let loss = law.loss(size, tokens) * (1.0 + noise * off);
                points.push(Point { n: size, d: tokens, loss });
            }
        }
    }
    points
}

#[test]
fn the_gradient_is_that_of_differences() {
    for form in [Form::Chinchilla, Form::Kaplan] {
        let x = [7.0, 9.0, -0.6, 0.5, 0.7];
        let (_, slopes) = ln_loss(form, &x, 17.0, 21.0);
        for i in 0..5 {
            let at = |by: f64| {
                let mut x = x;
                x[i] += by;
                ln_loss(form, &x, 17.0, 21.0).0
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((slope - slopes[i]).abs() < 1e-8, "{form:?} {i}: {slope} {}", slopes[i]);
        }
    }
}

#[test]
fn laws_by_their_formulas() {
    #[expect(clippy::disallowed_methods, reason = "a formula is tested, no bit depends on it")]
    fn plain(law: &Law, n: f64, d: f64) -> f64 {
        match law.form {
            Form::Chinchilla => law.a / n.powf(law.alpha) + law.b / d.powf(law.beta) + law.e,
            Form::Kaplan => {
                ((law.a / n).powf(law.alpha / law.beta) + law.b / d).powf(law.beta) + law.e
            }
        }
    }
    let chinchilla = printed();
    let kaplan = Law { form: Form::Kaplan, a: 9e8, b: 2e10, e: 0.5, alpha: 0.3, beta: 0.4 };
    for law in [chinchilla, kaplan] {
        let (n, d) = (2e8, 4e9);
        assert!((law.loss(n, d) / plain(&law, n, d) - 1.0).abs() < 1e-12);
        // The best size is where its neighbours are worse, at any budget.
        for budget in [2e17, 1e19, 1e21] {
            let at = |n: f64| law.loss(n, budget / (6.0 * n));
            let best = law.best_parameters(budget);
            assert!(at(best) < at(1.01 * best) && at(best) < at(best / 1.01), "{law:?}");
        }
    }
}

/// By hand from the printed coefficients: `a = 0.5534 / 1.077`, `G = (0.5236 x 2822.5 / (0.5534 x
/// 20445.4))^(1 / 1.077) = 0.15108`, `N*(1e19) = G (1e19 / 6)^0.51384`.
#[test]
fn the_printed_fit_has_its_optimum() {
    let law = printed();
    assert!((law.exponent() - 0.513_835).abs() < 1e-6);
    let found = law.best_parameters(1e19);
    assert!((found / 348_513_056.6 - 1.0).abs() < 1e-6, "{found}");
    assert!(law.is_valid() && !Law { beta: 1.7, ..law }.is_valid());
}

fn close(found: &Law, truth: &Law, by: f64) {
    for (found, truth) in [
        (found.alpha, truth.alpha),
        (found.beta, truth.beta),
        (found.e, truth.e),
        (libm::log(found.a), libm::log(truth.a)),
        (libm::log(found.b), libm::log(truth.b)),
    ] {
        assert!((found / truth - 1.0).abs() < by, "{found}, not {truth}");
    }
}

#[test]
fn planted_laws_are_found() {
    let found = fit(Form::Chinchilla, &runs(&printed(), 0.0)).unwrap();
    close(&found.law, &printed(), 1e-3);
    assert!(found.r2 > 0.999_999_9 && found.huber < 1e-12, "{found:?}");
    let kaplan = Law { form: Form::Kaplan, a: 9e8, b: 2e10, e: 0.5, alpha: 0.3, beta: 0.4 };
    let found = fit(Form::Kaplan, &runs(&kaplan, 0.0)).unwrap();
    assert!(found.r2 > 0.999_999 && (found.law.exponent() - kaplan.exponent()).abs() < 1e-3);
}

#[test]
fn noise_of_a_thousandth_moves_them_little() {
    let found = fit(Form::Chinchilla, &runs(&printed(), 1e-3)).unwrap();
    close(&found.law, &printed(), 0.1);
    assert!((found.law.exponent() - printed().exponent()).abs() < 0.02, "{found:?}");
    let best = found.law.best_parameters(1e19) / printed().best_parameters(1e19);
    assert!((best - 1.0).abs() < 0.1, "{best}");
    assert!(found.r2 > 0.999 && found.huber < 1e-6);
}

#[test]
fn too_little_is_refused() {
    let all = runs(&printed(), 0.0);
    let error = |runs: &[Point]| fit(Form::Chinchilla, runs).unwrap_err().to_string();
    assert!(error(&all[..5]).contains("5 runs do not determine five coefficients"));
    assert!(error(&[all[0]; 8]).contains("8 runs"));
    let mut broken = all.clone();
    broken[3].loss = f64::NAN;
    assert!(error(&broken).contains("diverged"));
}
