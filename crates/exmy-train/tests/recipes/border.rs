//! Layers as bindings to other languages compute them: digests of three steps of a group q, k and v, which
//! the tests of exmy-python have, too (`test_torch.py`). Both change together or not at all.

use exmy_train::nn::device::{Cpu, Matrix, MatrixMut};
use exmy_train::nn::linear::{Group, Products};
use exmy_train::nn::site::{Operator, Site};
use exmy_train::recipe::{Engine, Images, Linear, Phase, Plan, Recipe};

const TOKENS: usize = 48;
const INPUTS: usize = 64;
const MEMBERS: [(Operator, usize); 3] = [(Operator::Q, 32), (Operator::K, 32), (Operator::V, 32)];

/// Exact numbers from -1 to 1, other ones for each `first`.
fn numbers(len: usize, first: u32) -> Vec<f32> {
    let word = |i: u32| (first + i).wrapping_mul(2_654_435_761) >> 8;
    (0..len as u32).map(|i| word(i) as f32 / 8_388_608.0 - 1.0).collect()
}

/// The sum of the numbers' bits times odd weights, modulo 2^64.
fn digest(numbers: &[f32]) -> u64 {
    let terms = numbers.iter().zip(0_u64..).map(|(x, i)| u64::from(x.to_bits()) * (2 * i + 1));
    terms.fold(0, u64::wrapping_add)
}

/// Of y, dx and dw, all steps added up.
fn digests(recipe: &str) -> [u64; 3] {
    let recipe: Recipe = recipe.parse().unwrap();
    let site = |operator| Site { layer: Some(1), operator };
    let linears =
        MEMBERS.map(|(operator, outputs)| Linear { site: site(operator), outputs, inputs: INPUTS });
    let plan = Plan::of(&recipe, linears.to_vec(), 10).unwrap();
    let (mut images, mut found) = (Images::default(), [0_u64; 3]);
    let outputs = 3 * 32;
    let w = numbers(outputs * INPUTS, 1);
    for step in 0..3_u32 {
        let scale = (1_u32 << step) as f32;
        let x: Vec<f32> = numbers(TOKENS * INPUTS, 1000 + step).iter().map(|x| x * scale).collect();
        let g = numbers(TOKENS * outputs, 2000 + step);
        let mut engine = Engine::new(&plan, 7, Phase::Train(step.into()), &mut images);
        let (device, group) = (Cpu::new(), Group { layer: Some(1), members: &MEMBERS });
        let (mut y, mut dx) = (vec![0.0; TOKENS * outputs], vec![0.0; TOKENS * INPUTS]);
        let mut dw = vec![0.0; outputs * INPUTS];
        let x = Matrix::new(&x, TOKENS, INPUTS);
        let (g, w) = (Matrix::new(&g, TOKENS, outputs), Matrix::new(&w, outputs, INPUTS));
        engine.forward(&device, &group, x, w, MatrixMut::new(&mut y, TOKENS, outputs));
        engine.grad_input(&device, &group, g, w, MatrixMut::new(&mut dx, TOKENS, INPUTS));
        engine.grad_weight(&device, &group, g, x, MatrixMut::new(&mut dw, outputs, INPUTS));
        for (sum, numbers) in found.iter_mut().zip([&y, &dx, &dw]) {
            *sum = sum.wrapping_add(digest(numbers));
        }
    }
    found
}

#[test]
fn layers_have_the_digests_that_bindings_have() {
    for (recipe, expected) in DIGESTS {
        assert_eq!(digests(recipe), expected, "{recipe}");
    }
}

const DIGESTS: [(&str, [u64; 3]); 6] = [
    ("mxfp4@sr8", [147_273_240_649_576_448, 59_757_845_059_534_848, 225_054_219_697_913_856]),
    ("nv-nvfp4+last=0", [148_787_475_689_439_232, 59_010_263_287_988_224, 225_148_264_881_777_449]),
    ("msamp-o1", [148_865_326_728_871_936, 59_853_284_880_613_376, 224_329_803_543_609_344]),
    ("bitred-e8m3", [148_801_272_114_118_656, 59_597_108_878_376_960, 224_621_728_439_468_941]),
    (
        "nvfp4+hcp=d-o2-b",
        [148_656_876_174_746_439, 59_032_233_343_483_297, 221_076_587_163_688_555],
    ),
    ("mxpaper-e4m3", [148_866_762_193_108_992, 59_562_405_976_932_352, 225_639_017_066_528_768]),
];
