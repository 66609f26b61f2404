//! Products by tensor cores and patched products with sums of their own: against the library's products of
//! the operands' images, put together here once more.

use exmy::block::BlockTensor;
use exmy::format::Format;
use exmy::gemm::{Operand as Factor, Spec, gemm_into};
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::Cpu;
use exmy_train::nn::device::MatrixMut;
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::Operator;
use exmy_train::recipe::{Engine, Images, Phase, Plan, Recipe};

use crate::{INPUTS, MEMBERS, OUTPUTS, TOKENS, by_members, image, linears, products, values};

fn codes(x: &[f32]) -> Vec<u16> {
    let narrow = |x: &f32| {
        assert_eq!(x.to_bits() & 0xFFFF, 0, "{x} is no bfloat16 number");
        (x.to_bits() >> 16) as u16
    };
    x.iter().map(narrow).collect()
}

/// `a b` of bfloat16 numbers as the unit `hopper` multiplies them, times alpha, over `c` or added to it.
fn hopper(a: View<'_, f32>, b: View<'_, f32>, alpha: f32, c: ViewMut<'_, f32>, add: bool) {
    let dense = |x: View<'_, f32>| -> Vec<f32> {
        let all = (0..x.rows()).flat_map(|i| (0..x.cols()).map(move |j| x.at(i, j)));
        all.collect()
    };
    let (p, q) = (codes(&dense(a)), codes(&dense(b)));
    let of =
        |codes, rows, cols| Factor::codes16(Format::BF16, View::new(codes, rows, cols)).unwrap();
    let mut spec = Spec::parse("hopper").unwrap();
    (spec.alpha, spec.beta) = (alpha, f32::from(u8::from(add)));
    gemm_into(of(&p, a.rows(), a.cols()), of(&q, b.rows(), b.cols()), &spec, c).unwrap();
}

/// X, W and the gradient of the group.
fn tensors() -> [Vec<f32>; 3] {
    [values(TOKENS * INPUTS, 0), values(OUTPUTS * INPUTS, 1), values(TOKENS * OUTPUTS, 2)]
}

#[test]
fn tensor_cores_multiply_images() {
    let [x, w, g] = tensors();
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    for text in ["mxfp8-e4m3", "e8m3@rtz", "bf16", "mxint8", "e4m3/8:e8m0"] {
        let [y, dx, dw] = products(&format!("{text}+sums=hopper:bf16"), None);
        let [plain, ..] = products(text, None);
        // Sums of these integers are exact in any order.
        assert!(y != plain || text == "mxint8", "{text}: another order");
        let (mut c, rows) = (vec![0.0; TOKENS * OUTPUTS], TOKENS);
        let (qx, qw) = (image(text, x, Axis::Cols), by_members(text, w, Axis::Cols, true));
        let (qx, qw) = (View::new(&qx, rows, INPUTS), View::new(&qw, OUTPUTS, INPUTS));
        hopper(qx, qw.t(), 1.0, ViewMut::new(&mut c, rows, OUTPUTS), false);
        assert_eq!(y, c, "{text} forward");
        let (qg, qw) =
            (by_members(text, g, Axis::Cols, false), by_members(text, w, Axis::Rows, true));
        let (qg, qw) = (View::new(&qg, rows, OUTPUTS), View::new(&qw, OUTPUTS, INPUTS));
        let mut c = vec![0.0; TOKENS * INPUTS];
        hopper(qg, qw, 1.0, ViewMut::new(&mut c, rows, INPUTS), false);
        assert_eq!(dx, c, "{text} grad_input");
        let (qg, qx) = (by_members(text, g, Axis::Rows, false), image(text, x, Axis::Rows));
        let (qg, qx) = (View::new(&qg, rows, OUTPUTS), View::new(&qx, rows, INPUTS));
        let mut c = vec![0.0; OUTPUTS * INPUTS];
        hopper(qg.t(), qx, 1.0, ViewMut::new(&mut c, OUTPUTS, INPUTS), true);
        assert_eq!(dw, c, "{text} grad_weight");
    }
}

/// A tensor whose scale stays apart, and that scale.
fn apart(tensor: BlockTensor) -> (Vec<f32>, f32) {
    let (shape, axis, format) = ((tensor.rows(), tensor.cols()), tensor.axis(), tensor.format());
    let (codes, scales, scale) = tensor.into_parts();
    let whole = BlockTensor::from_parts(format, axis, shape, codes, scales, Some(1.0)).unwrap();
    (whole.dequantize(), scale.unwrap())
}

/// Members with tensor scales are multiplied one by one, and where a rotation has no whole groups, with zeros
/// behind each: 40 inputs, 24 and 12 outputs.
#[test]
fn tensor_scales_multiply_sums_also_behind_rotations() {
    let [x, w, g] = tensors();
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let g = View::new(&g, TOKENS, OUTPUTS);
    for (text, group) in [("nvfp4", 1), ("rht16>nvfp4", 16), ("bf16>rht16>nvfp4", 16)] {
        let quantizer: Quantizer = text.parse().unwrap();
        let made = |x: View<'_, f32>, axis| {
            let (mut rows, mut cols) = (x.rows(), x.cols());
            match axis {
                Axis::Cols => cols = cols.next_multiple_of(group),
                Axis::Rows => rows = rows.next_multiple_of(group),
            }
            let mut filled = vec![0.0; rows * cols];
            for i in 0..x.rows() {
                for j in 0..x.cols() {
                    filled[i * cols + j] = x.at(i, j);
                }
            }
            let random = Philox::new(0, Stream::new("unused"));
            let tensor = quantizer.quantize(View::new(&filled, rows, cols), axis, random).unwrap();
            let (values, scale) = apart(tensor);
            (values, rows, cols, scale)
        };
        let [y, dx, _] = products(&format!("{text}+sums=hopper:bf16"), None);
        let (mut sum, mut start) = (vec![0.0; TOKENS * INPUTS], 0);
        for (_, width) in MEMBERS {
            let range = start..start + width;
            let (w, g) = (w.rows_range(range.clone()), g.cols_range(range.clone()));
            let ((p, m, k, s), (q, n, _, t)) = (made(x, Axis::Cols), made(w, Axis::Cols));
            let mut part = vec![0.0; m * n];
            let (p, q) = (View::new(&p, m, k), View::new(&q, n, k));
            hopper(p, q.t(), s * t, ViewMut::new(&mut part, m, n), false);
            for (row, part) in y.chunks(OUTPUTS).zip(part.chunks(width)) {
                assert_eq!(row[range.clone()], *part, "{text} forward");
            }
            let ((p, m, k, s), (q, _, n, t)) = (made(g, Axis::Cols), made(w, Axis::Rows));
            let (p, q) = (View::new(&p, m, k), View::new(&q, k, n));
            hopper(p, q, s * t, ViewMut::new(&mut sum, m, n), start > 0);
            start += width;
        }
        assert_eq!(dx, sum, "{text} grad_input");
    }
}

#[test]
fn codes_of_e4m3_have_one_scale() {
    let [x, w, _] = tensors();
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let random = Philox::new(0, Stream::new("unused"));
    for text in ["e4m3", "e4m3/tensor:e8m0@rceil", "bf16>e4m3/tensor:e8m0"] {
        let quantizer: Quantizer = text.parse().unwrap();
        let [y, ..] = products(&format!("{text}+sums=hopper:e4m3fn"), None);
        let mut start = 0;
        for (_, width) in MEMBERS {
            let range = start..start + width;
            start += width;
            let tensors = [x, w.rows_range(range.clone())]
                .map(|x| quantizer.quantize(x, Axis::Cols, random).unwrap());
            let [a, b] = tensors.each_ref().map(|tensor| {
                let codes = View::new(tensor.packed_codes(), tensor.rows(), tensor.cols());
                Factor::codes8(Format::E4M3FN, codes).unwrap()
            });
            let scale = |tensor: &BlockTensor| Format::E8M0.to_f32(tensor.scales()[0].into());
            let mut spec = Spec::parse("hopper").unwrap();
            spec.alpha = scale(&tensors[0]) * scale(&tensors[1]);
            let mut part = vec![0.0; TOKENS * width];
            gemm_into(a, b.t(), &spec, ViewMut::new(&mut part, TOKENS, width)).unwrap();
            for (row, part) in y.chunks(OUTPUTS).zip(part.chunks(width)) {
                assert_eq!(row[range.clone()], *part, "{text}");
            }
        }
    }
}

fn plan(text: &str) -> Result<Plan, String> {
    let recipe: Recipe = text.parse().unwrap();
    assert_eq!(recipe.to_string().parse(), Ok(recipe.clone()));
    Plan::of(&recipe, linears(), 10).map_err(|error| error.to_string())
}

#[test]
fn what_tensor_cores_cannot_multiply_is_refused() {
    for text in [
        "bf16",
        "e8m3@rtz",
        "e5m2",
        "mxfp8-mix",
        "mxfp6-e2m3",
        "mxfp4@sr8",
        "mxint8",
        "nvfp4",
        "nvfp4-16x16",
        "bitred-e8m0",
        "bitred-e7m7",
        "mxpaper-e4m3",
        "mxpaper-int8",
        "msamp-o1",
        "e4m3/row:e8m3",
    ] {
        plan(&format!("{text}+sums=hopper:bf16")).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for (text, word) in [
        ("f32", "operand is f32"),
        ("f16", "8 significant bits"),
        ("e9m3", "8 significant bits"),
        ("e3m4/16:e4m3", "8 significant bits"),
        ("rht16>f32", "rht16"),
        ("mxfp8-e4m3+weight=f32", "operand is f32"),
        ("nvfp4+weight=mask3", "scale of a whole tensor"),
        ("mxfp8-e4m3+k_proj:sums=f32", "read one input"),
        ("mxfp8-e4m3+k_proj=f32+k_proj:sums=f32", "read one input"),
    ] {
        // The last rule counts.
        let (base, rest) = text.split_once('+').unwrap_or((text, ""));
        let rest = if rest.is_empty() { String::new() } else { format!("+{rest}") };
        let error = plan(&format!("{base}+sums=hopper:bf16{rest}")).unwrap_err();
        assert!(error.contains(word) && error.contains("sums="), "{text}: {error}");
    }
    for text in ["e4m3", "e4m3/tensor:e8m0@rceil", "rht16>e4m3/tensor:e8m0"] {
        plan(&format!("{text}+sums=hopper:e4m3fn"))
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for text in ["mxfp8-e4m3", "e5m2", "nvfp4", "bf16", "msamp-o1", "f32"] {
        let error = plan(&format!("{text}+sums=hopper:e4m3fn")).unwrap_err();
        assert!(error.contains("hopper:bf16"), "{text}: {error}");
    }
    let error = plan("e4m3+hcp=d-o2-b+sums=hopper:e4m3fn").unwrap_err();
    assert!(error.contains("patch") && error.contains("hopper:bf16"), "{error}");
    plan("mxfp8-e4m3+forward:sums=hopper:bf16+k_proj:forward:sums=f32").unwrap();
}

#[test]
fn texts_of_tensor_cores() {
    let canonical = |text: &str| text.parse::<Recipe>().unwrap().to_string();
    assert_eq!(canonical("bf16+sums=hopper:bf16"), "bf16+sums=hopper:bf16");
    assert_eq!(canonical("e4m3+sums=hopper:e4m3fn"), "e4m3+sums=hopper:e4m3");
    assert_eq!(
        "bf16+sums=hopper:bf16".parse::<Recipe>().unwrap().cores().unwrap().to_string(),
        "hopper:bf16"
    );
    assert_eq!("bf16+sums=fma:bf16".parse::<Recipe>().unwrap().cores(), None);
    for text in [
        "hopper",
        "hopper:e5m2",
        "hopper,promote=128:e4m3",
        "hopper:f16",
        "exact",
        "blackwell:e4m3",
    ] {
        let error = format!("bf16+sums={text}").parse::<Recipe>().unwrap_err().to_string();
        assert!(
            error.contains("hopper:bf16 or hopper:e4m3") && error.contains("fma"),
            "{text}: {error}"
        );
    }
}

/// A forward product under a recipe.
fn forward(text: &str) -> Vec<f32> {
    products(text, None)[0].clone()
}

/// Both products of a patched one are summed as the recipe says: in blocks of 256 as without a word, and as
/// fused multiply-adds in bfloat16 otherwise.
#[test]
fn patched_products_are_summed_as_the_recipe_says() {
    for form in ["s-o2-b", "d-o2-b", "d-full-k16-exact"] {
        let text = format!("mxfp4+hcp={form}");
        assert_eq!(forward(&format!("{text}+sums=blocked256")), forward(&text), "{form}");
        let other = forward(&format!("{text}+sums=fma:bf16"));
        assert_ne!(other, forward(&text), "{form}");
        if form.starts_with('s') {
            assert!(other.iter().all(|y| y.to_bits() & 0xFFFF == 0), "{form}: one sum");
        }
    }
    // Words of a stochastic accumulator: with nothing to patch those of the product without.
    let plain = forward("mxfp4+sums=fma:bf16@sr8");
    assert_eq!(forward("mxfp4+hcp=d-o2-b-k0+sums=fma:bf16@sr8"), plain);
    plan("chon+sums=fma:bf16").unwrap();
    plan("chon+backward:sums=fma:bf16").unwrap();
}

/// Tensor cores multiply the images of a patched product, and its parts rounded to bfloat16.
#[test]
fn patched_products_by_tensor_cores() {
    let [x, w, _] = tensors();
    // All channels, exact residuals: [Xq | RX | Xq] times [Wq | Wq | RW].
    let recipe: Recipe = "mxfp4+hcp=s-o2-b-k100%-exact+sums=hopper:bf16".parse().unwrap();
    let plan = Plan::of(&recipe, linears(), 10).unwrap();
    let mut images = Images::default();
    let mut engine = Engine::new(&plan, 7, Phase::Train(3), &mut images);
    let member = [(Operator::Q, OUTPUTS)];
    let (x, w) = (View::new(&x, TOKENS, INPUTS), View::new(&w, OUTPUTS, INPUTS));
    let mut y = vec![0.0; TOKENS * OUTPUTS];
    let out = MatrixMut::new(&mut y, TOKENS, OUTPUTS);
    let group = Group { layer: Some(1), members: &member };
    engine.forward(&Cpu::new(), &group, x.into(), w.into(), out);
    let parts = |x: View<'_, f32>, order: [usize; 3]| -> Vec<f32> {
        let after = image("mxfp4", x, Axis::Cols);
        let short = |x: f32| -> f32 {
            let one = [x];
            image("bf16", View::new(&one, 1, 1), Axis::Cols)[0]
        };
        let row = |i: usize| {
            let value = move |at: usize, j: usize, after: &[f32]| {
                let q = after[i * INPUTS + j];
                if at == 0 { q } else { x.at(i, j) - q }
            };
            let after = &after;
            order.into_iter().flat_map(move |at| {
                (0..INPUTS).map(move |j| value(at, j, after)).collect::<Vec<_>>()
            })
        };
        (0..x.rows()).flat_map(row).map(short).collect()
    };
    let (a, b) = (parts(x, [0, 1, 0]), parts(w, [0, 0, 1]));
    let mut expected = vec![0.0; TOKENS * OUTPUTS];
    let (a, b) = (View::new(&a, TOKENS, 3 * INPUTS), View::new(&b, OUTPUTS, 3 * INPUTS));
    hopper(a, b.t(), 1.0, ViewMut::new(&mut expected, TOKENS, OUTPUTS), false);
    assert_eq!(y, expected);
}
