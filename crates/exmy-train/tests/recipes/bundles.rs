//! Each named recipe against its paper's formulas, restated in `restated.rs`.

use std::collections::BTreeMap;

use exmy::gemm::Operand as Factor;
use exmy::gemm::fast::{Scaling, multiply_plain};
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::device::{Cpu, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::{Engine, Images, Linear, Observer, Phase, Plan, Recipe, Rounded, Share};

use crate::restated::{
    E2M1, E2M3, E4M3, E5M2, Element, bf16, bf16_away, exponent, mx, nvfp4, power, rotated_down,
    transposed,
};
use crate::{product, three_products, values};

const TOKENS: usize = 64;
const INPUTS: usize = 96;
const OUTPUTS: usize = 32;

/// Images by product and operand.
#[derive(Default)]
pub(crate) struct Operands(pub(crate) BTreeMap<(Product, Operand), Vec<f32>>);

impl Observer for Operands {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { product, operand, after, .. } = *seen;
        let all = (0..after.rows()).flat_map(|i| (0..after.cols()).map(move |j| after.at(i, j)));
        self.0.insert((product, operand), all.collect());
    }
}

/// X, W, dY; some outliers among them.
pub(crate) fn operands() -> [Vec<f32>; 3] {
    let mut x = values(TOKENS * INPUTS, 10);
    x.iter_mut().step_by(37).for_each(|x| *x *= 20.0);
    let w = values(OUTPUTS * INPUTS, 11).iter().map(|w| w * 0.02).collect();
    let g = values(TOKENS * OUTPUTS, 12).iter().map(|g| g * 1e-3).collect();
    [x, w, g]
}

/// The model: twenty blocks with one operator of the given size, and a head.
fn model() -> Vec<Linear> {
    let linear = |layer, operator| Linear {
        site: Site { layer, operator },
        outputs: OUTPUTS,
        inputs: INPUTS,
    };
    let blocks = (0..20).map(|layer| linear(Some(layer), Operator::Up));
    blocks.chain([linear(None, Operator::Head)]).collect()
}

/// Images and results of the three products in the second block.
pub(crate) fn run(recipe: &str, phase: Phase, images: &mut Images) -> (Operands, [Vec<f32>; 3]) {
    let recipe: Recipe = recipe.parse().unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::of(&recipe, model(), 100).unwrap();
    let mut kept = Operands::default();
    let mut engine = Engine::new(&plan, 5, phase, images).observed(&mut kept);
    let members = [(Operator::Up, OUTPUTS)];
    let group = Group { layer: Some(1), members: &members };
    let [x, w, g] = operands();
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    let products = three_products(&mut engine, &group, [x, w, g], 0.5);
    (kept, products)
}

fn train(recipe: &str) -> (Operands, [Vec<f32>; 3]) {
    run(recipe, Phase::Train(3), &mut Images::default())
}

/// The products of images, weight gradients added to a half.
fn multiplied(kept: &Operands) -> [Vec<f32>; 3] {
    let view = |product, operand| {
        let (rows, cols) = match operand {
            Operand::Input => (TOKENS, INPUTS),
            Operand::Weight => (OUTPUTS, INPUTS),
            Operand::GradOutput => (TOKENS, OUTPUTS),
        };
        View::new(&kept.0[&(product, operand)], rows, cols)
    };
    let y = product(
        view(Product::Forward, Operand::Input),
        view(Product::Forward, Operand::Weight).t(),
    );
    let dx = product(
        view(Product::GradInput, Operand::GradOutput),
        view(Product::GradInput, Operand::Weight),
    );
    let dw = product(
        view(Product::GradWeight, Operand::GradOutput).t(),
        view(Product::GradWeight, Operand::Input),
    );
    [y, dx, dw]
}

fn map(x: &[f32], f: impl Fn(f32) -> f32) -> Vec<f32> {
    x.iter().map(|&x| f(x)).collect()
}

/// The bit mask of E8M3 to E8M7, over all bfloat16 codes but NaN's.
#[test]
fn masks_are_masks() {
    for bits in 1..=7_u32 {
        let recipe: Recipe = format!("bitred-e8m{bits}").parse().unwrap();
        let plan = Plan::of(&recipe, model(), 1).unwrap();
        let site = Site { layer: Some(0), operator: Operator::Up };
        let numbers = plan.operand(0, site, Product::GradWeight, Operand::GradOutput);
        let quantizer = numbers.plain().unwrap();
        let codes = (0..=u16::MAX).filter(|code| code & 0x7FFF <= 0x7F80);
        let x: Vec<f32> = codes.map(|code| f32::from_bits(u32::from(code) << 16)).collect();
        let mut image = vec![0.0; x.len()];
        let random = Philox::new(0, Stream::new("unused"));
        let (view, out) = (View::new(&x, 1, x.len()), ViewMut::new(&mut image, 1, x.len()));
        quantizer.image_into(view, Axis::Cols, random, out);
        let keep = (0xFFFF_u32 << (7 - bits)) << 16;
        assert!(image.iter().zip(&x).all(|(a, b)| a.to_bits() == b.to_bits() & keep), "{bits}");
    }
    // bf16(pi) = 0x4049, bf16(0.1) = 0x3DCD, bf16(-0.001) = 0xBA83.
    let of = |text: &str, x: f32| {
        let quantizer: Quantizer = text.parse().unwrap();
        let mut image = [0.0];
        let random = Philox::new(0, Stream::new("unused"));
        let x = [x];
        let (view, out) = (View::new(&x, 1, 1), ViewMut::new(&mut image, 1, 1));
        quantizer.image_into(view, Axis::Cols, random, out);
        image[0]
    };
    let all = |x| [3, 4, 5, 6].map(|m| of(&format!("bf16>e8m{m}@rtz"), x));
    assert_eq!(all(std::f32::consts::PI), [3.0, 3.125, 3.125, 3.125]);
    assert_eq!(all(0.1), [0.09375, 0.09765625, 0.099609375, 0.099609375]);
    assert_eq!(all(-0.001).map(f32::to_bits).map(|b| b >> 16), [0xBA80, 0xBA80, 0xBA80, 0xBA82]);
}

#[test]
fn bitred_masks_every_operand_and_stores_bf16() {
    let (kept, results) = train("bitred-e8m3");
    let [x, w, g] = operands();
    let mask = |x: f32| f32::from_bits(bf16(x).to_bits() & 0xFFF0_0000);
    for ((_, operand), image) in &kept.0 {
        let of = [&x, &w, &g][operand.index()];
        assert_eq!(*image, map(of, mask), "{operand}");
    }
    let [y, dx, dw] = multiplied(&kept);
    assert_eq!(results, [map(&y, bf16), map(&dx, bf16), map(&dw, |x| x + 0.5)]);
    let (kept, _) = train("bitred-e8m3+mask=gradients");
    assert_eq!(kept.0[&(Product::Forward, Operand::Weight)], map(&w, bf16));
    assert_eq!(kept.0[&(Product::GradInput, Operand::GradOutput)], map(&g, mask));
}

/// E7M7 without the top exponent bit: everything from 2 on becomes the largest number below it.
#[test]
fn exponents_are_clipped() {
    let (kept, _) = train("bitred-e7m7+bias=keep-low+clip=outer");
    let [x, ..] = operands();
    let clip = |x: f32| bf16(x).clamp(-1.9921875, 1.9921875);
    assert_eq!(kept.0[&(Product::Forward, Operand::Input)], map(&x, clip));
    assert!(x.iter().any(|x| x.abs() > 2.0));
}

/// MX blocks along the sum of a matrix given as rows that are summed along.
fn mx_rows(x: &[f32], length: usize, element: Element, bump: bool) -> Vec<f32> {
    let x = map(x, bf16_away);
    x.chunks(length).flat_map(|row| row.chunks(32)).flat_map(|b| mx(b, element, bump)).collect()
}

fn check_mxpaper(recipe: &str, bump: bool, elements: [[Element; 2]; 3]) {
    let (kept, results) = train(recipe);
    let [x, w, g] = operands();
    for (product, elements) in Product::ALL.iter().zip(elements) {
        for (operand, element) in product.operands().into_iter().zip(elements) {
            let (of, cols) = match operand {
                Operand::Input => (&x, INPUTS),
                Operand::Weight => (&w, INPUTS),
                Operand::GradOutput => (&g, OUTPUTS),
            };
            let along_rows = matches!(
                (product, operand),
                (Product::Forward, _) | (Product::GradInput, Operand::GradOutput)
            );
            let expected = if along_rows {
                mx_rows(of, cols, element, bump)
            } else {
                let rows = of.len() / cols;
                transposed(&mx_rows(&transposed(of, cols), rows, element, bump), rows)
            };
            assert_eq!(kept.0[&(*product, operand)], expected, "{recipe} {product} {operand}");
        }
    }
    let [y, dx, dw] = multiplied(&kept);
    let added = map(&dw, |x| bf16_away(x) + 0.5);
    assert_eq!(results, [map(&y, bf16_away), map(&dx, bf16_away), added], "{recipe}");
}

#[test]
fn mxpaper_is_the_formula_in_all_products() {
    check_mxpaper("mxpaper-e4m3", false, [[E4M3; 2]; 3]);
    check_mxpaper("mxpaper-e4m3+bump", true, [[E4M3; 2]; 3]);
    check_mxpaper("mxpaper-e2m3", false, [[E2M3; 2]; 3]);
    check_mxpaper("mxpaper-e2m1+bump=block", true, [[E2M1; 2]; 3]);
    // grad_input reads dY and W, grad_weight dY and X.
    check_mxpaper("mxpaper-mix", false, [[E4M3; 2], [E5M2; 2], [E5M2, E4M3]]);
    check_mxpaper("mxpaper-e5m2-e4m3", false, [[E4M3, E5M2], [E4M3, E5M2], [E4M3; 2]]);
}

/// Gate and up are one matrix of the paper's code, up before gate, along whose rows `grad_input` sums. Where
/// their sizes are no multiples of 32, a block has numbers of both. Where they are, there is no difference.
#[test]
fn mxpaper_blocks_gate_and_up_as_one_matrix() {
    for (hidden, recipe) in [(40, "mxpaper-e4m3"), (64, "mxpaper-e4m3"), (11, "mxpaper-mix")] {
        let element = if recipe.ends_with("mix") { E5M2 } else { E4M3 };
        let outputs = 2 * hidden;
        let w: Vec<f32> = values(outputs * INPUTS, 13).iter().map(|w| w * 0.02).collect();
        let mut g = values(TOKENS * outputs, 14);
        g.iter_mut().step_by(29).for_each(|g| *g *= 30.0);

        let sites = [Operator::Gate, Operator::Up];
        let members = sites.map(|operator| (operator, hidden));
        let linear = |operator| Linear {
            site: Site { layer: Some(0), operator },
            outputs: hidden,
            inputs: INPUTS,
        };
        let plan = Plan::of(&recipe.parse().unwrap(), sites.map(linear).to_vec(), 100).unwrap();
        let (mut seen, mut images) = (Members::default(), Images::default());
        let mut dx = [vec![0.0; TOKENS * INPUTS], vec![0.0; TOKENS * INPUTS]];
        let group = Group { layer: Some(0), members: &members };
        let views = (View::new(&g, TOKENS, outputs), View::new(&w, outputs, INPUTS));
        for (watched, dx) in dx.iter_mut().enumerate() {
            let mut engine = Engine::new(&plan, 5, Phase::Train(3), &mut images);
            if watched == 1 {
                engine = engine.observed(&mut seen);
            }
            engine.grad_input(
                &Cpu::new(),
                &group,
                views.0.into(),
                views.1.into(),
                MatrixMut::new(dx, TOKENS, INPUTS),
            );
        }
        assert_eq!(dx[0], dx[1]);

        // The fused matrix and its gradient, row by row along the sum.
        let up_first: Vec<usize> = (hidden..outputs).chain(0..hidden).collect();
        let along = |at: &dyn Fn(usize) -> f32| -> Vec<f32> {
            let line: Vec<f32> = up_first.iter().map(|&k| bf16_away(at(k))).collect();
            line.chunks(32).flat_map(|block| mx(block, element, false)).collect()
        };
        let gq: Vec<Vec<f32>> = (0..TOKENS).map(|i| along(&|k| g[i * outputs + k])).collect();
        let wq: Vec<Vec<f32>> = (0..INPUTS).map(|j| along(&|k| w[k * INPUTS + j])).collect();
        for (place, &k) in up_first.iter().enumerate() {
            let (operator, row) = (sites[k / hidden], k % hidden);
            let gradient = &seen.0[&(operator, Operand::GradOutput)];
            let weight = &seen.0[&(operator, Operand::Weight)];
            assert!((0..TOKENS).all(|i| gradient[i * hidden + row] == gq[i][place]), "{hidden}");
            assert!((0..INPUTS).all(|j| weight[row * INPUTS + j] == wq[j][place]), "{hidden}");
        }
        // Sums in f64, to the last bit of a bfloat16 result but where that is close.
        for (i, j) in (0..TOKENS).flat_map(|i| (0..INPUTS).map(move |j| (i, j))) {
            let terms = gq[i].iter().zip(&wq[j]).map(|(&g, &w)| f64::from(g) * f64::from(w));
            let (sum, size) =
                terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            let error = (f64::from(dx[0][i * INPUTS + j]) - sum).abs();
            assert!(error <= sum.abs() * 0.0039063 + size * 1e-6, "{hidden} {i} {j}: {error}");
        }
    }
}

/// Images by operator and operand.
#[derive(Default)]
struct Members(BTreeMap<(Operator, Operand), Vec<f32>>);

impl Observer for Members {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, operand, after, .. } = *seen;
        let all = (0..after.rows()).flat_map(|i| (0..after.cols()).map(move |j| after.at(i, j)));
        self.0.insert((site.operator, operand), all.collect());
    }
}

/// The nine changes of section 6: which operands are bfloat16, which products f32.
#[test]
fn interventions_change_what_they_name() {
    let (control, _) = train("mxpaper-e4m3");
    let [x, w, g] = operands();
    let changed = |option: &str| -> Vec<(Product, Operand)> {
        let (kept, _) = train(&format!("mxpaper-e4m3{option}"));
        let pairs = kept.0.iter().filter(|(place, image)| control.0[*place] != **image);
        for ((_, operand), image) in pairs.clone() {
            let of = [&x, &w, &g][operand.index()];
            let plain = option == "+fwd-only";
            assert_eq!(*image, if plain { of.clone() } else { map(of, bf16_away) }, "{option}");
        }
        pairs.map(|(place, _)| *place).collect()
    };
    use Operand::{GradOutput, Input, Weight};
    use Product::{Forward, GradInput, GradWeight};
    assert_eq!(changed("+bf16-act"), [(Forward, Input), (GradWeight, Input)]);
    assert_eq!(
        changed("+bf16-act-all"),
        [(Forward, Input), (GradInput, GradOutput), (GradWeight, Input), (GradWeight, GradOutput)]
    );
    assert_eq!(changed("+bf16-weight"), [(Forward, Weight)]);
    assert_eq!(
        changed("+fwd-only"),
        [
            (GradInput, Weight),
            (GradInput, GradOutput),
            (GradWeight, Input),
            (GradWeight, GradOutput)
        ]
    );
    for option in ["+no-ln-q", "+no-gelu-q", "+ln-affine=mx", "+attention=fp32"] {
        assert_eq!(changed(option), [], "{option}");
    }
    let (_, [_, dx, dw]) = train("mxpaper-e4m3+fwd-only");
    let (_, [_, plain_dx, plain_dw]) = train("f32");
    assert_eq!((dx, dw), (plain_dx, plain_dw));
}

#[test]
fn weights_alone_in_mxfp8() {
    let (kept, _) = train("mxfp8-weights");
    let [x, w, g] = operands();
    assert_eq!(kept.0[&(Product::Forward, Operand::Input)], map(&x, bf16));
    assert_eq!(kept.0[&(Product::GradWeight, Operand::GradOutput)], map(&g, bf16));
    // In the binade of the scale nothing is a tie, so both roundings agree but for bf16's.
    let rows = w.chunks(INPUTS).flat_map(|row| row.chunks(32));
    let expected: Vec<f32> = rows.flat_map(|block| mx(block, E4M3, false)).collect();
    assert_eq!(kept.0[&(Product::Forward, Operand::Weight)], expected);
}

/// MS-AMP's scale in time: 2^floor(log2(max / amax)), for FP16 and then E4M3 of weights; a window's first
/// steps; then the largest of the window.
#[test]
fn msamp_scales_by_powers_of_two() {
    fn largest(max: f64, x: &[f32]) -> f64 {
        let amax = x.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        power(exponent(max / f64::from(amax)))
    }
    // To a format with M mantissa bits and exponents from emin, ties to even; nothing is too large.
    fn cast(x: &[f32], scale: f64, m: i32, emin: i32) -> Vec<f32> {
        let value = |&x: &f32| {
            let y = f64::from(x) * scale;
            let e = if y == 0.0 { emin } else { exponent(y).max(emin) };
            let place = power(e - m);
            ((y / place).round_ties_even() * place / scale) as f32
        };
        x.iter().map(value).collect()
    }
    let [x, w, g] = operands();
    let mut images = Images::default();
    let (kept, results) = run("msamp-o1+window=2", Phase::Train(0), &mut images);
    let half = cast(&w, largest(65504.0, &w), 10, -14);
    let weight = cast(&half, largest(448.0, &half), 3, -6);
    assert_eq!(kept.0[&(Product::Forward, Operand::Weight)], weight);
    assert_eq!(kept.0[&(Product::GradInput, Operand::Weight)], weight);
    let input = cast(&x, largest(448.0, &x), 3, -6);
    assert_eq!(kept.0[&(Product::Forward, Operand::Input)], input);
    assert_eq!(kept.0[&(Product::GradWeight, Operand::Input)], input);
    let grad = cast(&g, largest(57344.0, &g), 2, -14);
    assert_eq!(kept.0[&(Product::GradInput, Operand::GradOutput)], grad);
    assert_eq!(kept.0[&(Product::GradWeight, Operand::GradOutput)], grad);
    let [.., dw] = multiplied(&kept);
    let dw = map(&dw, bf16);
    let dw = map(&cast(&dw, largest(448.0, &dw), 3, -6), |x| x + 0.5);
    assert_eq!(results[2], dw);
    // What is remembered goes through text, and an evaluation leaves it alone.
    let text = images.memory.to_text();
    assert!(text.starts_with("window layers.1.up_proj input 0 "), "{text}");
    run("msamp-o1+window=2", Phase::Evaluate { step: 1, pass: 0 }, &mut images);
    assert_eq!(images.memory.to_text(), text);
}

/// Row 0 is (1..32)/7 and row 1 a hundredth of its negative: amax 4.571429, the second order of operations.
#[test]
fn nvfp4_golden_vector() {
    let row: Vec<f32> = (1..=32).map(|i| i as f32 / 7.0).collect();
    let x: Vec<f32> = row.iter().copied().chain(row.iter().map(|x| -0.01 * x)).collect();
    let codes = [
        0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 3.0, 3.0,
        4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 6.0, 6.0, 6.0,
    ];
    let scales = [224.0, 448.0, 2.25, 4.5];
    let decode = 1.0_f32 / 588.0;
    let mut expected = Vec::new();
    for i in 0..64 {
        let sign = if i < 32 { 1.0 } else { -1.0 };
        let code = if i == 33 { 0.5 } else { codes[i % 32] };
        expected.push(sign * code * scales[i / 16] * decode);
    }
    assert_eq!(nvfp4(&x, 32, (1, 16), None), expected);
    for text in ["nvfp4", "nvfp4@te-2.13"] {
        let quantizer: Quantizer = text.parse().unwrap();
        let mut image = vec![0.0; 64];
        let random = Philox::new(0, Stream::new("unused"));
        let (view, out) = (View::new(&x, 2, 32), ViewMut::new(&mut image, 2, 32));
        quantizer.image_into(view, Axis::Cols, random, out);
        assert_eq!(image, expected, "{text}");
    }
}

/// The random words of dY in a product of block 1 at step 3.
fn words(product: Product) -> Vec<u32> {
    let (layer_1, up, grad_output) = (2, Operator::Up as u64, 2);
    let stream = Stream::new("quantize").with(3).with(layer_1).with(up);
    let random = Philox::new(5, stream.with(product as u64).with(grad_output));
    (0..(TOKENS * OUTPUTS) as u64).map(|i| random.word(i)).collect()
}

#[test]
fn nv_nvfp4_is_the_table_of_operands() {
    let (kept, results) = train("nv-nvfp4");
    let [x, w, g] = operands().map(|x| map(&x, bf16));
    let weight = nvfp4(&w, INPUTS, (16, 16), None);
    assert_eq!(kept.0[&(Product::Forward, Operand::Input)], nvfp4(&x, INPUTS, (1, 16), None));
    assert_eq!(kept.0[&(Product::Forward, Operand::Weight)], weight);
    assert_eq!(kept.0[&(Product::GradInput, Operand::Weight)], weight);
    let bits = words(Product::GradInput);
    let grad = nvfp4(&g, OUTPUTS, (1, 16), Some(&bits));
    assert_eq!(kept.0[&(Product::GradInput, Operand::GradOutput)], grad);
    let rotated = rotated_down(&x, INPUTS);
    let input = transposed(&nvfp4(&transposed(&rotated, INPUTS), TOKENS, (1, 16), None), TOKENS);
    assert_eq!(kept.0[&(Product::GradWeight, Operand::Input)], input);
    let rotated = transposed(&rotated_down(&g, OUTPUTS), OUTPUTS);
    let bits = transposed(&words(Product::GradWeight), OUTPUTS);
    let grad = transposed(&nvfp4(&rotated, TOKENS, (1, 16), Some(&bits)), TOKENS);
    assert_eq!(kept.0[&(Product::GradWeight, Operand::GradOutput)], grad);
    assert_eq!(results, scaled());
}

/// The products of the full recipe: tensor scales multiply the sums, so they stay out of the images.
fn scaled() -> [Vec<f32>; 3] {
    let [x, w, g] = operands();
    let [x, w] = [View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS)];
    let g = View::new(&g, TOKENS, OUTPUTS);
    let tensor = |text: &str, matrix, axis, product: Product| {
        let stream = Stream::new("quantize").with(3).with(2).with(Operator::Up as u64);
        let random = Philox::new(5, stream.with(product as u64).with(2));
        let quantizer: Quantizer = text.parse().unwrap();
        quantizer.quantize(matrix, axis, random).unwrap()
    };
    let tile = "bf16>e2m1/16x16:ue4m3+tensor";
    let (mut y, mut dx) = (vec![0.0; TOKENS * OUTPUTS], vec![0.0; TOKENS * INPUTS]);
    let mut dw = vec![0.5; OUTPUTS * INPUTS];

    let [a, b] = [("bf16>nvfp4", x), (tile, w)]
        .map(|(text, matrix)| tensor(text, matrix, Axis::Cols, Product::Forward));
    let out = ViewMut::new(&mut y, TOKENS, OUTPUTS);
    multiply_plain(&Factor::from(&a), &Factor::from(&b).t(), out, Scaling::OVERWRITE);

    let a = tensor("bf16>nvfp4@sr8", g, Axis::Cols, Product::GradInput);
    let b = tensor(tile, w, Axis::Rows, Product::GradInput);
    let out = ViewMut::new(&mut dx, TOKENS, INPUTS);
    multiply_plain(&Factor::from(&a), &Factor::from(&b), out, Scaling::OVERWRITE);

    let [a, b] = [("bf16>rht16>nvfp4@sr8", g), ("bf16>rht16>nvfp4", x)]
        .map(|(text, matrix)| tensor(text, matrix, Axis::Rows, Product::GradWeight));
    let out = ViewMut::new(&mut dw, OUTPUTS, INPUTS);
    multiply_plain(&Factor::from(&a).t(), &Factor::from(&b), out, Scaling::ACCUMULATE);
    [map(&y, bf16), map(&dx, bf16), dw]
}

#[test]
fn options_of_nv_nvfp4() {
    let (control, _) = train("nv-nvfp4");
    let changed = |option: &str| -> Vec<(Product, Operand)> {
        let (kept, _) = train(&format!("nv-nvfp4{option}"));
        let other = kept.0.iter().filter(|(place, image)| control.0[*place] != **image);
        other.map(|(place, _)| *place).collect()
    };
    use Operand::{GradOutput, Input, Weight};
    use Product::{Forward, GradInput, GradWeight};
    let grads = [(GradInput, GradOutput), (GradWeight, GradOutput)];
    assert_eq!(changed("+sr=none"), grads);
    assert_eq!(changed("+sr-bits=4"), grads);
    assert_eq!(changed("+rht=none"), [(GradWeight, Input), (GradWeight, GradOutput)]);
    assert_eq!(changed("+rht-size=4"), [(GradWeight, Input), (GradWeight, GradOutput)]);
    assert_eq!(changed("+rht-signs=none"), [(GradWeight, Input), (GradWeight, GradOutput)]);
    assert_eq!(changed("+rht-signs=fresh"), [(GradWeight, Input), (GradWeight, GradOutput)]);
    assert_eq!(changed("+weight-block=1x16"), [(Forward, Weight), (GradInput, Weight)]);
    assert_eq!(changed("+4over6=acts"), [(Forward, Input)]);
    assert_eq!(changed("+4over6=weights"), [(Forward, Weight), (GradInput, Weight)]);
    assert_eq!(changed("+sr=weight").len(), 4);
    assert_eq!(changed("+high=f32"), []);
    assert_eq!(changed("+only=down_proj").len(), 6);
    assert_eq!(changed("+late=3").len(), 6);
    assert_eq!(changed("+late=4"), []);
    assert_eq!(changed("+late=3%+late-scope=forward"), [(Forward, Input), (Forward, Weight)]);
    // Weights along the forward sum are the same numbers in both products that read them.
    let (same, _) = train("nv-nvfp4+weight-block=1x16-same");
    assert_eq!(same.0[&(Forward, Weight)], same.0[&(GradInput, Weight)]);
    let (own, _) = train("nv-nvfp4+weight-block=1x16");
    assert_ne!(own.0[&(Forward, Weight)], own.0[&(GradInput, Weight)]);
    assert_eq!(own.0[&(Forward, Weight)], same.0[&(Forward, Weight)]);
    // Fresh signs differ from step to step, and agree between the operands: the product stays one.
    let (_, [.., fresh]) = train("f32+grad_weight=rht16-f32>none@fresh");
    let (_, [.., plain]) = train("f32");
    assert!(fresh.iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-4));
}

/// Blocks of 32, scales rounded up so that nothing saturates.
#[test]
fn nv_mxfp4_rounds_scales_up() {
    let (kept, _) = train("nv-mxfp4+sr=none+rht=none");
    let [x, ..] = operands().map(|x| map(&x, bf16));
    let image = &kept.0[&(Product::Forward, Operand::Input)];
    for (block, image) in x.chunks(32).zip(image.chunks(32)) {
        let amax = block.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        let quotient = f64::from(amax) / 6.0;
        let below = power(exponent(quotient));
        let scale = if below < quotient { 2.0 * below } else { below } as f32;
        for (x, image) in block.iter().zip(image) {
            let y = x / scale;
            let near = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
            let least = near.iter().map(|n| (n - y.abs()).abs()).fold(f32::MAX, f32::min);
            assert_eq!((image.abs() / scale - y.abs()).abs(), least);
        }
    }
}

/// Linear operators of a softmax block and of one with gated linear attention; the last blocks and the head.
#[test]
fn chon_protects_what_follows_queries_and_keys() {
    let linear = |layer, name: &str| Linear {
        site: Site { layer, operator: name.parse().unwrap() },
        outputs: 64,
        inputs: 64,
    };
    let names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    let blocks = (0..20).flat_map(|layer| names.map(|name| linear(Some(layer), name)));
    let model: Vec<Linear> = blocks.chain([linear(None, "lm_head")]).collect();
    let plan = Plan::of(&"chon".parse().unwrap(), model.clone(), 100).unwrap();
    let text = |site: &str| {
        let site: Site = site.parse().unwrap();
        (
            plan.operand(0, site, Product::Forward, Operand::Weight).to_string(),
            plan.patch(0, site).map_or("off".into(), |patch| patch.to_string()),
        )
    };
    let (fp4, bf16) = (("bf16>nvfp4-16x16", "s-o2-b"), ("bf16", "off"));
    let of = |(numbers, patch): (&str, &str)| (numbers.to_owned(), patch.to_owned());
    for (site, expected) in [
        ("layers.0.q_proj", fp4),
        ("layers.16.o_proj", fp4),
        ("layers.0.v_proj", bf16),
        ("layers.17.q_proj", bf16),
        ("layers.19.down_proj", bf16),
        ("lm_head", bf16),
    ] {
        assert_eq!(text(site), of(expected), "{site}");
    }
    // The same blocks in every run of a comparison, and three quarters in four bits without protection.
    let share = |recipe: &str| {
        let plan = Plan::of(&recipe.parse().unwrap(), model.clone(), 100).unwrap();
        Share::within(&plan.shares(0), 4)
    };
    assert_eq!(share("nv-nvfp4"), share("nv-mxfp4"));
    assert!(share("nv-nvfp4") > 0.8 && share("chon") < share("nv-nvfp4"));
    assert_eq!(share("mxfp8-e4m3"), 0.0);
    let plan = Plan::of(&"mxfp8-e4m3".parse().unwrap(), model, 100).unwrap();
    assert!((Share::within(&plan.shares(0), 8) - 1.0).abs() < 1e-12);
}
