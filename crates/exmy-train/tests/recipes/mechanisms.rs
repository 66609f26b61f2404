//! What the engine does for any recipe: rotations, runs of members, places, outputs; and every name trains.

use exmy::quantizer::Axis;
use exmy::round::Rounding;
use exmy::slice::View;
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operand, Operator, Place, Product, Site, Vector};
use exmy_train::recipe::{Engine, Images, Linear, Observer, Phase, Plan, Recipe, Rounded};

use crate::{INPUTS, TOKENS, image, linears, product, products, train, values};

/// A rotation alone changes no product: groups that do not fill 40 inputs, 24 and 12 outputs or 48 tokens are
/// filled up with zeros.
#[test]
fn a_rotation_alone_changes_nothing() {
    let plain = products("f32", None);
    for rotation in ["rht16-f32", "ht32-f32", "rht64-f32", "rht128-seed9-f32"] {
        let rotated = products(&format!("{rotation}>none"), None);
        for (a, b) in plain.iter().zip(&rotated) {
            assert!(a != b && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4), "{rotation}");
        }
    }
}

/// The observer sees what was rounded: in rotated coordinates, filled up.
#[test]
fn observers_see_rotated_operands_rotated() {
    struct Errors(Vec<f64>);
    impl Observer for Errors {
        fn operand(&mut self, seen: &Rounded<'_>) {
            let Rounded { before, after, .. } = *seen;
            let all = (0..before.rows()).flat_map(|i| (0..before.cols()).map(move |j| (i, j)));
            let (mut error, mut size) = (0.0, 0.0);
            for (i, j) in all {
                let (x, one) =
                    (f64::from(before.at(i, j)), f64::from(before.at(i, j) - after.at(i, j)));
                (error, size) = (error + one * one, size + x * x);
            }
            self.0.push((error / size).sqrt());
        }
    }
    let mut errors = Errors(Vec::new());
    products("bf16>rht16>nvfp4", Some(&mut errors));
    assert_eq!(errors.0.len(), 12);
    assert!(errors.0.iter().all(|error| (0.05..0.15).contains(error)), "{:?}", errors.0);
}

/// q in FP8, k in bf16: each member's product reads the shared input in the member's own numbers.
#[test]
fn members_have_their_own_input() {
    let [y, dx, dw] = products("mxfp8-e4m3+k_proj=bf16", None);
    let [fp8_y, _, fp8_dw] = products("mxfp8-e4m3", None);
    let [bf16_y, _, bf16_dw] = products("bf16", None);
    for token in 0..TOKENS {
        let row = token * 36;
        assert_eq!(y[row..row + 24], fp8_y[row..row + 24]);
        assert_eq!(y[row + 24..row + 36], bf16_y[row + 24..row + 36]);
    }
    let split = 24 * INPUTS;
    assert_eq!(dw[..split], fp8_dw[..split]);
    assert_eq!(dw[split..], bf16_dw[split..]);
    // One sum over the outputs of both.
    let (w, g) = (values(36 * INPUTS, 1), values(TOKENS * 36, 2));
    let (w, g) = (View::new(&w, 36, INPUTS), View::new(&g, TOKENS, 36));
    let q_w = image("mxfp8-e4m3", w.rows_range(0..24), Axis::Rows);
    let k_w = image("bf16", w.rows_range(24..36), Axis::Rows);
    let q_g = image("mxfp8-e4m3", g.cols_range(0..24), Axis::Cols);
    let k_g = image("bf16", g.cols_range(24..36), Axis::Cols);
    let all_w: Vec<f32> = q_w.into_iter().chain(k_w).collect();
    let rows = q_g.chunks(24).zip(k_g.chunks(12));
    let all_g: Vec<f32> = rows.flat_map(|(q, k)| q.iter().chain(k).copied()).collect();
    let expected = product(View::new(&all_g, TOKENS, 36), View::new(&all_w, 36, INPUTS));
    assert_eq!(dx, expected);
}

#[test]
fn shared_bits_are_the_same_in_every_product() {
    struct Keep(Vec<(Product, Operand, Vec<f32>)>);
    impl Observer for Keep {
        fn operand(&mut self, seen: &Rounded<'_>) {
            let Rounded { site, product, operand, after, .. } = *seen;
            if site.operator == Operator::Q {
                let all = (0..after.rows()).flat_map(|i| (0..after.cols()).map(move |j| (i, j)));
                self.0.push((product, operand, all.map(|(i, j)| after.at(i, j)).collect()));
            }
        }
    }
    let equal = |recipe: &str| {
        let mut keep = Keep(Vec::new());
        products(recipe, Some(&mut keep));
        let of = |operand| {
            let both: Vec<_> = keep.0.iter().filter(|(_, one, _)| *one == operand).collect();
            both[0].2 == both[1].2
        };
        [of(Operand::Input), of(Operand::Weight), of(Operand::GradOutput)]
    };
    assert_eq!(equal("e4m3@sr8"), [false; 3]);
    assert_eq!(equal("e4m3@sr8@shared"), [true; 3]);
    assert_eq!(equal("e4m3@sr8+weight=e4m3@sr8@shared"), [false, true, false]);
}

#[test]
fn weight_gradients_can_be_rounded_member_by_member() {
    let [.., plain] = products("f32", None);
    let [.., rounded] = products("f32+dw-out=e4m3/tensor:e8m0", None);
    let (q, k) = plain.split_at(24 * INPUTS);
    let expected: Vec<f32> = [q, k]
        .into_iter()
        .flat_map(|part| {
            let view = View::new(part, part.len() / INPUTS, INPUTS);
            image("e4m3/tensor:e8m0", view, Axis::Cols)
        })
        .collect();
    assert_eq!(rounded, expected);
    assert_ne!(rounded, plain);
}

/// A block of gammas in (0.90, 0.99): every one becomes 0.875 in E4M3, and a multiple of 1/16 where the
/// exponent is bumped; bfloat16 with `ln-affine=bf16`, untouched with `fp32`; the gradient of the bias is
/// dropped.
#[test]
fn norms_affine_parameters() {
    let gamma: Vec<f32> = (0..32).map(|i| 0.901 + 0.0028 * i as f32).collect();
    let at = |recipe: &str, place, gradient| {
        let plan = Plan::of(&recipe.parse::<Recipe>().unwrap(), linears(), 10).unwrap();
        let mut images = Images::default();
        let mut engine = Engine::new(&plan, 1, Phase::Train(0), &mut images);
        let mut values = gamma.clone();
        engine.tensor(&Cpu::new(), Some(0), (place, gradient), (&mut values).into(), 32);
        values
    };
    let of = |recipe| at(recipe, Place::NormGamma, false);
    assert_eq!(of("mxpaper-e4m3+ln-affine=mx"), [0.875; 32]);
    let bumped = of("mxpaper-e4m3+ln-affine=mx+bump");
    let sixteenths = gamma.iter().map(|&x| (crate::restated::bf16_away(x) * 16.0).round() / 16.0);
    assert_eq!(bumped, sixteenths.collect::<Vec<_>>());
    assert_eq!(of("mxpaper-e4m3+ln-affine=mx+bump=code"), bumped);
    assert_eq!(
        of("mxpaper-e4m3"),
        gamma.iter().map(|&x| crate::restated::bf16_away(x)).collect::<Vec<_>>()
    );
    assert_eq!(of("mxpaper-e4m3+ln-affine=fp32"), gamma);
    assert_eq!(of("mxpaper-e4m3+no-ln-q"), gamma);
    assert_eq!(at("mxpaper-e4m3", Place::NormBeta, true), [0.0; 32]);
    assert_eq!(at("mxpaper-e4m3+ln-bias-grad=on", Place::NormBeta, true), gamma);
    assert_eq!(at("mxpaper-e4m3", Place::NormGamma, true), gamma);
    let way = |recipe: &str, vector, gradient| {
        let plan = Plan::of(&recipe.parse::<Recipe>().unwrap(), linears(), 10).unwrap();
        let mut images = Images::<Cpu>::default();
        Engine::new(&plan, 1, Phase::Train(0), &mut images).vector(Some(0), vector, gradient)
    };
    let vector = |recipe: &str, vector| way(recipe, vector, false);
    assert_eq!(vector("mxpaper-e4m3", Vector::Norm), Some(Rounding::TiesToAway));
    assert_eq!(vector("mxpaper-e4m3+no-ln-q", Vector::Norm), None);
    assert_eq!(vector("mxpaper-e4m3+no-ln-q", Vector::NormTail), None);
    assert_eq!(vector("mxpaper-e4m3+no-ln-q=code", Vector::Norm), None);
    assert_eq!(vector("mxpaper-e4m3+no-ln-q=code", Vector::NormTail), Some(Rounding::TiesToAway));
    assert_eq!(way("mxpaper-e4m3+no-ln-q=code", Vector::NormTail, true), None);
    assert_eq!(vector("mxpaper-e4m3+gelu=fp32", Vector::Activation), None);
    assert_eq!(
        vector("f32+layer0:activation=bf16", Vector::Activation),
        Some(Rounding::TiesToEven)
    );
    assert_eq!(vector("f32", Vector::Norm), None);
    assert_eq!(vector("mxpaper-e4m3+round=floor", Vector::Norm), Some(Rounding::TowardZero));
    // Forward only: what the study calls exact gradients has no rounding at all on the way back.
    for one in [Vector::Norm, Vector::Activation, Vector::Bias] {
        assert_eq!(way("mxpaper-e4m3", one, true), Some(Rounding::TiesToAway));
        assert_eq!(way("mxpaper-e4m3+fwd-only", one, false), Some(Rounding::TiesToAway));
        assert_eq!(way("mxpaper-e4m3+fwd-only", one, true), None);
    }
}

/// Two tensors at one place have bits of their own, and a second pass the same again.
#[test]
fn places_draw_bits_by_their_order() {
    let plan = Plan::of(&"f32+residual=e5m2@sr8".parse().unwrap(), linears(), 10).unwrap();
    let run = |gradient| {
        let mut images = Images::default();
        let mut engine = Engine::new(&plan, 1, Phase::Train(0), &mut images);
        let mut both = [values(256, 30), values(256, 30)];
        for values in &mut both {
            engine.tensor(&Cpu::new(), Some(2), (Place::Residual, gradient), values.into(), 64);
        }
        both
    };
    let [first, second] = run(false);
    assert_ne!(first, second);
    assert_eq!(run(false), [first.clone(), second]);
    assert_ne!(run(true)[0], first);
}

/// The head takes part in plain recipes; a proxy's teacher only where it is named.
#[test]
fn selectors_of_operators() {
    let text = |recipe: &str, site: Site| {
        let plan = Plan::of(&recipe.parse::<Recipe>().unwrap(), linears(), 10).unwrap();
        plan.operand(0, site, Product::Forward, Operand::Input).to_string()
    };
    let head = Site { layer: None, operator: Operator::Head };
    let q = Site { layer: Some(0), operator: Operator::Q };
    assert_eq!(text("mxfp4", head), "mxfp4");
    assert_eq!(text("mxfp4+blocks=bf16", head), "mxfp4");
    assert_eq!(text("mxfp4+blocks=bf16", q), "bf16");
    assert_eq!(text("mxfp4+last1=bf16", q), "mxfp4");
    assert_eq!(text("mxfp4+first1=bf16", q), "bf16");
    assert_eq!(text("mxfp4+layers1-3=bf16", q), "mxfp4");
}

/// Every name trains for some steps: finite losses that fall.
#[test]
fn every_name_trains() {
    for name in exmy_train::recipe::NAMED
        .into_iter()
        .chain(["chon+hcp=d-o2-b-dgrad-wgrad-r3", "mxpaper-e4m3+bump=code"])
    {
        let (losses, _) = train(name);
        assert!(losses.iter().all(|loss| loss.is_finite()), "{name}");
        let fell = losses[..8].windows(2).filter(|pair| pair[1] < pair[0]).count();
        let lowest = losses[..8].iter().fold(f64::MAX, |a, &b| a.min(b));
        assert!(fell >= 2 && lowest < losses[0], "{name}: {losses:?}");
    }
}

/// A late switch changes no earlier step, and a memory taken over goes on with the same bits.
#[test]
fn a_group_of_a_late_switch() {
    let group = Group { layer: Some(1), members: &crate::MEMBERS };
    let (x, w) = (values(TOKENS * INPUTS, 0), values(36 * INPUTS, 1));
    let y = |recipe: &str, step| {
        let plan = Plan::of(&recipe.parse::<Recipe>().unwrap(), linears(), 50).unwrap();
        let mut images = Images::default();
        let mut engine = Engine::new(&plan, 1, Phase::Train(step), &mut images);
        let mut y = vec![0.0; TOKENS * 36];
        let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, 36, INPUTS));
        engine.forward(&Cpu::new(), &group, x.into(), w.into(), MatrixMut::new(&mut y, TOKENS, 36));
        y
    };
    assert_eq!(y("mxfp4+from80%=bf16", 39), y("mxfp4", 39));
    assert_eq!(y("mxfp4+from80%=bf16", 40), y("bf16", 40));
    let model: Vec<Linear> = linears();
    let plan = Plan::of(&"mxfp4+from80%=bf16".parse().unwrap(), model, 50).unwrap();
    assert_eq!(plan.switches(), [0, 40]);
}

/// A run that goes on from a checkpoint's text remembers windows and hot channels: the same bits.
#[test]
fn a_resumed_run_remembers() {
    use exmy_train::train::data::{DataOptions, Dataset, Source};
    use exmy_train::train::trainer::Trainer;
    for recipe in ["msamp-o1+window=3", "nv-hcp+hcp=s-o2-b-r4-ema"] {
        let mut config = exmy_train::train::preset::preset("nano").unwrap();
        config.recipe = recipe.parse().unwrap();
        config.model.decoder_mut().unwrap().context = 32;
        config.train.batch = 1;
        let options = DataOptions { synthetic_train_bytes: 4096, ..DataOptions::default() };
        let data = Dataset::load(&Source::default(), &options).unwrap();
        let mut whole = Trainer::new(&config, &data).unwrap();
        for _ in 0..5 {
            whole.step(None);
        }
        let folder = tempfile::tempdir().unwrap();
        let (layout, progress) = (whole.layout().clone(), whole.progress());
        exmy_train::train::checkpoint::save(folder.path(), &layout, &whole.state(), progress)
            .unwrap();
        let path = exmy_train::train::checkpoint::path(folder.path(), 5);
        let (state, progress) = exmy_train::train::checkpoint::load(&path, &layout).unwrap();
        assert!(!state.memory.is_empty() && state == whole.state(), "{recipe}");
        let mut resumed = Trainer::new(&config, &data).unwrap();
        resumed.restore(state, progress);
        for _ in 0..5 {
            assert_eq!(resumed.step(None), whole.step(None), "{recipe}");
        }
        assert!(resumed.state() == whole.state(), "{recipe}");
    }
}
