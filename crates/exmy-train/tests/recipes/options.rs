//! Options of the bundles that are more than a format: how products are summed, masks without a mantissa,
//! scales before few exponents, centred random bits, sequences, the end of a norm.

use std::collections::BTreeMap;

use exmy::format::Format;
use exmy::round::{Overflow, Rounding};
use exmy::slice::View;
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::{Images, Observer, Phase, Recipe, Rounded};
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use exmy_train::train::preset::preset;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Watch as Watcher, load_data, train};
use exmy_train::train::trainer::Trainer;

use crate::bundles::{operands, run};
use crate::restated::{bf16, bf16_away, exponent, power};
use crate::{MEMBERS, OUTPUTS, TOKENS, products};

/// `s = bf16(s + a b)` over ascending k, from 0: products of masked numbers, and their sums with a bfloat16
/// number of no much larger exponent, are exact in binary64.
fn summed(
    [rows, length, cols]: [usize; 3],
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f32> {
    let one = |i: usize, j: usize| {
        let add =
            |sum: f32, k| bf16((f64::from(sum) + f64::from(a(i, k)) * f64::from(b(k, j))) as f32);
        (0..length).fold(0.0, add)
    };
    (0..rows * cols).map(|at| one(at / cols, at % cols)).collect()
}

/// All three products of E8M3 numbers with accumulators of bfloat16, against loops over the images.
#[test]
fn sums_in_bfloat16() {
    let (kept, results) = run("bitred-e8m3+accum=bf16", Phase::Train(3), &mut Images::default());
    let (tokens, inputs, outputs) = (64, 96, 32);
    let of = |product, operand, width: usize| {
        let image = &kept.0[&(product, operand)];
        move |i: usize, j: usize| image[i * width + j]
    };
    use Operand::{GradOutput, Input, Weight};
    let (x, w) = (of(Product::Forward, Input, inputs), of(Product::Forward, Weight, inputs));
    assert_eq!(results[0], summed([tokens, inputs, outputs], x, |k, j| w(j, k)));
    let g = of(Product::GradInput, GradOutput, outputs);
    let w = of(Product::GradInput, Weight, inputs);
    assert_eq!(results[1], summed([tokens, outputs, inputs], g, w));
    let g = of(Product::GradWeight, GradOutput, outputs);
    let x = of(Product::GradWeight, Input, inputs);
    let dw = summed([outputs, tokens, inputs], |i, k| g(k, i), x);
    assert_eq!(results[2], dw.iter().map(|x| x + 0.5).collect::<Vec<_>>());
    let (_, plain) = run("bitred-e8m3", Phase::Train(3), &mut Images::default());
    assert!((0..3).all(|product| plain[product] != results[product]));
}

/// One of two operators that share an input is summed in its own way; the other as without.
#[test]
fn members_are_summed_each_in_its_way() {
    let [plain, ..] = products("mxfp8-e4m3", None);
    let [all, ..] = products("mxfp8-e4m3+sums=fma:bf16", None);
    let [one, _, dw] = products("mxfp8-e4m3+k_proj:forward:sums=fma:bf16", None);
    let first = MEMBERS[0].1;
    for token in 0..TOKENS {
        let row = |y: &[f32]| y[token * OUTPUTS..(token + 1) * OUTPUTS].to_vec();
        let (plain, all, one) = (row(&plain), row(&all), row(&one));
        assert_eq!((&one[..first], &one[first..]), (&plain[..first], &all[first..]));
        assert_ne!(plain[first..], all[first..]);
    }
    assert_eq!(dw, products("mxfp8-e4m3", None)[2]);
    // The word for the order that there is without.
    assert_eq!(products("mxfp8-e4m3+sums=fma:bf16+sums=f32", None)[0], plain);
}

/// A factor on a result: a half is exact, another one is rounded to f32 once and then to bfloat16.
#[test]
fn results_are_multiplied() {
    let plain = products("e8m3@rtz", None);
    let half = "times0.5";
    let halved = products(
        &format!(
            "e8m3@rtz+forward:output={half}+grad_input:output={half}+grad_weight:output={half}"
        ),
        None,
    );
    for (plain, halved) in plain.iter().zip(&halved) {
        assert_eq!(*halved, plain.iter().map(|x| x / 2.0).collect::<Vec<_>>());
    }
    let [more, ..] = products("e8m3@rtz+forward:output=times1.0877>>bf16", None);
    let expected = plain[0].iter().map(|x| bf16((f64::from(*x) * f64::from(1.0877_f32)) as f32));
    assert_eq!(more, expected.collect::<Vec<_>>());
}

/// A mask that leaves no mantissa: powers of two, in all six places.
#[test]
fn masks_without_mantissa() {
    let (kept, _) = run("bitred-e8m0", Phase::Train(3), &mut Images::default());
    assert_eq!(kept.0.len(), 6);
    for ((_, operand), image) in &kept.0 {
        let before = &operands()[operand.index()];
        let expected: Vec<f32> =
            before.iter().map(|x| f32::from_bits(bf16(*x).to_bits() & 0xFF80_0000)).collect();
        assert_eq!(*image, expected, "{operand}");
        assert!(
            image.iter().all(|x| *x == 0.0 || f64::from(x.abs()) == power(exponent((*x).into())))
        );
    }
}

/// Five exponent bits after the largest power of two that keeps the tensor below 1.875 2^15; with eight bits
/// a power of two changes nothing.
#[test]
fn scales_before_few_exponents() {
    let images = |recipe: &str| run(recipe, Phase::Train(3), &mut Images::default()).0.0;
    for ((_, operand), image) in &images("bitred-e5m3+scale=tensor-pow2") {
        let x: Vec<f64> = operands()[operand.index()].iter().map(|x| f64::from(bf16(*x))).collect();
        let amax = x.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        let k = (-60..60).rev().find(|k| amax * power(*k) <= 1.875 * power(15)).unwrap();
        let clip = |x: &f64| if x.abs() * power(k) < power(-14) { 0.0 * x } else { *x };
        let mask = |x: f64| f32::from_bits((x as f32).to_bits() & 0xFFF0_0000);
        assert_eq!(*image, x.iter().map(|x| mask(clip(x))).collect::<Vec<_>>(), "{operand}");
    }
    assert_ne!(images("bitred-e5m3+scale=tensor-pow2"), images("bitred-e5m3"));
    assert_eq!(images("bitred-e8m3+scale=tensor-pow2"), images("bitred-e8m3"));
}

/// `sr8b` is stochastic rounding with (R + 1/2) / 256: up iff that and the distance from the lower neighbour
/// are 1 together. Its mean is that of the number, where R / 256 is short by half a unit, 1/512 of a gap.
#[test]
fn centred_random_bits() {
    let up = |text: &str, v: f64, random: u32| {
        let rounding: Rounding = text.parse().unwrap();
        // From 2 to 3 in E2M1.
        let x = (2.0 + v) as f32;
        let code = Format::E2M1.encode_f32(x, rounding, Overflow::None, random << 24).code;
        assert!(code == 4 || code == 5);
        code == 5
    };
    let mut means = BTreeMap::new();
    for i in 0..2048 {
        let v = f64::from(i) / 2048.0;
        for random in 0..256 {
            let centred = up("sr8b", v, random);
            assert_eq!(centred, v + (f64::from(random) + 0.5) / 256.0 >= 1.0, "{v} {random}");
            for (text, up) in [("sr8b", centred), ("sr8", up("sr8", v, random))] {
                *means.entry(text).or_insert(0.0) += f64::from(u8::from(up)) - v;
            }
        }
    }
    let mean = |text: &str| means[text] / (2048.0 * 256.0);
    // Of multiples of 1/2048 the halves of a unit go up, so the mean is 1/4096 of a gap too high.
    assert!(mean("sr8b").abs() < 3e-4, "{}", mean("sr8b"));
    assert!((mean("sr8") + 1.0 / 512.0).abs() < 3e-4, "{}", mean("sr8"));
    let recipe: Recipe = "nv-nvfp4+sr-bits=8b".parse().unwrap();
    assert_eq!(recipe.rules()[3].to_string(), "grad_input:grad_output=bf16>nvfp4@sr8b");
}

/// An operand before and after, row-major, and its columns.
pub(crate) struct SeenOperand {
    pub(crate) product: Product,
    pub(crate) operand: Operand,
    pub(crate) before: Vec<f32>,
    pub(crate) after: Vec<f32>,
    pub(crate) cols: usize,
}

/// The operands of a site.
pub(crate) struct Watch {
    pub(crate) site: Site,
    pub(crate) seen: Vec<SeenOperand>,
}

impl Observer for Watch {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before, after, .. } = *seen;
        if site == self.site {
            let all = |x: View<'_, f32>| -> Vec<f32> {
                (0..x.rows()).flat_map(|i| (0..x.cols()).map(move |j| x.at(i, j))).collect()
            };
            let (cols, before, after) = (before.cols(), all(before), all(after));
            self.seen.push(SeenOperand { product, operand, before, after, cols });
        }
    }
}

/// What a step of a small model shows at one site.
fn step(recipe: &str, name: &str, settings: &[&str], site: Site) -> Watch {
    let set = |config: Config, one: &&str| config.with_setting(one).unwrap();
    let mut config = settings.iter().fold(preset(name).unwrap(), set);
    config.recipe = recipe.parse().unwrap();
    let options = DataOptions { synthetic_train_bytes: 4096, ..DataOptions::default() };
    let data = Dataset::load(&Source::default(), &options).unwrap();
    let mut watch = Watch { site, seen: Vec::new() };
    Trainer::new(&config, &data).unwrap().step(Some(&mut watch));
    watch
}

/// A column of one sequence as the study's code quantizes it: blocks of 32, the last one filled up with
/// zeros; an exponent a block, one more at a position whose largest magnitude over all blocks is above 1.75
/// of its binade.
fn by_position(column: &[f32]) -> Vec<f32> {
    let x: Vec<f64> = column.iter().map(|x| f64::from(bf16_away(*x))).collect();
    let largest = |some: &mut dyn Iterator<Item = &f64>| some.fold(0.0_f64, |m, x| m.max(x.abs()));
    let value = |t: usize| {
        let block = &x[t / 32 * 32..x.len().min(t / 32 * 32 + 32)];
        let top = largest(&mut block.iter());
        let at = largest(&mut x[t % 32..].iter().step_by(32));
        let bump = at > 0.0 && at > 1.75 * power(exponent(at));
        let top = if top == 0.0 { -126 } else { exponent(top) };
        let s = (top - 8).max(-127) + i32::from(bump);
        let y = x[t].abs() / power(s);
        let p = if y == 0.0 { 0 } else { exponent(y).max(-6) };
        let q = ((y * power(3 - p) + 0.5).floor() * power(p - 3)).min(448.0);
        ((q * power(s)) as f32).copysign(column[t])
    };
    (0..x.len()).map(value).collect()
}

/// Blocks of weight gradients run along the tokens of one sequence, in a training step: three sequences of 48
/// tokens, so that blocks of one piece would straddle them.
#[test]
fn bumps_by_position_stay_in_their_sequence() {
    let site = Site { layer: Some(1), operator: Operator::Down };
    let settings = ["model.context=48", "train.batch=3"];
    let watch = step("mxpaper-e4m3+bump=code", "nano", &settings, site);
    let mut count = 0;
    let of_weights = watch.seen.iter().filter(|seen| seen.product == Product::GradWeight);
    for SeenOperand { operand, before, after, cols, .. } in of_weights {
        count += 1;
        let column = |x: &[f32], j: usize| -> Vec<f32> {
            x.iter().skip(j).step_by(*cols).copied().collect()
        };
        let mut straddled = 0;
        for j in 0..*cols {
            let (before, after) = (column(before, j), column(after, j));
            let sequences: Vec<f32> = before.chunks(48).flat_map(by_position).collect();
            assert_eq!(after, sequences, "{operand}");
            straddled += usize::from(after != by_position(&before));
        }
        assert!(straddled > 0, "{operand}");
    }
    assert_eq!(count, 2);
}

/// The end of a norm in bfloat16 makes its output bfloat16 and little else: within two units of the plain
/// one.
#[test]
fn the_end_of_a_norm() {
    let site = Site { layer: Some(0), operator: Operator::Up };
    let input = |recipe: &str| {
        let watch = step(recipe, "proxy", &["train.batch=8"], site);
        let mut seen = watch.seen.into_iter();
        let forward =
            seen.find(|seen| (seen.product, seen.operand) == (Product::Forward, Operand::Input));
        forward.unwrap().before
    };
    // Operands are rounded so that there is something to observe; what is looked at is before that.
    let plain = input("mxpaper-e4m3+no-ln-q");
    let tail = input("mxpaper-e4m3+no-ln-q=code");
    let is_bf16 = |x: &f32| x.to_bits() & 0xFFFF == 0;
    assert!(tail.iter().all(is_bf16) && !plain.iter().all(is_bf16));
    for (a, b) in plain.iter().zip(&tail) {
        assert!((a - b).abs() <= a.abs() / 64.0 + 1e-6, "{a} {b}");
    }
    let whole = input("mxpaper-e4m3");
    assert!(whole.iter().all(is_bf16) && whole != tail);
}

/// Stops after as many steps.
struct Until(u64);

impl Watcher for Until {
    fn step(&mut self, metrics: &Metrics, _: u64) -> bool {
        metrics.step < self.0
    }

    fn phase(&mut self, _: &str) {}
}

/// A run of descent with momentum on the divergence, killed and resumed, is the run in one piece. Under
/// another optimizer than that of its checkpoint it does not go on.
#[test]
fn runs_of_descent_resume() {
    let mut config = preset("proxy").unwrap();
    for setting in [
        "train.optimizer=sgd",
        "train.momentum=0.9",
        "train.lr=0.05",
        "train.steps=5",
        "train.batch=16",
        "model.loss=kl",
        "model.width=32",
        "model.validation_rows=64",
        "record.checkpoint_every=2",
    ] {
        config = config.with_setting(setting).unwrap();
    }
    let data = load_data(&mut config).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folders = ["whole", "parts"].map(|name| Folder::new(place.path().join(name)));
    folders.iter().for_each(|folder| folder.create(&config).unwrap());
    let [whole, parts] = &folders;
    train(whole, &data, &mut Until(u64::MAX)).unwrap();
    assert!(train(parts, &data, &mut Until(3)).unwrap().summary.is_none());
    let toml = std::fs::read_to_string(parts.config_file()).unwrap();
    // Without its fingerprint, or any change is refused before it is looked at.
    let toml = toml.split_once("# fingerprint").unwrap().0;
    for (from, to) in
        [("optimizer = \"sgd\"\n", "optimizer = \"adamw\"\n"), ("momentum = 0.9", "momentum = 0.0")]
    {
        let other = toml.replace(from, to).replace("momentum = 0.9", "momentum = 0.0");
        assert_ne!(other, toml);
        std::fs::write(parts.config_file(), other).unwrap();
        let error = train(parts, &data, &mut Until(4)).unwrap_err().to_string();
        assert!(error.contains("moments of train.optimizer"), "{error}");
    }
    std::fs::write(parts.config_file(), toml).unwrap();
    train(parts, &data, &mut Until(u64::MAX)).unwrap();
    let read = |folder: &Folder| {
        let of = |path| std::fs::read(path).unwrap();
        (of(folder.model_file()), of(folder.metrics_file()), of(folder.summary_file()))
    };
    assert!(read(whole) == read(parts));
    let losses: Vec<f64> = whole.metrics().unwrap().iter().filter_map(|line| line.loss).collect();
    assert!(losses.len() == 5 && losses.iter().all(|loss| loss.is_finite()), "{losses:?}");
    // And it learns.
    let mut trainer = Trainer::new(&config, &data).unwrap();
    let losses: Vec<f64> = (0..100).map(|_| trainer.step(None).loss).collect();
    assert!(losses[99] < 0.5 * losses[0], "{losses:?}");
}

/// Settings that mean nothing together.
#[test]
fn settings_that_mean_nothing_are_refused() {
    let refused = |name: &str, settings: &[&str]| {
        let set = |config: Config, one: &&str| config.with_setting(one).unwrap();
        let config = settings.iter().fold(preset(name).unwrap(), set);
        config.validate().unwrap_err().to_string()
    };
    assert!(refused("nano", &["train.momentum=0.9"]).contains("train.optimizer=sgd"));
    let error = refused("nano", &["train.optimizer=sgd", "train.beta1=0.8"]);
    assert!(error.contains("train.beta1") && error.contains("SGD has train.momentum"), "{error}");
    let error = refused("nano", &["train.momentum=1.5", "train.optimizer=sgd"]);
    assert!(error.contains("from 0 to below 1"), "{error}");
    assert!(refused("proxy", &["train.z_loss=1e-4"]).contains("the proxy has none"));
    assert!(refused("nano", &["train.z_loss=-1.0"]).contains("not negative"));
    let error = preset("nano").unwrap().with_setting("train.optimizer=adam").unwrap_err();
    assert!(error.to_string().contains("adamw"), "{error}");
}
